"""Subscriptions to completions, each as reliable as its publishers allow.

A reliable subscription hears nothing of a best-effort publisher, and a best-effort one may lose a
completion. So each is reliable until a publisher appears that is not.

Threading: everything runs on the executor's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
import logging
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from harness_eval.completions import CompletionReader
from harness_eval.ros.publications import RELIABLE
from harness_eval.ros.taps import message_class

log = logging.getLogger('harness_eval.node')

GRAPH_PERIOD = 0.5
"""Seconds between two looks at who publishes completions."""

OnMessage = Callable[[CompletionReader, bytes], None]


class CompletionSubscriptions:
    """Subscriptions to every source of completions.

    Args:
        node: The node that subscribes.
        readers: Who reads the messages of each source.
        on_message: Gets every message as CDR bytes.
        group: Callback group of the timer.
    """

    def __init__(
        self, node: Node, readers: Iterable[CompletionReader], on_message: OnMessage, group: Any
    ) -> None:
        self._node = node
        self._on_message = on_message
        self._open = [(reader, *self._subscribe(reader, RELIABLE)) for reader in readers]
        self._timer = node.create_timer(GRAPH_PERIOD, self._follow_graph, callback_group=group)
        self._follow_graph()

    def close(self) -> None:
        """Listen no more."""
        self._node.destroy_timer(self._timer)
        for _, subscription, _ in self._open:
            self._node.destroy_subscription(subscription)
        self._open.clear()

    def _subscribe(self, reader: CompletionReader, qos: QoSProfile) -> tuple[Any, Any]:
        def received(data: Any) -> None:
            self._on_message(reader, data)

        subscription = self._node.create_subscription(
            message_class(reader.type),
            reader.topic,
            received,
            qos,
            raw=True,
            # One of its own: a group keeps a reference to all that ever belonged to it.
            callback_group=ReentrantCallbackGroup(),
        )
        return subscription, qos.reliability

    def _follow_graph(self) -> None:
        try:
            self._open = [self._fitting(*entry) for entry in self._open]
        except Exception:
            log.exception('the publishers of completions could not be looked at')

    def _fitting(
        self, reader: CompletionReader, subscription: Any, reliability: Any
    ) -> tuple[CompletionReader, Any, Any]:
        topic = self._node.resolve_topic_name(reader.topic)
        offered = [
            info.qos_profile.reliability
            for info in self._node.get_publishers_info_by_topic(topic)
            if info.topic_type == reader.type
        ]
        wanted = (
            ReliabilityPolicy.BEST_EFFORT
            if ReliabilityPolicy.BEST_EFFORT in offered
            else ReliabilityPolicy.RELIABLE
        )
        if wanted is reliability or not offered:
            return reader, subscription, reliability
        if wanted is ReliabilityPolicy.BEST_EFFORT:
            log.warning(
                '%s is published best effort: a completion that is lost on the way is never '
                'judged; have its publisher offer reliable delivery',
                topic,
            )
        # The new one first: a completion that both hear is answered once.
        fitting = self._subscribe(reader, QoSProfile(depth=RELIABLE.depth, reliability=wanted))
        self._node.destroy_subscription(subscription)
        return (reader, *fitting)
