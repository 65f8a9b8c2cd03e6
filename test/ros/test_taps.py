"""Subscriptions on demand: made when wanted, gone a moment later, and nothing left of them."""

from __future__ import annotations

from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup

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


def test_a_subscription_that_is_wanted_again_at_once_is_the_same_one(ros: Any) -> None:
    node = ros.node('listener', spin=True)
    taps = Taps(node, TYPES, (), lambda *_: None, ReentrantCallbackGroup())
    taps.want(WANTED)
    ros.wait(lambda: subscriptions(node) == 1, what='the subscription')
    (before,) = (s for s in node.subscriptions if s.topic_name == TOPIC)
    taps.want(NOTHING)
    taps.want(WANTED)
    done = node.executor.create_task(lambda: None)  # runs after what was asked for before
    ros.wait(done.done, what='the executor')
    (after,) = (s for s in node.subscriptions if s.topic_name == TOPIC)
    assert after is before
