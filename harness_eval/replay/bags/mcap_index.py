"""Where everything lies in an MCAP file: read from its end, or found by walking through it.

A file that was closed lists its chunks at its end, which takes one read. One that was cut while
it was recorded has no such end; its records are stepped through once, from length to length,
without reading what they hold.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
import os
from typing import BinaryIO
from zlib import crc32

from harness_eval.replay.bags import mcap_records as records
from harness_eval.replay.bags.mcap_records import Channel, Chunk, McapDamage, Schema
from harness_eval.replay.bags.packed import MAX_UNPACKED, PackedError, unpacked

FOOTER_BYTES = records.LEAD + 20 + len(records.MAGIC)
_CHUNK_HEAD_BYTES = 100
"""Enough for the fields of a chunk with any name of a compression that exists."""
_MAX_SUMMARY = 1 << 30
_MAX_RECORD = 1 << 26
"""Largest schema, channel or index in bytes."""
_MAX_OFFSET = 1 << 62
_LARGE = 1 << 20


@dataclass
class McapIndex:
    """What lies where in a file.

    Attributes:
        loose: Messages outside of chunks: channel, receipt and place in the file of each.
        counts: Messages by channel; None: not known.
        span: First and last receipt, nanoseconds; None without messages.
        cut: How the file ends too early; empty: it does not.
    """

    schemas: dict[int, Schema] = field(default_factory=dict)
    channels: dict[int, Channel] = field(default_factory=dict)
    chunks: list[Chunk] = field(default_factory=list)
    loose: tuple[array[int], array[int], array[int]] = field(
        default_factory=lambda: (array('H'), array('Q'), array('Q'))
    )
    counts: dict[int, int] | None = None
    span: tuple[int, int] | None = None
    cut: str = ''


def read_index(file: BinaryIO) -> McapIndex:
    """Find out what lies where.

    Raises:
        McapDamage: The file does not even begin as MCAP.
        OSError: It cannot be read.
    """
    if read_at(file, 0, len(records.MAGIC)) != records.MAGIC:
        raise McapDamage('it does not begin as an MCAP file')
    try:
        index = _from_end(file)
    except (McapDamage, PackedError):
        index = None
    return _by_walking(file) if index is None else index


def chunk_records(file: BinaryIO, chunk: Chunk) -> bytes:
    """The records of a chunk, unpacked and checked.

    Raises:
        McapDamage, PackedError: They are damaged.
    """
    head = chunk_head(file, chunk)
    if head.size > MAX_UNPACKED:
        raise McapDamage(f'a chunk says to be {head.size} bytes large')
    if head.packed > MAX_UNPACKED:
        raise McapDamage(f'a chunk says to take {head.packed} bytes')
    packed = read_at(file, chunk.offset + records.LEAD + head.begin, head.packed)
    if len(packed) != head.packed and not chunk.cut:
        raise McapDamage('a chunk is cut')
    data = unpacked(packed, head.compression, head.size, whole=not chunk.cut)
    if not chunk.cut and len(data) != head.size:
        raise McapDamage(f'a chunk of {head.size} bytes has {len(data)}')
    if not chunk.cut and head.crc and crc32(data) != head.crc:
        raise McapDamage('the checksum of a chunk is wrong')
    return data


def chunk_head(file: BinaryIO, chunk: Chunk) -> records.ChunkHead:
    """The fields of a chunk before its records."""
    data = read_at(file, chunk.offset, records.LEAD + _CHUNK_HEAD_BYTES)
    kind, _ = records.lead(data)
    if kind != records.CHUNK:
        raise McapDamage('there is no chunk where the index says so')
    return records.chunk_head(data[records.LEAD :])


def _from_end(file: BinaryIO) -> McapIndex | None:
    size = file.seek(0, os.SEEK_END)
    end = read_at(file, max(size - FOOTER_BYTES, 0), FOOTER_BYTES)
    if not end.endswith(records.MAGIC) or records.lead(end) != (records.FOOTER, 20):
        return None
    begin = int.from_bytes(end[records.LEAD : records.LEAD + 8], 'little')
    length = size - FOOTER_BYTES - begin
    if not begin or not 0 <= length <= _MAX_SUMMARY:
        return None
    summary = read_at(file, begin, length)
    index = McapIndex()
    found: records.Statistics | None = None
    for kind, first, last in records.walk(summary):
        if kind == records.CHUNK_INDEX:
            index.chunks.append(records.chunk_index(summary, first, last))
        elif kind == records.STATISTICS:
            found = records.statistics(summary[first:last])
        else:
            _learn(index, kind, summary[first:last])
    if found is None or found.chunks != len(index.chunks):
        return None
    if found.messages and not found.chunks:
        return None  # nothing says where the messages lie
    index.span = (found.start, found.end) if found.messages else None
    if found.counts or not found.messages:
        index.counts = found.counts
    if index.counts is None or not all(_known(index, number) for number in index.counts):
        index.chunks = _learn_from_chunks(file, index)
    return index


def _by_walking(file: BinaryIO) -> McapIndex:
    index = McapIndex()
    size = file.seek(0, os.SEEK_END)
    at = len(records.MAGIC)
    ended = False
    try:
        while at < size and not ended:
            kind, length = records.lead(read_at(file, at, records.LEAD))
            if at + records.LEAD + length > size:
                if kind == records.CHUNK:
                    index.chunks.append(_chunk(file, at, cut=True))
                raise McapDamage('the data ends within a record')
            _take(file, index, kind, at, length)
            ended = kind in (records.DATA_END, records.FOOTER)
            at += records.LEAD + length
        if not ended:
            index.cut = f'was not closed by its recorder: it ends at byte {size}'
    except (McapDamage, PackedError) as error:
        index.cut = f'can be read up to byte {at} of {size} ({error})'
    if index.cut:
        for chunk in index.chunks[-2:]:
            # The file may end between the indexes of the channels of the last whole chunk.
            chunk.indexes.clear()
    index.chunks = _learn_from_chunks(file, index)
    times = [t for c in index.chunks if c.start <= c.end for t in (c.start, c.end)]
    if index.loose[1]:
        times += [min(index.loose[1]), max(index.loose[1])]
    index.span = (min(times), max(times)) if times else None
    return index


def _take(file: BinaryIO, index: McapIndex, kind: int, at: int, length: int) -> None:
    if kind == records.CHUNK:
        index.chunks.append(_chunk(file, at, cut=False))
    elif kind == records.MESSAGE:
        lead = read_at(file, at + records.LEAD, records.MESSAGE_LEAD)
        number, receipt = records.message(lead)
        for column, value in zip(index.loose, (number, receipt, at), strict=True):
            column.append(value)
    elif kind == records.MESSAGE_INDEX and index.chunks:
        number = int.from_bytes(read_at(file, at + records.LEAD, 2), 'little')
        index.chunks[-1].indexes[number] = at
    elif kind in (records.SCHEMA, records.CHANNEL):
        if length > _MAX_RECORD:
            raise McapDamage(f'a definition of {length} bytes')
        _learn(index, kind, read_at(file, at + records.LEAD, length))


def _chunk(file: BinaryIO, at: int, *, cut: bool) -> Chunk:
    head = chunk_head(file, Chunk(0, 0, at))
    return Chunk(head.start, head.end, at, cut=cut)


def _learn(index: McapIndex, kind: int, data: bytes) -> None:
    if kind == records.SCHEMA:
        number, schema = records.schema(data)
        index.schemas[number] = schema
    elif kind == records.CHANNEL:
        channel = records.channel(data)
        index.channels[channel.id] = channel


def _known(index: McapIndex, number: int) -> bool:
    channel = index.channels.get(number)
    return channel is not None and (not channel.schema or channel.schema in index.schemas)


def _learn_from_chunks(file: BinaryIO, index: McapIndex) -> list[Chunk]:
    """Learn the channels that only chunks define; give the chunks that can be read.

    A recorder defines a channel in the chunk of its first message, so that few are opened.
    """
    usable = []
    for chunk in index.chunks:
        if not chunk.indexes or not all(_known(index, number) for number in chunk.indexes):
            try:
                data = chunk_records(file, chunk)
                times = []
                for kind, first, last in records.walk(data, cut=chunk.cut):
                    if kind == records.MESSAGE:
                        times.append(records.message(data, first)[1])
                    else:
                        _learn(index, kind, data[first:last])
            except (McapDamage, PackedError):
                times = []
            if chunk.cut and not times:
                continue
            if chunk.cut:
                chunk = replace(chunk, start=min(times), end=max(times))
        usable.append(chunk)
    return usable


def read_at(file: BinaryIO, at: int, length: int) -> bytes:
    """Read bytes, fewer where the file ends.

    Numbers in a damaged file may be anything: no memory is taken for what is not there.

    Raises:
        McapDamage: No file is so large.
    """
    if at > _MAX_OFFSET:
        raise McapDamage('an index leads out of the file')
    if length > _LARGE:
        length = min(length, max(0, os.fstat(file.fileno()).st_size - at))
    file.seek(at)
    return file.read(length)
