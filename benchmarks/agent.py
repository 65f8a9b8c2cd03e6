"""The agent of a benchmark: reports that runs end and notes when it hears what became of them.

Threading: callbacks run on a thread that spins the agent's node, and store under one lock; the
thread of the benchmark waits on a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
from dataclasses import dataclass
import threading
import time
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from harness_eval_msgs.msg import RunOutcome, SceneGraphUpdate, ToolCompletion, Verdict

APART = 0.25
"""Seconds between runs that shall not share subscriptions: longer than the node keeps them."""
PATIENCE = 30.0
"""Seconds until an answer that does not come fails the benchmark."""
RELIABLE = QoSProfile(depth=1000)
LATCHED = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""What an agent that may not miss an answer listens with; both sides publish so."""
LOOK_PERIOD = 0.001
"""Seconds between two looks at the graph."""


@dataclass(frozen=True)
class Heard:
    """A message and when it came.

    Attributes:
        monotonic: Monotonic nanoseconds.
        wall: Nanoseconds since the epoch.
        message: The message.
    """

    monotonic: int
    wall: int
    message: Any


class NoAnswerError(RuntimeError):
    """A node did not answer, or with something else than the benchmark rests on."""


class Link:
    """What the agent hears from, and tells, the node of one namespace.

    Args:
        node: The agent's node.
        namespace: Name of the namespace, without slashes.
        kinds: Types of the messages to hear.
    """

    def __init__(self, node: Node, namespace: str, kinds: tuple[Any, ...]) -> None:
        """Listen to those kinds of messages."""
        self._node = node
        self._changed = threading.Condition()
        self._heard: dict[tuple[str, str], list[Heard]] = {}
        self._finished = 0
        self._names = {
            Verdict: f'/{namespace}/harness_eval/verdicts',
            RunOutcome: f'/{namespace}/harness_eval/outcomes',
            SceneGraphUpdate: f'/{namespace}/scene_graph/updates',
        }
        for kind in kinds:
            node.create_subscription(kind, self._names[kind], self._listener(kind), LATCHED)
        self._kinds = kinds
        self._completions = node.create_publisher(
            ToolCompletion, f'/{namespace}/tool_completions', RELIABLE
        )
        self._proposed = f'/{namespace}/scene_graph/proposed'
        self._proposals: Any = None

    def wait_until_connected(self) -> None:
        """Wait until the node hears completions and is heard."""
        _wait(
            lambda: (
                self._completions.get_subscription_count()
                and all(self._node.count_publishers(self._names[kind]) for kind in self._kinds)
            )
        )

    def complete(self, run_id: str) -> int:
        """Report that a run ended now; return the monotonic nanoseconds before the report."""
        message = ToolCompletion(run_id=run_id, tool='pick')
        message.header.stamp = self._node.get_clock().now().to_msg()
        now = time.monotonic_ns()
        self._completions.publish(message)
        return now

    def propose(self, run_id: str) -> None:
        """Propose an update of the scene graph, to be held until the verdict of the run."""
        if self._proposals is None:
            self._proposals = self._node.create_publisher(
                SceneGraphUpdate, self._proposed, RELIABLE
            )
            _wait(self._proposals.get_subscription_count)
        self._proposals.publish(SceneGraphUpdate(run_id=run_id, update_id='proposed'))

    def hear(self, kind: Any, run_id: str, count: int = 1) -> Heard:
        """Wait for the message of a kind about a run; of several, for the last of ``count``."""
        key = (kind.__name__, run_id)
        with self._changed:
            if not self._changed.wait_for(
                lambda: len(self._heard.get(key, ())) >= count, PATIENCE
            ):
                raise NoAnswerError(f'no {kind.__name__} about run {run_id!r} came')
            return self._heard[key][count - 1]

    def wait_for_outcomes(self, count: int) -> None:
        """Wait until so many outcomes came since the start."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._finished >= count, PATIENCE):
                raise NoAnswerError(f'{self._finished} outcomes came, not {count}')

    def forget(self) -> None:
        """Forget which messages came."""
        with self._changed:
            self._heard.clear()

    def _listener(self, kind: Any) -> Callable[[Any], None]:
        name = kind.__name__

        def received(message: Any) -> None:
            heard = Heard(time.monotonic_ns(), time.time_ns(), message)
            with self._changed:
                self._heard.setdefault((name, message.run_id), []).append(heard)
                self._finished += kind is RunOutcome
                self._changed.notify_all()

        return received


class Agent:
    """A node of the benchmark's own process, spun on a thread of its own."""

    def __init__(self, domain: int) -> None:
        """Join the domain."""
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        # Without the services of parameters, so that the agent's own executor adds little.
        self.node = rclpy.create_node(
            'agent', context=self._context, start_parameter_services=False
        )
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, name='agent', daemon=True)
        self._thread.start()

    def link(self, namespace: str, *kinds: Any) -> Link:
        """Connect to the node of a namespace, and wait until both hear each other."""
        link = Link(self.node, namespace, kinds)
        link.wait_until_connected()
        return link

    def close(self) -> None:
        """Leave the domain."""
        self._executor.shutdown(timeout_sec=0.0)
        self._thread.join(5.0)
        self.node.destroy_node()
        self._context.try_shutdown()

    def _spin(self) -> None:
        with contextlib.suppress(ExternalShutdownException):
            self._executor.spin()


@contextlib.contextmanager
def agent_on(domain: int) -> Iterator[Agent]:
    """An agent that leaves at the end of the block."""
    agent = Agent(domain)
    try:
        yield agent
    finally:
        agent.close()


def _wait(holds: Callable[[], Any]) -> None:
    """Wait for something that the graph of nodes comes to by itself.

    Raises:
        NoAnswerError: It does not.
    """
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            raise NoAnswerError('the node did not appear in the graph; it may have ended')
        time.sleep(LOOK_PERIOD)


def check_success(heard: Heard) -> None:
    """See that a run was judged as it should have been.

    Args:
        heard: Its outcome.

    Raises:
        NoAnswerError: It was not; nothing that was measured counts.
    """
    outcome = heard.message
    if outcome.kind != RunOutcome.VERDICT or outcome.verdict.status != Verdict.SUCCESS:
        raise NoAnswerError(
            f'run {outcome.run_id!r} ended as {outcome.error_kind}: {outcome.message}'
        )
