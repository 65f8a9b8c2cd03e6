"""Compressed images decode to the right pixels; a damaged file is an error and never grey."""

from __future__ import annotations

import struct
from typing import Any
import zlib

from cdr_messages import COMPRESSED, compressed_image, DECODER
import cv2
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from harness_eval.contract import DecodeError

WIDTH, HEIGHT = 96, 64


def scene(width: int = WIDTH, height: int = HEIGHT) -> Any:
    """Make a smooth picture whose three channels differ everywhere."""
    y, x = np.mgrid[:height, :width]
    return np.stack(
        [40 + x * 100 // width, 90 + y * 100 // height, 200 - x * 60 // width], axis=-1
    ).astype(np.uint8)


def jpeg(picture: Any, *options: int) -> bytes:
    return bytes(cv2.imencode('.jpg', picture, [cv2.IMWRITE_JPEG_QUALITY, 92, *options])[1])


def png_chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack('>I', len(body)) + name + body + struct.pack('>I', zlib.crc32(name + body))


def png(array: Any) -> bytes:
    """Write a PNG without any library: rows without a filter, 8 or 16 bits, 1 to 4 channels."""
    shape = array.reshape(*array.shape[:2], -1)
    color = {1: 0, 2: 4, 3: 2, 4: 6}[shape.shape[2]]
    rows = shape.astype(shape.dtype.newbyteorder('>'))
    raw = b''.join(b'\x00' + row.tobytes() for row in rows)
    head = struct.pack(
        '>IIBBBBB', shape.shape[1], shape.shape[0], 8 * shape.dtype.itemsize, color, 0, 0, 0
    )
    return (
        b'\x89PNG\r\n\x1a\n'
        + png_chunk(b'IHDR', head)
        + png_chunk(b'IDAT', zlib.compress(raw))
        + png_chunk(b'IEND', b'')
    )


def decode(form: str, data: bytes) -> Any:
    return DECODER.image(COMPRESSED, compressed_image(form, data))


def refused(form: str, data: bytes) -> DecodeError:
    with pytest.raises(DecodeError) as caught:
        decode(form, data)
    return caught.value


@pytest.mark.parametrize(
    'form', ['jpeg', 'rgb8; jpeg compressed bgr8', 'bgr8; jpeg compressed bgr8', 'jpg', '']
)
def test_a_colour_jpeg_comes_out_as_bgr(form: str) -> None:
    picture = decode(form, jpeg(scene()))
    assert picture.shape == (HEIGHT, WIDTH, 3)
    assert np.abs(picture.astype(int) - scene()).max() <= 6


def test_a_jpeg_that_was_compressed_from_rgb_order_is_turned_round() -> None:
    picture = decode('rgb8; jpeg compressed rgb8', jpeg(scene()[..., ::-1]))
    assert np.abs(picture.astype(int) - scene()).max() <= 6


def test_a_grey_jpeg_has_one_channel() -> None:
    grey = scene()[..., 0]
    picture = decode('mono8; jpeg compressed ', jpeg(grey))
    assert picture.shape == (HEIGHT, WIDTH)
    assert np.abs(picture.astype(int) - grey).max() <= 4


def test_the_orientation_of_exif_does_not_turn_the_picture() -> None:
    exif = (
        b'Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01'
        b'\x00\x06\x00\x00\x00\x00\x00\x00'
    )
    plain = jpeg(scene())
    turned = plain[:2] + b'\xff\xe1' + struct.pack('>H', len(exif) + 2) + exif + plain[2:]
    np.testing.assert_array_equal(decode('jpeg', turned), decode('jpeg', plain))


@pytest.mark.parametrize('channels', [1, 2, 3, 4])
@pytest.mark.parametrize('kind', [np.uint8, np.uint16])
@given(seed=st.integers(0, 999), width=st.integers(1, 20), height=st.integers(1, 20))
@settings(max_examples=15)
def test_a_png_keeps_every_value(
    channels: int, kind: Any, seed: int, width: int, height: int
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, np.iinfo(kind).max + 1, (height, width, channels), kind)
    if channels == 2:
        # Grey with alpha; OpenCV gives it as colour, the alpha is left out.
        expected = np.repeat(values[..., :1], 3, axis=2)
    elif channels == 1:
        expected = values[..., 0]
    else:
        expected = values[..., [2, 1, 0]]
    if channels > 1 and kind is np.uint16:
        expected = np.floor(expected.astype(float) / 257 + 0.5).astype(np.uint8)
    picture = decode('png', png(values))
    assert picture.dtype == expected.dtype
    np.testing.assert_array_equal(picture, expected)


def test_a_compressed_mosaic_is_interpolated() -> None:
    mosaic = np.full((8, 8), 120, np.uint8)
    mosaic[::2, ::2], mosaic[1::2, 1::2] = 210, 30
    picture = decode('bayer_rggb8; png compressed ', png(mosaic))
    np.testing.assert_array_equal(picture, np.broadcast_to((30, 120, 210), (8, 8, 3)))


@pytest.mark.parametrize('quality', [101, 80])
def test_a_webp_comes_out_as_bgr(quality: int) -> None:
    data = bytes(cv2.imencode('.webp', scene(), [cv2.IMWRITE_WEBP_QUALITY, quality])[1])
    picture = decode('webp', data)
    assert np.abs(picture.astype(int) - scene()).max() <= (0 if quality > 100 else 14)


DEPTH_HEADER = struct.pack('<iff', 1, 0.0, 0.0)


@pytest.mark.parametrize('form', ['16UC1; compressedDepth', '16UC1; compressedDepth png'])
def test_compressed_depth_in_millimetres_keeps_every_value(form: str) -> None:
    depth = np.random.default_rng(3).integers(0, 65536, (9, 7), np.uint16)
    np.testing.assert_array_equal(decode(form, DEPTH_HEADER + png(depth)), depth)


def test_compressed_depth_in_metres_undoes_the_quantisation() -> None:
    metres = np.array([[0.5, 1.0, 2.0], [4.0, np.nan, 9.5]], np.float32)
    # As compressed_depth_image_transport quantises: depth_max 10, depth_quantization 100.
    a = 100.0 * (100.0 + 1.0)
    b = 1.0 - a / 10.0
    with np.errstate(invalid='ignore'):
        inverse = np.where(np.isnan(metres), 0, a / metres + b).astype(np.uint16)
    data = struct.pack('<iff', 1, a, b) + png(inverse)
    picture = decode('32FC1; compressedDepth png', data)
    assert picture.dtype == np.float32
    np.testing.assert_allclose(picture, metres, rtol=5e-3)
    assert np.isnan(picture[1, 1])


@pytest.mark.parametrize(
    ('form', 'data', 'kind'),
    [
        ('16UC1; compressedDepth rvl', DEPTH_HEADER + b'\x00' * 40, 'unsupported_encoding'),
        ('32FC1; compressedDepth png', DEPTH_HEADER + png(scene()[..., 0]), 'malformed_image'),
        ('16UC1; compressedDepth png', DEPTH_HEADER + png(scene()), 'malformed_image'),
        ('16UC1; compressedDepth png', DEPTH_HEADER + jpeg(scene()), 'unsupported_encoding'),
        ('16UC1; compressedDepth png', b'\x00' * 5, 'malformed_image'),
        ('rgb8; compressedDepth png', DEPTH_HEADER + png(scene()), 'unsupported_encoding'),
        ('h264', b'\x00\x00\x00\x01\x67\x42\x00\x1e', 'unsupported_encoding'),
        ('bmp', b'BM' + b'\x00' * 60, 'unsupported_encoding'),
        ('gif', b'GIF89a' + b'\x00' * 60, 'unsupported_encoding'),
        ('jpeg', b'', 'malformed_image'),
    ],
)
def test_what_cannot_be_decoded_is_an_error_that_names_the_format(
    form: str, data: bytes, kind: str
) -> None:
    error = refused(form, data)
    assert error.kind == kind
    assert form in error.message


def restarting(picture: Any) -> bytes:
    return jpeg(picture, cv2.IMWRITE_JPEG_RST_INTERVAL, 2)


def progressive(picture: Any) -> bytes:
    return jpeg(picture, cv2.IMWRITE_JPEG_PROGRESSIVE, 1)


NOISE = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)
FILES = {
    'jpeg': jpeg(NOISE),
    'grey jpeg': jpeg(NOISE[..., 0]),
    'jpeg with restarts': restarting(NOISE),
    'progressive jpeg': progressive(NOISE),
    'png': png(NOISE),
    'png of a library': bytes(cv2.imencode('.png', NOISE)[1]),
    'webp': bytes(cv2.imencode('.webp', NOISE, [cv2.IMWRITE_WEBP_QUALITY, 101])[1]),
}


@pytest.mark.parametrize('name', FILES)
def test_a_file_cut_anywhere_is_an_error(name: str) -> None:
    data = FILES[name]
    assert decode('', data).shape[:2] == (HEIGHT, WIDTH)
    for length in {*range(1, len(data), 37), *range(len(data) - 12, len(data))}:
        assert refused('', data[:length]).kind in ('malformed_image', 'unsupported_encoding')


@pytest.mark.parametrize('name', ['jpeg', 'grey jpeg', 'jpeg with restarts', 'progressive jpeg'])
def test_half_a_jpeg_says_that_it_was_cut(name: str) -> None:
    error = refused('jpeg', FILES[name][: len(FILES[name]) // 2])
    assert error.kind == 'malformed_image'
    assert 'without its end marker; it was cut' in error.message


@pytest.mark.parametrize('name', ['jpeg', 'grey jpeg', 'jpeg with restarts'])
def test_a_jpeg_that_was_cut_and_closed_again_is_an_error(name: str) -> None:
    data = FILES[name]
    begin = data.index(b'\xff\xda') + 20
    # Within its very last blocks no more than a corner of 16 pixels is missing.
    for length in range(begin, len(data) - 900, 29):
        assert refused('jpeg', data[:length] + b'\xff\xd9').kind == 'malformed_image'


def test_a_progressive_jpeg_without_its_last_scan_is_an_error() -> None:
    data = FILES['progressive jpeg']
    error = refused('jpeg', data[: data.rindex(b'\xff\xda')] + b'\xff\xd9')
    assert error.kind == 'malformed_image'
    assert 'it was cut' in error.message


@pytest.mark.parametrize('name', ['jpeg', 'jpeg with restarts'])
def test_a_jpeg_whose_second_half_is_zeros_is_an_error(name: str) -> None:
    half = len(FILES[name]) // 2
    error = refused('jpeg', FILES[name][:half] + bytes(half - 2) + b'\xff\xd9')
    assert error.kind == 'malformed_image'


def test_a_jpeg_that_lacks_a_part_between_two_restarts_is_an_error() -> None:
    data = FILES['jpeg with restarts']
    first, second = data.index(b'\xff\xd2'), data.index(b'\xff\xd3')
    assert 'restart markers' in refused('jpeg', data[:first] + data[second:]).message


def test_a_strange_marker_within_the_pixels_is_an_error() -> None:
    data = bytearray(FILES['jpeg'])
    middle = len(data) // 2
    data[middle : middle + 2] = b'\xff\x4f'
    assert 'marker 4f' in refused('jpeg', bytes(data)).message


@pytest.mark.parametrize('make', [jpeg, restarting, progressive])
@pytest.mark.parametrize('grey', [False, True])
def test_a_whole_jpeg_that_ends_in_mid_grey_is_accepted(make: Any, grey: bool) -> None:
    picture = np.full((HEIGHT, WIDTH), 128, np.uint8) if grey else np.full_like(NOISE, 128)
    picture[: HEIGHT // 2] = 30
    decoded = decode('jpeg', make(picture))
    assert (decoded[-8:] == 128).all()


def test_bytes_behind_the_end_of_a_jpeg_do_not_matter() -> None:
    padded = FILES['jpeg'] + b'\x00' * 100
    np.testing.assert_array_equal(decode('jpeg', padded), decode('jpeg', FILES['jpeg']))


@given(st.integers(33, len(FILES['png']) - 13), st.integers(1, 255))
@settings(max_examples=60)
def test_one_changed_byte_of_a_png_is_noticed(position: int, change: int) -> None:
    data = bytearray(FILES['png'])
    data[position] ^= change
    assert refused('png', bytes(data)).kind == 'malformed_image'


def test_a_png_with_fewer_rows_than_it_claims_is_an_error() -> None:
    head = struct.pack('>IIBBBBB', 8, 8, 8, 0, 0, 0, 0)
    data = (
        b'\x89PNG\r\n\x1a\n'
        + png_chunk(b'IHDR', head)
        + png_chunk(b'IDAT', zlib.compress(bytes(9 * 7)))
        + png_chunk(b'IEND', b'')
    )
    error = refused('png', data)
    assert '63 of 72 bytes' in error.message


def bomb_png(width: int, height: int) -> bytes:
    head = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    return (
        b'\x89PNG\r\n\x1a\n'
        + png_chunk(b'IHDR', head)
        + png_chunk(b'IDAT', zlib.compress(bytes(1000)))
        + png_chunk(b'IEND', b'')
    )


def bomb_jpeg(width: int, height: int) -> bytes:
    data = bytearray(FILES['jpeg'])
    frame = data.index(b'\xff\xc0')
    data[frame + 5 : frame + 9] = struct.pack('>HH', height, width)
    return bytes(data)


@pytest.mark.parametrize(
    'data',
    [
        bomb_png(100_000, 100_000),
        bomb_png(2**31, 2**31),
        bomb_jpeg(65_000, 65_000),
        bomb_jpeg(0, 64),
    ],
)
def test_a_picture_that_claims_to_be_huge_is_refused_by_its_header(data: bytes) -> None:
    error = refused('', data)
    assert error.kind == 'malformed_image'
    assert 'pixels' in error.message


def test_size_and_format_are_known_without_decoding() -> None:
    facts = DECODER.image_facts(
        COMPRESSED, compressed_image('rgb8; jpeg compressed bgr8', jpeg(scene()))
    )
    assert (facts.width, facts.height) == (WIDTH, HEIGHT)
    assert facts.encoding == 'rgb8; jpeg compressed bgr8'
