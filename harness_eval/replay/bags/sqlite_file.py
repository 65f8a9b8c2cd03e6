"""One sqlite3 file of rosbag2, read in windows.

rosbag2 keeps an index of the receipts, so that a window costs what lies in it. There is none of
the topics: finding a topic in the whole of a file looks at the head of every row, though not at
the messages of others.

The file is opened so that what its recorder left in a ``-wal`` file beside it is seen; rosbags
reads past that. Of a file that was cut, the rows that are left are listed once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
import sqlite3
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from harness_eval.replay.bags.bag import BagMessage, BagTopic, Definition, full_type, Note
from harness_eval.replay.bags.qos import offered_qos
from harness_eval.replay.sources import SourceError
from harness_eval.runs import printable

_WAIT = 2.0
"""Seconds that a recorder which holds the file is waited for."""
_ERRORS = (sqlite3.DatabaseError, UnicodeDecodeError)
"""What reading a damaged file raises; the second where its own error has such a name in it."""
_HEADER = 100
_LAST = (1 << 63) - 1
_FORMS = ('ros2msg', 'ros2idl')


@dataclass(frozen=True)
class _Stored:
    id: int
    topic: BagTopic


class SqliteFile:
    """A sqlite3 file of rosbag2.

    Args:
        path: The file.
        note: Takes what cannot be read.

    Attributes:
        margin: 0: its times are known.

    Raises:
        SourceError: ``bag_damaged``, ``bag_locked``, ``not_a_bag`` (a database of something else).
        OSError: The file cannot be read.
    """

    margin = 0

    def __init__(self, path: Path, note: Note) -> None:
        self._path = path
        self._note = note
        self._cut = _is_cut(path)
        self._immutable = self._cut
        self._rows: NDArray[Any] | None = None
        try:
            self._open()
        except _ERRORS as error:
            raise self._unusable(error) from None

    @property
    def topics(self) -> Mapping[str, BagTopic]:
        """What the file holds, by absolute name."""
        return {stored.topic.name: stored.topic for stored in self._stored}

    @property
    def definitions(self) -> Mapping[str, Definition]:
        """The definitions that the file carries, by type."""
        return self._definitions

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last receipt, nanoseconds; None without messages."""
        return self._span

    def close(self) -> None:
        """Nothing is held between two iterations."""

    def messages(
        self, topics: Collection[str], start: int | None, stop: int | None
    ) -> Iterator[BagMessage]:
        """Messages in order of receipt, ``start`` included, ``stop`` not."""
        wanted = {s.id: s.topic for s in self._stored if s.topic.name in topics}
        first = -_LAST if start is None else max(-_LAST, min(start, _LAST))
        last = _LAST if stop is None else max(-_LAST, min(stop - 1, _LAST))
        with closing(self._connect()) as database:
            rows = self._indexed if self._rows is None else self._listed
            try:
                for number, receipt, data in rows(database, sorted(wanted), first, last):
                    if isinstance(data, bytes) and isinstance(receipt, int):
                        topic = wanted[number]
                        yield BagMessage(topic.name, topic.type, data, receipt)
            except _ERRORS as error:
                self._damaged(error)

    def written(self, topics: Collection[str], start: int, stop: int) -> Iterator[tuple[str, int]]:
        """Topic and receipt of the messages of a window in the order of writing, unread."""
        wanted = {s.id: s.topic.name for s in self._stored if s.topic.name in topics}
        first, last = (max(-_LAST, min(at, _LAST)) for at in (start, stop - 1))
        if self._rows is not None:
            inside = (self._rows['receipt'] >= first) & (self._rows['receipt'] <= last)
            found = self._rows[['id', 'topic', 'receipt']][inside].tolist()
        else:
            query = 'SELECT id, topic_id, timestamp FROM messages WHERE timestamp BETWEEN ? AND ?'
            try:
                with closing(self._connect()) as database:
                    found = database.execute(query, (first, last)).fetchall()
            except _ERRORS:
                return  # whoever reads the messages is told
        # Asked for in order, SQLite might look at every row that there is.
        for _, number, receipt in sorted(found):
            if number in wanted and isinstance(receipt, int):
                yield wanted[number], receipt

    def _indexed(
        self, database: sqlite3.Connection, topics: list[int], first: int, last: int
    ) -> Iterator[tuple[int, int, object]]:
        marks = ','.join('?' * len(topics))
        return database.execute(
            'SELECT topic_id, timestamp, data FROM messages '
            f'WHERE timestamp BETWEEN ? AND ? AND topic_id IN ({marks}) ORDER BY timestamp, id',
            (first, last, *topics),
        )

    def _listed(
        self, database: sqlite3.Connection, topics: list[int], first: int, last: int
    ) -> Iterator[tuple[int, int, object]]:
        assert self._rows is not None
        begin = np.searchsorted(self._rows['receipt'], first, 'left')
        end = np.searchsorted(self._rows['receipt'], last, 'right')
        rows = self._rows[begin:end]
        for row in rows[np.isin(rows['topic'], topics)]:
            query = 'SELECT data FROM messages WHERE id = ?'
            try:
                found = database.execute(query, (int(row['id']),)).fetchone()
            except _ERRORS as error:
                self._damaged(error)
                continue
            if found is not None:
                yield int(row['topic']), int(row['receipt']), found[0]

    def _open(self) -> None:
        try:
            with closing(self._connect()) as database:
                self._read(database)
        except sqlite3.OperationalError as error:
            if self._immutable or 'locked' in str(error) or 'no such' in str(error):
                raise
            # A folder that cannot be written, with a log beside the file that only a writer could
            # work in: what is in the file itself can still be read.
            self._immutable = True
            self._note(
                'bag_not_closed',
                f'{self._path.name} was not closed by its recorder and lies in a folder that '
                'cannot be written, so that its log (-wal or -journal) is not read: the last '
                'messages may be missing; copy both to another folder',
            )
            with closing(self._connect()) as database:
                self._read(database)

    def _connect(self) -> sqlite3.Connection:
        mode = 'immutable=1' if self._immutable else 'mode=ro'
        database = sqlite3.connect(
            f'file:{quote(str(self._path.absolute()))}?{mode}',
            uri=True,
            timeout=_WAIT,
            isolation_level=None,
            check_same_thread=False,
        )
        # A damaged name is no reason to read nothing else.
        database.text_factory = _text
        if self._cut:
            # Otherwise SQLite refuses a file that is shorter than its header says.
            database.execute('PRAGMA writable_schema = ON')
        return database

    def _read(self, database: sqlite3.Connection) -> None:
        columns = {row[1] for row in database.execute('PRAGMA table_info(topics)')}
        rows = {row[1] for row in database.execute('PRAGMA table_info(messages)')}
        if not {'id', 'name', 'type'} <= columns or not {'topic_id', 'timestamp', 'data'} <= rows:
            if self._cut:
                raise sqlite3.DatabaseError('nothing is left of its tables')
            raise SourceError(
                'not_a_bag',
                f'{self._path.name} is a database, but none of rosbag2: expected the tables '
                'topics and messages',
            )
        self._stored = self._read_topics(database, columns)
        self._definitions = self._read_definitions(database)
        ends: list[Any] = [None, 'unordered']
        if not self._cut and self._has_index(database):
            ends = [
                database.execute(f'SELECT {end}(timestamp) FROM messages').fetchone()[0]
                for end in ('min', 'max')
            ]
        if ends == [None, None]:
            self._span = None
        elif all(isinstance(end, int) for end in ends):
            self._span = (ends[0], ends[1])
        else:
            self._rows = self._list_rows(database)
            times = self._rows['receipt']
            self._span = (int(times[0]), int(times[-1])) if len(times) else None

    def _read_topics(self, database: sqlite3.Connection, columns: set[str]) -> list[_Stored]:
        optional = [
            name if name in columns else "''"
            for name in ('serialization_format', 'offered_qos_profiles')
        ]
        found = []
        query = f'SELECT id, name, type, {", ".join(optional)} FROM topics ORDER BY id'
        for number, name, kind, encoding, qos in database.execute(query):
            if not isinstance(name, str) or not isinstance(kind, str):
                self._damaged(ValueError('a topic has no name or type'))
            elif encoding in ('cdr', ''):
                found.append(
                    _Stored(number, BagTopic(name, full_type(kind), None, offered_qos(qos)))
                )
            else:
                self._note(
                    'unsupported_encoding',
                    f'{name} is encoded as {printable(str(encoding), 20)!r}, expected cdr; it is '
                    'left out',
                )
        return found

    def _read_definitions(self, database: sqlite3.Connection) -> dict[str, Definition]:
        if not database.execute('PRAGMA table_info(message_definitions)').fetchall():
            return {}
        query = 'SELECT topic_type, encoding, encoded_message_definition FROM message_definitions'
        return {
            full_type(name): Definition(text, form)
            for name, form, text in database.execute(query)
            if form in _FORMS and isinstance(name, str) and isinstance(text, str) and text.strip()
        }

    def _has_index(self, database: sqlite3.Connection) -> bool:
        for _, index, *_ in database.execute('PRAGMA index_list(messages)').fetchall():
            columns = database.execute('SELECT name FROM pragma_index_info(?)', (index,))
            if columns.fetchone() == ('timestamp',):
                return True
        return False

    def _list_rows(self, database: sqlite3.Connection) -> NDArray[Any]:
        def rows() -> Iterator[tuple[int, int, int]]:
            query = 'SELECT timestamp, id, topic_id FROM messages NOT INDEXED ORDER BY id'
            try:
                for row in database.execute(query):
                    if all(isinstance(value, int) for value in row):
                        yield row
            except _ERRORS as error:
                if not self._cut:
                    self._damaged(error)

        kind = [('receipt', np.int64), ('id', np.int64), ('topic', np.int64)]
        found = np.fromiter(rows(), dtype=kind)
        found = found[np.argsort(found['receipt'], kind='stable')]
        if self._cut:
            self._note(
                'bag_cut',
                f'{self._path.name} is shorter than it says; the {len(found)} messages that are '
                'left are used',
            )
        return found

    def _damaged(self, error: Exception) -> None:
        self._note(
            'bag_damaged',
            f'{self._path.name} is damaged: {_said(error)}; what can be read of it is used',
        )

    def _unusable(self, error: Exception) -> SourceError:
        if 'locked' in str(error):
            return SourceError(
                'bag_locked',
                f'{self._path.name} is being written by another program: wait until its recorder '
                'has ended, or copy it',
                retryable=True,
            )
        return SourceError(
            'bag_damaged', f'{self._path.name} cannot be read: {_said(error)}; record it again'
        )


def _said(error: Exception) -> str:
    return printable(str(error), 200)


def _text(data: bytes) -> str:
    return data.decode(errors='replace')


def _is_cut(path: Path) -> bool:
    """Whether a file is shorter than its header says."""
    with path.open('rb') as file:
        header = file.read(_HEADER)
    if len(header) < _HEADER:
        return False
    if header[24:28] != header[92:96]:
        return False  # an old writer, that kept no count
    page = int.from_bytes(header[16:18], 'big')
    pages = int.from_bytes(header[28:32], 'big')
    return path.stat().st_size < pages * (65536 if page == 1 else page)
