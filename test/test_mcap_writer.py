"""Files of messages, as readers that know nothing of their writer find them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import gc
from pathlib import Path

from cdr_messages import IMAGE, image_of, JOINT_STATE, joint_state
from mcap.reader import make_reader
import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.rosbag2.errors import ReaderError
from rosbags.rosbag2.storage_mcap import McapReader

from harness_eval.decode import Decoder
from harness_eval.mcap_writer import Channel, Message, write_mcap

DECODER = Decoder()
FRONT = Channel('/front', IMAGE, DECODER.definition(IMAGE))
SIDE = Channel('/side', IMAGE, DECODER.definition(IMAGE))
JOINTS = Channel('/joints', JOINT_STATE, DECODER.definition(JOINT_STATE))

Found = tuple[str, str, int, bytes]


def read_by_rosbags(path: Path) -> Iterator[Found]:
    reader = McapReader(path)
    reader.open()
    try:
        for channel, stamp, data in reader.messages(reader.connections, None, None):
            yield channel.topic, channel.msgtype, stamp, bytes(data)
    finally:
        reader.close()


def read_by_mcap(path: Path) -> Iterator[Found]:
    with path.open('rb') as file:
        for schema, channel, message in make_reader(file, validate_crcs=True).iter_messages():
            assert schema is not None
            yield channel.topic, schema.name, message.log_time, message.data


@pytest.mark.parametrize('read', [read_by_rosbags, read_by_mcap])
def test_every_message_comes_back(tmp_path: Path, read: Callable[[Path], Iterator[Found]]) -> None:
    path = tmp_path / 'some.mcap'
    big = bytes(700_000)
    messages = [
        Message((FRONT, SIDE, JOINTS)[number % 3], 2**60 + number, big + bytes([number]))
        for number in range(5)
    ]
    write_mcap(path, messages, 'about')
    assert list(read(path)) == [
        (one.channel.topic, one.channel.type, one.stamp, one.data) for one in messages
    ]


def test_what_a_file_says_of_its_types_lets_others_decode_it(tmp_path: Path) -> None:
    path = tmp_path / 'some.mcap'
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    messages = [
        Message(FRONT, 5, image_of(pixels, 'bgr8', stamp=4)),
        Message(JOINTS, 6, joint_state({'finger': 0.25})),
    ]
    write_mcap(path, messages, 'about')
    with AnyReader([path]) as bag:
        picture, joints = (bag.deserialize(data, c.msgtype) for c, _, data in bag.messages())
    assert np.array_equal(picture.data, pixels.ravel())
    assert list(joints.position) == [0.25]


def test_a_file_without_its_folder_says_what_metadata_yaml_says(tmp_path: Path) -> None:
    path = tmp_path / 'some.mcap'
    write_mcap(path, [Message(FRONT, 1, b'one')], 'a description')
    with path.open('rb') as file:
        (found,) = make_reader(file).iter_metadata()
    assert (found.name, found.metadata) == ('rosbag2', {'serialized_metadata': 'a description'})


def test_a_picture_that_is_damaged_is_noticed_by_a_reader_that_knows_no_digest(
    tmp_path: Path,
) -> None:
    path = tmp_path / 'some.mcap'
    write_mcap(path, [Message(FRONT, 1, b'what was seen')], 'about')
    path.write_bytes(path.read_bytes().replace(b'what was seen', b'what was soon'))
    with pytest.raises(ReaderError, match='checksum'):
        list(read_by_rosbags(path))


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / 'some.mcap'
    path.write_bytes(b'mine')
    with pytest.raises(FileExistsError):
        write_mcap(path, [Message(FRONT, 1, b'')], 'about')
    assert path.read_bytes() == b'mine'


def test_nothing_of_a_written_file_is_left_to_the_garbage_collector(tmp_path: Path) -> None:
    messages = [Message(FRONT, 1, b'one'), Message(JOINTS, 2, b'two')]
    write_mcap(tmp_path / 'first.mcap', messages, 'about')
    gc.collect()
    gc.disable()
    try:
        write_mcap(tmp_path / 'second.mcap', messages, 'about')
        assert gc.collect() == 0
    finally:
        gc.enable()
