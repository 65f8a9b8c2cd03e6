"""Pictures from ``sensor_msgs/Image``, for every encoding of ``image_encodings`` that shows one.

An encoding decides what the bytes mean, and a wrong guess gives a picture that looks right: so
nothing is guessed. Sizes must fit each other exactly, and an encoding that is not in the table is
an error that names it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from harness_eval.contract import DecodeError, Image
from harness_eval.decode.facts import ImageFacts
from harness_eval.decode.header import image_header

MAX_PIXELS = 64_000_000
"""Largest picture; more is a mistake or an attack on the memory."""

_DEEP = 65535
_SHALLOW = 255
_MIN_BAYER = 3
"""Fewest rows and columns that OpenCV interpolates; it blackens anything smaller."""


@dataclass(frozen=True)
class Layout:
    """How the bytes of an encoding lie.

    Attributes:
        element: NumPy code of one element, without byte order.
        channels: Elements of a pixel in a row.
        kind: What to do with them.
        code: Name of the OpenCV colour conversion, where there is one.
        planes: Rows of ``step`` bytes for every row of pixels, as a fraction.
        even: Whether width, and height, must be even.
    """

    element: str
    channels: int
    kind: str
    code: str = ''
    planes: tuple[int, int] = (1, 1)
    even: tuple[bool, bool] = (False, False)


def _bayer(element: str) -> dict[str, Layout]:
    # OpenCV names a pattern by its second row and column, ROS by its first.
    codes = {'rggb': 'BG', 'bggr': 'RG', 'gbrg': 'GR', 'grbg': 'GB'}
    depth = 8 * int(element[1:])
    return {
        f'bayer_{pattern}{depth}': Layout(element, 1, 'bayer', f'COLOR_Bayer{code}2BGR')
        for pattern, code in codes.items()
    }


_UYVY = Layout('u1', 2, 'color', 'COLOR_YUV2BGR_UYVY', even=(True, False))
_YUYV = Layout('u1', 2, 'color', 'COLOR_YUV2BGR_YUY2', even=(True, False))

ENCODINGS = {
    'bgr8': Layout('u1', 3, 'plain'),
    '8UC3': Layout('u1', 3, 'plain'),
    'rgb8': Layout('u1', 3, 'color', 'COLOR_RGB2BGR'),
    'rgba8': Layout('u1', 4, 'color', 'COLOR_RGBA2BGR'),
    'bgra8': Layout('u1', 4, 'color', 'COLOR_BGRA2BGR'),
    '8UC4': Layout('u1', 4, 'color', 'COLOR_BGRA2BGR'),
    'bgr16': Layout('u2', 3, 'plain'),
    'rgb16': Layout('u2', 3, 'color', 'COLOR_RGB2BGR'),
    'bgra16': Layout('u2', 4, 'color', 'COLOR_BGRA2BGR'),
    'rgba16': Layout('u2', 4, 'color', 'COLOR_RGBA2BGR'),
    'mono8': Layout('u1', 1, 'plain'),
    '8UC1': Layout('u1', 1, 'plain'),
    'mono16': Layout('u2', 1, 'plain'),
    '16UC1': Layout('u2', 1, 'plain'),
    '16SC1': Layout('i2', 1, 'plain'),
    '32FC1': Layout('f4', 1, 'plain'),
    'yuv422': _UYVY,
    'uyvy': _UYVY,
    'yuv422_yuy2': _YUYV,
    'yuyv': _YUYV,
    'nv12': Layout('u1', 1, 'color', 'COLOR_YUV2BGR_NV12', planes=(3, 2), even=(True, True)),
    'nv21': Layout('u1', 1, 'color', 'COLOR_YUV2BGR_NV21', planes=(3, 2), even=(True, True)),
    'nv24': Layout('u1', 1, 'nv24', planes=(3, 1)),
    **_bayer('u1'),
    **_bayer('u2'),
}
"""Every encoding that can be shown, by its name in ``sensor_msgs/image_encodings``."""


@dataclass(frozen=True)
class RawImage:
    """An image message whose sizes fit each other."""

    facts: ImageFacts
    layout: Layout
    step: int
    big_endian: bool


def check(type_name: str, data: bytes) -> RawImage:
    """Check sizes and encoding without touching a pixel.

    Raises:
        DecodeError: ``malformed_message``, ``malformed_image``, ``unsupported_encoding``.
    """
    _, facts, step, big_endian = image_header(type_name, data)
    what = f'an image of {facts.width}x{facts.height} {facts.encoding[:40]!r}'
    check_size(facts.width, facts.height, what)
    layout = ENCODINGS.get(facts.encoding)
    if layout is None:
        raise DecodeError(
            'unsupported_encoding',
            f'the encoding {facts.encoding[:40]!r} cannot be shown; '
            f'expected one of {", ".join(ENCODINGS)}',
        )
    if (layout.even[0] and facts.width % 2) or (layout.even[1] and facts.height % 2):
        raise DecodeError('malformed_image', f'{what}: its size must be even')
    if layout.kind == 'bayer' and min(facts.width, facts.height) < _MIN_BAYER:
        raise DecodeError(
            'malformed_image', f'{what}: a Bayer pattern needs {_MIN_BAYER} rows and columns'
        )
    row = facts.width * layout.channels * int(layout.element[1:])
    if step < row:
        raise DecodeError('malformed_image', f'{what}: a row needs {row} bytes, step is {step}')
    expected = step * facts.height * layout.planes[0] // layout.planes[1]
    if facts.size != expected:
        raise DecodeError(
            'malformed_image',
            f'{what} with step {step} needs {expected} bytes of data, found {facts.size}',
        )
    return RawImage(facts, layout, step, big_endian)


def check_size(width: int, height: int, what: str) -> None:
    """Refuse pictures without pixels and pictures that would fill the memory.

    Raises:
        DecodeError: ``malformed_image``.
    """
    if not width or not height:
        raise DecodeError('malformed_image', f'{what} has no pixels')
    if width * height > MAX_PIXELS:
        raise DecodeError(
            'malformed_image',
            f'{what} claims {width * height} pixels, the most is {MAX_PIXELS}',
        )


def decode(type_name: str, data: bytes) -> Image:
    """Decode a ``sensor_msgs/Image``; see :meth:`harness_eval.decode.Decoder.image`.

    Raises:
        DecodeError: As :func:`check`.
    """
    image = check(type_name, data)
    layout, facts = image.layout, image.facts
    elements = _elements(image, data)
    if layout.channels > 1:
        elements = elements.reshape(elements.shape[0], facts.width, layout.channels)
    if layout.kind == 'plain':
        picture = elements
    elif layout.kind == 'nv24':
        picture = _nv24(elements, facts.height)
    else:
        picture = _convert(elements, layout.code)
    if picture.ndim > 2 and picture.dtype == np.uint16:
        return shallow(picture)
    # The contract knows no signed pixels; float32 holds all of them.
    return picture.astype(np.float32) if picture.dtype == np.int16 else picture


def _elements(image: RawImage, data: bytes) -> Image:
    """Give the rows as elements in native byte order, without their padding.

    Nothing is copied when there is neither padding nor another byte order.
    """
    layout, facts = image.layout, image.facts
    width = facts.width * layout.channels
    item = int(layout.element[1:])
    pixels = np.frombuffer(data, np.uint8, facts.size, facts.offset)
    if layout.kind == 'nv24':
        # Its chroma rows are twice as long as its luma rows and follow the same padding.
        luma = facts.height * image.step
        chroma = pixels[luma:].reshape(facts.height, 2 * image.step)[:, : 2 * width]
        rows = pixels[:luma].reshape(facts.height, image.step)[:, :width]
        return np.concatenate([rows, chroma.reshape(2 * facts.height, width)])
    rows = np.ascontiguousarray(pixels.reshape(-1, image.step)[:, : width * item])
    order = '>' if image.big_endian else '<'
    return rows.view(np.dtype(f'{order}{layout.element}')).astype(f'={layout.element}', copy=False)


def _convert(elements: Image, code: str) -> Image:
    import cv2

    return np.asarray(cv2.cvtColor(elements, getattr(cv2, code)))


def demosaic(mosaic: Image, encoding: str) -> Image:
    """Turn a Bayer mosaic into a colour picture.

    Args:
        mosaic: ``HxW`` uint8 or uint16.
        encoding: Its pattern, for example ``bayer_rggb8``.

    Returns:
        ``HxWx3 uint8, BGR``.

    Raises:
        DecodeError: ``unsupported_encoding``, ``malformed_image``.
    """
    layout = ENCODINGS.get(encoding)
    if layout is None or layout.kind != 'bayer':
        raise DecodeError('unsupported_encoding', f'{encoding!r} is not a Bayer pattern')
    if min(mosaic.shape) < _MIN_BAYER:
        raise DecodeError(
            'malformed_image', f'a Bayer pattern needs {_MIN_BAYER} rows and columns'
        )
    picture = _convert(mosaic, layout.code)
    return shallow(picture) if picture.dtype == np.uint16 else picture


def shallow(deep: Image) -> Image:
    """Scale 16 bits of a colour to 8, so that white stays white."""
    return ((deep.astype(np.uint32) * _SHALLOW + _DEEP // 2) // _DEEP).astype(np.uint8)


def _nv24(planes: Image, height: int) -> Image:
    """Convert a full-size luma plane and a full-size plane of chroma pairs (ITU-R BT.601).

    OpenCV before version 5 has no conversion for it; the coefficients are those that it uses for
    the other YUV encodings.
    """
    luma = planes[:height].astype(np.float32)
    chroma = planes[height:].reshape(height, -1, 2).astype(np.float32) - 128.0
    blue_chroma, red_chroma = chroma[..., 0], chroma[..., 1]
    scaled = np.maximum(luma - 16.0, 0.0) * 1.164
    channels: list[Any] = [
        scaled + 2.018 * blue_chroma,
        scaled - 0.391 * blue_chroma - 0.813 * red_chroma,
        scaled + 1.596 * red_chroma,
    ]
    picture: Image = np.clip(np.rint(np.stack(channels, axis=-1)), 0, _SHALLOW).astype(np.uint8)
    return picture
