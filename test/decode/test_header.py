"""The header of a message is read from its first bytes, in either byte order."""

from __future__ import annotations

import struct
import timeit

from cdr_messages import (
    COMPRESSED,
    compressed_image,
    DECODER,
    header,
    IMAGE,
    image_of,
    JOINT_STATE,
    joint_state,
    new,
    to_bytes,
)
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from harness_eval.contract import DecodeError

PICTURE = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
POSE = 'geometry_msgs/msg/PoseStamped'

stamps = st.integers(-(2**31) * 10**9, (2**31) * 10**9 - 1)


def pose(stamp: int, frame_id: str, big_endian: bool) -> bytes:
    point = new('geometry_msgs/msg/Point', x=1.0, y=2.0, z=3.0)
    turn = new('geometry_msgs/msg/Quaternion', x=0.0, y=0.0, z=0.0, w=1.0)
    inner = new('geometry_msgs/msg/Pose', position=point, orientation=turn)
    message = new(POSE, header=header(stamp, frame_id), pose=inner)
    return to_bytes(POSE, message, big_endian)


@given(stamp=stamps, frame_id=st.text(max_size=12), big=st.booleans())
def test_stamp_and_frame_are_those_of_the_whole_message(
    stamp: int, frame_id: str, big: bool
) -> None:
    data = pose(stamp, frame_id, big)
    facts = DECODER.stamp(POSE, data)
    whole = DECODER.message(POSE, data)
    assert facts is not None
    assert facts.stamp == stamp == whole.header.stamp.sec * 10**9 + whole.header.stamp.nanosec
    assert facts.frame_id == frame_id == whole.header.frame_id
    # Behind the header of a pose there are seven numbers of 8 bytes and nothing else.
    assert len(data) - facts.payload_offset == 56


@pytest.mark.parametrize('frame_id', ['', 'a', 'ab', 'abc', 'camera_front'])
def test_the_content_of_an_image_begins_at_its_pixels(frame_id: str) -> None:
    facts = DECODER.stamp(IMAGE, image_of(PICTURE, 'bgr8', frame_id=frame_id))
    assert facts is not None
    data = image_of(PICTURE, 'bgr8', frame_id=frame_id)
    assert data[facts.payload_offset :][:12] == PICTURE.tobytes()


def test_the_content_of_a_compressed_image_begins_at_its_file() -> None:
    data = compressed_image('jpeg', b'the file', frame_id='x')
    facts = DECODER.stamp(COMPRESSED, data)
    assert facts is not None
    assert data[facts.payload_offset :][:8] == b'the file'


def test_a_picture_repeated_under_a_new_stamp_has_the_same_content() -> None:
    first, second = (image_of(PICTURE, 'bgr8', stamp=stamp) for stamp in (1, 2_000_000_000))
    offsets = [DECODER.stamp(IMAGE, data) for data in (first, second)]
    assert offsets[0] is not None
    assert offsets[1] is not None
    assert first[offsets[0].payload_offset :] == second[offsets[1].payload_offset :]


@pytest.mark.parametrize(
    ('type_name', 'data'),
    [
        ('std_msgs/msg/Float64', struct.pack('<Id', 0x0100, 1.5)),
        ('tf2_msgs/msg/TFMessage', struct.pack('<II', 0x0100, 0)),
        ('geometry_msgs/msg/Pose', bytes((0, 1, 0, 0)) + bytes(56)),
        ('std_msgs/msg/Empty', bytes((0, 1, 0, 0, 0))),
    ],
)
def test_a_type_without_a_leading_header_has_no_stamp(type_name: str, data: bytes) -> None:
    assert DECODER.stamp(type_name, data) is None


@pytest.mark.parametrize('nanosec', [10**9, 2**32 - 1])
def test_a_nanosecond_part_of_a_second_or_more_is_an_error(nanosec: int) -> None:
    data = bytearray(joint_state({'a': 1.0}))
    data[8:12] = struct.pack('<I', nanosec)
    with pytest.raises(DecodeError) as caught:
        DECODER.stamp(JOINT_STATE, bytes(data))
    assert caught.value.kind == 'malformed_message'
    assert str(nanosec) in caught.value.message


@pytest.mark.parametrize('length', range(19))
def test_a_message_that_ends_within_its_header_is_an_error(length: int) -> None:
    data = pose(1, 'abc', big_endian=False)[:length]
    with pytest.raises(DecodeError) as caught:
        DECODER.stamp(POSE, data)
    assert caught.value.kind == 'malformed_message'


@pytest.mark.parametrize('representation', ['0006', '0007', '0003', '0100', 'ffff'])
def test_another_representation_than_plain_cdr_is_an_error_that_names_it(
    representation: str,
) -> None:
    data = bytes.fromhex(representation) + pose(1, 'abc', big_endian=False)[2:]
    for read in (DECODER.stamp, DECODER.message):
        with pytest.raises(DecodeError) as caught:
            read(POSE, data)
        assert caught.value.kind == 'malformed_message'
        assert representation in caught.value.message


def test_the_header_of_a_large_picture_is_read_in_microseconds() -> None:
    data = image_of(np.zeros((480, 640, 3), np.uint8), 'bgr8')
    seconds = min(timeit.repeat(lambda: DECODER.stamp(IMAGE, data), number=200, repeat=7)) / 200
    # About 5 us; decoding would take at least ten times as long as this bound on a slow machine.
    assert seconds < 100e-6
