"""A whole MCAP file with few messages, written at once.

rosbags' writer copies each picture four times and describes the bag in YAML by Python alone, which
takes ten times as long. The records are those of https://mcap.dev/spec, without compression, with
an index, in the order of rosbags' own files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
import struct
from typing import BinaryIO

from harness_eval.decode import TypeDefinition

_MAGIC = b'\x89MCAP0\r\n'
_HEADER, _FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _MESSAGE_INDEX, _CHUNK_INDEX = range(1, 9)
_STATISTICS, _METADATA, _METADATA_INDEX, _SUMMARY_OFFSET, _DATA_END = range(11, 16)
_CHUNK_SIZE = 2**20
"""Bytes after which a chunk ends; readers hold a whole one in memory."""
_NO_PROFILES = '[]'
"""Nothing is known of the quality of service of those who published."""
_NO_CRC = 0


@dataclass(frozen=True)
class Channel:
    """What all messages of one topic have in common.

    Attributes:
        topic: Name of the topic.
        type: Type of the messages.
        definition: What is known of it.
    """

    topic: str
    type: str
    definition: TypeDefinition


@dataclass(frozen=True)
class Message:
    """One message.

    Attributes:
        channel: Where it belongs.
        stamp: Nanoseconds of its receipt.
        data: CDR bytes.
    """

    channel: Channel
    stamp: int
    data: bytes


@dataclass(frozen=True)
class _Chunk:
    """A chunk in the file: its messages, and where it and the index behind it are."""

    messages: Sequence[Message]
    start: int
    end: int
    size: int
    index: Mapping[int, int]
    index_end: int


def channels_of(messages: Iterable[Message]) -> dict[Channel, int]:
    """The channels of messages, numbered from 1 in the order in which they appear."""
    return {one: n for n, one in enumerate(dict.fromkeys(m.channel for m in messages), 1)}


def write_mcap(path: Path, messages: Sequence[Message], description: str) -> None:
    """Write a file that readers of bags open by itself.

    Args:
        path: The file, which must not be there yet.
        messages: At least one.
        description: What ``metadata.yaml`` says of the bag, within the file.

    Raises:
        OSError: It cannot be written.
    """
    channels = channels_of(messages)
    schemas: dict[str, int] = {}
    for channel in channels:
        schemas.setdefault(channel.type, len(schemas) + 1)
    described = {one.type: one.definition for one in channels}
    types = b''.join(_schema(number, name, described[name]) for name, number in schemas.items())
    topics = b''.join(_channel(n, schemas[one.type], one) for one, n in channels.items())

    with path.open('xb') as file:
        file.write(_MAGIC)
        file.write(_record(_HEADER, _text('ros2'), _text('harness_eval')))
        chunks: list[_Chunk] = []
        for part in _parts(messages):
            chunks.append(_write_chunk(file, part, b'' if chunks else types + topics, channels))
        metadata_at = file.tell()
        entry = _text('serialized_metadata') + _text(description)
        file.write(_record(_METADATA, _text('rosbag2'), _sized(entry)))
        metadata = struct.pack('<QQ', metadata_at, file.tell() - metadata_at)
        file.write(_record(_DATA_END, struct.pack('<I', _NO_CRC)))

        summary_at = file.tell()
        groups = (
            (_SCHEMA, types),
            (_CHANNEL, topics),
            (_CHUNK_INDEX, b''.join(map(_chunk_index, chunks))),
            (_METADATA_INDEX, _record(_METADATA_INDEX, metadata, _text('rosbag2'))),
            (_STATISTICS, _statistics(messages, channels, len(schemas), len(chunks))),
        )
        offsets = []
        for code, group in groups:
            place = struct.pack('<BQQ', code, file.tell(), len(group))
            offsets.append(_record(_SUMMARY_OFFSET, place))
            file.write(group)
        offsets_at = file.tell()
        file.write(b''.join(offsets))
        file.write(_record(_FOOTER, struct.pack('<QQI', summary_at, offsets_at, _NO_CRC)))
        file.write(_MAGIC)


def _parts(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """The messages of each chunk."""
    part: list[Message] = []
    size = 0
    for message in messages:
        part.append(message)
        size += len(message.data)
        if size > _CHUNK_SIZE:
            yield part
            part, size = [], 0
    if part:
        yield part


def _write_chunk(
    file: BinaryIO, messages: Sequence[Message], before: bytes, channels: Mapping[Channel, int]
) -> _Chunk:
    """Write messages behind what tells of their types; pictures are not copied for that."""
    heads = [_message_head(channels[message.channel], message) for message in messages]
    size = len(before)
    offsets: dict[int, list[tuple[int, int]]] = {}
    for head, message in zip(heads, messages, strict=True):
        offsets.setdefault(channels[message.channel], []).append((message.stamp, size))
        size += len(head) + len(message.data)

    start = file.tell()
    uncompressed = _text('')
    about = struct.pack('<QQQI', *_span(messages), size, _NO_CRC) + uncompressed
    file.write(struct.pack('<BQ', _CHUNK, len(about) + 8 + size))
    file.write(about + struct.pack('<Q', size) + before)
    for head, message in zip(heads, messages, strict=True):
        file.write(head)
        file.write(message.data)
    end = file.tell()
    index = {}
    for number, entries in offsets.items():
        index[number] = file.tell()
        pairs = b''.join(struct.pack('<QQ', *entry) for entry in entries)
        file.write(_record(_MESSAGE_INDEX, struct.pack('<H', number), _sized(pairs)))
    return _Chunk(messages, start, end, size, index, file.tell())


def _message_head(number: int, message: Message) -> bytes:
    """What stands before the bytes of a message."""
    times = struct.pack('<HIQQ', number, 0, message.stamp, message.stamp)
    return struct.pack('<BQ', _MESSAGE, len(times) + len(message.data)) + times


def _schema(number: int, name: str, definition: TypeDefinition) -> bytes:
    texts = map(_text, (name, definition.form, definition.text))
    return _record(_SCHEMA, struct.pack('<H', number), *texts)


def _channel(number: int, schema: int, channel: Channel) -> bytes:
    metadata = _text('offered_qos_profiles') + _text(_NO_PROFILES)
    ids = struct.pack('<HH', number, schema)
    return _record(_CHANNEL, ids, _text(channel.topic), _text('cdr'), _sized(metadata))


def _chunk_index(chunk: _Chunk) -> bytes:
    places = b''.join(struct.pack('<HQ', *entry) for entry in chunk.index.items())
    return _record(
        _CHUNK_INDEX,
        struct.pack('<QQQQ', *_span(chunk.messages), chunk.start, chunk.end - chunk.start),
        _sized(places),
        struct.pack('<Q', chunk.index_end - chunk.end),
        _text(''),
        struct.pack('<QQ', chunk.size, chunk.size),
    )


def _statistics(
    messages: Sequence[Message], channels: Mapping[Channel, int], schemas: int, chunks: int
) -> bytes:
    counts = dict.fromkeys(channels.values(), 0)
    for message in messages:
        counts[channels[message.channel]] += 1
    attachments, metadata = 0, 1
    totals = (len(messages), schemas, len(channels), attachments, metadata, chunks)
    return _record(
        _STATISTICS,
        struct.pack('<QHIIIIQQ', *totals, *_span(messages)),
        _sized(b''.join(struct.pack('<HQ', *count) for count in counts.items())),
    )


def _span(messages: Sequence[Message]) -> tuple[int, int]:
    """The first and the last stamp."""
    stamps = [message.stamp for message in messages]
    return min(stamps), max(stamps)


def _record(code: int, *parts: bytes) -> bytes:
    content = b''.join(parts)
    return struct.pack('<BQ', code, len(content)) + content


def _text(value: str) -> bytes:
    return _sized(value.encode())


def _sized(data: bytes) -> bytes:
    return struct.pack('<I', len(data)) + data
