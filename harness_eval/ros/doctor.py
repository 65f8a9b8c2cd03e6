"""Listens to a cell for some seconds, as the evaluator node would, and measures it.

Threading: none. The examination has a context, a node and an executor of its own, which are spun
by the methods that wait, on the thread that calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
import os
import threading
import time
from typing import Any
import uuid

import rclpy
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy

from harness_eval.config import Config
from harness_eval.decode import Decoder
from harness_eval.doctor import StreamStatistics
from harness_eval.doctor.diagnosis import Examined
from harness_eval.requests import resolved_topics
from harness_eval.ros.judge_service import JudgeServices
from harness_eval.ros.listening import Listening, servers_of, streams_of

DISCOVERY = 3.0
"""Seconds in which publishers that are there are found; it takes up to two."""
LEAST_DISCOVERY = 1.0
"""Seconds that are waited in any case: a clock and a second publisher are found no sooner."""
SPIN_PERIOD = 0.05


class Examination:
    """A node that measures the streams of a configuration.

    Args:
        config: The configuration.
        namespace: Namespace in which relative names are resolved.
        simulated: Whether stamps are of a simulation; None: if somebody publishes ``/clock``.

    Attributes:
        services: Calls ROS 2 services of judges.
        tools: Names of the streams that each tool needs, by tool.
        simulated: Whether times are of a simulation.
    """

    def __init__(self, config: Config, namespace: str = '', simulated: bool | None = None) -> None:
        """Join the ROS graph."""
        self._config = config
        self._context = rclpy.Context()
        rclpy.init(args=[], context=self._context)
        try:
            self._node = Node(
                f'harness_eval_doctor_{os.getpid()}_{uuid.uuid4().hex[:6]}',
                namespace=namespace,
                context=self._context,
                use_global_arguments=False,
                enable_rosout=False,
                start_parameter_services=False,
            )
            self._group = ReentrantCallbackGroup()
            self._executor = SingleThreadedExecutor(context=self._context)
            self._executor.add_node(self._node)
            decoder = Decoder.from_environment(os.environ)
            self._specs, self.tools = streams_of(
                config, decoder, resolved_topics(config, self._node.resolve_topic_name)
            )
            self._listening = Listening(self._node, self._group, config, self._specs, decoder)
            self.services = JudgeServices(self._node, self._group)
        except BaseException:
            self._context.try_shutdown()
            raise
        self.simulated = bool(simulated)
        self._ask_for_clock = simulated is None

    def __enter__(self) -> Examination:
        """Use it in a ``with`` block that closes it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the ROS graph."""
        self.services.close()
        self._executor.shutdown(timeout_sec=0.0)
        self._node.destroy_node()
        self._context.try_shutdown()

    def measure(self, seconds: float) -> dict[str, Examined]:
        """Listen to every stream for so many seconds, after they have been found.

        Returns:
            What was found, by the name of the stream.
        """
        self._find()
        if self.simulated:
            self._node.set_parameters([Parameter('use_sim_time', value=True)])
            self._spin_until(lambda: self._node.get_clock().now().nanoseconds > 0, DISCOVERY)
        self._listening.begin(self._specs)
        self._spin_until(lambda: False, seconds)
        # The graph is asked while the subscriptions are there: they know what does not match.
        found = {
            name: Examined(measured, self._listening.facts(name), self._offered(measured))
            for name, measured in self._listening.statistics().items()
        }
        self._listening.end()
        return found

    def servers(self, service: str) -> Mapping[str, int]:
        """How many servers of each type a service has."""
        return servers_of(self._node, service)

    @contextmanager
    def spinning(self) -> Iterator[None]:
        """Answer in the background, for judges that are ROS 2 services."""
        end = threading.Event()

        def spin() -> None:
            while not end.is_set():
                self._executor.spin_once(timeout_sec=SPIN_PERIOD)

        thread = threading.Thread(target=spin, daemon=True, name='doctor')
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def _find(self) -> None:
        """Wait until every stream has a publisher, or it is clear that some have none."""
        topics = [spec.topic for spec in self._specs.values()]
        began = time.monotonic()

        def found() -> bool:
            complete = all(self._node.count_publishers(topic) for topic in topics)
            return complete and time.monotonic() - began >= LEAST_DISCOVERY

        self._spin_until(found, DISCOVERY)
        if self._ask_for_clock:
            self.simulated = self._node.count_publishers('/clock') > 0

    def _spin_until(self, condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0.0:
                return
            self._executor.spin_once(timeout_sec=min(SPIN_PERIOD, left))

    def _offered(self, measured: StreamStatistics) -> str:
        publishers = self._node.get_publishers_info_by_topic(measured.spec.topic)
        return ' + '.join(dict.fromkeys(_qos_words(info.qos_profile) for info in publishers))


def _qos_words(profile: Any) -> str:
    reliable = profile.reliability is ReliabilityPolicy.RELIABLE
    latched = profile.durability is DurabilityPolicy.TRANSIENT_LOCAL
    return ('reliable' if reliable else 'best effort') + (', latched' if latched else '')
