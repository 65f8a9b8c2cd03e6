"""Subscriptions on demand: made when wanted, gone a moment later, and nothing left of them."""

from __future__ import annotations

from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from std_msgs.msg import String

from harness_eval.ros.taps import Taps

TOPIC = '/camera'
TYPES = {TOPIC: 'sensor_msgs/msg/Image'}
WANTED = frozenset({TOPIC})
NOTHING: frozenset[str] = frozenset()


def subscriptions(node: Any) -> int:
    return sum(subscription.topic_name == TOPIC for subscription in node.subscriptions)


def test_a_subscription_goes_when_nobody_wants_it_and_leaves_nothing_behind(ros: Any) -> None:
    node = ros.node('listener', spin=True)
    group = ReentrantCallbackGroup()
    taps = Taps(node, TYPES, (), lambda *_: None, group)
    known = len(group.entities)
    for _ in range(5):
        taps.want(WANTED)
        ros.wait(lambda: subscriptions(node) == 1, what='the subscription')
        taps.want(NOTHING)
        ros.wait(lambda: subscriptions(node) == 0, what='its end')
    assert len(group.entities) == known


def test_what_came_while_nobody_wanted_it_is_never_heard(ros: Any) -> None:
    """What queued up would seem to come when it is read: after the end of the next run."""
    heard: list[bytes] = []
    node = ros.node('listener', spin=True)
    publisher = node.create_publisher(String, TOPIC, 10)
    taps = Taps(
        node,
        {TOPIC: 'std_msgs/msg/String'},
        (),
        lambda topic, kind, data, receipt: heard.append(data),
        ReentrantCallbackGroup(),
    )

    def say(text: str) -> None:
        publisher.publish(String(data=text))

    taps.want(WANTED)
    ros.wait(publisher.get_subscription_count, what='the subscription')
    say('wanted')
    ros.wait(lambda: len(heard) == 1, what='what is wanted')
    taps.want(NOTHING)
    for _ in range(3):
        say('unwanted')
    taps.want(WANTED)

    def told() -> bool:
        say('wanted again')
        return len(heard) > 3

    ros.wait(told, what='what is wanted again')
    assert [data for data in heard if b'unwanted' in data] == []


def test_the_executor_looks_at_nothing_that_is_not_wanted(ros: Any) -> None:
    node = ros.node('listener', spin=True)
    taps = Taps(node, TYPES, (), lambda *_: None, ReentrantCallbackGroup())
    taps.want(WANTED)
    ros.wait(lambda: subscriptions(node) == 1, what='the subscription')
    (tapped,) = (s for s in node.subscriptions if s.topic_name == TOPIC)
    assert node.executor.can_execute(tapped)
    taps.want(NOTHING)
    assert not node.executor.can_execute(tapped)
    assert not tapped.callback_group.beginning_execution(tapped)
