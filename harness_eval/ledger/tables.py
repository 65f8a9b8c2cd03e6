"""The tables of the ledger, and how rows become records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
import json
from pathlib import Path
import sqlite3
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa

from harness_eval.contract import LedgerError
from harness_eval.ledger.statements import Statement
from harness_eval.lines import describe, redact
from harness_eval.runs import Completion, Outcome, Run, Segment, SegmentState
from harness_eval.scene_graph import ops_from_json, Update

SCHEMA_VERSION = 1
BUSY_TIMEOUT_MS = 250
"""How long a commit waits for a foreign lock; longer would hold up every other run."""

metadata = sa.MetaData()
meta_table = sa.Table(
    'meta',
    metadata,
    sa.Column('key', sa.String, primary_key=True),
    sa.Column('value', sa.String, nullable=False),
)
interruptions_table = sa.Table(
    'interruptions',
    metadata,
    sa.Column('run_id', sa.String, primary_key=True),
    sa.Column('reason', sa.String, nullable=False),
    sa.Column('wall', sa.Float, nullable=False),
)
segments_table = sa.Table(
    'segments',
    metadata,
    sa.Column('run_id', sa.String, primary_key=True),
    sa.Column('number', sa.Integer, primary_key=True),
    sa.Column('order', sa.Integer, nullable=False, unique=True),
    sa.Column('tool', sa.String, nullable=False),
    sa.Column('completion', sa.String, nullable=False),
    sa.Column('receipt', sa.BigInteger, nullable=False),
    sa.Column('state', sa.String, nullable=False, index=True),
    sa.Column('attempt', sa.Integer, nullable=False),
    sa.Column('evidence', sa.String, nullable=False),
    sa.Column('evidence_digest', sa.String, nullable=False),
    sa.Column('streams', sa.String, nullable=False),
    sa.Column('rules', sa.String, nullable=False),
    sa.Column('starts', sa.Integer, nullable=False),
    sa.Column('era', sa.Integer, nullable=False),
    sa.Column('outcome', sa.String, nullable=True),
    sa.Column('published', sa.Boolean, nullable=False),
    sa.Column('accepted', sa.Float, nullable=False),
    sa.Column('wall', sa.Float, nullable=False),
)
sa.Index(
    'unpublished_segments',
    segments_table.c.order,
    sqlite_where=sa.not_(segments_table.c.published),
)
attempts_table = sa.Table(
    'attempts',
    metadata,
    sa.Column('run_id', sa.String, primary_key=True),
    sa.Column('number', sa.Integer, primary_key=True),
    sa.Column('attempt', sa.Integer, primary_key=True),
    sa.Column('outcome', sa.String, nullable=False),
    sa.Column('wall', sa.Float, nullable=False),
)
updates_table = sa.Table(
    'updates',
    metadata,
    sa.Column('run_id', sa.String, primary_key=True),
    sa.Column('update_id', sa.String, primary_key=True),
    sa.Column('number', sa.Integer, nullable=False, unique=True),
    sa.Column('effect', sa.Boolean, nullable=False),
    sa.Column('ops', sa.String, nullable=False),
    sa.Column('stamp', sa.BigInteger, nullable=False),
    sa.Column('state', sa.String, nullable=False),
    sa.Column('reason', sa.String, nullable=False),
    sa.Column('revision', sa.Integer, nullable=True, unique=True),
    sa.Column('published', sa.Boolean, nullable=False),
    sa.Column('wall', sa.Float, nullable=False),
)
sa.Index(
    'unpublished_updates', updates_table.c.number, sqlite_where=sa.not_(updates_table.c.published)
)
sa.Index('updates_by_state', updates_table.c.state)
retired_table = sa.Table(
    'retired',
    metadata,
    sa.Column('run_id', sa.String, primary_key=True),
    sqlite_with_rowid=False,
)

HELD = 'held'
RELEASED = 'released'
REJECTED = 'rejected'


@dataclass(frozen=True)
class UpdateRecord:
    """One proposed update, as it is on record.

    Attributes:
        update: What was proposed; with graph and revision once released.
        number: Place in order of receipt, from 1.
        effect: It is the ``on_success`` of a tool.
        state: ``held``, ``released`` or ``rejected``.
        reason: Why it was rejected.
        wall: Wall-clock seconds of its last change.
    """

    update: Update
    number: int
    effect: bool
    state: str
    reason: str
    wall: float


@dataclass(frozen=True)
class RunRow:
    """One line of the list of runs."""

    segment: Segment
    wall: float


def ledger_path(url: str) -> Path | None:
    """The file of a SQLite URL; None for an SQLite database in memory.

    Raises:
        LedgerError: ``ledger_unsupported``: the URL is not one of SQLite.
    """
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as error:
        raise LedgerError(
            'ledger_unsupported',
            'ledger_url is not a URL; expected something like sqlite:////home/me/ledger.sqlite3',
        ) from error
    if parsed.get_backend_name() != 'sqlite':
        raise LedgerError(
            'ledger_unsupported',
            f'ledger_url names {parsed.get_backend_name()!r}; this version keeps its record in '
            'SQLite: sqlite:////home/me/ledger.sqlite3',
        )
    if not parsed.database or parsed.database == ':memory:':
        return None
    return Path(parsed.database)


def base_name(path: Path | None) -> str:
    """How an error calls the file, without its folder."""
    return 'in memory' if path is None else path.name


def engine_url(path: Path, **query: str) -> sa.URL:
    """The URL of a file, whatever characters its path holds."""
    name = f'file:{quote(str(path))}' if query else str(path)
    return sa.URL.create('sqlite', database=name, query=query)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turn whatever the database raises into a LedgerError; ``what`` is ``read`` or ``write``."""
    try:
        yield
    except (sa.exc.SQLAlchemyError, sqlite3.Error) as error:
        reason = redact(str(getattr(error, 'orig', None) or str(error).partition('\n')[0]))
        raise LedgerError(
            'ledger_unavailable', f'cannot {what} the ledger: {reason}', retryable=True
        ) from error


@contextmanager
def _whole(what: str) -> Iterator[None]:
    """Turn a row that does not hold what was written into a LedgerError."""
    try:
        yield
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise LedgerError(
            'ledger_damaged',
            f'the ledger holds {what} that cannot be read ({describe(error)}); '
            'use another ledger_url, and keep this file to look into',
        ) from error


def check_version(connection: sa.Connection) -> None:
    """Refuse a ledger that a newer version made.

    Raises:
        LedgerError: ``ledger_unsupported``.
    """
    query = sa.select(meta_table.c.value).where(meta_table.c.key == 'schema_version')
    version = connection.execute(query).scalar()
    with _whole('a schema version'):
        newer = version is not None and int(version) > SCHEMA_VERSION
    if newer:
        raise LedgerError(
            'ledger_unsupported',
            f'the ledger was made by a newer version (schema {version}, this one knows '
            f'{SCHEMA_VERSION}); upgrade, or use another ledger_url',
        )


def read_graph_id(connection: sa.Connection) -> str:
    """Identity of the graph whose revisions are counted here."""
    query = sa.select(meta_table.c.value).where(meta_table.c.key == 'graph_id')
    return str(connection.execute(query).scalar_one())


def read_run(connection: sa.Connection, run_id: str) -> Run | None:
    """The run of that name, or None."""
    known = _KNOWN_OF_RUN(connection, run_id=run_id).first
    if known.segments or known.interruptions:
        rows = _SEGMENTS_OF_RUN(connection, run_id=run_id).rows
        return Run(run_id, tuple(segment_of(row) for row in rows), bool(known.interruptions))
    return Run(run_id, retired=True) if known.retired else None


_SEGMENTS_OF_RUN = Statement(
    sa.select(segments_table)
    .where(segments_table.c.run_id == sa.bindparam('run_id'))
    .order_by(segments_table.c.number)
)
_KNOWN_OF_RUN = Statement(
    sa.select(
        *(
            sa.exists().where(table.c.run_id == sa.bindparam('run_id')).label(table.name)
            for table in (segments_table, interruptions_table, retired_table)
        )
    )
)


def segment_of(row: Any) -> Segment:
    """A row of the segments table as a record.

    Raises:
        LedgerError: ``ledger_damaged``.
    """
    with _whole('a run'):
        data = json.loads(row.completion)
        data['arguments'] = tuple((name, value) for name, value in data['arguments'])
        return Segment(
            completion=Completion(**data),
            order=row.order,
            receipt=row.receipt,
            state=SegmentState(row.state),
            attempt=row.attempt,
            evidence=row.evidence,
            evidence_digest=row.evidence_digest,
            streams=row.streams,
            rules=row.rules,
            starts=row.starts,
            era=row.era,
            accepted=row.accepted,
            outcome=None if row.outcome is None else Outcome.from_json(row.outcome),
        )


def outcome_of_row(row: Any) -> Outcome:
    """The column ``outcome`` of a row as a record.

    Raises:
        LedgerError: ``ledger_damaged``.
    """
    with _whole('an outcome'):
        return Outcome.from_json(row.outcome)


def update_of(row: Any, graph_id: str) -> UpdateRecord:
    """A row of the updates table as a record.

    Raises:
        LedgerError: ``ledger_damaged``.
    """
    released = row.state == RELEASED
    with _whole('an update'):
        return UpdateRecord(
            update=Update(
                run_id=row.run_id,
                update_id=row.update_id,
                ops=ops_from_json(row.ops),
                graph_id=graph_id if released else '',
                revision=row.revision if released else 0,
                stamp=row.stamp,
            ),
            number=row.number,
            effect=bool(row.effect),
            state=row.state,
            reason=row.reason,
            wall=row.wall,
        )
