"""Verdicts kept by their question, so that the same question is not asked twice.

The file is this module's own, beside the ledger: what is in it can be lost without harm, so a
cache that is damaged or cannot be written is no cache, and never an error of a judgement. What is
read from it decides what a robot does, so each entry carries a digest of itself, and one that
does not match is not used.

Threading model. Any thread may look and keep; one lock guards the one connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime, timezone
import hashlib
import json
import logging
import math
from pathlib import Path
import sqlite3
import threading
import time
from typing import Any, Protocol

from harness_eval import __version__
from harness_eval.config.evaluators import EvaluatorSettings
from harness_eval.contract import Status, Verdict
from harness_eval.judging import Thresholds

MAX_BYTES = 64 * 1024 * 1024
"""Bytes of all kept verdicts together; some 50,000 of them."""

MAX_ENTRY_BYTES = 256 * 1024
"""Bytes of a verdict that is kept; one with a larger report is asked for again."""

FORMAT = 1
"""What the entries look like; those of another format are forgotten."""

BUSY_TIMEOUT = 1.0
"""Seconds that another process may hold the file."""

_NOT_PART = {'timeout', 'max_concurrency', 'cache'}
"""Settings that change when an answer comes, not which one."""

_log = logging.getLogger('harness_eval.calls')


class KeptAnswers(Protocol):
    """The kept answers of one evaluator. No method raises."""

    def get(self, digest: str) -> Verdict | None:
        """The answer to the question of a digest, marked as kept; ``None`` if there is none."""
        ...

    def put(self, digest: str, verdict: Verdict) -> None:
        """Keep the answer to the question of a digest."""
        ...


def identity(
    ref: str,
    settings: EvaluatorSettings,
    thresholds: Thresholds,
    members: Mapping[str, str] | None = None,
) -> str:
    """Say who answers, so that another evaluator's answers are never taken for its own.

    Secrets are in no settings: those name environment variables. The code of a plugin, and what
    a server does behind the same address, are not part of it.

    Args:
        ref: The evaluator's reference.
        settings: Its settings.
        thresholds: Where a score becomes a verdict.
        members: Identities of the evaluators that it asks, by name.

    Returns:
        SHA-256, 64 hexadecimal digits.
    """
    said = {
        'version': __version__,
        'ref': ref,
        'settings': settings.model_dump(mode='json', exclude=_NOT_PART),
        'thresholds': asdict(thresholds),
        'members': dict(members or {}),
    }
    text = json.dumps(said, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode('ascii')).hexdigest()


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
            evaluator: Its :func:`identity`.
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
            return _marked(*_read(key, *row))
        except (ValueError, TypeError, KeyError):
            _log.warning('%s: a damaged entry is not used', self._name)
            return None

    def put(self, evaluator: str, digest: str, verdict: Verdict) -> None:
        """Keep the answer of an evaluator to the question of a digest."""
        key = f'{evaluator}:{digest}'
        text = _written(verdict, self._wall_clock())
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
            (key, size, text, _digest(key, text)),
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


def _digest(key: str, text: str) -> str:
    return hashlib.sha256(f'{key} {text}'.encode()).hexdigest()


def _written(verdict: Verdict, now: float) -> str:
    fields = {
        'status': verdict.status.value,
        'evidence': list(verdict.evidence),
        'failure_reason': verdict.failure_reason,
        'failure_kind': verdict.failure_kind,
        'score': verdict.score,
        'report': None if verdict.report is None else dict(verdict.report),
        'route': verdict.route,
    }
    return json.dumps({'at': now, 'verdict': fields}, ensure_ascii=True, allow_nan=False)


def _read(key: str, text: str, digest: str) -> tuple[Verdict, float]:
    """Read an entry.

    Raises:
        ValueError, TypeError, KeyError: It is not one that was written here.
    """
    if _digest(key, text) != digest:
        raise ValueError('the entry does not match its digest')
    data: dict[str, Any] = json.loads(text)
    fields = data['verdict']
    at = float(data['at'])
    if not math.isfinite(at):
        raise ValueError('the entry has no time')
    verdict = Verdict(
        **{**fields, 'status': Status(fields['status']), 'evidence': tuple(fields['evidence'])}
    )
    return verdict, at


def _marked(verdict: Verdict, at: float) -> Verdict:
    """The verdict, which says that it was kept and costs nothing now."""
    when = datetime.fromtimestamp(at, timezone.utc).strftime('%Y-%m-%d %H:%M:%S UTC')
    return replace(
        verdict,
        evidence=(f'cached: the answer of {when}', *verdict.evidence),
        route=f'cached ({verdict.route})' if verdict.route else 'cached',
        cost=0.0,
    )
