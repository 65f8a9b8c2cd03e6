"""Completions are heard whatever reliability their publishers offer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluation_world import EvaluationWorld
from rclpy.qos import QoSProfile, ReliabilityPolicy

from harness_eval_msgs.msg import ToolCompletion
from harness_eval_msgs.msg import Verdict as VerdictMessage

TOPIC = '/tool_completions'


def heard_as(world: EvaluationWorld) -> list[ReliabilityPolicy]:
    found = world.node.get_subscriptions_info_by_topic(TOPIC)
    return [info.qos_profile.reliability for info in found]


def test_a_best_effort_publisher_is_heard_and_a_reliable_one_reliably_again(
    ros: Any, tmp_path: Path
) -> None:
    world = EvaluationWorld(ros, tmp_path)
    assert heard_as(world) == [ReliabilityPolicy.RELIABLE]
    careless = ros.node('careless')
    publisher = careless.create_publisher(
        ToolCompletion, TOPIC, QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
    )
    ros.wait(lambda: heard_as(world) == [ReliabilityPolicy.BEST_EFFORT], what='another QoS')
    ros.wait(publisher.get_subscription_count, what='the subscription')
    publisher.publish(world.completion('run-1'))
    assert world.outcome('run-1').verdict.status == VerdictMessage.SUCCESS
    careless.destroy_publisher(publisher)
    ros.wait(lambda: heard_as(world) == [ReliabilityPolicy.RELIABLE], what='the first QoS')
    ros.wait(world.completions.get_subscription_count, what='the subscription')
    world.end('run-2')
    assert world.outcome('run-2').verdict.status == VerdictMessage.SUCCESS
