"""Field paths select exactly what they name, or say what is there instead."""

from __future__ import annotations

import math
from typing import Any

from cdr_messages import DECODER, header, JOINT_STATE, joint_state, LASER_SCAN, laser_scan, new
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from harness_eval.contract import DecodeError
from harness_eval.field_path import FieldPath

TRANSFORMS = 'tf2_msgs/msg/TFMessage'
DIAGNOSTICS = 'diagnostic_msgs/msg/DiagnosticArray'
GOALS = 'action_msgs/msg/GoalStatusArray'
UUID = bytes(range(16))


def read(type_name: str, data: bytes, path: str, reduce: str | None = None) -> Any:
    return DECODER.reading(type_name, data, FieldPath.parse(path), reduce)


def text(type_name: str, data: bytes, path: str) -> str:
    return DECODER.text(type_name, data, FieldPath.parse(path))


def refused(type_name: str, data: bytes, path: str, reduce: str | None = None) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        read(type_name, data, path, reduce)
    return caught.value


def transforms(*children: tuple[str, float]) -> bytes:
    vector, turn = 'geometry_msgs/msg/Vector3', 'geometry_msgs/msg/Quaternion'
    return DECODER.serialize(
        TRANSFORMS,
        new(
            TRANSFORMS,
            transforms=[
                new(
                    'geometry_msgs/msg/TransformStamped',
                    header=header(frame_id='base'),
                    child_frame_id=child,
                    transform=new(
                        'geometry_msgs/msg/Transform',
                        translation=new(vector, x=1.0, y=2.0, z=z),
                        rotation=new(turn, x=0.0, y=0.0, z=0.0, w=1.0),
                    ),
                )
                for child, z in children
            ],
        ),
    )


def goals() -> bytes:
    identity = new('unique_identifier_msgs/msg/UUID', uuid=np.frombuffer(UUID, np.uint8))
    stamp = new('builtin_interfaces/msg/Time', sec=12, nanosec=34)
    info = new('action_msgs/msg/GoalInfo', goal_id=identity, stamp=stamp)
    status = new('action_msgs/msg/GoalStatus', goal_info=info, status=4)
    return DECODER.serialize(GOALS, new(GOALS, status_list=[status]))


ARM = joint_state({'shoulder': 0.5, 'finger_joint': 0.0231, 'arm.joint]1': -1.5})
SCAN = laser_scan([float(index) for index in range(10)])


@pytest.mark.parametrize(
    ('path', 'value'),
    [
        ('position[name=finger_joint]', 0.0231),
        ('position[ name = finger_joint ]', 0.0231),
        ('position[name="arm.joint]1"]', -1.5),
        ('position[0]', 0.5),
        ('position[-1]', -1.5),
        ('position[1:3]', (0.0231, -1.5)),
        ('position[:1]', (0.5,)),
        ('position', (0.5, 0.0231, -1.5)),
        ('header.stamp.sec', 5.0),
    ],
)
def test_a_path_reads_what_it_names(path: str, value: Any) -> None:
    assert read(JOINT_STATE, ARM, path) == value


def test_a_message_of_a_sequence_is_chosen_by_a_field_of_it() -> None:
    data = transforms(('camera', 0.1), ('tool0', 0.7))
    assert (
        read(TRANSFORMS, data, 'transforms[child_frame_id=tool0].transform.translation.z') == 0.7
    )
    assert read(TRANSFORMS, data, 'transforms[0:2].transform.translation.z') == (0.1, 0.7)
    assert text(TRANSFORMS, data, 'transforms[child_frame_id=tool0].header.frame_id') == 'base'
    error = refused(TRANSFORMS, data, 'transforms[header.frame_id=base].transform.translation.z')
    assert error.kind == 'field_ambiguous'


@pytest.mark.parametrize(
    ('path', 'words'),
    [
        ('postion[0]', ("no field 'postion'", 'name, position, velocity, effort')),
        ('header.stamp.seconds', ("no field 'seconds'", 'sec, nanosec')),
        ('position[7]', ('has 3 elements', '[7]')),
        ('position[-4]', ('has 3 elements', '[-4]')),
        ('position[1:4]', ('has 3 elements', '[1:4]')),
        ('position[3:]', ('has 3 elements', '[3:]')),
        ('position[-4:-1]', ('has 3 elements',)),
        ('position[name=wrist]', ("no name is 'wrist'", 'shoulder, finger_joint')),
        ('position[label=wrist]', ("no field 'label'",)),
        ('velocity[name=shoulder]', ('velocity has 0 elements and name has 3',)),
        ('velocity', ('empty',)),
        ('header[0]', ('not a sequence', 'with the fields stamp, frame_id,')),
        ('position[0].x', ("no field 'x'",)),
    ],
)
def test_what_is_not_there_is_an_error_that_says_what_is(path: str, words: Any) -> None:
    error = refused(JOINT_STATE, ARM, path)
    assert error.kind == 'field_absent'
    for word in words:
        assert word in error.message


@pytest.mark.parametrize('path', ['header', 'header.frame_id', 'name', 'name[0]', 'header.stamp'])
def test_a_text_or_a_message_is_not_a_number(path: str) -> None:
    assert refused(JOINT_STATE, ARM, path).kind == 'not_a_number'


def test_a_name_that_occurs_twice_is_ambiguous() -> None:
    data = joint_state({'a': 1.0, 'b': 2.0}).replace(
        b'\x02\x00\x00\x00b\x00', b'\x02\x00\x00\x00a\x00'
    )
    assert refused(JOINT_STATE, data, 'position[name=a]').kind == 'field_ambiguous'


@pytest.mark.parametrize('value', [math.nan, math.inf, -math.inf])
def test_a_single_reading_that_is_not_finite_is_an_error(value: float) -> None:
    error = refused(JOINT_STATE, joint_state({'a': value}), 'position[0]')
    assert error.kind == 'not_finite'
    assert str(value) in error.message


def test_several_readings_without_a_reduction_must_all_be_finite() -> None:
    error = refused(LASER_SCAN, laser_scan([1.0, math.nan, math.inf]), 'ranges')
    assert error.kind == 'not_finite'
    assert '2 of 3' in error.message


@pytest.mark.parametrize(
    ('ranges', 'reduce', 'value'),
    [
        ([4.0, 2.0, 3.0], 'min', 2.0),
        ([4.0, 2.0, 3.0], 'max', 4.0),
        ([4.0, 2.0, 3.0], 'mean', 3.0),
        ([math.nan, 2.0, math.inf, 3.0], 'min', 2.0),
        ([math.nan, 2.0, -math.inf, 3.0], 'max', 3.0),
        ([math.nan, 2.0, 4.0], 'mean', 3.0),
    ],
)
def test_a_reduction_leaves_out_what_is_no_measurement(
    ranges: list[float], reduce: str, value: float
) -> None:
    assert read(LASER_SCAN, laser_scan(ranges), 'ranges', reduce) == value


@pytest.mark.parametrize(
    ('ranges', 'reduce'),
    [
        ([math.nan, math.nan], 'min'),
        ([math.inf, math.inf], 'min'),
        ([math.nan, math.inf], 'mean'),
        ([-math.inf], 'max'),
    ],
)
def test_a_reduction_of_nothing_is_an_error_and_never_a_zero(
    ranges: list[float], reduce: str
) -> None:
    assert refused(LASER_SCAN, laser_scan(ranges), 'ranges', reduce).kind == 'not_finite'


@pytest.mark.parametrize(
    ('ranges', 'reduce'),
    # Something too close to measure is no clearance, and an opening without end no wall.
    [([2.0, -math.inf], 'min'), ([2.0, math.inf], 'max'), ([2.0, math.inf], 'mean')],
)
def test_an_infinity_that_would_decide_is_an_error(ranges: list[float], reduce: str) -> None:
    error = refused(LASER_SCAN, laser_scan(ranges), 'ranges', reduce)
    assert error.kind == 'not_finite'
    assert reduce in error.message


@given(st.lists(st.floats(0, 100, width=32), min_size=1, max_size=20), st.integers(0, 5))
def test_the_minimum_is_that_of_the_finite_values(ranges: list[float], far: int) -> None:
    data = laser_scan([math.inf] * far + ranges + [math.nan] * far)
    assert read(LASER_SCAN, data, 'ranges', 'min') == min(ranges)


def test_a_slice_is_reduced() -> None:
    assert read(LASER_SCAN, SCAN, 'ranges[3:6]', 'min') == 3.0
    assert read(LASER_SCAN, SCAN, 'ranges[3:6]', 'mean') == 4.0


def test_thousands_of_values_need_a_reduction() -> None:
    data = laser_scan([1.0] * 5000)
    assert refused(LASER_SCAN, data, 'ranges').kind == 'too_many_values'
    assert read(LASER_SCAN, data, 'ranges', 'max') == 1.0


def test_an_unknown_reduction_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match='min, mean or max'):
        read(LASER_SCAN, SCAN, 'ranges', 'median')


def test_texts_are_strings_numbers_booleans_and_uuids() -> None:
    canonical = '00010203-0405-0607-0809-0a0b0c0d0e0f'
    assert text(JOINT_STATE, ARM, 'name[1]') == 'finger_joint'
    assert text(JOINT_STATE, ARM, 'header.stamp.sec') == '5'
    assert text(JOINT_STATE, ARM, 'position[0]') == '0.5'
    assert text(GOALS, goals(), 'status_list[0].goal_info.goal_id.uuid') == canonical
    assert text(GOALS, goals(), 'status_list[0].goal_info.goal_id') == canonical
    assert text(GOALS, goals(), 'status_list[status=4].status') == '4'
    assert text('std_msgs/msg/Bool', b'\x00\x01\x00\x00\x01', 'data') == 'true'
    assert text('std_msgs/msg/Bool', b'\x00\x01\x00\x00\x00', 'data') == 'false'


@pytest.mark.parametrize('path', ['name', 'header', 'position', 'position[0:2]'])
def test_several_things_are_no_text(path: str) -> None:
    with pytest.raises(DecodeError) as caught:
        text(JOINT_STATE, ARM, path)
    assert caught.value.kind == 'not_a_text'


def test_a_time_is_nanoseconds() -> None:
    path = FieldPath.parse('status_list[0].goal_info.stamp')
    assert DECODER.time(GOALS, goals(), path) == 12_000_000_034
    with pytest.raises(DecodeError) as caught:
        DECODER.time(JOINT_STATE, ARM, FieldPath.parse('header'))
    assert caught.value.kind == 'not_a_time'


def test_a_field_named_like_a_keyword_is_found() -> None:
    decoder = type(DECODER)()
    decoder.register('demo_msgs/msg/Move', 'string from\nint32 to\n')
    move = decoder.new('demo_msgs/msg/Move', from_='a', to=3)
    data = decoder.serialize('demo_msgs/msg/Move', move)
    assert decoder.text('demo_msgs/msg/Move', data, FieldPath.parse('from')) == 'a'
