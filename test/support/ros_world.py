"""Nodes of one test on a domain of their own, spun in background threads.

Threads: each :meth:`RosWorld.spin` starts one executor in one thread. The test's own thread never
spins; it waits on conditions. An exception that ends a spinning thread fails the next wait and the
end of the test, so that it cannot go unseen.
"""

from __future__ import annotations

from collections.abc import Callable
import threading
import time
from typing import Any, TypeVar

import rclpy
from rclpy.context import Context
from rclpy.executors import (
    Executor,
    ExternalShutdownException,
    MultiThreadedExecutor,
    SingleThreadedExecutor,
)
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

T = TypeVar('T')

POLL_PERIOD = 0.005
"""Seconds between two looks at a condition."""

JOIN_TIMEOUT = 10.0
"""Seconds that a spinning thread has to end after its executor was shut down."""


class RosWorld:
    """A context on its own domain, with the nodes, executors and threads made in it.

    Attributes:
        context: The context to hand to every rclpy object.
        domain_id: Its domain; child processes get the same one as ``ROS_DOMAIN_ID``.
    """

    def __init__(self, domain_id: int) -> None:
        self.domain_id = domain_id
        self.context = Context()
        rclpy.init(context=self.context, domain_id=domain_id)
        self._nodes: list[Node] = []
        self._executors: list[Executor] = []
        self._threads: list[threading.Thread] = []
        self._errors: list[BaseException] = []

    def node(
        self, name: str, *, kind: Callable[..., Any] = Node, spin: bool = False, **options: Any
    ) -> Any:
        """Make a node in this world; it is destroyed at the end of the test.

        Args:
            name: Name of the node.
            kind: Its class, for example ``LifecycleNode``.
            spin: Whether to spin it at once in a thread of its own.
            options: Further keyword arguments of the class.
        """
        node = kind(name, context=self.context, **options)
        self._nodes.append(node)
        if spin:
            self.spin(node)
        return node

    def adopt(self, node: T) -> T:
        """Take over a node that was made elsewhere with ``context=ros.context``."""
        self._nodes.append(node)  # type: ignore[arg-type]
        return node

    def spin(self, *nodes: Node, threads: int = 1) -> Executor:
        """Spin nodes in the background until the end of the test.

        Args:
            nodes: The nodes that share the executor.
            threads: 1 for a single-threaded executor, more for a multi-threaded one.

        Returns:
            The running executor; further nodes may be added to it.
        """
        executor: Executor
        if threads == 1:
            executor = SingleThreadedExecutor(context=self.context)
        else:
            executor = MultiThreadedExecutor(threads, context=self.context)
        for node in nodes:
            executor.add_node(node)
        thread = threading.Thread(target=self._spin, args=(executor,), daemon=True)
        self._executors.append(executor)
        self._threads.append(thread)
        thread.start()
        return executor

    def wait(
        self,
        predicate: Callable[[], T],
        timeout: float = 20.0,
        what: str = 'the condition',
    ) -> T:
        """Wait until a condition holds.

        Args:
            predicate: Called again and again until what it returns is true.
            timeout: Seconds of wall time.
            what: What is waited for, in words; the failure says it.

        Returns:
            What the predicate returned.

        Raises:
            AssertionError: The time is over, or a spinning thread died of an exception.
        """
        deadline = time.monotonic() + timeout
        while True:
            self._raise_errors()
            answer = predicate()
            if answer:
                return answer
            if time.monotonic() > deadline:
                raise AssertionError(f'waited {timeout:g} s in vain for {what}: got {answer!r}')
            time.sleep(POLL_PERIOD)

    def collect(
        self, node: Node, message_type: Any, topic: str, qos: QoSProfile | int = 1000
    ) -> list[Any]:
        """Subscribe and return the list that messages are appended to.

        Args:
            node: The node that subscribes; it must be spun.
            message_type: Type of the messages.
            topic: Name of the topic.
            qos: A profile, or the depth of a reliable one.
        """
        received: list[Any] = []
        if isinstance(qos, int):
            qos = QoSProfile(depth=qos, reliability=ReliabilityPolicy.RELIABLE)
        node.create_subscription(message_type, topic, received.append, qos)
        return received

    def call(self, client: Any, request: Any, timeout: float = 20.0) -> Any:
        """Call a service through a client of a node that is spun, and return the response."""
        name = client.srv_name
        self.wait(client.service_is_ready, timeout, f'service {name}')
        return self.result(client.call_async(request), timeout, f'the answer of {name}')

    def send_goal(self, client: Any, goal: Any, timeout: float = 20.0, **options: Any) -> Any:
        """Send a goal through an action client of a node that is spun; return its goal handle."""
        self.wait(client.server_is_ready, timeout, 'the action server')
        future = client.send_goal_async(goal, **options)
        return self.result(future, timeout, 'the answer to the goal')

    def result(self, future: Any, timeout: float = 20.0, what: str = 'the future') -> Any:
        """Wait for a future of a node that is spun, and return its result."""
        self.wait(future.done, timeout, what)
        return future.result()

    def close(self) -> None:
        """End threads, nodes and the context; raise what a spinning thread died of.

        Raises:
            AssertionError: A thread died of an exception, or does not end.
        """
        for executor in self._executors:
            executor.shutdown(timeout_sec=0.0)
        for thread in self._threads:
            thread.join(JOIN_TIMEOUT)
        stuck = [thread.name for thread in self._threads if thread.is_alive()]
        # A node must not be destroyed under a thread that still spins it: that crashes rcl.
        if not stuck:
            for node in reversed(self._nodes):
                node.destroy_node()
        self.context.try_shutdown()
        assert not stuck, f'these threads did not end within {JOIN_TIMEOUT:g} s: {stuck}'
        self._raise_errors()

    def _spin(self, executor: Executor) -> None:
        try:
            executor.spin()
        except ExternalShutdownException:
            pass
        except BaseException as error:  # handed to the thread of the test
            self._errors.append(error)

    def _raise_errors(self) -> None:
        if self._errors:
            error = self._errors[0]
            raise AssertionError(f'a spinning thread died of {error!r}') from error
