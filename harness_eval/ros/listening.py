"""Hears streams for a moment, to measure them.

Threading: all of it is called on the executor's thread, or before an executor spins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rclpy.node import Node

from harness_eval.capture import StreamSpec, TopicFacts
from harness_eval.config import Config
from harness_eval.decode import Decoder
from harness_eval.doctor import StreamMeter, StreamStatistics
from harness_eval.field_path import FieldPath
from harness_eval.message_types import CAMERA_INFO
from harness_eval.requests import Requests
from harness_eval.ros.taps import Taps

PATIENCE = 4.0
"""Seconds that a stream is waited for: discovery takes up to two, and then it has to send."""
HEARD_ALONE = 0.5
"""Seconds after which streams that do not send are no reason to go on hearing those that do."""
ENOUGH = 5
"""Messages that show whether a stream is good."""


def streams_of(
    config: Config, decoder: Decoder, topics: Mapping[str, str]
) -> tuple[dict[str, StreamSpec], dict[str, tuple[str, ...]]]:
    """The streams of a configuration by name, and the names of those that each tool needs.

    Args:
        config: The configuration.
        decoder: Reads messages.
        topics: Names of the topics as resolved, by their names in the configuration.
    """
    requests = Requests(config, decoder, topics)
    tools = {
        tool: tuple(spec.name for spec in requests.streams_of(tool))
        for tool in config.evaluation.tools
    }
    return dict(requests.streams), tools


def servers_of(node: Node, service: str) -> dict[str, int]:
    """How many servers of each type a service has, by type; safe from any thread.

    Args:
        node: The node that looks.
        service: Name of the service; a relative one is resolved by the node.
    """
    name = node.resolve_service_name(service)
    count = node.count_services(name)
    # The graph lists the types that clients ask for as well.
    types = dict(node.get_service_names_and_types()).get(name, []) if count else []
    return dict.fromkeys(types, count)


class Listening:
    """Meters on streams, and the subscriptions that feed them.

    Args:
        node: The node that subscribes.
        group: Its callback group.
        config: The configuration.
        specs: The streams by name.
        decoder: Reads messages.
    """

    def __init__(
        self,
        node: Node,
        group: Any,
        config: Config,
        specs: Mapping[str, StreamSpec],
        decoder: Decoder,
    ) -> None:
        self._config = config
        self._specs = dict(specs)
        self._decoder = decoder
        self._meters: dict[str, StreamMeter] = {}
        self._by_topic: dict[str, list[StreamMeter]] = {}
        self._count: dict[str, int] = {}
        types = {spec.topic: spec.type for spec in specs.values() if spec.type}
        for spec in specs.values():
            if spec.name not in config.capture.states and not spec.type:
                types[spec.topic] = CAMERA_INFO
        self._taps = Taps(node, types, (), self._heard, group)

    @property
    def names(self) -> tuple[str, ...]:
        """The streams that are heard, or were."""
        return tuple(self._meters)

    def begin(self, names: Iterable[str]) -> None:
        """Hear these streams; what was heard before is forgotten."""
        chosen = [self._specs[name] for name in names]
        self._meters = {spec.name: self._meter(spec) for spec in chosen}
        self._by_topic = {}
        self._count = {}
        for spec in chosen:
            self._by_topic.setdefault(spec.topic, []).append(self._meters[spec.name])
            self._count.setdefault(spec.topic, 0)
        self._taps.want(frozenset(self._by_topic))

    def enough(self, elapsed: float) -> bool:
        """Whether the streams have been heard for long enough.

        Those that send are let go together, so that their stamps can be compared; those that do
        not are waited for alone, which costs nothing.

        Args:
            elapsed: Seconds since :meth:`begin`.
        """
        silent = frozenset(topic for topic, count in self._count.items() if not count)
        few = [count for count in self._count.values() if 0 < count < ENOUGH]
        if elapsed >= PATIENCE or not (silent or few):
            return True
        if silent and not few and elapsed >= HEARD_ALONE:
            self._taps.want(silent)
        return False

    def end(self) -> None:
        """Hear nothing any more; what was heard is kept."""
        self._taps.want(frozenset())

    def statistics(self) -> dict[str, StreamStatistics]:
        """What the streams were like, by name."""
        return {name: meter.statistics() for name, meter in self._meters.items()}

    def silent(self, name: str) -> StreamStatistics:
        """What a stream is like of which nothing was heard."""
        return self._meter(self._specs[name]).statistics()

    def facts(self, name: str) -> TopicFacts:
        """What the graph says about the topic of a stream now."""
        return self._taps.facts(self._specs[name].topic)

    def close(self) -> None:
        """Destroy the subscriptions."""
        self._taps.close()

    def _heard(self, topic: str, kind: str, data: bytes, receipt: int) -> None:
        if topic not in self._count:
            return  # it was let go a moment ago
        self._count[topic] += 1
        for meter in self._by_topic[topic]:
            meter.add(kind, data, receipt)

    def _meter(self, spec: StreamSpec) -> StreamMeter:
        state = self._config.capture.states.get(spec.name)
        if state is None:
            return StreamMeter(spec, self._decoder)
        return StreamMeter(spec, self._decoder, FieldPath.parse(state.field), state.reduce)
