"""Raw images decode to the right pixels, or to an error that names the numbers."""

from __future__ import annotations

from typing import Any

from cdr_messages import DECODER, IMAGE, image_of, raw_image
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from harness_eval.contract import DecodeError
from harness_eval.decode.raw_image import ENCODINGS

RNG = np.random.default_rng(7)

# How to write a picture (BGR, or one channel) in each encoding, spelt out without the decoder.
WRITERS: dict[str, Any] = {
    'bgr8': lambda bgr: bgr,
    '8UC3': lambda bgr: bgr,
    'rgb8': lambda bgr: bgr[..., [2, 1, 0]],
    'bgra8': lambda bgr: np.dstack([bgr, np.full(bgr.shape[:2], 9, np.uint8)]),
    '8UC4': lambda bgr: np.dstack([bgr, np.full(bgr.shape[:2], 9, np.uint8)]),
    'rgba8': lambda bgr: np.dstack([bgr[..., [2, 1, 0]], np.full(bgr.shape[:2], 9, np.uint8)]),
    # White stays white: 255 is 65535, so a step of 8 bits is 257 of 16.
    'bgr16': lambda bgr: bgr.astype(np.uint16) * 257,
    'rgb16': lambda bgr: bgr[..., [2, 1, 0]].astype(np.uint16) * 257,
    'bgra16': lambda bgr: np.dstack([bgr, bgr[..., 0]]).astype(np.uint16) * 257,
    'rgba16': lambda bgr: np.dstack([bgr[..., [2, 1, 0]], bgr[..., 0]]).astype(np.uint16) * 257,
}
DEEP = {'bgr16', 'rgb16', 'bgra16', 'rgba16'}
SINGLE = {
    'mono8': np.uint8,
    '8UC1': np.uint8,
    'mono16': np.uint16,
    '16UC1': np.uint16,
    '16SC1': np.int16,
    '32FC1': np.float32,
}
BAYER = {'rggb': 'RGGB', 'bggr': 'BGGR', 'gbrg': 'GBRG', 'grbg': 'GRBG'}
YUV = {'yuv422', 'uyvy', 'yuv422_yuy2', 'yuyv', 'nv12', 'nv21', 'nv24'}

sizes = st.tuples(st.integers(1, 9), st.integers(1, 9))


def in_order(array: Any, big: bool) -> Any:
    return array.astype(array.dtype.newbyteorder('>' if big else '<'))


def test_every_encoding_that_can_be_shown_is_tested_here() -> None:
    bayer = {f'bayer_{pattern}{depth}' for pattern in BAYER for depth in (8, 16)}
    assert set(ENCODINGS) == set(WRITERS) | set(SINGLE) | bayer | YUV


@pytest.mark.parametrize('encoding', WRITERS)
@given(size=sizes, padding=st.integers(0, 5), big=st.booleans(), seed=st.integers(0, 999))
def test_colour_comes_out_as_bgr_whatever_the_step_and_byte_order(
    encoding: str, size: tuple[int, int], padding: int, big: bool, seed: int
) -> None:
    bgr = np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8)
    written = in_order(WRITERS[encoding](bgr), big)
    data = image_of(written, encoding, padding, big_endian_pixels=big)
    picture = DECODER.image(IMAGE, data)
    assert picture.dtype == np.uint8
    np.testing.assert_array_equal(picture, bgr)


@pytest.mark.parametrize('encoding', SINGLE)
@given(size=sizes, padding=st.integers(0, 5), big=st.booleans(), seed=st.integers(0, 999))
def test_one_channel_keeps_its_values_whatever_the_step_and_byte_order(
    encoding: str, size: tuple[int, int], padding: int, big: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values: Any
    if SINGLE[encoding] is np.float32:
        values = rng.normal(0, 10, size).astype(np.float32)
    else:
        bounds = np.iinfo(SINGLE[encoding])  # type: ignore[type-var]
        values = rng.integers(bounds.min, int(bounds.max) + 1, size, SINGLE[encoding])
    data = image_of(in_order(values, big), encoding, padding, big_endian_pixels=big)
    picture = DECODER.image(IMAGE, data)
    assert picture.dtype == (np.float32 if encoding == '16SC1' else SINGLE[encoding])
    assert picture.dtype.isnative
    np.testing.assert_array_equal(picture, values)


@pytest.mark.parametrize('pattern', BAYER)
@pytest.mark.parametrize('depth', [8, 16])
@pytest.mark.parametrize('big', [False, True])
def test_a_mosaic_of_one_colour_becomes_that_colour(pattern: str, depth: int, big: bool) -> None:
    color = {'B': 30, 'G': 120, 'R': 210}
    letters = BAYER[pattern]
    scale, kind = (1, np.uint8) if depth == 8 else (257, np.uint16)
    mosaic = np.empty((10, 12), kind)
    for index, letter in enumerate(letters):
        mosaic[index // 2 :: 2, index % 2 :: 2] = color[letter] * scale
    data = image_of(
        in_order(mosaic, big), f'bayer_{pattern}{depth}', padding=4, big_endian_pixels=big
    )
    picture = DECODER.image(IMAGE, data)
    assert picture.shape == (10, 12, 3)
    np.testing.assert_array_equal(picture, np.broadcast_to((30, 120, 210), (10, 12, 3)))


def yuv_of(bgr: tuple[int, int, int]) -> tuple[int, int, int]:
    """ITU-R BT.601 with the range of video, as cameras write it."""
    blue, green, red = (value / 255 for value in bgr)
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    u = 128 + 224 * (blue - luma) / (2 * (1 - 0.114))
    v = 128 + 224 * (red - luma) / (2 * (1 - 0.299))
    return round(16 + 219 * luma), round(u), round(v)


def write_yuv(encoding: str, left: Any, right: Any, width: int, height: int) -> bytes:
    """Write a picture whose left half has one colour and whose right half has another."""
    planes = np.empty((height, width, 3), np.uint8)
    planes[:, : width // 2], planes[:, width // 2 :] = yuv_of(left), yuv_of(right)
    luma, u, v = planes[..., 0], planes[..., 1], planes[..., 2]
    if encoding in ('uyvy', 'yuv422'):
        pairs = np.stack([u[:, ::2], luma[:, ::2], v[:, ::2], luma[:, 1::2]], axis=-1)
        return image_of(pairs.reshape(height, width, 2), encoding, padding=6)
    if encoding in ('yuyv', 'yuv422_yuy2'):
        pairs = np.stack([luma[:, ::2], u[:, ::2], luma[:, 1::2], v[:, ::2]], axis=-1)
        return image_of(pairs.reshape(height, width, 2), encoding, padding=6)
    step = width + 4
    if encoding == 'nv24':
        chroma = np.stack([u, v], axis=-1).reshape(height, 2 * width)
        lower = np.pad(chroma, ((0, 0), (0, 8)))
    else:
        first, second = (u, v) if encoding == 'nv12' else (v, u)
        chroma = np.stack([first[::2, ::2], second[::2, ::2]], axis=-1)
        lower = np.pad(chroma.reshape(height // 2, width), ((0, 0), (0, 4)))
    upper = np.pad(luma, ((0, 0), (0, 4)))
    return raw_image(upper.tobytes() + lower.tobytes(), width, height, encoding, step)


@pytest.mark.parametrize('encoding', sorted(YUV))
def test_yuv_gives_the_colours_that_were_written(encoding: str) -> None:
    left, right = (40, 90, 200), (180, 140, 20)
    picture = DECODER.image(IMAGE, write_yuv(encoding, left, right, 16, 8))
    assert picture.shape == (8, 16, 3)
    assert np.abs(picture[:, :6].astype(int) - left).max() <= 3
    assert np.abs(picture[:, 10:].astype(int) - right).max() <= 3


@pytest.mark.parametrize('value', [0, 255])
@pytest.mark.parametrize('encoding', sorted(YUV))
def test_yuv_keeps_black_black_and_white_white(encoding: str, value: int) -> None:
    color = (value, value, value)
    picture = DECODER.image(IMAGE, write_yuv(encoding, color, color, 8, 4))
    assert np.abs(picture.astype(int) - value).max() <= 1


def test_a_message_in_big_endian_cdr_gives_the_same_pixels() -> None:
    bgr = RNG.integers(0, 256, (6, 5, 3), np.uint8)
    np.testing.assert_array_equal(
        DECODER.image(IMAGE, image_of(bgr, 'bgr8', big_endian=True)), bgr
    )


def test_an_unpadded_picture_is_not_copied() -> None:
    data = image_of(RNG.integers(0, 256, (48, 64, 3), np.uint8), 'bgr8')
    picture = DECODER.image(IMAGE, data)
    assert np.shares_memory(picture, np.frombuffer(data, np.uint8))


BROKEN = {
    'data one byte short': ((b'x' * 35, 4, 3, 'bgr8', 12), ('4x3', '36', '35')),
    'data one byte long': ((b'x' * 37, 4, 3, 'bgr8', 12), ('36', '37')),
    'no data': ((b'', 4, 3, 'bgr8', 12), ('36', 'found 0')),
    'half of the rows': ((b'x' * 460800, 640, 480, 'rgb8', 1920), ('921600', '460800')),
    'no width': ((b'', 0, 3, 'bgr8', 0), ('0x3', 'no pixels')),
    'no height': ((b'', 4, 0, 'bgr8', 12), ('4x0', 'no pixels')),
    '2^31 rows': ((b'x' * 36, 4, 2**31, 'bgr8', 12), ('2147483648', 'the most is')),
    'largest size': ((b'', 2**32 - 1, 2**32 - 1, 'mono8', 2**32 - 1), ('the most is',)),
    'step too small': ((b'x' * 36, 4, 3, 'bgr8', 11), ('needs 12 bytes', 'step is 11')),
    'step of zero': ((b'', 4, 3, 'bgr8', 0), ('needs 12 bytes', 'step is 0')),
    'step of 8 bits for 16': ((b'x' * 12, 4, 3, '16UC1', 4), ('needs 8 bytes', 'step is 4')),
    'odd width of yuv': ((b'x' * 30, 5, 3, 'uyvy', 10), ('even',)),
    'odd height of nv12': ((b'x' * 18, 4, 3, 'nv12', 4), ('even',)),
    'nv12 without chroma': ((b'x' * 16, 4, 4, 'nv12', 4), ('24', '16')),
    'tiny mosaic': ((b'x' * 4, 2, 2, 'bayer_rggb8', 2), ('3 rows and columns',)),
}


@pytest.mark.parametrize('case', BROKEN)
def test_sizes_that_do_not_fit_are_an_error_with_the_numbers(case: str) -> None:
    arguments, words = BROKEN[case]
    for read in (DECODER.image, DECODER.image_facts):
        with pytest.raises(DecodeError) as caught:
            read(IMAGE, raw_image(*arguments))
        assert caught.value.kind == 'malformed_image'
        for word in words:
            assert word in caught.value.message


@pytest.mark.parametrize(
    'encoding', ['', 'RGB8', 'h264', '8UC2', '32FC3', 'bayer_rggb12', 'x' * 500]
)
def test_an_unknown_encoding_is_an_error_that_names_it(encoding: str) -> None:
    with pytest.raises(DecodeError) as caught:
        DECODER.image(IMAGE, raw_image(b'x' * 12, 2, 2, encoding, 6))
    assert caught.value.kind == 'unsupported_encoding'
    assert repr(encoding[:40]) in caught.value.message
    assert len(caught.value.message) < 600


def test_another_type_is_not_an_image() -> None:
    with pytest.raises(DecodeError) as caught:
        DECODER.image('std_msgs/msg/String', b'\x00\x01\x00\x00\x01\x00\x00\x00\x00')
    assert caught.value.kind == 'not_an_image'
