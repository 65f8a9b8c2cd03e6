"""How fast the evidence of ten runs is found in a bag, without judging it.

Three cameras send JPEG pictures at 30 Hz for ten minutes, and runs end in that time. What is
measured is opening the bag, reading the completions and then the second of pictures after each of
ten of them. The compared side opens and reads the same bag once with rosbags. Nothing is decoded
on either side. It is an MCAP bag as rosbag2 writes it (chunks that are not packed), just written
and read in turns, so that all of it comes out of the memory that the system keeps of files: that
favours the full read.

Whether the time grows with the runs and not with the bag is seen from twice the runs in the same
bag, and from the same number of runs in a bag of half the length.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
import random
import tempfile
import time
from typing import Any

import numpy as np
from rosbags.rosbag2 import Reader, StoragePlugin, Writer

from benchmarks.effort import Effort
from benchmarks.rows import Row, row, Target
from harness_eval.cases import completion_message, COMPLETION_TYPE
from harness_eval.decode import Decoder
from harness_eval.replay.bags import open_bag
from harness_eval.runs import Completion

CAMERAS = 3
RATE = 30
PICTURE_BYTES = 30_000
"""A 640x480 JPEG picture of an ordinary scene in the quality that drivers send."""
RUNS = 10
WINDOW = 1_000_000_000
"""Nanoseconds of pictures that a run needs."""
START = 1_700_000_000_000_000_000
TOPICS = tuple(f'/camera_{number}/image_raw/compressed' for number in range(CAMERAS))
COMPLETIONS = '/tool_completions'
TYPE = 'sensor_msgs/msg/CompressedImage'
_PICTURES = 16
"""Different pictures, sent in turns; they cannot be packed, as JPEG cannot."""


def measure(effort: Effort) -> list[Row]:
    """Read the same bags in windows and in full, in turns."""
    seconds = effort.replay_seconds
    ten: list[float] = []
    twenty: list[float] = []
    half: list[float] = []
    full: list[float] = []
    with written_bag(seconds) as whole, written_bag(seconds / 2) as short:
        for _ in range(effort.repetitions):
            ten.append(windows(whole, RUNS))
            full.append(full_read(whole))
            twenty.append(windows(whole, 2 * RUNS))
            half.append(windows(short, RUNS))
    return [
        row(
            f'replay, reading {RUNS} runs in {seconds / 60:g} min of 3 cameras',
            's',
            ten,
            repetitions=effort.repetitions,
            reference=full,
            reference_name='rosbags reads the bag once',
        ),
        row(
            'replay, full read as a multiple of reading the runs',
            'times',
            [theirs / ours for ours, theirs in zip(ten, full, strict=True)],
            repetitions=effort.repetitions,
            target=Target(20.0, at_least=True),
        ),
        row(
            f'replay, reading {2 * RUNS} runs of the same bag',
            's',
            twenty,
            repetitions=effort.repetitions,
            reference=ten,
            reference_name=f'{RUNS} runs',
        ),
        row(
            f'replay, reading {RUNS} runs in half as long a bag',
            's',
            half,
            repetitions=effort.repetitions,
            reference=ten,
            reference_name='the whole length',
        ),
    ]


@contextmanager
def written_bag(seconds: float) -> Iterator[Path]:
    """Write a bag in which twice the runs end that are read, and remove it in the end.

    Args:
        seconds: Its length.
    """
    with tempfile.TemporaryDirectory(prefix='harness_eval-bench-') as parent:
        folder = Path(parent, 'bag')
        _write(folder, seconds, 2 * RUNS)
        yield folder


def windows(folder: Path, runs: int) -> float:
    """Seconds to open a bag and read the completions and the pictures after so many of them."""
    began = time.perf_counter()
    pictures = 0
    with open_bag(folder) as bag:
        ends = [message.receipt for message in bag.messages((COMPLETIONS,))]
        for end in ends[:: len(ends) // runs]:
            for _ in bag.messages(TOPICS, end, end + WINDOW):
                pictures += 1
        skipped = bag.skipped
    taken = time.perf_counter() - began
    if skipped or len(ends) != 2 * RUNS or abs(pictures / runs - CAMERAS * RATE) > CAMERAS:
        raise RuntimeError(f'{len(ends)} runs, {pictures} pictures, {skipped}')
    return taken


def full_read(folder: Path) -> float:
    """Seconds in which rosbags reads the whole of a bag."""
    began = time.perf_counter()
    with Reader(folder) as reader:
        read = sum(1 for _ in reader.messages())
        expected = reader.message_count
    taken = time.perf_counter() - began
    if read != expected:
        raise RuntimeError(f'{read} of {expected} messages')
    return taken


def _write(folder: Path, seconds: float, runs: int) -> None:
    decoder = _decoder()
    chance = random.Random(1)
    pictures = [_picture(decoder, chance.randbytes(PICTURE_BYTES)) for _ in range(_PICTURES)]
    length = int(seconds * 1e9)
    # The last run ends early enough for its pictures to be there.
    ends = [START + (length - 2 * WINDOW) * (number + 1) // runs for number in range(runs)]
    period = 1_000_000_000 // RATE
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        store = decoder.typestore_for(TYPE)
        topics = [writer.add_connection(topic, TYPE, typestore=store) for topic in TOPICS]
        store = decoder.typestore_for(COMPLETION_TYPE)
        done = writer.add_connection(COMPLETIONS, COMPLETION_TYPE, typestore=store)
        for number in range(int(seconds * RATE)):
            while ends and ends[0] <= START + number * period:
                end = ends.pop(0)
                completion = Completion(f'run_{len(ends)}', 'pick', stamp=end)
                writer.write(done, end, completion_message(completion, decoder))
            for camera, topic in enumerate(topics):
                receipt = START + number * period + camera * (period // CAMERAS)
                writer.write(topic, receipt, pictures[(number + camera) % _PICTURES])


def _picture(decoder: Decoder, content: bytes) -> bytes:
    message: Any = decoder.new(
        TYPE,
        header=decoder.new(
            'std_msgs/msg/Header',
            stamp=decoder.new('builtin_interfaces/msg/Time', sec=0, nanosec=0),
            frame_id='camera',
        ),
        format='jpeg',
        data=np.frombuffer(content, np.uint8),
    )
    return decoder.serialize(TYPE, message)


def _decoder() -> Decoder:
    messages = Path(__file__).parents[1] / 'harness_eval_msgs' / 'msg'
    decoder = Decoder()
    decoder.register(COMPLETION_TYPE, (messages / 'ToolCompletion.msg').read_text())
    return decoder
