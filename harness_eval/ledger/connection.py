"""The file of a ledger as its one writer holds it: transactions, and what reaches the disk when.

SQLite runs in WAL mode with ``synchronous=NORMAL``: a commit is in the system's memory when it
ends, so that it survives the end of the process, and waits for no disk. What was logged is flushed
right after (:meth:`LedgerFile.flush`), beside the way to the verdict. A machine that goes down
meanwhile may take the newest transactions with it. That is noticed when the file is opened again:
it says on which boot of the system it was in use, and that its last use came to no end. It gets a
new ``graph_id`` then, so that no revision of a graph ever has two meanings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
import os
from pathlib import Path
import sqlite3
import time
import uuid

import sqlalchemy as sa

from harness_eval.contract import LedgerError
from harness_eval.ledger.possession import Possession
from harness_eval.ledger.tables import (
    BUSY_TIMEOUT_MS,
    check_version,
    engine_url,
    ledger_path,
    meta_table,
    metadata,
    SCHEMA_VERSION,
    translated,
)

CHECKPOINT_AFTER = 200
"""Transactions after which what SQLite has logged should be moved to the file, which waits for the
disk: some 40 runs."""
WAL_PAGES = 4000
"""Pages of the log (16 MB) at which a transaction moves it itself, if nobody else has."""
CACHE_KIB = 512
"""KiB of pages that SQLite keeps in memory; a run touches some 20, and the system caches too."""

_BOOT_ID = Path('/proc/sys/kernel/random/boot_id')


class LedgerFile:
    """A ledger's file, held by its one writer. One thread may use all but what says otherwise.

    Args:
        url: SQLAlchemy URL; SQLite files only in this version.

    Raises:
        LedgerError: ``ledger_in_use`` (another process writes it), ``ledger_unsupported``
            (not SQLite, or made by a newer version), ``ledger_damaged`` or
            ``ledger_unavailable``.

    Attributes:
        graph_id: Identity of the graph whose revisions are counted here.
    """

    def __init__(self, url: str) -> None:
        path = ledger_path(url)
        if path is None:
            raise LedgerError(
                'ledger_unsupported',
                'the ledger must be a file, as in sqlite:////var/lib/robot/ledger.sqlite3',
            )
        try:
            path = Path(os.path.realpath(path))  # one lock, whatever link leads to the file
            path.parent.mkdir(parents=True, exist_ok=True)
            self._possession = Possession(path)
        except OSError as error:
            raise LedgerError(
                'ledger_unavailable', f'cannot make {path.name}: {error.strerror}', retryable=True
            ) from error
        self._log = f'{path}-wal'
        self._engine = sa.create_engine(
            engine_url(path),
            connect_args={'timeout': BUSY_TIMEOUT_MS / 1000, 'check_same_thread': False},
            poolclass=sa.pool.StaticPool,
        )
        sa.event.listen(self._engine, 'connect', _configure)
        self._beside = sa.create_engine(engine_url(path), poolclass=sa.pool.NullPool)
        self._kept: sa.Connection | None = None
        self._logged = 0
        self._unflushed = False
        self._connection: sa.Connection | None = None
        self._stale = False  # whether what is in memory may not be what the file says
        self._opened = False
        try:
            with self.transaction() as connection:
                _check_whole(connection, path.name)
                metadata.create_all(connection)
                self.graph_id = _begin_use(connection)
            self._synchronous('NORMAL')
            self._possession.remember()
            self._opened = True
        except LedgerError:
            self.close()
            raise

    def close(self) -> None:
        """Give up the lock and the file."""
        if self._opened:
            self._opened = False
            with suppress(LedgerError):
                self._synchronous('FULL')
                with self.transaction() as connection:
                    _end_use(connection)
        if self._kept is not None:
            self._kept.close()
        self._engine.dispose()
        self._possession.close()

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[sa.Connection]:
        """Everything inside is on record when it ends, or nothing of it.

        Args:
            durable: It should be flushed to the disk soon: :attr:`flush_due` says so afterwards.

        Raises:
            LedgerError: ``ledger_unavailable``: the disk is full, somebody holds the file, or it
                was deleted or replaced. If that happened while this ended, it may be on record
                all the same. ``ledger_in_use``: another node has taken the file over.
        """
        with translated('write'):
            try:
                self._check_possession()
                with self._begun('BEGIN IMMEDIATE') as connection:
                    if self._stale and self._opened:
                        self._recall(connection)
                        self._stale = False
                    self._connection = connection
                    yield connection
                self._logged += 1
                self._unflushed = self._unflushed or durable
                self._check_possession()  # or it may have gone into a file that nobody sees
            except BaseException:
                self._stale = True
                raise
            finally:
                self._connection = None

    def _check_possession(self) -> None:
        """Make sure that the file is ours; whether it was all along is noted."""
        if not self._possession.check():
            self._stale = True

    def _recall(self, connection: sa.Connection) -> None:
        """Take what is kept in memory from the file, where it may differ."""

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A view of what is on record; it waits for nobody who writes.

        Raises:
            LedgerError: ``ledger_unavailable`` or ``ledger_in_use``, as for a transaction.
        """
        self._check_possession()
        with translated('read'), self._begun('BEGIN') as connection:
            yield connection

    @contextmanager
    def _begun(self, how: str) -> Iterator[sa.Connection]:
        """A transaction on the one connection, begun and ended through the driver.

        SQLAlchemy takes a connection out of its pool for each and puts it back, which takes about
        as long as all that a transaction of a run does in between.
        """
        connection = self._connected()
        driver = _driver_of(connection)
        begun = False
        try:
            driver.execute(how)
            begun = True
            yield connection
            driver.execute('COMMIT')  # which fails if somebody has closed the file meanwhile
        except BaseException:
            if begun:
                driver.rollback()
            raise
        finally:
            if connection.in_transaction():  # it noted that expressions were executed on it
                connection.rollback()

    def _connected(self) -> sa.Connection:
        if self._kept is None or self._kept.closed:
            self._kept = self._engine.connect()
        return self._kept

    @property
    def flush_due(self) -> bool:
        """Whether somebody should call :meth:`flush`; true once, until it is due again."""
        due, self._unflushed = self._unflushed, False
        return due

    def flush(self) -> None:
        """Wait until all that was committed before is on the disk.

        It may be called on any thread and holds up no transaction.

        Raises:
            LedgerError: ``ledger_unavailable``.
        """
        try:
            # SQLite takes no locks on this file, so that closing it gives up none.
            log = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fdatasync(log)
            finally:
                os.close(log)
        except OSError as error:
            raise LedgerError(
                'ledger_unavailable',
                f'cannot flush the ledger to the disk: {error.strerror}',
                retryable=True,
            ) from error

    @property
    def checkpoint_due(self) -> bool:
        """Whether somebody should call :meth:`checkpoint`; true once, until it is due again."""
        due = self._logged >= CHECKPOINT_AFTER
        if due:
            self._logged = 0
        return due

    def checkpoint(self) -> None:
        """Move what is logged to the file, so that no transaction has to wait for the disk.

        It may be called on any thread and holds up no transaction.

        Raises:
            LedgerError: ``ledger_unavailable``.
        """
        with translated('write'), self._beside.connect() as connection:
            connection.exec_driver_sql('PRAGMA wal_checkpoint(PASSIVE)')

    def wall_now(self) -> float:
        """Seconds of the clock that :attr:`Segment.accepted` was read from."""
        return time.time()

    @property
    def _active(self) -> sa.Connection:
        assert self._connection is not None, 'writes belong inside a transaction'
        return self._connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        """Give the transaction's connection inside one, so that it sees its own writes."""
        if self._connection is not None:
            yield self._connection
        else:
            with self.reading() as connection:
                yield connection

    def _synchronous(self, level: str) -> None:
        """Say whether commits wait for the disk; SQLite takes that outside of one."""
        with translated('write'):
            _driver_of(self._connected()).execute(f'PRAGMA synchronous={level}').close()


def _configure(connection: sa.engine.interfaces.DBAPIConnection, _record: object) -> None:
    connection.isolation_level = None  # transactions are begun by their own statement
    cursor = connection.cursor()
    cursor.execute(f'PRAGMA busy_timeout={BUSY_TIMEOUT_MS}')
    cursor.execute('PRAGMA journal_mode=WAL')
    cursor.execute('PRAGMA synchronous=FULL')
    cursor.execute(f'PRAGMA wal_autocheckpoint={WAL_PAGES}')
    cursor.execute(f'PRAGMA cache_size=-{CACHE_KIB}')
    cursor.close()


def _driver_of(connection: sa.Connection) -> sqlite3.Connection:
    found = connection.connection.driver_connection
    assert isinstance(found, sqlite3.Connection)
    return found


def _check_whole(connection: sa.Connection, name: str) -> None:
    """Refuse a file with damaged pages before anything is built on it.

    Raises:
        LedgerError: ``ledger_damaged``.
    """
    found = connection.exec_driver_sql('PRAGMA quick_check(1)').scalar()
    if found != 'ok':
        raise LedgerError(
            'ledger_damaged',
            f'{name} is damaged ({found}); use another ledger_url, and keep this file',
        )


def _begin_use(connection: sa.Connection) -> str:
    """Note that the file is in use on this boot of the system, and give its graph a name."""
    check_version(connection)
    known = {row.key: row.value for row in connection.execute(sa.select(meta_table))}
    boot = _boot()
    graph = known.get('graph_id')
    if graph is None or known.get('in_use_on', '') not in ('', boot):
        graph = uuid.uuid4().hex
    _note(
        connection,
        {'graph_id': graph, 'in_use_on': boot, 'schema_version': str(SCHEMA_VERSION)},
    )
    return graph


def _end_use(connection: sa.Connection) -> None:
    """Note that the last use of the file has come to its end."""
    _note(connection, {'in_use_on': ''})


def _note(connection: sa.Connection, values: dict[str, str]) -> None:
    connection.execute(meta_table.delete().where(meta_table.c.key.in_(values)))
    connection.execute(
        meta_table.insert(), [{'key': key, 'value': value} for key, value in values.items()]
    )


def _boot() -> str:
    """Name of this boot of the system; where it has none, one that is never met again."""
    try:
        return _BOOT_ID.read_text().strip() or uuid.uuid4().hex
    except OSError:
        return uuid.uuid4().hex
