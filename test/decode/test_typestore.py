"""Types are found in what was handed in, in the standard ones and in the ament index."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import threading

import pytest

from harness_eval.contract import DecodeError
from harness_eval.decode import Decoder, FieldPath

GRIP = 'my_msgs/msg/Grip'


def install(prefix: Path, package: str, name: str, text: str, suffix: str = '.msg') -> None:
    folder = prefix / 'share' / package / 'msg'
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f'{name}{suffix}').write_text(text, encoding='utf-8')


def decoder_at(*prefixes: Path) -> Decoder:
    joined = ':'.join(map(str, prefixes))
    return Decoder.from_environment({'AMENT_PREFIX_PATH': joined, 'ROS_DISTRO': 'jazzy'})


def test_an_installed_type_is_learned_with_the_types_it_is_made_of(tmp_path: Path) -> None:
    install(tmp_path, 'my_msgs', 'Grip', 'std_msgs/Header header\nFinger[] fingers\n')
    install(
        tmp_path, 'my_msgs', 'Finger', 'uint8 LEFT=1 # a constant\nstring name\nfloat32 force\n'
    )
    decoder = decoder_at(tmp_path)
    header = decoder.new(
        'std_msgs/msg/Header',
        stamp=decoder.new('builtin_interfaces/msg/Time', sec=3, nanosec=4),
        frame_id='hand',
    )
    decoder.message('std_msgs/msg/Empty', b'\x00\x01\x00\x00\x00')
    fingers = [
        decoder.new('my_msgs/msg/Finger', name=name, force=force)
        for name, force in (('left', 1.5), ('right', 2.5))
    ]
    data = decoder.serialize(GRIP, decoder.new(GRIP, header=header, fingers=fingers))
    path = FieldPath.parse('fingers[name=right].force')
    facts = decoder.stamp(GRIP, data)
    assert decoder.reading(GRIP, data, path) == 2.5
    assert facts is not None
    assert (facts.stamp, facts.frame_id) == (3_000_000_004, 'hand')
    with pytest.raises(DecodeError, match=r'there are: name, force$'):
        decoder.reading(GRIP, data, FieldPath.parse('fingers[0].LEFT'))


def test_an_overlay_comes_before_what_it_lies_over(tmp_path: Path) -> None:
    install(tmp_path / 'over', 'my_msgs', 'Grip', 'float64 width\n')
    install(tmp_path / 'under', 'my_msgs', 'Grip', 'float64 force\n')
    decoder = decoder_at(tmp_path / 'over', tmp_path / 'under')
    data = b'\x00\x01\x00\x00' + b'\x00\x00\x00\x00\x00\x00\xf8\x3f'
    assert decoder.reading(GRIP, data, FieldPath.parse('width')) == 1.5


def test_a_type_that_has_only_an_idl_file_is_learned(tmp_path: Path) -> None:
    install(
        tmp_path,
        'my_msgs',
        'Grip',
        'module my_msgs { module msg { struct Grip { double width; }; }; };',
        '.idl',
    )
    data = b'\x00\x01\x00\x00' + b'\x00\x00\x00\x00\x00\x00\xf8\x3f'
    assert decoder_at(tmp_path).reading(GRIP, data, FieldPath.parse('width')) == 1.5


def test_the_two_ways_to_name_a_type_are_one(tmp_path: Path) -> None:
    data = b'\x00\x01\x00\x00\x01'
    path = FieldPath.parse('data')
    decoder = decoder_at(tmp_path)
    assert decoder.text('std_msgs/Bool', data, path) == 'true'
    assert decoder.text('std_msgs/msg/Bool', data, path) == 'true'


@pytest.mark.parametrize('name', [GRIP, 'my_msgs/msg/Finger', 'no_such/msg/Thing'])
def test_a_type_that_nobody_defines_is_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decoder_at(tmp_path).message(name, b'\x00\x01\x00\x00')
    assert caught.value.kind == 'unknown_type'
    assert name in caught.value.message
    assert str(tmp_path) not in caught.value.message


def test_a_part_that_nobody_defines_is_named_with_its_user(tmp_path: Path) -> None:
    install(tmp_path, 'my_msgs', 'Grip', 'other_msgs/Finger finger\n')
    with pytest.raises(DecodeError) as caught:
        decoder_at(tmp_path).message(GRIP, b'\x00\x01\x00\x00')
    assert caught.value.kind == 'unknown_type'
    assert 'other_msgs/msg/Finger, which my_msgs/msg/Grip needs' in caught.value.message


@pytest.mark.parametrize(
    'name', ['', 'Image', 'a/b/c/d', '../../etc/passwd', 'my_msgs/msg/../Grip', 'sensor_msgs/msg/']
)
def test_what_is_no_name_of_a_type_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decoder_at(tmp_path).message(name, b'\x00\x01\x00\x00')
    assert caught.value.kind == 'unknown_type'


@pytest.mark.parametrize(
    ('text', 'kind'),
    [
        ('%%%\n', 'bad_definition'),
        ('float64\n', 'bad_definition'),
        ('my_msgs/Grip inner\n', 'bad_definition'),
        ('wstring text\n', 'unknown_type'),
    ],
)
def test_a_definition_that_cannot_be_used_is_an_error(
    tmp_path: Path, text: str, kind: str
) -> None:
    install(tmp_path, 'my_msgs', 'Grip', text)
    with pytest.raises(DecodeError) as caught:
        decoder_at(tmp_path).message(GRIP, b'\x00\x01\x00\x00\x00')
    assert caught.value.kind == kind
    assert GRIP in caught.value.message


def test_a_definition_that_comes_with_a_bag_is_used_with_its_parts() -> None:
    decoder = Decoder()
    decoder.register(
        GRIP,
        'Finger finger\n'
        '================================================================================\n'
        'MSG: my_msgs/Finger\nfloat64 force\n',
    )
    data = b'\x00\x01\x00\x00' + b'\x00\x00\x00\x00\x00\x00\xf8\x3f'
    assert decoder.reading(GRIP, data, FieldPath.parse('finger.force')) == 1.5


def test_a_bag_of_an_older_distribution_brings_its_own_form_of_a_standard_type() -> None:
    decoder = Decoder()
    decoder.register('std_msgs/msg/Bool', 'int32 data\n')
    assert (
        decoder.text(
            'std_msgs/msg/Bool', b'\x00\x01\x00\x00\x07\x00\x00\x00', FieldPath.parse('data')
        )
        == '7'
    )


def test_two_definitions_of_one_type_are_an_error() -> None:
    decoder = Decoder()
    decoder.register(GRIP, 'float64 width\n')
    decoder.register(GRIP, 'float64 width # the same with a comment\n')
    with pytest.raises(DecodeError) as caught:
        decoder.register(GRIP, 'float32 width\n')
    assert caught.value.kind == 'conflicting_definition'


def test_a_message_of_another_version_of_its_type_is_an_error(tmp_path: Path) -> None:
    install(tmp_path, 'my_msgs', 'Grip', 'float64 width\nfloat64 force\n')
    decoder = decoder_at(tmp_path)
    for size in (8, 24):
        with pytest.raises(DecodeError) as caught:
            decoder.message(GRIP, b'\x00\x01\x00\x00' + bytes(size))
        assert caught.value.kind == 'malformed_message'
        assert 'version' in caught.value.message


def test_a_message_that_cannot_be_encoded_is_an_error() -> None:
    decoder = Decoder()
    broken = decoder.new('std_msgs/msg/Int32', data='seven')
    with pytest.raises(DecodeError) as caught:
        decoder.serialize('std_msgs/msg/Int32', broken)
    assert caught.value.kind == 'unserializable_message'


def test_many_threads_may_meet_a_type_at_the_same_time() -> None:
    data = b'\x00\x01\x00\x00\x01'
    for _ in range(5):
        decoder = Decoder()
        start = threading.Barrier(8)

        def read(decoder: Decoder = decoder, start: threading.Barrier = start) -> str:
            start.wait(10)
            return decoder.text('std_msgs/msg/Bool', data, FieldPath.parse('data'))

        with ThreadPoolExecutor(8) as pool:
            answers = [pool.submit(read) for _ in range(8)]
            assert [answer.result(10) for answer in answers] == ['true'] * 8


def test_a_bag_is_told_the_whole_definition_of_a_type_and_its_hash(tmp_path: Path) -> None:
    install(tmp_path, 'my_msgs', 'Grip', 'std_msgs/Header header\nFinger[] fingers\n')
    install(tmp_path, 'my_msgs', 'Finger', 'string name\n')
    told = decoder_at(tmp_path).definition('my_msgs/Grip')
    assert told.form == 'ros2msg'
    assert 'MSG: std_msgs/Header' in told.text
    assert 'MSG: my_msgs/Finger\nstring name' in told.text
    other = decoder_at()
    other.register(GRIP, told.text, told.form)
    assert other.definition(GRIP) == told
    # That of every installation of Jazzy.
    assert other.definition('std_msgs/msg/Empty').digest == (
        'RIHS01_20b625256f32d5dbc0d04fee44f43c41e51c70d3502f84b4a08e7a9c26a96312'
    )
    with pytest.raises(DecodeError, match='my_msgs/msg/Other'):
        other.definition('my_msgs/msg/Other')
