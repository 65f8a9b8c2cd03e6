"""The leading header of a message, read from the bytes in microseconds.

Every frame of every camera passes through here while a run waits, so nothing is decoded that is
not asked for: a 640x480 picture costs no more than a joint state.
"""

from __future__ import annotations

import struct

from harness_eval.contract import DecodeError
from harness_eval.decode.facts import HeaderFacts, ImageFacts
from harness_eval.decode.fields import stamp_of

ENCAPSULATION = 4
"""Bytes in front of the CDR stream: representation and options. Alignment counts from behind."""

_BIG_ENDIAN = b'\x00\x00'
_LITTLE_ENDIAN = b'\x00\x01'
_HEADER = {'<': struct.Struct('<iII'), '>': struct.Struct('>iII')}
_UINT32 = {'<': struct.Struct('<I'), '>': struct.Struct('>I')}
_TWO_UINT32 = {'<': struct.Struct('<II'), '>': struct.Struct('>II')}


class CdrReader:
    """Reads the few kinds of fields that lead a stamped message.

    Args:
        data: A CDR message with its encapsulation header.
        what: How errors name the message.

    Raises:
        DecodeError: ``malformed_message``: neither plain CDR little endian nor big endian. The
            methods raise the same when the bytes end too early.
    """

    def __init__(self, data: bytes, what: str) -> None:
        """Begin behind the encapsulation."""
        representation = bytes(data[:2])
        if len(data) < ENCAPSULATION or representation not in (_LITTLE_ENDIAN, _BIG_ENDIAN):
            raise DecodeError(
                'malformed_message',
                f'{what}: expected a CDR message that begins with 0001 (little endian) or 0000 '
                f'(big endian), found {len(data)} bytes that begin with '
                f'{representation.hex() or "nothing"}',
            )
        self.order = '<' if representation == _LITTLE_ENDIAN else '>'
        self.position = ENCAPSULATION
        self._data = data
        self._what = what

    def header(self) -> tuple[int, str]:
        """Read a ``std_msgs/Header``: nanoseconds and frame."""
        try:
            sec, nanosec, length = _HEADER[self.order].unpack_from(self._data, self.position)
        except struct.error:
            raise self._ended('the header') from None
        self.position += _HEADER[self.order].size
        frame_id = self._characters(length, 'frame_id')
        return stamp_of(sec, nanosec, f'{self._what}: header.stamp'), frame_id

    def text(self, name: str) -> str:
        """Read a string."""
        return self._characters(self.uint32(name), name)

    def uint32(self, name: str) -> int:
        """Read a number of four bytes."""
        self.align(_UINT32[self.order].size)
        try:
            (number,) = _UINT32[self.order].unpack_from(self._data, self.position)
        except struct.error:
            raise self._ended(name) from None
        self.position += _UINT32[self.order].size
        return int(number)

    def two_uint32(self, name: str) -> tuple[int, int]:
        """Read two numbers of four bytes."""
        self.align(_UINT32[self.order].size)
        try:
            first, second = _TWO_UINT32[self.order].unpack_from(self._data, self.position)
        except struct.error:
            raise self._ended(name) from None
        self.position += _TWO_UINT32[self.order].size
        return first, second

    def byte(self, name: str) -> int:
        """Read one byte."""
        if self.position >= len(self._data):
            raise self._ended(name)
        self.position += 1
        return self._data[self.position - 1]

    def octets(self, name: str) -> tuple[int, int]:
        """Read the length of a sequence of bytes and give where they begin and how many."""
        size = self.uint32(name)
        if self.position + size > len(self._data):
            raise DecodeError(
                'malformed_message',
                f'{self._what}: {name} should have {size} bytes, the message has '
                f'{len(self._data) - self.position} left',
            )
        return self.position, size

    def align(self, size: int) -> None:
        """Skip to a multiple of ``size`` behind the encapsulation."""
        self.position += -(self.position - ENCAPSULATION) % size

    def _characters(self, length: int, name: str) -> str:
        end = self.position + length
        if length < 1 or end > len(self._data):
            raise DecodeError(
                'malformed_message',
                f'{self._what}: {name} should have {length} bytes with its closing zero, the '
                f'message has {len(self._data) - self.position} left',
            )
        if self._data[end - 1] != 0:
            raise DecodeError('malformed_message', f'{self._what}: {name} has no closing zero')
        try:
            characters = bytes(self._data[self.position : end - 1]).decode()
        except UnicodeDecodeError:
            raise DecodeError(
                'malformed_message', f'{self._what}: {name} is not UTF-8 text'
            ) from None
        self.position = end
        return characters

    def _ended(self, name: str) -> DecodeError:
        return DecodeError(
            'malformed_message',
            f'{self._what}: the message of {len(self._data)} bytes ends before {name}',
        )


def header_facts(type_name: str, data: bytes, alignment: int) -> HeaderFacts:
    """Read the header that a message begins with.

    Args:
        type_name: Type of the message, for errors.
        data: The CDR message.
        alignment: To how many bytes the field behind the header is aligned.

    Raises:
        DecodeError: ``malformed_message``.
    """
    reader = CdrReader(data, type_name)
    stamp, frame_id = reader.header()
    reader.align(alignment)
    return HeaderFacts(stamp, frame_id, min(reader.position, len(data)))


def image_header(type_name: str, data: bytes) -> tuple[HeaderFacts, ImageFacts, int, bool]:
    """Read everything of a ``sensor_msgs/Image`` but its pixels.

    Returns:
        The header, the facts, ``step`` in bytes, and whether the pixels are big endian.

    Raises:
        DecodeError: ``malformed_message``.
    """
    reader = CdrReader(data, type_name)
    stamp, frame_id = reader.header()
    height, width = reader.two_uint32('height and width')
    encoding = reader.text('encoding')
    big_endian = reader.byte('is_bigendian') != 0
    step = reader.uint32('step')
    offset, size = reader.octets('data')
    facts = ImageFacts(width, height, encoding, offset, size)
    return HeaderFacts(stamp, frame_id, offset), facts, step, big_endian


def compressed_header(type_name: str, data: bytes) -> tuple[HeaderFacts, str, int, int]:
    """Read everything of a ``sensor_msgs/CompressedImage`` but the compressed file.

    Returns:
        The header, ``format``, where the file begins and how many bytes it has.

    Raises:
        DecodeError: ``malformed_message``.
    """
    reader = CdrReader(data, type_name)
    stamp, frame_id = reader.header()
    form = reader.text('format')
    offset, size = reader.octets('data')
    return HeaderFacts(stamp, frame_id, offset), form, offset, size
