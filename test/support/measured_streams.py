"""Streams of messages that were really encoded, measured as the doctor measures them."""

from __future__ import annotations

import numpy as np

from harness_eval.capture import StreamKind, StreamSpec, TopicFacts
from harness_eval.decode import Decoder
from harness_eval.doctor import StreamMeter, StreamStatistics

IMAGE = 'sensor_msgs/msg/Image'
JOINTS = 'sensor_msgs/msg/JointState'
MS = 1_000_000
START = 1_000_000 * MS
THERE = TopicFacts(publishers=1, types=(IMAGE,))
DECODER = Decoder()
FRONT = StreamSpec('front', '/front', StreamKind.VIEW, may_repeat=False, type=IMAGE)


def header(stamp: int) -> object:
    """Make a header."""
    time = DECODER.new('builtin_interfaces/msg/Time', sec=stamp // 10**9, nanosec=stamp % 10**9)
    return DECODER.new('std_msgs/msg/Header', stamp=time, frame_id='camera')


def picture(stamp: int, shade: int, encoding: str = 'mono8') -> bytes:
    """Make a small picture of one shade."""
    message = DECODER.new(
        IMAGE,
        header=header(stamp),
        height=4,
        width=6,
        encoding=encoding,
        is_bigendian=0,
        step=6,
        data=np.full(24, shade % 256, np.uint8),
    )
    return DECODER.serialize(IMAGE, message)


def joints(stamp: int, names: tuple[str, ...] = ('finger',)) -> bytes:
    """Make a joint state."""
    message = DECODER.new(
        JOINTS,
        header=header(stamp),
        name=list(names),
        position=np.zeros(len(names)),
        velocity=np.zeros(0),
        effort=np.zeros(0),
    )
    return DECODER.serialize(JOINTS, message)


def measured(
    count: int = 10,
    *,
    spec: StreamSpec = FRONT,
    period: int = 40 * MS,
    offset: int = -5 * MS,
    frozen: bool = False,
    zero: bool = False,
    receipt: int = START,
    encoding: str = 'mono8',
) -> StreamStatistics:
    """Measure a camera that sends so many pictures, well or badly."""
    meter = StreamMeter(spec, DECODER)
    for number in range(count):
        came = receipt + number * period if receipt else 0
        stamp = 0 if zero else START + number * period + offset
        meter.add(IMAGE, picture(stamp, 7 if frozen else number, encoding), came)
    return meter.statistics()
