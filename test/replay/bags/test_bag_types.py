"""The types of a bag are learned from the bag, and only what is needed must be known."""

from __future__ import annotations

from pathlib import Path

import pytest
from recordings import mcap, rosbag2, TEXT
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import get_types_from_msg, get_typestore, Stores

from harness_eval.cases import completion_message, COMPLETION_TYPE
from harness_eval.contract import DecodeError
from harness_eval.replay.bags import decoder_for, open_bag
from harness_eval.replay.bags.bag import full_type
from harness_eval.runs import Completion

SECOND = 10**9
GRASP = 'my_msgs/msg/Grasp'


def test_our_own_types_are_known_where_neither_ros_nor_the_bag_defines_them(
    tmp_path: Path,
) -> None:
    path = mcap(tmp_path / 'bag.mcap', [('/a', SECOND, 'x')], definition='')
    with open_bag(path) as bag:
        decoder, _ = decoder_for(bag, environment={})
    completion = Completion('run', 'pick', 2, SECOND, (('target', 'cup'),))
    data = completion_message(completion, decoder)
    assert decoder.message(COMPLETION_TYPE, data).arguments[0].value == 'cup'


@pytest.mark.parametrize('plugin', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_a_type_that_nobody_knows_is_learned_from_the_bag(
    plugin: StoragePlugin, tmp_path: Path
) -> None:
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg('float64 width\nstring object', GRASP))
    with Writer(tmp_path / 'bag', version=9, storage_plugin=plugin) as writer:
        topic = writer.add_connection('/grasp', GRASP, typestore=store)
        grasp = store.types[GRASP](width=0.04, object='cup')
        writer.write(topic, SECOND, store.serialize_cdr(grasp, GRASP))
    with open_bag(tmp_path / 'bag') as bag:
        decoder, notes = decoder_for(bag, environment={})
        (message,) = bag.messages(('/grasp',))
    assert notes == []
    read = decoder.message(message.type, message.data)
    assert (read.width, read.object) == (0.04, 'cup')


def test_an_unknown_type_is_an_error_only_where_it_is_needed(tmp_path: Path) -> None:
    path = mcap(tmp_path / 'bag.mcap', [('/a', SECOND, 'x')], definition='')
    content = path.read_bytes().replace(TEXT.encode(), b'lost_msg/msg/Strings'[: len(TEXT)])
    path.write_bytes(content)
    with open_bag(path) as bag:
        decoder, notes = decoder_for(bag, environment={})
        (message,) = bag.messages(('/a',))
    assert notes == []
    with pytest.raises(DecodeError) as raised:
        decoder.message(message.type, message.data)
    assert (raised.value.kind, message.type in raised.value.message) == ('unknown_type', True)


def test_a_definition_that_cannot_be_used_is_named_and_the_standard_one_serves(
    tmp_path: Path,
) -> None:
    path = mcap(tmp_path / 'bag.mcap', [('/a', SECOND, 'x')], definition='%%%')
    with open_bag(path) as bag:
        decoder, (note,) = decoder_for(bag, environment={})
        (message,) = bag.messages(('/a',))
    assert (note.source, note.kind) == ('bag.mcap', 'bad_definition')
    assert decoder.message(message.type, message.data).data == 'x'


@pytest.mark.parametrize(
    ('written', 'expected'),
    [
        ('sensor_msgs/Image', 'sensor_msgs/msg/Image'),
        ('sensor_msgs/msg/Image', 'sensor_msgs/msg/Image'),
        ('', ''),
        ('Image', 'Image'),
    ],
)
def test_a_type_has_the_name_that_ros_2_gives_it(written: str, expected: str) -> None:
    assert full_type(written) == expected


def test_only_the_topics_that_are_asked_for_are_learned(tmp_path: Path) -> None:
    path = mcap(tmp_path / 'bag.mcap', [('/a', SECOND, 'x')], definition='%%%')
    with open_bag(path) as bag:
        assert decoder_for(bag, topics=(), environment={})[1] == []


def test_what_publishers_offered_is_read_from_files_and_metadata(tmp_path: Path) -> None:
    with open_bag(mcap(tmp_path / 'bag.mcap', [('/a', SECOND, 'x')])) as bag:
        (offered,) = bag.topics['/a'].qos
    assert (offered.history, offered.depth, offered.reliability) == ('keep_last', 7, 'reliable')
    with open_bag(rosbag2(tmp_path / 'bag', [('/a', SECOND, 'x')])) as bag:
        assert bag.topics['/a'].qos == ()
