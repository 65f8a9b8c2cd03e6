"""Bags of ROS 1: their messages come as those of ROS 2 do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from recordings import STORE, STORE_1
from rosbags.rosbag1 import Writer

from harness_eval.replay.bags import decoder_for, open_bag

SECOND = 10**9
CAMERA_INFO = 'sensor_msgs/msg/CameraInfo'
DONE = """\
Header header
string id
time ended
my_msgs/Part[] parts
================================================================================
MSG: my_msgs/Part
string name
duration taken
================================================================================
MSG: std_msgs/Header
uint32 seq
time stamp
string frame_id
"""


def header(frame: str, stamp: int = 5) -> Any:
    time = STORE_1.types['builtin_interfaces/msg/Time'](sec=stamp, nanosec=7)
    return STORE_1.types['std_msgs/msg/Header'](seq=99, stamp=time, frame_id=frame)


def written(path: Path, topic: str, kind: str, message: Any, store: Any = STORE_1) -> Path:
    with Writer(path) as writer:
        connection = writer.add_connection(topic, kind, typestore=store, latching=1)
        writer.write(connection, SECOND, store.serialize_ros1(message, kind))
    return path


def test_a_standard_type_is_read_by_the_names_that_ros_2_gives_it(tmp_path: Path) -> None:
    info = STORE_1.types[CAMERA_INFO](
        header=header('front'),
        height=480,
        width=640,
        distortion_model='plumb_bob',
        D=np.zeros(5),
        K=np.array([500.0, 0, 320, 0, 510, 240, 0, 0, 1]),
        R=np.eye(3).ravel(),
        P=np.array([500.0, 0, 320, 0, 0, 510, 240, 0, 0, 0, 1, 0]),
        binning_x=0,
        binning_y=0,
        roi=STORE_1.types['sensor_msgs/msg/RegionOfInterest'](0, 0, 0, 0, False),
    )
    # A topic in a bag of ROS 1 may be without its leading slash.
    path = written(tmp_path / 'bag.bag', 'front/camera_info', CAMERA_INFO, info)
    with open_bag(path) as bag:
        topic = bag.topics['/front/camera_info']
        decoder, notes = decoder_for(bag, environment={})
        (message,) = bag.messages((topic.name,))
    assert (topic.type, topic.count, topic.qos[0].durability) == (
        CAMERA_INFO,
        1,
        'transient_local',
    )
    assert notes == []
    # Its matrix was called K.
    intrinsics = decoder.camera_info(message.type, message.data)
    assert intrinsics.matrix[0, 0] == 500.0
    facts = decoder.stamp(message.type, message.data)
    assert facts is not None
    assert facts.stamp == 5 * SECOND + 7
    # Byte for byte what ROS 2 would have recorded.
    again = STORE.deserialize_cdr(message.data, CAMERA_INFO)
    assert bytes(STORE.serialize_cdr(again, CAMERA_INFO)) == message.data


def test_a_type_that_ros_2_has_otherwise_is_read_as_the_bag_defines_it(tmp_path: Path) -> None:
    kind = 'sensor_msgs/msg/Range'
    distance = STORE_1.types[kind](
        header=header('sonar'),
        radiation_type=0,
        field_of_view=0.5,
        min_range=0.25,
        max_range=4.0,
        range=1.5,
    )
    assert 'variance' in STORE.types[kind].__dataclass_fields__
    with open_bag(written(tmp_path / 'bag.bag', '/sonar', kind, distance)) as bag:
        decoder, notes = decoder_for(bag, environment={})
        (message,) = bag.messages(('/sonar',))
    assert notes == []
    read = decoder.message(kind, message.data)
    assert (read.range, read.max_range, read.header.frame_id) == (1.5, 4.0, 'sonar')
    assert 'variance' not in vars(read)


def test_a_type_of_somebodys_own_is_learned_from_the_bag(tmp_path: Path) -> None:
    from rosbags.typesys import get_types_from_msg, get_typestore, Stores

    store = get_typestore(Stores.ROS1_NOETIC)
    types = dict(get_types_from_msg(DONE, 'my_msgs/msg/Done'))
    types.pop('std_msgs/msg/Header')
    store.register(types)
    time = store.types['builtin_interfaces/msg/Time']
    done = store.types['my_msgs/msg/Done'](
        header=store.types['std_msgs/msg/Header'](3, time(5, 7), 'base'),
        id='run',
        ended=time(5, 9),
        parts=[
            store.types['my_msgs/msg/Part'](
                name='lid', taken=store.types['builtin_interfaces/msg/Duration'](-1, 2)
            )
        ],
    )
    path = written(tmp_path / 'bag.bag', '/done', 'my_msgs/msg/Done', done, store)
    with open_bag(path) as bag:
        assert bag.topics['/done'].type == 'my_msgs/msg/Done'
        assert 'seq' not in bag.definitions['my_msgs/msg/Done'].text
        decoder, notes = decoder_for(bag, environment={})
        (message,) = bag.messages(('/done',))
    assert notes == []
    read = decoder.message('my_msgs/msg/Done', message.data)
    assert (read.id, read.header.frame_id, read.ended.nanosec) == ('run', 'base', 9)
    assert (read.parts[0].name, read.parts[0].taken.sec) == ('lid', -1)


def test_a_topic_whose_definition_is_broken_is_left_out_and_named(tmp_path: Path) -> None:
    path = tmp_path / 'bag.bag'
    kind = 'std_msgs/msg/String'
    with Writer(path) as writer:
        good = writer.add_connection('/good', kind, typestore=STORE_1)
        bad = writer.add_connection(
            '/bad', 'my_msgs/msg/Bad', msgdef='my_msgs/Lost lost', md5sum='0' * 32
        )
        text = STORE_1.serialize_ros1(STORE_1.types[kind](data='text'), kind)
        for connection in (good, bad):
            writer.write(connection, SECOND, text)
    with open_bag(path) as bag:
        assert [m.topic for m in bag.messages(bag.topics)] == ['/good']
        (note,) = bag.skipped
    assert note.kind == 'bad_definition'
    assert '/bad' in note.message
    assert 'my_msgs/msg/Bad' in note.message
