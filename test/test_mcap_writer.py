"""Files of messages, as readers that know nothing of their writer find them."""

from __future__ import annotations

from pathlib import Path
import struct
import tempfile

from cdr_messages import IMAGE, image_of, JOINT_STATE, joint_state
from hypothesis import given
import hypothesis.strategies as st
import numpy as np
import pytest
from rosbags.highlevel import AnyReader
from rosbags.rosbag2.storage_mcap import McapReader

from harness_eval.decode import Decoder
from harness_eval.mcap_writer import Channel, channels_of, Message, write_mcap
from harness_eval.replay.bags import open_bag

DECODER = Decoder()
FRONT = Channel('/front', IMAGE, DECODER.definition(IMAGE))
SIDE = Channel('/side', IMAGE, DECODER.definition(IMAGE))
JOINTS = Channel('/joints', JOINT_STATE, DECODER.definition(JOINT_STATE))

Found = tuple[str, str, int, bytes]


def meant(messages: list[Message]) -> list[Found]:
    return [(m.channel.topic, m.channel.type, m.stamp, m.data) for m in messages]


def read(path: Path) -> list[Found]:
    """All messages in the order of their stamps, by rosbags, through the index."""
    reader = McapReader(path)
    reader.open()
    try:
        found = reader.messages(reader.connections, None, None)
        return [(c.topic, c.msgtype, stamp, bytes(data)) for c, stamp, data in found]
    finally:
        reader.close()


def records(content: bytes) -> list[tuple[int, int]]:
    """Kind and place of each record of a file."""
    magic = 8
    found, at = [], magic
    while at < len(content) - magic:
        kind, size = struct.unpack_from('<BQ', content, at)
        found.append((kind, at))
        at += 9 + size
    return found


@given(
    st.lists(
        st.tuples(
            st.sampled_from([FRONT, SIDE, JOINTS]), st.integers(0, 2**62), st.binary(max_size=40)
        ),
        min_size=1,
        max_size=12,
    )
)
def test_every_message_comes_back_in_the_order_of_its_stamp(
    given_messages: list[tuple[Channel, int, bytes]],
) -> None:
    messages = [Message(*one) for one in given_messages]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'some.mcap'
        write_mcap(path, messages, 'about')
        found = read(path)
    assert [one[2] for one in found] == sorted(one.stamp for one in messages)
    assert sorted(found) == sorted(meant(messages))


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


def test_pictures_go_into_chunks_that_readers_can_hold(tmp_path: Path) -> None:
    path = tmp_path / 'some.mcap'
    big = bytes(700_000)
    messages = [Message((FRONT, SIDE)[n % 2], n, big + bytes([n])) for n in range(5)]
    write_mcap(path, messages, 'about')
    assert read(path) == meant(messages)
    chunk, chunk_index = 6, 8
    kinds = [kind for kind, _ in records(path.read_bytes())]
    assert kinds.count(chunk) == kinds.count(chunk_index) == 3
    with open_bag(path) as bag:
        assert [m.receipt for m in bag.messages({'/side'})] == [1, 3]
        assert bag.skipped == ()


def test_the_index_leads_to_the_records_that_it_names(tmp_path: Path) -> None:
    path = tmp_path / 'some.mcap'
    write_mcap(path, [Message(FRONT, 1, b'one'), Message(JOINTS, 2, b'two')], 'a description')
    content = path.read_bytes()
    places = dict(records(content)[::-1])
    footer, schema, offset, metadata_index = 0x02, 0x03, 0x0E, 0x0D
    summary, offsets, _ = struct.unpack_from('<QQI', content, places[footer] + 9)
    assert summary == places[schema]
    assert offsets == places[offset]
    for kind, at in records(content):
        if kind == offset:
            group, start, size = struct.unpack_from('<BQQ', content, at + 9)
            inside = [k for k, place in records(content) if start <= place < start + size]
            assert set(inside) == {group}
    start, size = struct.unpack_from('<QQ', content, places[metadata_index] + 9)
    assert b'a description' in content[start : start + size]
    assert content[start] == 0x0C
    assert content[start + size] == 0x0F


def test_a_file_without_its_end_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / 'some.mcap'
    messages = [Message(FRONT, n, bytes(1_100_000)) for n in range(3)]
    write_mcap(path, messages, 'about')
    chunks = [at for kind, at in records(path.read_bytes()) if kind == 6]
    path.write_bytes(path.read_bytes()[: chunks[2]])
    with open_bag(path) as bag:
        assert [m.receipt for m in bag.messages(bag.topics)] == [0, 1]


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / 'some.mcap'
    path.write_bytes(b'mine')
    with pytest.raises(FileExistsError):
        write_mcap(path, [Message(FRONT, 1, b'')], 'about')
    assert path.read_bytes() == b'mine'


def test_channels_are_numbered_as_they_appear() -> None:
    messages = [Message(one, 1, b'') for one in (SIDE, FRONT, SIDE)]
    assert channels_of(messages) == {SIDE: 1, FRONT: 2}
