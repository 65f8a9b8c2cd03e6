"""Camera and state subscriptions that exist while a run waits for frames, and a moment longer.

Threading: :meth:`Taps.want` may be called from any thread; subscriptions are made and destroyed
on the executor's thread alone. A callback takes the receipt time and hands the raw bytes over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import importlib
import logging
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import (
    DurabilityPolicy,
    HistoryPolicy,
    qos_policy_name_from_kind,
    QoSProfile,
    ReliabilityPolicy,
)

from harness_eval.capture import TopicFacts
from harness_eval.lines import describe

log = logging.getLogger('harness_eval.taps')

GRAPH_PERIOD = 0.1
"""Seconds between two looks at the graph while anything is tapped: discovery takes 0.5 s or more
after a start, and a publisher may come back with another QoS."""
DEPTH = 10
"""Frames that wait for the executor; more would be old before they are read."""

OnMessage = Callable[[str, str, bytes, int], None]
"""Gets the topic, the message type, the CDR bytes and the receipt in nanoseconds."""


class UnknownTypeError(LookupError):
    """The Python package of a message type is not installed."""


def message_class(name: str) -> Any:
    """The class of a message type such as ``sensor_msgs/msg/Image``.

    Raises:
        UnknownTypeError: Its package is not installed, or has no such message.
    """
    package, _, rest = name.partition('/')
    kind = rest.rpartition('/')[2]
    try:
        return getattr(importlib.import_module(f'{package}.msg'), kind)
    except (ImportError, AttributeError, ValueError) as error:
        raise UnknownTypeError(
            f'message type {name} is not installed here; source the workspace that has it'
        ) from error


class Taps:
    """Subscriptions to what runs wait for.

    Args:
        node: The node that subscribes; it must be spun by an executor.
        types: Message type of each topic by its resolved name; empty: whatever the topic has.
        always_on: Topics that are listened to all the time.
        on_message: Gets every message; called on the executor's thread.
        group: Callback group of the timer.
    """

    def __init__(
        self,
        node: Node,
        types: Mapping[str, str],
        always_on: Iterable[str],
        on_message: OnMessage,
        group: Any,
    ) -> None:
        self._node = node
        self._types = dict(types)
        self._always_on = frozenset(always_on)
        self._on_message = on_message
        self._wanted: frozenset[str] = frozenset()
        self._open: dict[str, tuple[Any, str, ReliabilityPolicy]] = {}
        self._incompatible: dict[str, str] = {}
        self._unknown: dict[str, str] = {}
        self._timer = node.create_timer(GRAPH_PERIOD, self._follow_graph, callback_group=group)
        self._timer.cancel()
        self._closed = False

    def want(self, topics: frozenset[str]) -> None:
        """Listen to these topics, to those that are always on, and soon to no others.

        To destroy a subscription keeps the whole process for some tenths of a millisecond, so it
        is not done at the moment at which a run has all its frames and goes on.
        """
        wanted, before = topics | self._always_on, self._wanted
        if wanted == before:
            return
        self._wanted = wanted
        if not wanted - before:
            return  # the rest is dropped with its next message, or by the timer
        executor = self._node.executor
        if executor is None:  # nothing spins yet, so nothing can be in the way
            self._apply()
        else:
            executor.create_task(self._apply)

    def close(self) -> None:
        """Destroy every subscription; on the executor's thread, or when it does not spin."""
        self._closed = True
        self._wanted = frozenset()
        self._apply()
        self._node.destroy_timer(self._timer)

    def facts(self, topic: str) -> TopicFacts:
        """What the graph says about a topic now."""
        publishers = self._node.get_publishers_info_by_topic(topic)
        return TopicFacts(
            publishers=len(publishers),
            types=tuple(sorted({info.topic_type for info in publishers})),
            incompatible_qos=self._incompatible.get(topic, ''),
            undecodable=self._unknown.get(topic, ''),
        )

    def _apply(self) -> None:
        try:
            self._match()
        except Exception:
            log.exception('the subscriptions could not be changed')

    def _match(self) -> None:
        """Have the subscriptions that are wanted and no others."""
        wanted = self._wanted
        for topic in [t for t in self._open if t not in wanted]:
            self._drop(topic)
        for topic in wanted:
            if topic not in self._open:
                self._subscribe(topic)
        if self._closed:
            return
        if not (wanted or self._open):
            self._timer.cancel()
        elif self._timer.is_canceled():
            self._timer.reset()

    def _follow_graph(self) -> None:
        """Drop what is unwanted, and subscribe again where the graph has changed."""
        try:
            self._match()
            self._refresh()
        except Exception:
            log.exception('the graph could not be followed')

    def _refresh(self) -> None:
        """Subscribe where the type was unknown, and again where the offered QoS changed."""
        for topic in self._wanted:
            opened = self._open.get(topic)
            if opened is None:
                self._subscribe(topic)
                continue
            _, kind, reliability = opened
            publishers = self._node.get_publishers_info_by_topic(topic)
            if publishers and reliability is not _reliability(publishers, kind):
                self._drop(topic)
                self._subscribe(topic)

    def _subscribe(self, topic: str) -> None:
        publishers = self._node.get_publishers_info_by_topic(topic)
        kind = self._types.get(topic, '') or next((i.topic_type for i in publishers), '')
        if not kind:
            return  # looked at again when the graph has a publisher
        try:
            cls = message_class(kind)
        except UnknownTypeError as error:
            self._unknown[topic] = str(error)
            return
        reliability = _reliability(publishers, kind)
        profile = QoSProfile(
            history=HistoryPolicy.KEEP_LAST,
            depth=DEPTH,
            reliability=reliability,
            durability=DurabilityPolicy.VOLATILE,
        )
        clock = self._node.get_clock()

        def received(data: bytes) -> None:
            if topic in self._wanted:
                self._on_message(topic, kind, data, clock.now().nanoseconds)
            else:
                self._apply()

        def incompatible(event: Any) -> None:
            policy = qos_policy_name_from_kind(event.last_policy_kind)
            self._incompatible[topic] = f'the publisher offers another {policy}'

        try:
            subscription = self._node.create_subscription(
                cls,
                topic,
                received,
                profile,
                raw=True,
                # One of its own: a group keeps a reference to all that ever belonged to it.
                callback_group=ReentrantCallbackGroup(),
                event_callbacks=SubscriptionEventCallbacks(incompatible_qos=incompatible),
            )
        except Exception as error:  # a middleware may refuse a second type on one topic
            self._unknown[topic] = f'no subscription as {kind} can be made: {describe(error)}'
            return
        self._unknown.pop(topic, None)
        self._open[topic] = (subscription, kind, reliability)

    def _drop(self, topic: str) -> None:
        subscription, _, _ = self._open.pop(topic)
        self._incompatible.pop(topic, None)
        self._node.destroy_subscription(subscription)


def _reliability(publishers: Iterable[Any], kind: str) -> ReliabilityPolicy:
    """Reliable only if every known publisher of the type offers it."""
    offered = [p.qos_profile.reliability for p in publishers if p.topic_type == kind]
    if offered and all(policy is ReliabilityPolicy.RELIABLE for policy in offered):
        return ReliabilityPolicy.RELIABLE
    return ReliabilityPolicy.BEST_EFFORT
