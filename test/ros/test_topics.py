"""Which topics a configuration names, and of which types they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_eval.config import Config, load_config
from harness_eval.requests import resolved_topics
from harness_eval.ros.topics import always_on, configured_types

YAML = """
evaluation:
  required_tools: [pick]
  evaluator: look
  post_conditions: {pick: "It is held."}
  evaluators: {look: {kind: checks}}
  tools: {pick: {checks: [{state: {name: gripper, between: [0, 1]}}]}}
capture:
  views:
    front: {topic: front/image_raw, camera_info: front/camera_info, always_on: true}
    wrist: {topic: wrist/compressed}
  states:
    gripper: {topic: joints, type: sensor_msgs/msg/JointState, field: "position[name=finger]"}
    door: {topic: /door, field: data, always_on: true}
"""


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / 'evaluation.yaml'
    path.write_text(YAML)
    return load_config(path)


@pytest.fixture
def topics(config: Config) -> dict[str, str]:
    return resolved_topics(config, lambda name: name if name[0] == '/' else f'/cell/{name}')


def test_each_topic_of_views_infos_and_states_is_resolved(topics: dict[str, str]) -> None:
    assert topics == {
        'front/image_raw': '/cell/front/image_raw',
        'front/camera_info': '/cell/front/camera_info',
        'wrist/compressed': '/cell/wrist/compressed',
        'joints': '/cell/joints',
        '/door': '/door',
    }


def test_a_state_without_a_type_has_whatever_type_its_topic_has(
    config: Config, topics: dict[str, str]
) -> None:
    assert configured_types(config, topics) == {
        '/cell/front/image_raw': 'sensor_msgs/msg/Image',
        '/cell/front/camera_info': 'sensor_msgs/msg/CameraInfo',
        '/cell/wrist/compressed': 'sensor_msgs/msg/CompressedImage',
        '/cell/joints': 'sensor_msgs/msg/JointState',
    }


def test_views_and_states_that_are_always_on_are_listened_to_all_the_time(
    config: Config, topics: dict[str, str]
) -> None:
    assert always_on(config, topics) == {'/cell/front/image_raw', '/door'}
