"""Whether a WebP file is whole, and how large its picture is.

Source: RFC 9649, WebP Image Format.
"""

from __future__ import annotations

import struct

from harness_eval.contract import DecodeError

_UINT32 = struct.Struct('<I')
_UINT16 = struct.Struct('<HH')
_RIFF_HEADER = 12
_CHUNK_HEADER = 8
_VP8_START = b'\x9d\x01\x2a'
_VP8L_SIGNATURE = 0x2F
_SIZE_14_BITS = 0x3FFF
_ANIMATED = 0x02


def recognises(content: memoryview) -> bool:
    """Tell whether the bytes begin like a WebP file."""
    return bytes(content[:4]) == b'RIFF' and bytes(content[8:12]) == b'WEBP'


def inspect(content: memoryview) -> tuple[int, int]:
    """Check the sizes of a file's chunks.

    Returns:
        Width and height in pixels.

    Raises:
        DecodeError: ``malformed_image``; ``unsupported_encoding`` for an animation.
    """
    (size,) = _UINT32.unpack_from(content, 4)
    if size + _CHUNK_HEADER > len(content):
        raise _broken(f'should have {size + _CHUNK_HEADER} bytes, found {len(content)}')
    position, end = _RIFF_HEADER, size + _CHUNK_HEADER
    first: tuple[int, int] | None = None
    pixels = False
    while position + _CHUNK_HEADER <= end:
        name = bytes(content[position : position + 4])
        (length,) = _UINT32.unpack_from(content, position + 4)
        body = content[position + _CHUNK_HEADER : position + _CHUNK_HEADER + length]
        if len(body) < length:
            raise _broken(f'ends within its chunk {name!r}')
        if name in (b'VP8 ', b'VP8L', b'VP8X'):
            first = first or _size(name, body)
            pixels = pixels or name != b'VP8X'
        position += _CHUNK_HEADER + length + length % 2
    if first is None or not pixels:
        raise _broken('has no picture')
    return first


def _size(name: bytes, body: memoryview) -> tuple[int, int]:
    if name == b'VP8X' and len(body) >= 10:
        if body[0] & _ANIMATED:
            raise DecodeError('unsupported_encoding', 'an animated WebP is not one picture')
        width = int.from_bytes(body[4:7], 'little') + 1
        return width, int.from_bytes(body[7:10], 'little') + 1
    if name == b'VP8L' and len(body) >= 5 and body[0] == _VP8L_SIGNATURE:
        (bits,) = _UINT32.unpack_from(body, 1)
        return (bits & _SIZE_14_BITS) + 1, (bits >> 14 & _SIZE_14_BITS) + 1
    if name == b'VP8 ' and len(body) >= 10 and bytes(body[3:6]) == _VP8_START:
        width, height = _UINT16.unpack_from(body, 6)
        return width & _SIZE_14_BITS, height & _SIZE_14_BITS
    raise _broken(f'has a damaged chunk {name!r}')


def _broken(what: str) -> DecodeError:
    return DecodeError('malformed_image', f'the WebP {what}')
