"""Whatever the bytes are, they are decoded or they are a decode error, soon and in little room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import random
from time import perf_counter
import tracemalloc
from typing import Any

from cdr_messages import (
    CAMERA_INFO,
    camera_info,
    COMPRESSED,
    compressed_image,
    DECODER,
    IMAGE,
    image_of,
    JOINT_STATE,
    joint_state,
    LASER_SCAN,
    laser_scan,
)
import cv2
import numpy as np
import pytest

from harness_eval.contract import DecodeError
from harness_eval.decode import FieldPath
from harness_eval.decode.raw_image import ENCODINGS

PICTURE = np.random.default_rng(5).integers(0, 256, (24, 32, 3), np.uint8)
MUTATIONS = 2500
MOST_SECONDS = 2.0
MOST_BYTES = 64_000_000


def file_of(suffix: str, *options: int) -> bytes:
    return bytes(cv2.imencode(suffix, PICTURE, list(options))[1])


SEEDS = [
    (IMAGE, image_of(PICTURE, 'rgb8')),
    (IMAGE, image_of(PICTURE[..., 0], 'mono8', padding=3)),
    (IMAGE, image_of(PICTURE, 'bgr8', big_endian=True)),
    (COMPRESSED, compressed_image('jpeg', file_of('.jpg'))),
    (COMPRESSED, compressed_image('jpeg', file_of('.jpg', cv2.IMWRITE_JPEG_PROGRESSIVE, 1))),
    (COMPRESSED, compressed_image('jpeg', file_of('.jpg', cv2.IMWRITE_JPEG_RST_INTERVAL, 1))),
    (COMPRESSED, compressed_image('png', file_of('.png'))),
    (COMPRESSED, compressed_image('webp', file_of('.webp'))),
    (COMPRESSED, compressed_image('32FC1; compressedDepth png', b'\x01' * 12 + file_of('.png'))),
    (JOINT_STATE, joint_state({'a': 1.0, 'b': 2.0})),
    (LASER_SCAN, laser_scan([1.0, 2.0])),
    (CAMERA_INFO, camera_info()),
    ('tf2_msgs/msg/TFMessage', b'\x00\x01\x00\x00\x00\x00\x00\x00'),
]
WORDS = [b'\x00\x00\x00\x00', b'\xff\xff\xff\xff', b'\xff\xff\xff\x7f', b'\x00\x00\x00\x80']


def mutated(rng: random.Random, data: bytes) -> bytes:
    """Change, cut, repeat or extend a message at a few random places."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        # Lengths and sizes lie near the beginning, so that is where most changes go.
        place = rng.randrange(len(changed) if rng.random() < 0.4 else min(len(changed), 90))
        match rng.randrange(6):
            case 0:
                changed[place] ^= 1 << rng.randrange(8)
            case 1:
                changed[place] = rng.randrange(256)
            case 2:
                changed[place : place + 4] = rng.choice(WORDS)
            case 3:
                del changed[place:]
            case 4:
                del changed[place : place + rng.randrange(1, 9)]
            case _:
                changed[place:place] = rng.randbytes(rng.randrange(1, 9))
        if not changed:
            break
    return bytes(changed)


def buffers() -> Iterator[tuple[str, bytes]]:
    rng = random.Random(20)
    for index in range(MUTATIONS):
        type_name, data = SEEDS[index % len(SEEDS)]
        yield type_name, mutated(rng, data)
    for index in range(500):
        order = rng.choice((b'\x00\x00', b'\x00\x01', rng.randbytes(2)))
        yield SEEDS[index % len(SEEDS)][0], order + rng.randbytes(rng.randrange(200))


def readers(type_name: str) -> list[Callable[[str, bytes], Any]]:
    path = FieldPath.parse('position[name=a]')
    return [
        DECODER.stamp,
        DECODER.message,
        DECODER.image_facts,
        DECODER.image,
        DECODER.camera_info,
        lambda name, data: DECODER.reading(name, data, path, 'min'),
        lambda name, data: DECODER.text(name, data, FieldPath.parse('header.frame_id')),
        lambda name, data: DECODER.time(name, data, FieldPath.parse('header.stamp')),
    ]


def test_thousands_of_damaged_messages_raise_nothing_but_decode_errors() -> None:
    seen = {'decoded': 0, 'refused': 0}
    slowest, longest = 0.0, 0
    DECODER.image(IMAGE, SEEDS[0][1])
    tracemalloc.start()
    try:
        for type_name, data in buffers():
            for read in readers(type_name):
                began = perf_counter()
                try:
                    read(type_name, data)
                    seen['decoded'] += 1
                except DecodeError as error:
                    seen['refused'] += 1
                    longest = max(longest, len(error.message))
                slowest = max(slowest, perf_counter() - began)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen['decoded'] > 1000
    assert seen['refused'] > 1000
    assert longest < 1500
    assert slowest < MOST_SECONDS
    assert peak < MOST_BYTES


@pytest.mark.parametrize('encoding', sorted(ENCODINGS))
def test_every_small_size_of_every_encoding_decodes_to_that_size_or_is_refused(
    encoding: str,
) -> None:
    layout = ENCODINGS[encoding]
    for width in range(1, 9):
        for height in range(1, 9):
            row = width * layout.channels * int(layout.element[1:])
            rows = height * layout.planes[0] // layout.planes[1]
            data = image_of(np.zeros((rows, row), np.uint8), encoding)
            # The width of the message is that of pixels, its height that of the picture.
            message = DECODER.message(IMAGE, data)
            message.width, message.height = width, height
            try:
                picture = DECODER.image(IMAGE, DECODER.serialize(IMAGE, message))
            except DecodeError as error:
                assert 'even' in error.message or 'Bayer' in error.message
            else:
                assert picture.shape[:2] == (height, width)
