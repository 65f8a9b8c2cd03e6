"""Which topic of a bag a name in the configuration means, and what is said when none fits."""

from __future__ import annotations

import pytest

from harness_eval.replay.bags import absolute_name, BagTopic, resolve_topic
from harness_eval.replay.sources import SourceError

IMAGE = 'sensor_msgs/msg/Image'
TOPICS = {
    topic.name: topic
    for topic in (
        BagTopic('/cell/front/image_raw', IMAGE),
        BagTopic('/cell/wrist_camera/image_raw', IMAGE),
        BagTopic('/joint_states', 'sensor_msgs/msg/JointState'),
    )
}


@pytest.mark.parametrize(
    ('name', 'namespace', 'expected'),
    [
        ('a/b', '', '/a/b'),
        ('/a/b', 'ns', '/a/b'),
        ('a', 'ns', '/ns/a'),
        ('a', '/ns/', '/ns/a'),
        ('~/a', '', '/harness_eval/a'),
        ('~/a', '/ns', '/ns/harness_eval/a'),
    ],
)
def test_a_name_is_made_absolute_as_a_node_does(name: str, namespace: str, expected: str) -> None:
    assert absolute_name(name, namespace) == expected


def test_a_topic_is_found_by_its_name_within_the_namespace() -> None:
    found = resolve_topic(TOPICS, 'front/image_raw', (IMAGE,), 'cell')
    assert found.name == '/cell/front/image_raw'


def test_a_camera_with_another_name_is_told_which_would_fit() -> None:
    with pytest.raises(SourceError) as raised:
        resolve_topic(TOPICS, 'cell/wrist/image_raw', (IMAGE,))
    assert raised.value.kind == 'no_such_topic'
    message = raised.value.message
    assert message.startswith('/cell/wrist/image_raw is not in the bag')
    assert '/joint_states' not in message
    # First the one whose name is most alike.
    assert message.index('/cell/wrist_camera') < message.index('/cell/front')


def test_a_topic_of_another_type_is_an_error_that_names_both() -> None:
    with pytest.raises(SourceError) as raised:
        resolve_topic(TOPICS, 'joint_states', (IMAGE, 'sensor_msgs/msg/CompressedImage'))
    assert raised.value.kind == 'wrong_type'
    assert 'sensor_msgs/msg/JointState' in raised.value.message
    assert f'expected sensor_msgs/msg/CompressedImage or {IMAGE}' in raised.value.message


def test_it_is_said_when_nothing_would_fit() -> None:
    with pytest.raises(SourceError) as raised:
        resolve_topic(TOPICS, 'scan', ('sensor_msgs/msg/LaserScan',))
    assert 'no topic of the type sensor_msgs/msg/LaserScan is' in raised.value.message


def test_of_many_that_fit_a_few_are_named() -> None:
    many = {f'/t{n}': BagTopic(f'/t{n}', IMAGE) for n in range(300)}
    with pytest.raises(SourceError) as raised:
        resolve_topic(many, 'front')
    assert 'and 290 more' in raised.value.message
