"""Bags of every format, written by rosbags where it writes them, else from their specification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
import os
from pathlib import Path
import struct
from typing import Any

import lz4.frame
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import get_typestore, Stores
import yaml

TEXT = 'std_msgs/msg/String'
STORE = get_typestore(Stores.ROS2_JAZZY)
STORE_1 = get_typestore(Stores.ROS1_NOETIC)

Item = tuple[str, int, str]
"""Topic, receipt and text of a message."""

MEMORY = '/dev/shm' if os.access('/dev/shm', os.W_OK) else None
"""Where writing hundreds of databases does not wait for a disk."""

CHUNK = 3
"""Messages in a chunk, so that small bags have several."""


def text_message(text: str) -> bytes:
    """A ``std_msgs/String`` as CDR."""
    return bytes(STORE.serialize_cdr(STORE.types[TEXT](data=text), TEXT))


def text_of(data: bytes) -> str:
    """The text of a ``std_msgs/String``."""
    return str(STORE.deserialize_cdr(data, TEXT).data)


def rosbag2(
    folder: Path,
    items: Sequence[Item],
    plugin: StoragePlugin = StoragePlugin.MCAP,
    mode: CompressionMode | None = None,
    version: Any = 9,
) -> Path:
    """A rosbag2 folder of texts."""
    writer = Writer(folder, version=version, storage_plugin=plugin)
    if mode is not None:
        writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        topics = {
            topic: writer.add_connection(topic, TEXT, typestore=STORE)
            for topic in sorted({'/a', *(item[0] for item in items)})
        }
        for number, (topic, receipt, text) in enumerate(items, start=1):
            writer.write(topics[topic], receipt, text_message(text))
            if plugin is StoragePlugin.MCAP and number % CHUNK == 0:
                writer.storage.close_chunk()
    return folder


def split(folder: Path, items: Sequence[Item], **how: Any) -> Path:
    """A rosbag2 folder whose messages are spread over three files, as they were recorded."""
    size = len(items) // 3 + 1
    described: dict[str, Any] = {}
    counts: dict[str, Any] = {}
    for number in range(3):
        part = rosbag2(folder / f'part_{number}', items[number * size :][:size], **how)
        body = yaml.safe_load((part / 'metadata.yaml').read_text())
        body = body['rosbag2_bagfile_information']
        (name,) = body['relative_file_paths']
        renamed = f'{folder.name}_{number}' + name.removeprefix(part.name)
        (part / name).rename(folder / renamed)
        (part / 'metadata.yaml').unlink()
        part.rmdir()
        body['files'][0]['path'] = renamed
        if not described:
            described = {**body, 'relative_file_paths': [], 'files': []}
        described['relative_file_paths'].append(renamed)
        described['files'] += body['files']
        for topic in body['topics_with_message_count']:
            known = counts.setdefault(
                topic['topic_metadata']['name'], {**topic, 'message_count': 0}
            )
            known['message_count'] += topic['message_count']
    described['topics_with_message_count'] = list(counts.values())
    text = yaml.safe_dump({'rosbag2_bagfile_information': described})
    (folder / 'metadata.yaml').write_text(text)
    return folder


def ros1(path: Path, items: Sequence[Item], compression: str = '') -> Path:
    """A bag of ROS 1."""
    writer = Ros1Writer(path)
    if compression:
        writer.set_compression(Ros1Writer.CompressionFormat[compression])
    writer.chunk_threshold = 150
    message = STORE_1.types[TEXT]
    with writer:
        topics = {
            topic: writer.add_connection(topic, TEXT, typestore=STORE_1)
            for topic in sorted({'/a', *(item[0] for item in items)})
        }
        for topic, receipt, text in items:
            writer.write(topics[topic], receipt, STORE_1.serialize_ros1(message(data=text), TEXT))
    return path


def mcap(
    path: Path,
    items: Sequence[Item],
    *,
    chunked: bool = True,
    indexed: bool = True,
    compression: str = '',
    closed: bool = True,
    repeated: bool = True,
    encoding: str = 'cdr',
    definition: str = 'string data\n',
) -> Path:
    """An MCAP file after its specification, in the ways that other recorders write it.

    Args:
        path: Where to.
        items: The messages.
        chunked: Whether messages lie in chunks.
        indexed: Whether each chunk is followed by the index of its messages.
        compression: ``lz4`` or nothing.
        closed: Whether it has its end; otherwise the recorder was killed.
        repeated: Whether the end repeats schemas and channels.
        encoding: Encoding of the messages.
        definition: The definition of their type.
    """
    topics = {topic: n for n, topic in enumerate(sorted({'/a', *(i[0] for i in items)}), 1)}
    schema = _record(3, struct.pack('<H', 1) + _text(TEXT) + _text('ros2msg') + _text(definition))
    qos = _text('offered_qos_profiles') + _text('- history: 1\n  depth: 7\n  reliability: 1')
    channels = {
        topic: _record(
            4,
            struct.pack('<HH', n, 1) + _text(topic) + _text(encoding) + _block(qos),
        )
        for topic, n in topics.items()
    }
    out = bytearray(b'\x89MCAP0\r\n' + _record(1, _text('ros2') + _text('test')))
    defined: set[str] = set()
    index = b''
    count = 0
    size = CHUNK if chunked else 1
    for begin in range(0, len(items), size):
        body, places = bytearray(), {}
        if not defined:
            body += schema
        group = items[begin : begin + size]
        for topic, receipt, text in group:
            if topic not in defined:
                body += channels[topic]
                defined.add(topic)
            number = topics[topic]
            places.setdefault(number, []).append((receipt, len(body)))
            lead = struct.pack('<HIQQ', number, 0, receipt, receipt)
            body += _record(5, lead + text_message(text))
        if not chunked:
            out += body
            continue
        packed = lz4.frame.compress(bytes(body)) if compression else bytes(body)
        times = [receipt for _, receipt, _ in group]
        at = len(out)
        out += _record(
            6,
            struct.pack('<QQQI', min(times), max(times), len(body), 0)
            + _text(compression)
            + struct.pack('<Q', len(packed))
            + packed,
        )
        length, offsets = len(out) - at, b''
        for number, entries in places.items() if indexed else ():
            offsets += struct.pack('<HQ', number, len(out))
            listed = b''.join(struct.pack('<QQ', *entry) for entry in entries)
            out += _record(7, struct.pack('<H', number) + _block(listed))
        index += _record(
            8,
            struct.pack('<QQQQ', min(times), max(times), at, length)
            + _block(offsets)
            + struct.pack('<Q', len(out) - at - length)
            + _text(compression)
            + struct.pack('<QQ', len(packed), len(body)),
        )
        count += 1
    if closed:
        out += _record(15, struct.pack('<I', 0))
        begin = len(out)
        out += (schema + b''.join(channels.values()) if repeated else b'') + index
        times = [receipt for _, receipt, _ in items] or [0]
        sums = [(n, sum(i[0] == t for i in items)) for t, n in topics.items()]
        out += _record(
            11,
            struct.pack(
                '<QHIIIIQQ', len(items), 1, len(topics), 0, 0, count, min(times), max(times)
            )
            + _block(b''.join(struct.pack('<HQ', *one) for one in sums if one[1])),
        )
        out += _record(2, struct.pack('<QQI', begin, 0, 0)) + b'\x89MCAP0\r\n'
    path.write_bytes(out)
    return path


def _record(kind: int, content: bytes) -> bytes:
    return struct.pack('<BQ', kind, len(content)) + content


def _block(data: bytes) -> bytes:
    return struct.pack('<I', len(data)) + data


def _text(text: str) -> bytes:
    return _block(text.encode())


def _rosbag2_of(**how: Any) -> Callable[[Path, Sequence[Item]], Path]:
    return lambda folder, items: rosbag2(folder / 'bag', items, **how)


def _split_of(**how: Any) -> Callable[[Path, Sequence[Item]], Path]:
    return lambda folder, items: split(folder / 'bag', items, **how)


def _mcap_of(**how: Any) -> Callable[[Path, Sequence[Item]], Path]:
    return lambda folder, items: mcap(folder / 'bag.mcap', items, **how)


def _ros1_of(compression: str = '') -> Callable[[Path, Sequence[Item]], Path]:
    return lambda folder, items: ros1(folder / 'bag.bag', items, compression)


def _without_metadata(folder: Path, items: Sequence[Item]) -> Path:
    path = rosbag2(folder / 'bag', items, StoragePlugin.SQLITE3)
    (path / 'metadata.yaml').unlink()
    return path / 'bag.db3'


_SQLITE = StoragePlugin.SQLITE3
FORMATS: dict[str, Callable[[Path, Sequence[Item]], Path]] = {
    'mcap': _rosbag2_of(),
    'mcap, chunks packed': _rosbag2_of(mode=CompressionMode.STORAGE),
    'mcap, messages packed': _rosbag2_of(mode=CompressionMode.MESSAGE),
    'mcap, file packed': _rosbag2_of(mode=CompressionMode.FILE),
    'mcap, split': _split_of(),
    'mcap, split, files packed': _split_of(mode=CompressionMode.FILE),
    'mcap, version 8': _rosbag2_of(version=8),
    'mcap, lz4': _mcap_of(compression='lz4'),
    'mcap, no chunks': _mcap_of(chunked=False),
    'mcap, no index of messages': _mcap_of(indexed=False),
    'mcap, definitions in chunks alone': _mcap_of(repeated=False),
    'mcap, recorder killed': _mcap_of(closed=False),
    'mcap, recorder killed, no chunks': _mcap_of(closed=False, chunked=False),
    'sqlite3': _rosbag2_of(plugin=_SQLITE),
    'sqlite3, messages packed': _rosbag2_of(plugin=_SQLITE, mode=CompressionMode.MESSAGE),
    'sqlite3, file packed': _rosbag2_of(plugin=_SQLITE, mode=CompressionMode.FILE),
    'sqlite3, split': _split_of(plugin=_SQLITE),
    'sqlite3, single file': _without_metadata,
    'ros1': _ros1_of(),
    'ros1, bz2': _ros1_of('BZ2'),
    'ros1, lz4': _ros1_of('LZ4'),
}
"""What writes a bag of each format into an empty folder, and gives what is to be opened."""
