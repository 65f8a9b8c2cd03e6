"""What real rclpy writes is what the decoder reads, and the other way round."""

from __future__ import annotations

import array
import os
from typing import Any

from cdr_messages import DECODER, IMAGE, image_of, JOINT_STATE, joint_state
import numpy as np
import pytest

from harness_eval.decode import Decoder, FieldPath

serialization = pytest.importorskip('rclpy.serialization', reason='rclpy is not installed')
messages = pytest.importorskip('sensor_msgs.msg', reason='sensor_msgs is not installed')

PICTURE = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)


def rclpy_image() -> Any:
    image = messages.Image(width=6, height=4, encoding='bgr8', step=18)
    image.header.stamp.sec, image.header.stamp.nanosec = 12, 34
    image.header.frame_id = 'camera'
    # Not bytes: rclpy would check every element of them, which takes seconds for a real picture.
    image.data = array.array('B', PICTURE.tobytes())
    return image


def test_an_image_of_rclpy_is_read() -> None:
    data = serialization.serialize_message(rclpy_image())
    facts = DECODER.stamp(IMAGE, data)
    assert facts is not None
    assert (facts.stamp, facts.frame_id) == (12_000_000_034, 'camera')
    np.testing.assert_array_equal(DECODER.image(IMAGE, data), PICTURE)


def test_rclpy_reads_what_the_decoder_writes() -> None:
    data = image_of(PICTURE, 'bgr8', frame_id='camera')
    image = serialization.deserialize_message(data, messages.Image)
    assert (image.width, image.height, image.step, image.encoding) == (6, 4, 18, 'bgr8')
    assert bytes(image.data) == PICTURE.tobytes()
    joints = serialization.deserialize_message(joint_state({'a': 1.5}), messages.JointState)
    assert (list(joints.name), list(joints.position)) == (['a'], [1.5])


def test_joint_states_of_rclpy_are_read() -> None:
    joints = messages.JointState(name=['a', 'finger_joint'], position=[0.5, 0.0231])
    data = serialization.serialize_message(joints)
    path = FieldPath.parse('position[name=finger_joint]')
    assert DECODER.reading(JOINT_STATE, data, path) == 0.0231


@pytest.mark.parametrize('count', [0, 1, 2, 3])
def test_bytes_that_rclpy_leaves_behind_empty_sequences_do_not_matter(count: int) -> None:
    # It reserves room for the alignment of numbers that are not there, and leaves it unwritten.
    joints = messages.JointState(name=['joint'] * count, position=[0.25] * count)
    data = serialization.serialize_message(joints)
    assert list(DECODER.message(JOINT_STATE, data).position) == [0.25] * count


def test_every_installed_standard_type_is_read_as_rclpy_writes_it() -> None:
    decoder = Decoder.from_environment(os.environ)
    checked = 0
    for package in ('geometry_msgs', 'nav_msgs', 'sensor_msgs', 'std_msgs', 'diagnostic_msgs'):
        module = pytest.importorskip(f'{package}.msg')
        for name in sorted(vars(module)):
            kind = getattr(module, name)
            if isinstance(kind, type) and hasattr(kind, 'get_fields_and_field_types'):
                data = serialization.serialize_message(kind())
                decoded = decoder.message(f'{package}/msg/{name}', data)
                again = serialization.deserialize_message(
                    decoder.serialize(f'{package}/msg/{name}', decoded), kind
                )
                assert again == kind(), name
                checked += 1
    assert checked > 90
