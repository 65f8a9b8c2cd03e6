"""Verdicts kept by their question, so that the same question is not asked twice.

The file is this module's own, beside the ledger: what is in it can be lost without harm, so a
cache that is damaged or cannot be written is no cache, and never an error of a judgement. What an
entry says is in :mod:`harness_eval.kept_answers`.

Threading model. Any thread may look and keep; one lock guards the one connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
import logging
from pathlib import Path
import sqlite3
import threading
import time

from harness_eval.config.evaluators import EvaluatorSettings
from harness_eval.contract import Verdict
from harness_eval.kept_answers import digest_of, KeptAnswers, read_kept, written

MAX_BYTES = 64 * 1024 * 1024
"""Bytes of all kept verdicts together; some 50,000 of them."""

MAX_ENTRY_BYTES = 256 * 1024
"""Bytes of a verdict that is kept; one with a larger report is asked for again."""

FORMAT = 1
"""What the entries look like; those of another format are forgotten."""

BUSY_TIMEOUT = 1.0
"""Seconds that another process may hold the file."""

_log = logging.getLogger('harness_eval.calls')


class JudgeCache:
    """A file of verdicts.

    Args:
        path: The file; it is made if it is not there.
        max_bytes: Bytes of all verdicts together; the oldest go first.
        wall_clock: Seconds since the epoch.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int = MAX_BYTES,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._name = path.name
        self._max_bytes = max_bytes
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._bytes = 0
        self._connection: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._open(path)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                self._give_up(error)
            else:
                self._begin_anew(path, error)
        except OSError as error:
            self._give_up(error)

    @property
    def usable(self) -> bool:
        """Whether anything is kept."""
        return self._connection is not None

    def of(self, evaluator: str) -> KeptAnswers:
        """The answers of one evaluator.

        Args:
            evaluator: Its :func:`~harness_eval.kept_answers.identity`.
        """
        return _Answers(self, evaluator)

    def get(self, evaluator: str, digest: str) -> Verdict | None:
        """The answer of an evaluator to the question of a digest, marked as kept."""
        key = f'{evaluator}:{digest}'
        with self._lock:
            if self._connection is None:
                return None
            try:
                row = self._connection.execute(
                    'SELECT text, digest FROM answers WHERE key = ?', (key,)
                ).fetchone()
            except sqlite3.Error as error:
                self._give_up(error)
                return None
        if row is None:
            return None
        try:
            return read_kept(key, *row)
        except (ValueError, TypeError, KeyError):
            _log.warning('%s: a damaged entry is not used', self._name)
            return None

    def put(self, evaluator: str, digest: str, verdict: Verdict) -> None:
        """Keep the answer of an evaluator to the question of a digest."""
        key = f'{evaluator}:{digest}'
        text = written(verdict, self._wall_clock())
        size = len(text)
        if size > MAX_ENTRY_BYTES:
            return
        with self._lock:
            if self._connection is None:
                return
            try:
                with self._connection:
                    self._insert(self._connection, key, text, size)
            except sqlite3.Error as error:
                self._give_up(error)

    def close(self) -> None:
        """Give up the file."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()

    # The file; the lock is held.

    def _open(self, path: Path) -> None:
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT, check_same_thread=False)
        try:
            connection.execute('PRAGMA journal_mode = WAL')
            # What a power cut takes away is asked for again.
            connection.execute('PRAGMA synchronous = NORMAL')
            with connection:
                if connection.execute('PRAGMA user_version').fetchone()[0] != FORMAT:
                    connection.execute('DROP TABLE IF EXISTS answers')
                    connection.execute(f'PRAGMA user_version = {FORMAT}')
                connection.execute(
                    'CREATE TABLE IF NOT EXISTS answers (number INTEGER PRIMARY KEY, '
                    'key TEXT UNIQUE NOT NULL, size INTEGER NOT NULL, text TEXT NOT NULL, '
                    'digest TEXT NOT NULL)'
                )
            found = connection.execute('SELECT coalesce(sum(size), 0) FROM answers').fetchone()
            self._bytes = int(found[0])
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _begin_anew(self, path: Path, error: sqlite3.Error) -> None:
        _log.warning('%s is damaged and begun anew, nothing is known by it: %s', self._name, error)
        try:
            for end in ('', '-wal', '-shm'):
                path.with_name(path.name + end).unlink(missing_ok=True)
            self._open(path)
        except (OSError, sqlite3.Error) as fault:
            self._give_up(fault)

    def _insert(self, connection: sqlite3.Connection, key: str, text: str, size: int) -> None:
        before = connection.execute('SELECT size FROM answers WHERE key = ?', (key,)).fetchone()
        connection.execute('DELETE FROM answers WHERE key = ?', (key,))
        connection.execute(
            'INSERT INTO answers (key, size, text, digest) VALUES (?, ?, ?, ?)',
            (key, size, text, digest_of(key, text)),
        )
        total = self._bytes + size - (before[0] if before else 0)
        while total > self._max_bytes:
            oldest = connection.execute(
                'SELECT number, size FROM answers ORDER BY number LIMIT 1'
            ).fetchone()
            if oldest is None:
                break
            connection.execute('DELETE FROM answers WHERE number = ?', (oldest[0],))
            total -= oldest[1]
        self._bytes = total

    def _give_up(self, error: Exception) -> None:
        _log.warning('%s: no answers are kept any more: %s', self._name, error)
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


def cache_beside(
    ledger: Path | None, evaluators: Mapping[str, EvaluatorSettings]
) -> JudgeCache | None:
    """Open the cache beside a ledger; ``None`` if no evaluator keeps its answers.

    Args:
        ledger: File of the ledger, which this process alone writes; ``None``: it is no file.
        evaluators: Settings of the evaluators.
    """
    if ledger is None or not any(one.cache for one in evaluators.values()):
        return None
    return JudgeCache(ledger.with_name(f'{ledger.stem}.judge_cache.sqlite3'))


class _Answers:
    def __init__(self, cache: JudgeCache, evaluator: str) -> None:
        self._cache = cache
        self._evaluator = evaluator

    def get(self, digest: str) -> Verdict | None:
        return self._cache.get(self._evaluator, digest)

    def put(self, digest: str, verdict: Verdict) -> None:
        self._cache.put(self._evaluator, digest, verdict)
