"""Camera and state subscriptions that are heard while a run waits for frames.

To destroy a subscription keeps the whole process for a millisecond or two, and so does each
picture that comes on it. So when a run has all its frames and goes on to its verdict, the executor
is kept from looking at the subscription, and a moment later it is destroyed. It is never heard
again: what has queued up in it meanwhile would seem to come when it is read.

Threading: :meth:`Taps.want` may be called from any thread; subscriptions are made and destroyed
on the executor's thread alone. A callback takes the receipt time and hands the raw bytes over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
import importlib
import logging
import time
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
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
LINGER = 0.05
"""Seconds after which a subscription that is wanted no more is destroyed, at the next look."""
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


class _Tap(ReentrantCallbackGroup):
    """A subscription that can be kept from being heard, as the callback group of it alone.

    A group of its own also since a group keeps a reference to all that ever belonged to it.

    Args:
        kind: Message type.
        reliability: Of the subscription.
    """

    def __init__(self, kind: str, reliability: ReliabilityPolicy) -> None:
        super().__init__()
        self.kind = kind
        self.reliability = reliability
        self.subscription: Any = None
        self.deaf_since: float | None = None  # steady seconds

    @property
    def deaf(self) -> bool:
        """Whether it is not heard, and never will be."""
        return self.deaf_since is not None

    def deafen(self) -> None:
        """Hear nothing from now on."""
        self.deaf_since = time.monotonic()

    def can_execute(self, entity: Any) -> bool:
        """Whether the executor should wait for it."""
        return not self.deaf

    def beginning_execution(self, entity: Any) -> bool:
        """Whether a message may be taken."""
        return not self.deaf


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
        self._open: dict[str, _Tap] = {}
        self._incompatible: dict[str, str] = {}
        self._unknown: dict[str, str] = {}
        self._timer = node.create_timer(
            GRAPH_PERIOD,
            self._follow_graph,
            callback_group=group,
            clock=Clock(clock_type=ClockType.STEADY_TIME),
        )
        self._timer.cancel()
        self._closed = False

    def want(self, topics: frozenset[str]) -> bool:
        """Listen to these topics, to those that are always on, and to no others.

        Returns:
            Whether the executor has subscriptions to make for that.
        """
        wanted, before = topics | self._always_on, self._wanted
        if wanted == before or self._closed:
            return False
        self._wanted = wanted
        for topic in before - wanted:
            tap = self._open.get(topic)
            if tap is not None:
                tap.deafen()
        if not wanted:
            self._timer.reset()  # there is no graph to follow, and a run is being finished now
        if not wanted - before:
            return False  # the timer destroys the rest
        executor = self._node.executor
        if executor is None:  # nothing spins yet, so nothing can be in the way
            self._apply()
        else:
            executor.create_task(self._apply)
        return True

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
        """Have the subscriptions that are wanted, and for long no others."""
        wanted = self._wanted
        for topic, tap in list(self._open.items()):
            if self._closed or (tap.deaf if topic in wanted else _has_lingered(tap)):
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
            publishers = self._node.get_publishers_info_by_topic(topic)
            if publishers and opened.reliability is not _reliability(publishers, opened.kind):
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
        tap = _Tap(kind, reliability)

        def received(data: bytes) -> None:
            if topic in self._wanted:
                self._on_message(topic, kind, data, clock.now().nanoseconds)

        def incompatible(event: Any) -> None:
            policy = qos_policy_name_from_kind(event.last_policy_kind)
            self._incompatible[topic] = f'the publisher offers another {policy}'

        try:
            tap.subscription = self._node.create_subscription(
                cls,
                topic,
                received,
                profile,
                raw=True,
                callback_group=tap,
                event_callbacks=SubscriptionEventCallbacks(incompatible_qos=incompatible),
            )
        except Exception as error:  # a middleware may refuse a second type on one topic
            self._unknown[topic] = f'no subscription as {kind} can be made: {describe(error)}'
            return
        self._unknown.pop(topic, None)
        self._open[topic] = tap
        if topic not in self._wanted:  # any more
            tap.deafen()

    def _drop(self, topic: str) -> None:
        tap = self._open.pop(topic)
        self._incompatible.pop(topic, None)
        self._node.destroy_subscription(tap.subscription)
        tap.subscription = None  # which knows its group: no circle for the garbage collector


def _has_lingered(tap: _Tap) -> bool:
    return tap.deaf_since is not None and time.monotonic() >= tap.deaf_since + LINGER


def _reliability(publishers: Iterable[Any], kind: str) -> ReliabilityPolicy:
    """Reliable only if every known publisher of the type offers it."""
    offered = [p.qos_profile.reliability for p in publishers if p.topic_type == kind]
    if offered and all(policy is ReliabilityPolicy.RELIABLE for policy in offered):
        return ReliabilityPolicy.RELIABLE
    return ReliabilityPolicy.BEST_EFFORT
