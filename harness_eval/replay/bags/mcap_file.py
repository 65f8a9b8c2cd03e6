"""One MCAP file, read in windows.

A window is read by way of the index that follows each chunk: only chunks that reach into the
window are looked at, and of those only the index of the channels wanted. A message of a chunk
that is not packed is then read from its place; a packed chunk is unpacked whole. What is held,
however large the file is: the places of the messages of those chunks that cover one time, one
message of each, and some unpacked chunks (``mcap_contents.KEPT_BYTES``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from operator import attrgetter
from pathlib import Path

import numpy as np

from harness_eval.replay.bags.bag import BagMessage, BagTopic, Definition, full_type, Note
from harness_eval.replay.bags.mcap_contents import McapContents, Place
from harness_eval.replay.bags.mcap_index import read_index
from harness_eval.replay.bags.mcap_records import Channel, Chunk, McapDamage
from harness_eval.replay.bags.order import merged
from harness_eval.replay.bags.packed import PackedError
from harness_eval.replay.bags.qos import offered_qos
from harness_eval.replay.sources import SourceError
from harness_eval.runs import printable

_FOREVER = 1 << 64
_FORMS = {'ros2msg': 'ros2msg', 'ros2idl': 'ros2idl', 'omgidl': 'ros2idl'}

Wanted = Mapping[int, tuple[str, str]]
"""Topic and type of the channels that are read."""


class McapFile:
    """An MCAP file.

    Args:
        path: The file.
        note: Takes what cannot be read.

    Attributes:
        margin: 0: its times are known.

    Raises:
        SourceError: ``bag_damaged``: nothing of it can be read.
        OSError: The file cannot be read.
    """

    margin = 0

    def __init__(self, path: Path, note: Note) -> None:
        self._path = path
        self._note = note
        with path.open('rb') as file:
            try:
                self._index = read_index(file)
            except McapDamage as error:
                raise SourceError(
                    'bag_damaged', f'{path.name} cannot be read: {error}; record it again'
                ) from None
        if self._index.cut:
            note('bag_cut', f'{path.name} {self._index.cut}; what comes before that is used')
        self._channels = {
            number: channel
            for number, channel in self._index.channels.items()
            if self._usable(channel)
        }
        self._topics_of = {n: (c.topic, self._type(c)) for n, c in self._channels.items()}
        self._times = (
            np.array([chunk.start for chunk in self._index.chunks], np.uint64),
            np.array([chunk.end for chunk in self._index.chunks], np.uint64),
        )
        self._topics = self._describe()

    @property
    def topics(self) -> Mapping[str, BagTopic]:
        """What the file holds, by absolute name."""
        return self._topics

    @property
    def definitions(self) -> Mapping[str, Definition]:
        """The definitions that the file carries, by type."""
        return {
            full_type(schema.name): Definition(schema.text, _FORMS[schema.encoding])
            for schema in self._index.schemas.values()
            if schema.encoding in _FORMS and schema.text.strip()
        }

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last receipt, nanoseconds; None without messages."""
        return self._index.span

    def close(self) -> None:
        """Nothing is held between two iterations."""

    def messages(
        self, topics: Collection[str], start: int | None, stop: int | None
    ) -> Iterator[BagMessage]:
        """Messages in order of receipt, ``start`` included, ``stop`` not."""
        wanted = {n: self._topics_of[n] for n, c in self._channels.items() if c.topic in topics}
        window = (0 if start is None else start, _FOREVER if stop is None else stop)
        with self._path.open('rb') as file:
            contents = McapContents(file)
            parts = [(window[0], partial(self._loose, contents, wanted, window))]
            for chunk in self._touched(window):
                if not chunk.indexes or not wanted.keys().isdisjoint(chunk.indexes):
                    read = partial(self._packed, contents, chunk, wanted, window)
                    parts.append((max(chunk.start, window[0]), read))
            yield from merged(parts, attrgetter('receipt'))

    def written(self, topics: Collection[str], start: int, stop: int) -> Iterator[tuple[str, int]]:
        """Topic and receipt of the messages of a window in the order of writing, unread."""
        wanted = {n: self._topics_of[n] for n, c in self._channels.items() if c.topic in topics}
        found: list[tuple[int, int, str, int]] = []
        numbers, receipts, offsets = (np.asarray(column) for column in self._index.loose)
        inside = (receipts >= max(start, 0)) & (receipts < max(stop, 0))
        found += [
            (int(offsets[i]), 0, wanted[int(numbers[i])][0], int(receipts[i]))
            for i in np.flatnonzero(inside & np.isin(numbers, list(wanted)))
        ]
        with self._path.open('rb') as file:
            contents = McapContents(file)
            for chunk in self._touched((start, stop)):
                if chunk.indexes and wanted.keys().isdisjoint(chunk.indexes):
                    continue
                with suppress(McapDamage, PackedError):
                    found += [
                        (chunk.offset, at, wanted[number][0], receipt)
                        for receipt, at, number in contents.places(chunk, wanted)
                        if start <= receipt < stop
                    ]
        return ((topic, receipt) for _, _, topic, receipt in sorted(found))

    def _touched(self, window: tuple[int, int]) -> list[Chunk]:
        """The chunks that reach into a window."""
        starts, ends = self._times
        reaching = ends >= np.uint64(max(window[0], 0))
        if window[1] < _FOREVER:
            reaching &= starts < np.uint64(max(window[1], 0))
        return [self._index.chunks[number] for number in np.flatnonzero(reaching)]

    def _packed(
        self, contents: McapContents, chunk: Chunk, wanted: Wanted, window: tuple[int, int]
    ) -> Iterator[BagMessage]:
        """The messages of a chunk within a window, in order."""
        try:
            places = contents.places(chunk, wanted)
        except (McapDamage, PackedError) as error:
            self._damaged(chunk.start, error)
            return
        places = [place for place in places if window[0] <= place[0] < window[1]]
        places.sort()
        yield from self._read(contents, chunk, places, wanted)

    def _loose(
        self, contents: McapContents, wanted: Wanted, window: tuple[int, int]
    ) -> Iterator[BagMessage]:
        """The messages outside of chunks within a window, in order."""
        numbers, receipts, offsets = (np.asarray(column) for column in self._index.loose)
        taken = (receipts >= window[0]) & np.isin(numbers, list(wanted))
        if window[1] < _FOREVER:
            taken &= receipts < window[1]
        chosen = np.flatnonzero(taken)
        chosen = chosen[np.argsort(receipts[chosen], kind='stable')]
        places = ((int(receipts[i]), int(offsets[i]), int(numbers[i])) for i in chosen)
        yield from self._read(contents, None, places, wanted)

    def _read(
        self, contents: McapContents, chunk: Chunk | None, places: Iterable[Place], wanted: Wanted
    ) -> Iterator[BagMessage]:
        for receipt, at, number in places:
            try:
                data = contents.message(chunk, number, at)
            except (McapDamage, PackedError) as error:
                self._damaged(receipt, error)
                continue
            topic, kind = wanted[number]
            yield BagMessage(topic, kind, data, receipt)

    def _damaged(self, receipt: int, error: Exception) -> None:
        self._note(
            'bag_damaged',
            f'{self._path.name} is damaged at {receipt / 1e9:.3f} s: {error}; the messages there '
            'are left out',
        )

    def _type(self, channel: Channel) -> str:
        schema = self._index.schemas.get(channel.schema)
        return '' if schema is None else full_type(schema.name)

    def _usable(self, channel: Channel) -> bool:
        if channel.encoding == 'cdr':
            return True
        self._note(
            'unsupported_encoding',
            f'{channel.topic} is encoded as {printable(channel.encoding, 20)!r}, expected cdr; '
            'it is left out',
        )
        return False

    def _describe(self) -> dict[str, BagTopic]:
        found: dict[str, BagTopic] = {}
        counts = self._index.counts
        for channel in self._channels.values():
            known = found.get(channel.topic)
            count = None if counts is None else counts.get(channel.id, 0)
            if known is not None and count is not None:
                count += known.count or 0
            found[channel.topic] = BagTopic(
                channel.topic,
                self._type(channel) if known is None else known.type,
                count,
                (
                    *(() if known is None else known.qos),
                    *offered_qos(channel.metadata.get('offered_qos_profiles', '')),
                ),
            )
        return found
