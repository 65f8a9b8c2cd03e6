"""The bytes of an MCAP file that one iteration reads: indexes, messages and unpacked chunks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import BinaryIO

from harness_eval.replay.bags import mcap_records as records
from harness_eval.replay.bags.mcap_index import chunk_head, chunk_records, read_at
from harness_eval.replay.bags.mcap_records import Chunk, McapDamage
from harness_eval.replay.bags.packed import MAX_UNPACKED

KEPT_BYTES = 64 << 20
"""Most bytes of unpacked chunks that are kept during one iteration; one chunk always is."""
_KEPT_HEADS = 1000
_MESSAGE_BEGIN = records.LEAD + records.MESSAGE_LEAD
_MAX_INDEX = 1 << 28

Place = tuple[int, int, int]
"""Receipt of a message, where its record begins in its chunk (or file), its channel."""


class McapContents:
    """What is read of a file during one iteration.

    Args:
        file: The file, open for reading.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._plain: OrderedDict[int, tuple[int, int] | None] = OrderedDict()
        self._unpacked: OrderedDict[int, bytes] = OrderedDict()

    def places(self, chunk: Chunk, wanted: Collection[int]) -> list[Place]:
        """Receipt, place and channel of the messages of a chunk."""
        found = []
        if not chunk.indexes:
            data = self._records(chunk)
            for kind, first, _ in records.walk(data, cut=chunk.cut):
                if kind == records.MESSAGE:
                    number, receipt = records.message(data, first)
                    if number in wanted:
                        found.append((receipt, first - records.LEAD, number))
            return found
        for number in chunk.indexes.keys() & set(wanted):
            kind, data = self._record(chunk.indexes[number])
            if kind != records.MESSAGE_INDEX:
                raise McapDamage('there is no index of messages where the index of chunks says so')
            indexed, places = records.message_index(data)
            if indexed != number:
                raise McapDamage('an index of messages is of another channel')
            found += [(receipt, at, number) for receipt, at in places]
        return found

    def message(self, chunk: Chunk | None, number: int, at: int) -> bytes:
        """The CDR bytes of a message."""
        if chunk is None:
            return self._from_file(at, number)
        plain = self._plain_records(chunk)
        if plain is not None:
            begin, length = plain
            if at >= length:
                raise McapDamage('an index leads out of its chunk')
            return self._from_file(begin + at, number)
        data = self._records(chunk)
        end = at + records.LEAD + _message_length(data[at : at + _MESSAGE_BEGIN], number)
        if end > len(data):
            raise McapDamage('a message is cut')
        return data[at + _MESSAGE_BEGIN : end]

    def _from_file(self, at: int, number: int) -> bytes:
        begin = read_at(self._file, at, _MESSAGE_BEGIN)
        length = _message_length(begin, number) - records.MESSAGE_LEAD
        data = read_at(self._file, at + _MESSAGE_BEGIN, length)
        if len(data) != length:
            raise McapDamage('a message is cut')
        return data

    def _record(self, at: int) -> tuple[int, bytes]:
        kind, length = records.lead(read_at(self._file, at, records.LEAD))
        if length > _MAX_INDEX:
            raise McapDamage(f'a record says to be {length} bytes large')
        data = read_at(self._file, at + records.LEAD, length)
        if len(data) != length:
            raise McapDamage('the file ends within a record')
        return kind, data

    def _plain_records(self, chunk: Chunk) -> tuple[int, int] | None:
        """Where the records of a chunk that is not packed lie, and their length."""
        if chunk.offset not in self._plain:
            head = chunk_head(self._file, chunk)
            begin = chunk.offset + records.LEAD + head.begin
            whole = not head.compression and not chunk.cut
            self._plain[chunk.offset] = (begin, head.packed) if whole else None
            if len(self._plain) > _KEPT_HEADS:
                self._plain.popitem(last=False)
        return self._plain[chunk.offset]

    def _records(self, chunk: Chunk) -> bytes:
        data = self._unpacked.get(chunk.offset)
        if data is None:
            data = self._unpacked[chunk.offset] = chunk_records(self._file, chunk)
            while len(self._unpacked) > 1 and sum(map(len, self._unpacked.values())) > KEPT_BYTES:
                self._unpacked.popitem(last=False)
        self._unpacked.move_to_end(chunk.offset)
        return data


def _message_length(begin: bytes, number: int) -> int:
    kind, length = records.lead(begin)
    if kind != records.MESSAGE or records.message(begin, records.LEAD)[0] != number:
        raise McapDamage('there is no message where the index says so')
    if not records.MESSAGE_LEAD <= length <= MAX_UNPACKED:
        raise McapDamage(f'a message says to be {length} bytes large')
    return length
