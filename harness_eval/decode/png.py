"""Whether a PNG file is whole: every chunk's checksum, the end, and enough pixels.

Source: Portable Network Graphics, W3C Recommendation, third edition.
"""

from __future__ import annotations

import struct
import zlib

from harness_eval.contract import DecodeError

_SIGNATURE = b'\x89PNG\r\n\x1a\n'
_CHUNK = struct.Struct('>I4s')
_CRC = struct.Struct('>I')
_IHDR = struct.Struct('>IIBBBBB')
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_BLOCK = 1 << 16
_MAX_PIXELS_CHECKED = 64_000_000


def recognises(content: memoryview) -> bool:
    """Tell whether the bytes begin like a PNG file."""
    return bytes(content[: len(_SIGNATURE)]) == _SIGNATURE


def inspect(content: memoryview) -> tuple[int, int]:
    """Check a whole file.

    Returns:
        Width and height in pixels.

    Raises:
        DecodeError: ``malformed_image``.
    """
    position = len(_SIGNATURE)
    header: tuple[int, ...] | None = None
    pixels: list[memoryview] = []
    ended = False
    while not ended:
        if position + _CHUNK.size > len(content):
            raise _broken(f'ends after {len(content)} bytes, before its closing chunk')
        length, name = _CHUNK.unpack_from(content, position)
        begin = position + _CHUNK.size
        end = begin + length
        if end + _CRC.size > len(content):
            raise _broken(f'ends after {len(content)} bytes within a chunk that needs {length}')
        if zlib.crc32(content[position + 4 : end]) != _CRC.unpack_from(content, end)[0]:
            raise _broken(f'has a damaged chunk at byte {position}')
        if header is None and name != b'IHDR':
            raise _broken('does not begin with its header')
        if name == b'IHDR':
            if length != _IHDR.size or header is not None:
                raise _broken('has a damaged header')
            header = _IHDR.unpack_from(content, begin)
        elif name == b'IDAT':
            pixels.append(content[begin:end])
        ended = name == b'IEND'
        position = end + _CRC.size
    assert header is not None
    width, height, depth, color, _, _, interlaced = header
    if color not in _CHANNELS or depth not in (1, 2, 4, 8, 16):
        raise _broken(f'has the impossible colour type {color} with {depth} bits')
    # An oversized picture is refused by the caller, by its size alone.
    if not interlaced and 0 < width * height <= _MAX_PIXELS_CHECKED:
        # Every row carries one byte more, the number of its filter.
        row = 1 + (width * depth * _CHANNELS[color] + 7) // 8
        _check_pixels(pixels, row * height)
    return width, height


def _check_pixels(pixels: list[memoryview], expected: int) -> None:
    unpacker = zlib.decompressobj()
    found = 0
    try:
        for part in pixels:
            pending: bytes | memoryview = part
            while len(pending) and found <= expected:
                found += len(unpacker.decompress(pending, _BLOCK))
                pending = unpacker.unconsumed_tail
        while not unpacker.eof and found <= expected:
            more = len(unpacker.decompress(unpacker.unconsumed_tail, _BLOCK))
            if not more:
                break
            found += more
    except zlib.error as error:
        raise _broken(f'has damaged pixels: {error}') from None
    if found < expected:
        raise _broken(f'has {found} of {expected} bytes of pixels')


def _broken(what: str) -> DecodeError:
    return DecodeError('malformed_image', f'the PNG {what}')
