"""Pictures from ``sensor_msgs/CompressedImage``: JPEG, PNG, WebP and ``compressedDepth``.

What the file is, its first bytes say; ``format`` says what the picture was before it was
compressed. The file is checked for being whole before anything is decoded: decoders fill what is
missing with grey and say nothing.

The meaning of ``format`` follows ``compressed_image_transport`` and
``compressed_depth_image_transport`` (ros-perception/image_transport_plugins).
"""

from __future__ import annotations

from dataclasses import dataclass
import struct

import numpy as np

from harness_eval.contract import DecodeError, Image
from harness_eval.decode import jpeg, png, webp
from harness_eval.decode.facts import ImageFacts
from harness_eval.decode.header import compressed_header
from harness_eval.decode.raw_image import check_size, demosaic, shallow

_DEPTH_HEADER = struct.Struct('<iff')
"""``ConfigHeader``: format (1: inverse depth), and the two numbers of its quantisation."""

_DEPTH_ENCODINGS = {'16UC1': 'plain', 'mono16': 'plain', '32FC1': 'inverse'}


@dataclass(frozen=True)
class CompressedPicture:
    """A compressed file that is whole as far as its structure tells.

    Attributes:
        facts: Size in pixels; the format; where the file lies.
        kind: ``jpeg``, ``png`` or ``webp``.
        encoding: What the picture was before, for example ``rgb8``; empty if nobody says.
        swapped: Whether the file holds red where others hold blue.
        depth: For ``compressedDepth`` the two numbers of the quantisation, else None.
    """

    facts: ImageFacts
    kind: str
    encoding: str
    swapped: bool
    depth: tuple[float, float] | None


def check(type_name: str, data: bytes) -> CompressedPicture:
    """Check format, size and structure without decoding a pixel.

    Raises:
        DecodeError: ``malformed_message``, ``malformed_image``, ``unsupported_encoding``.
    """
    _, form, offset, size = compressed_header(type_name, data)
    encoding, _, compression = (part.strip() for part in form.partition(';'))
    depth = None
    if 'compressedDepth' in form:
        depth = _depth_parameters(form, encoding, compression, data, offset, size)
        offset, size = offset + _DEPTH_HEADER.size, size - _DEPTH_HEADER.size
    content = memoryview(data)[offset : offset + size]
    kind, width, height = _inspect(content, form)
    if depth is not None and kind != 'png':
        raise DecodeError(
            'unsupported_encoding', f'format {form[:60]!r} should hold a PNG, found a {kind}'
        )
    facts = ImageFacts(width, height, form, offset, size)
    return CompressedPicture(facts, kind, encoding, 'compressed rgb' in compression, depth)


def _inspect(content: memoryview, form: str) -> tuple[str, int, int]:
    for kind, module in (('jpeg', jpeg), ('png', png), ('webp', webp)):
        if module.recognises(content):
            width, height = module.inspect(content)
            check_size(width, height, f'a {kind} of {width}x{height}')
            return kind, width, height
    if not content:
        raise DecodeError('malformed_image', f'format {form[:60]!r}: the image has no data')
    raise DecodeError(
        'unsupported_encoding',
        f'format {form[:60]!r}: the data begin with {bytes(content[:8]).hex()}, '
        'expected a JPEG, PNG or WebP file',
    )


def _depth_parameters(
    form: str, encoding: str, compression: str, data: bytes, offset: int, size: int
) -> tuple[float, float]:
    if 'rvl' in compression.lower():
        raise DecodeError(
            'unsupported_encoding',
            f'format {form[:60]!r}: RVL is not supported; set the format of the publisher to png',
        )
    if encoding not in _DEPTH_ENCODINGS:
        raise DecodeError(
            'unsupported_encoding',
            f'format {form[:60]!r}: expected the depth encoding '
            f'{", ".join(_DEPTH_ENCODINGS)}, found {encoding[:40]!r}',
        )
    if size < _DEPTH_HEADER.size:
        raise DecodeError(
            'malformed_image',
            f'format {form[:60]!r}: expected {_DEPTH_HEADER.size} bytes of parameters, '
            f'found {size} bytes in all',
        )
    _, scale, shift = _DEPTH_HEADER.unpack_from(data, offset)
    if _DEPTH_ENCODINGS[encoding] == 'inverse' and not (
        np.isfinite(scale) and np.isfinite(shift) and scale > 0
    ):
        raise DecodeError(
            'malformed_image',
            f'format {form[:60]!r}: the quantisation ({scale}, {shift}) cannot be undone',
        )
    return scale, shift


def decode(type_name: str, data: bytes) -> Image:
    """Decode a ``sensor_msgs/CompressedImage``; see :meth:`harness_eval.decode.Decoder.image`.

    Raises:
        DecodeError: As :func:`check`, and ``malformed_image`` for pixels that do not decode.
    """
    found = check(type_name, data)
    facts = found.facts
    content = np.frombuffer(data, np.uint8, facts.size, facts.offset)
    pixels = _pixels(content, found)
    if found.kind == 'jpeg':
        jpeg.confirm(memoryview(data)[facts.offset : facts.offset + facts.size], pixels)
    if found.depth is not None:
        return _depth(pixels, found)
    if pixels.ndim == 2:
        return demosaic(pixels, found.encoding) if _is_mosaic(pixels, found) else pixels
    pixels = pixels[..., :3]
    if pixels.dtype == np.uint16:
        pixels = shallow(pixels)
    return np.ascontiguousarray(pixels[..., ::-1] if found.swapped else pixels)


def _is_mosaic(pixels: Image, found: CompressedPicture) -> bool:
    depth = 8 * pixels.dtype.itemsize
    return found.encoding.startswith('bayer_') and found.encoding.endswith(str(depth))


def _pixels(content: Image, found: CompressedPicture) -> Image:
    import cv2

    what = f'the {found.kind} of {found.facts.width}x{found.facts.height}'
    try:
        # It also leaves the orientation of EXIF alone: checks and camera_info speak of the
        # sensor's pixels.
        pixels = cv2.imdecode(content, cv2.IMREAD_UNCHANGED)
    except cv2.error as error:
        raise DecodeError('malformed_image', f'{what} does not decode: {error.msg}') from None
    if pixels is None:
        raise DecodeError('malformed_image', f'{what} does not decode; it is damaged')
    if pixels.shape[:2] != (found.facts.height, found.facts.width):
        raise DecodeError(
            'malformed_image',
            f'{what} decodes to {pixels.shape[1]}x{pixels.shape[0]} pixels',
        )
    if pixels.dtype not in (np.uint8, np.uint16):
        raise DecodeError('unsupported_encoding', f'{what} has pixels of {pixels.dtype}')
    return np.asarray(pixels)


def _depth(pixels: Image, found: CompressedPicture) -> Image:
    if pixels.ndim != 2 or pixels.dtype != np.uint16:
        raise DecodeError(
            'malformed_image',
            f'format {found.facts.encoding[:60]!r}: expected one channel of 16 bits, '
            f'found {pixels.shape} of {pixels.dtype}',
        )
    if _DEPTH_ENCODINGS[found.encoding] == 'plain' or found.depth is None:
        return pixels
    scale, shift = (np.float32(number) for number in found.depth)
    # Zero stands for "no depth here"; everything else is a quantised inverse depth.
    with np.errstate(divide='ignore', invalid='ignore'):
        depth = scale / (pixels.astype(np.float32) - shift)
    depth[pixels == 0] = np.nan
    return np.asarray(depth)
