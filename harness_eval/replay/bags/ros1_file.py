"""A bag of ROS 1, read in windows, its messages converted to CDR.

rosbags reads the index of the whole file, which takes about 150 bytes of memory for each message
however large it is; a window is then cut out of that index, and only its chunks are read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping
import copy
from io import BytesIO
from itertools import zip_longest
from pathlib import Path
from typing import Any, TYPE_CHECKING

from harness_eval.replay.bags.bag import BagMessage, BagTopic, Definition, Note
from harness_eval.replay.bags.qos import OfferedQos
from harness_eval.replay.sources import SourceError

if TYPE_CHECKING:
    from rosbags.interfaces import Connection
    from rosbags.typesys.store import Typestore

_HEADER = 'std_msgs/msg/Header'
_LATCHED = OfferedQos(durability='transient_local')
_REINDEX = 'run `rosbag reindex` on it'


class Ros1File:
    """A file of ROS 1 (version 2.0).

    Args:
        path: The file.
        note: Takes what cannot be read.

    Attributes:
        margin: 0: its times are known.

    Raises:
        SourceError: ``bag_damaged``.
        OSError: The file cannot be read.
    """

    margin = 0

    def __init__(self, path: Path, note: Note) -> None:
        from rosbags.rosbag1 import Reader

        self._path = path
        self._note = note
        self._reader = Reader(path)
        try:
            self._reader.open()
        except OSError:
            raise
        except Exception as error:  # rosbags raises errors of many kinds for a damaged file
            raise SourceError(
                'bag_damaged',
                f'{path.name} cannot be read: {_plain(error, path)}; was it cut? {_REINDEX}',
            ) from None
        self._types = _Ros1Types(note)
        self._connections = {c.id: c for c in self._reader.connections}

    @property
    def topics(self) -> Mapping[str, BagTopic]:
        """What the file holds, by absolute name."""
        found: dict[str, BagTopic] = {}
        for connection in self._connections.values():
            name = _absolute(connection.topic)
            known = found.get(name)
            found[name] = BagTopic(
                name,
                connection.msgtype if known is None else known.type,
                connection.msgcount + (0 if known is None else known.count or 0),
                (_LATCHED,) if getattr(connection.ext, 'latching', None) else (),
            )
        return found

    @property
    def definitions(self) -> Mapping[str, Definition]:
        """The definitions of its types as they are after conversion, in the form of ROS 2."""
        found = {}
        for connection in self._connections.values():
            text = self._types.definition(connection)
            if text is not None:
                found[connection.msgtype] = Definition(text)
        return found

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last receipt, nanoseconds; None without messages."""
        indexes = [index for index in self._reader.indexes.values() if index]
        if not indexes:
            return None
        return min(i[0].time for i in indexes), max(i[-1].time for i in indexes)

    def messages(
        self, topics: Collection[str], start: int | None, stop: int | None
    ) -> Iterator[BagMessage]:
        """Messages in order of receipt, ``start`` included, ``stop`` not."""
        chosen = [
            c
            for c in self._connections.values()
            if _absolute(c.topic) in topics and self._types.known(c)
        ]
        if not chosen:
            return
        view = copy.copy(self._reader)
        view.current_chunk = (-1, BytesIO())  # its own: another iteration may be elsewhere
        # As one index: several would be merged by time alone, not in the order of the file.
        places = [one for c in chosen for one in _cut(self._reader.indexes[c.id], start, stop)]
        view.indexes = {chosen[0].id: sorted(places, key=tuple)}
        try:
            for connection, receipt, data in view.messages(chosen[:1]):
                try:
                    converted = self._types.converted(connection, data)
                except Exception as error:  # generated code over bytes from outside
                    self._damaged(receipt, error)
                    continue
                yield BagMessage(
                    _absolute(connection.topic), connection.msgtype, converted, receipt
                )
        except OSError:
            raise
        except Exception as error:
            if isinstance(error, SourceError):
                raise
            self._damaged(None, error)

    def written(self, topics: Collection[str], start: int, stop: int) -> Iterator[tuple[str, int]]:
        """Topic and receipt of the messages of a window in the order of writing, unread."""
        places = [
            (one.chunk_pos, one.offset, _absolute(c.topic), one.time)
            for c in self._connections.values()
            if _absolute(c.topic) in topics
            for one in _cut(self._reader.indexes[c.id], start, stop)
        ]
        return ((topic, receipt) for _, _, topic, receipt in sorted(places))

    def close(self) -> None:
        """Close the file."""
        if self._reader.bio is not None:
            self._reader.close()

    def _damaged(self, receipt: int | None, error: Exception) -> None:
        where = '' if receipt is None else f' at {receipt / 1e9:.3f} s'
        self._note(
            'bag_damaged',
            f'{self._path.name} is damaged{where}: {_plain(error, self._path)}; what can be read '
            'of it is used',
        )


class _Ros1Types:
    """The types of one bag of ROS 1, and their conversion."""

    def __init__(self, note: Note) -> None:
        from rosbags.typesys import get_typestore, Stores

        self._note = note
        self._ros2: Typestore = get_typestore(Stores.LATEST)
        self._store: Typestore = get_typestore(Stores.EMPTY)
        # ROS 1 counts in its headers and ROS 2 does not; the conversion leaves the number out.
        self._store.register({_HEADER: self._ros2.fielddefs[_HEADER]})
        self._usable: dict[str, bool] = {}

    def known(self, connection: Connection) -> bool:
        name = connection.msgtype
        if name not in self._usable:
            try:
                self._learn(name, connection.msgdef.data)
                self._usable[name] = True
            except Exception as error:  # a text from outside, through a parser
                self._usable[name] = False
                self._note(
                    'bad_definition',
                    f'{_absolute(connection.topic)} is left out: the definition of {name} in the '
                    f'bag cannot be used ({_line(error)})',
                )
        return self._usable[name]

    def converted(self, connection: Connection, data: bytes) -> bytes:
        return bytes(self._store.ros1_to_cdr(data, connection.msgtype))

    def definition(self, connection: Connection) -> str | None:
        if not self.known(connection):
            return None
        return str(self._store.generate_msgdef(connection.msgtype, ros_version=2)[0])

    def _learn(self, name: str, text: str) -> None:
        from rosbags.typesys import get_types_from_msg

        types = dict(get_types_from_msg(text, name))
        ours = {**types, **self._store.fielddefs}
        fresh = {
            # By the names that ROS 2 gives to the same fields: `k`, which was `K`.
            key: self._ros2.fielddefs[key] if self._same(key, ours) else body
            for key, body in types.items()
            if key not in self._store.fielddefs
        }
        if fresh:
            self._store.register(fresh)
        self._store.get_msgdef(name)

    def _same(self, name: str, ours: Mapping[str, Any]) -> bool:
        """Whether ROS 2 has the type with the same fields, whatever their names."""
        if name not in ours or name not in self._ros2.fielddefs:
            return False
        pairs = list(zip_longest(ours[name][1], self._ros2.fielddefs[name][1]))
        return all(
            one is not None
            and other is not None
            and one[1] == other[1]
            and all(self._same(part, ours) for part in _parts(one[1]))
            for one, other in pairs
        )


def _parts(description: Any) -> Iterator[str]:
    """The message type in the description of a field, if there is one."""
    while not isinstance(description[1], str):
        inner = description[1][0]
        if not isinstance(inner, tuple):
            return
        description = inner
    yield description[1]


def _cut(index: list[Any], start: int | None, stop: int | None) -> list[Any]:
    begin = 0 if start is None else bisect_left(index, (start,))
    return index[begin : len(index) if stop is None else bisect_left(index, (stop,))]


def _absolute(topic: str) -> str:
    return topic if topic.startswith('/') else '/' + topic


def _plain(error: Exception, path: Path) -> str:
    return _line(error).replace(str(path), path.name)


def _line(error: Exception) -> str:
    from harness_eval.lines import clean_line, describe

    return clean_line(describe(error), 200)
