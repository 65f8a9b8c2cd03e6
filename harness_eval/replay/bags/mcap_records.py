"""The records of MCAP that reading needs (https://mcap.dev/spec). Pure.

Every function takes the content of a record and raises :class:`McapDamage` if it is no such one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
import struct

MAGIC = b'\x89MCAP0\r\n'
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(1, 9)
STATISTICS = 0x0B
DATA_END = 0x0F
LEAD = 9
"""Bytes before the content of a record: its kind and its length."""
MESSAGE_LEAD = 22
"""Bytes of a message record before the message: channel, number, receipt, publication."""

_MAX_KIND = 0x7F
_LEAD = struct.Struct('<BQ')
_MESSAGE = struct.Struct('<HIQQ')
_ENTRY = struct.Struct('<QQ')
_CHUNK_INDEX = struct.Struct('<QQQQI')
_PLACE = struct.Struct('<HQ')


class McapDamage(ValueError):
    """A record is not what it should be."""


@dataclass(frozen=True)
class Schema:
    """The definition of a message type: its name, ``ros2msg`` or ``ros2idl``, and the text."""

    name: str
    encoding: str
    text: str


@dataclass(frozen=True)
class Channel:
    """A topic as one publisher served it."""

    id: int
    schema: int
    topic: str
    encoding: str
    metadata: dict[str, str]


@dataclass(slots=True)
class Chunk:
    """Messages that were packed together.

    Attributes:
        start: Least receipt in it, nanoseconds.
        end: Greatest receipt in it.
        offset: Where its record begins in the file.
        indexes: Where in the file the index of the messages of each channel lies; empty: nowhere.
        cut: The file ends within it.
    """

    start: int
    end: int
    offset: int
    indexes: dict[int, int] = field(default_factory=dict)
    cut: bool = False


@dataclass(frozen=True)
class ChunkHead:
    """The fields of a chunk before its records.

    Attributes:
        size: Bytes of the records, unpacked.
        crc: CRC-32 of them; 0: none.
        compression: ``zstd``, ``lz4`` or nothing.
        begin: Bytes from the beginning of the content of the chunk to the records.
        packed: Bytes of the records as they lie in the file.
    """

    start: int
    end: int
    size: int
    crc: int
    compression: str
    begin: int
    packed: int


@dataclass(frozen=True)
class Statistics:
    """What the end of a file says about the whole of it."""

    messages: int
    chunks: int
    start: int
    end: int
    counts: dict[int, int]


class _Fields:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, form: str) -> tuple[int, ...]:
        try:
            values = struct.unpack_from('<' + form, self._data, self.at)
        except struct.error:
            raise McapDamage('a record is shorter than its fields') from None
        self.at += struct.calcsize('<' + form)
        return values

    def block(self) -> bytes:
        (length,) = self.take('I')
        data = self._data[self.at : self.at + length]
        if len(data) != length:
            raise McapDamage('a record is shorter than its fields')
        self.at += length
        return data

    def text(self) -> str:
        try:
            return self.block().decode()
        except UnicodeDecodeError:
            raise McapDamage('a text is not UTF-8') from None


def lead(data: bytes, at: int = 0) -> tuple[int, int]:
    """Kind and length of a record."""
    try:
        kind, length = _LEAD.unpack_from(data, at)
    except struct.error:
        raise McapDamage('the data ends within a record') from None
    if not 0 < kind <= _MAX_KIND:
        raise McapDamage(f'no record is of the kind {kind}')
    return kind, length


def walk(data: bytes, *, cut: bool = False) -> Iterator[tuple[int, int, int]]:
    """The records of an unpacked chunk: kind, where the content begins, where it ends.

    Args:
        data: The records.
        cut: Whether the last one may be cut; it is left out.
    """
    at = 0
    while at < len(data):
        try:
            kind, length = lead(data, at)
            end = at + LEAD + length
            if end > len(data):
                raise McapDamage('the data ends within a record')
        except McapDamage:
            if cut:
                return
            raise
        yield kind, at + LEAD, end
        at = end


def schema(data: bytes) -> tuple[int, Schema]:
    """A schema with its number."""
    fields = _Fields(data)
    (number,) = fields.take('H')
    return number, Schema(fields.text(), fields.text(), fields.text())


def channel(data: bytes) -> Channel:
    """A channel."""
    fields = _Fields(data)
    number, schema_number = fields.take('HH')
    topic, encoding = fields.text(), fields.text()
    pairs = _Fields(fields.block())
    metadata = {}
    while pairs.at < len(pairs._data):
        name = pairs.text()
        metadata[name] = pairs.text()
    return Channel(number, schema_number, topic, encoding, metadata)


def message(data: bytes, at: int = 0) -> tuple[int, int]:
    """Channel and receipt of a message."""
    try:
        number, _, receipt, _ = _MESSAGE.unpack_from(data, at)
    except struct.error:
        raise McapDamage('a message is shorter than its fields') from None
    return number, receipt


def chunk_head(data: bytes) -> ChunkHead:
    """The fields of a chunk, from its first bytes."""
    fields = _Fields(data)
    start, end, size, crc = fields.take('QQQI')
    compression = fields.text()
    (packed,) = fields.take('Q')
    return ChunkHead(start, end, size, crc, compression, fields.at, packed)


def message_index(data: bytes) -> tuple[int, list[tuple[int, int]]]:
    """The channel of an index, and receipt and place (in the chunk) of each of its messages."""
    fields = _Fields(data)
    (number,) = fields.take('H')
    block = fields.block()
    if len(block) % _ENTRY.size:
        raise McapDamage('an index of messages is cut')
    return number, list(_ENTRY.iter_unpack(block))


def chunk_index(data: bytes, first: int, last: int) -> Chunk:
    """A chunk, as the end of the file lists it: within ``data``, since there are very many."""
    if last - first < _CHUNK_INDEX.size:
        raise McapDamage('a record is shorter than its fields')
    start, end, offset, _, length = _CHUNK_INDEX.unpack_from(data, first)
    begin = first + _CHUNK_INDEX.size
    if length % _PLACE.size or begin + length > last:
        raise McapDamage('an index of chunks is cut')
    return Chunk(start, end, offset, dict(_PLACE.iter_unpack(data[begin : begin + length])))


def statistics(data: bytes) -> Statistics:
    """What the end of a file says about the whole of it."""
    fields = _Fields(data)
    messages, _, _, _, _, chunks, start, end = fields.take('QHIIIIQQ')
    block = fields.block()
    if len(block) % 10:
        raise McapDamage('the statistics are cut')
    return Statistics(messages, chunks, start, end, dict(struct.iter_unpack('<HQ', block)))
