"""Writing a ledger: one process, one thread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
import json
import time
from typing import Any

import sqlalchemy as sa

from harness_eval.contract import LedgerError
from harness_eval.ledger.connection import LedgerFile
from harness_eval.ledger.statements import Statement
from harness_eval.ledger.tables import (
    attempts_table,
    HELD,
    interruptions_table,
    outcome_of_row,
    read_run,
    REJECTED,
    RELEASED,
    retired_table,
    segment_of,
    segments_table,
    update_of,
    UpdateRecord,
    updates_table,
)
from harness_eval.runs import (
    Completion,
    OPEN_AGAIN,
    Outcome,
    PENDING,
    Run,
    Segment,
    SegmentState,
)
from harness_eval.scene_graph import ops_to_json, Update

KEEP_SEGMENTS = 20_000
"""How many of the newest segments are kept whole; some 5 KB each with their outcome."""
KEEP_REJECTED = 20_000
"""Rejections older than so many updates are forgotten."""
KEEP_TOMBSTONES = 20_000
"""Interruptions of runs that never ended are forgotten after so many newer ones."""
RETIRE_AT_ONCE = 200
"""Most segments that one :meth:`Ledger.retire` looks at, so that it takes milliseconds."""


class Ledger(LedgerFile):
    """The one writer of a ledger, which belongs to one thread.

    Args:
        url: SQLAlchemy URL; SQLite files only in this version.
        keep_segments: How many of the newest segments are kept whole.
        keep_rejected: How many of the newest updates keep their rejections.
        keep_tombstones: How many of the newest interruptions are kept of runs that never ended.

    Raises:
        LedgerError: See :class:`LedgerFile`.

    Attributes:
        last_clock: How often the node's clock had gone back when the last process ended, and the
            newest receipt since, in nanoseconds.
    """

    def __init__(
        self,
        url: str,
        *,
        keep_segments: int = KEEP_SEGMENTS,
        keep_rejected: int = KEEP_REJECTED,
        keep_tombstones: int = KEEP_TOMBSTONES,
    ) -> None:
        super().__init__(url)
        self._keep_segments = keep_segments
        self._keep_rejected = keep_rejected
        self._keep_tombstones = keep_tombstones
        try:
            with self.reading() as connection:
                self._recall(connection)
                self._read_clock(connection)
        except LedgerError:
            self.close()
            raise

    # --- runs -------------------------------------------------------------------------------

    def run(self, run_id: str) -> Run | None:
        """The run of that name, or None."""
        with self._reading() as connection:
            return read_run(connection, run_id)

    def add_segment(
        self,
        completion: Completion,
        receipt: int,
        state: SegmentState = SegmentState.RECEIVED,
        *,
        streams: str = '',
        rules: str = '',
        era: int = 0,
    ) -> Segment:
        """Put an accepted completion on record, inside a transaction.

        Args:
            completion: What was reported.
            receipt: Nanoseconds of its receipt on the node's clock.
            state: What it begins as.
            streams: Digest of the streams that are to show what it came to.
            rules: Digest of what it is to be judged by.
            era: How often the node's clock had gone back.
        """
        now = self.wall_now()
        segment = Segment(
            completion,
            self._next_order,
            receipt,
            state,
            streams=streams,
            rules=rules,
            era=era,
            accepted=now,
        )
        _ADD_SEGMENT(
            self._active,
            run_id=completion.run_id,
            number=completion.segment,
            order=segment.order,
            tool=completion.tool,
            completion=json.dumps(asdict(completion), sort_keys=True),
            receipt=receipt,
            state=state.value,
            attempt=1,
            evidence='',
            evidence_digest='',
            streams=streams,
            rules=rules,
            starts=0,
            era=era,
            outcome=None,
            published=True,
            accepted=now,
            wall=now,
        )
        self._next_order += 1
        return segment

    def set_state(self, segment: Segment) -> None:
        """Put how far a segment has come on record, inside a transaction.

        That is its state, attempt, evidence, rules, and how often its evaluator was asked.

        Raises:
            LedgerError: On record it is not waiting for this attempt, nor open for it.
        """
        self._update_segment(
            _SET_STATE,
            segment,
            state=segment.state.value,
            attempt=segment.attempt,
            evidence=segment.evidence,
            evidence_digest=segment.evidence_digest,
            rules=segment.rules,
            starts=segment.starts,
        )

    def decide(self, segment: Segment, outcome: Outcome) -> None:
        """Put an outcome on record, inside a transaction.

        Raises:
            LedgerError: On record the segment is not waiting for this attempt: it is decided.
        """
        text = outcome.to_json()
        self._update_segment(
            _DECIDE,
            segment,
            state=outcome.state.value,
            attempt=outcome.attempt,
            evidence=segment.evidence,
            evidence_digest=segment.evidence_digest,
            outcome=text,
            published=False,
        )
        _ADD_ATTEMPT(
            self._active,
            run_id=outcome.run_id,
            number=outcome.segment,
            attempt=outcome.attempt,
            outcome=text,
            wall=time.time(),
        )

    def _update_segment(
        self, statement: Statement, segment: Segment, *, attempt: int, **values: Any
    ) -> None:
        done = statement(
            self._active,
            of_run=segment.completion.run_id,
            of_number=segment.completion.segment,
            of_attempt=attempt,
            attempt=attempt,
            wall=time.time(),
            **values,
        )
        if done.rowcount != 1:
            raise LedgerError(
                'ledger_unavailable',
                f'run {segment.completion.run_id!r} segment {segment.completion.segment} is not '
                f'waiting for attempt {segment.attempt} on record: it is decided already, or the '
                'file was replaced',
            )

    def forget_evidence(self, names: Sequence[str]) -> None:
        """Note, inside a transaction, that these cases were deleted to keep within bounds."""
        if names:
            self._active.execute(
                segments_table.update()
                .where(segments_table.c.evidence.in_(names))
                .values(evidence='')
            )

    def interrupt(self, run_id: str, reason: str) -> None:
        """Leave a tombstone, inside a transaction: no further completion of it is taken."""
        known = self._active.execute(
            sa.select(interruptions_table.c.run_id).where(interruptions_table.c.run_id == run_id)
        ).first()
        if known is None:
            self._active.execute(
                interruptions_table.insert().values(run_id=run_id, reason=reason, wall=time.time())
            )

    def pending(self) -> list[Segment]:
        """Segments that were accepted and have no outcome, in order (after a restart)."""
        query = (
            sa.select(segments_table)
            .where(segments_table.c.state.in_([state.value for state in PENDING]))
            .order_by(segments_table.c.order)
        )
        with self._reading() as connection:
            return [segment_of(row) for row in connection.execute(query)]

    def unpublished_outcomes(self) -> list[Outcome]:
        """Outcomes that are decided and not yet published, in order."""
        query = (
            sa.select(segments_table.c.outcome)
            .where(sa.not_(segments_table.c.published), segments_table.c.outcome.is_not(None))
            .order_by(segments_table.c.order)
        )
        with self._reading() as connection:
            return [outcome_of_row(row) for row in connection.execute(query)]

    def mark_published(self, outcomes: Sequence[Outcome], updates: Sequence[UpdateRecord]) -> None:
        """Note, inside a transaction, what was published."""
        for outcome in outcomes:
            _MARK_OUTCOME(
                self._active,
                of_run=outcome.run_id,
                of_number=outcome.segment,
                of_attempt=outcome.attempt,
                published=True,
            )
        for record in updates:
            _MARK_UPDATE(self._active, of_number=record.number, published=True)

    def seconds_since_event(self, run_id: str) -> float:
        """Wall-clock seconds since the run's last event; never negative."""
        query = sa.select(sa.func.max(segments_table.c.wall)).where(
            segments_table.c.run_id == run_id
        )
        with self._reading() as connection:
            last = connection.execute(query).scalar()
        return max(0.0, time.time() - last) if last is not None else 0.0

    def newest_released_order(self) -> int:
        """Order of the last completed run that has changed the graph; 0 if none has."""
        query = (
            sa.select(sa.func.max(segments_table.c.order))
            .select_from(segments_table)
            .join(updates_table, updates_table.c.run_id == segments_table.c.run_id)
            .where(updates_table.c.state == RELEASED)
        )
        with self._reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    def retire(self) -> int:
        """Reduce the oldest runs to their names, inside a transaction.

        Old rejections, and old interruptions of runs that never ended, are dropped.

        Call it now and then: each time it takes on no more than :data:`RETIRE_AT_ONCE` segments.

        Returns:
            How many runs were reduced.
        """
        floor = self._next_order - self._keep_segments
        old = (
            sa.select(segments_table.c.run_id)
            .where(segments_table.c.order < floor)
            .order_by(segments_table.c.order)
            .limit(RETIRE_AT_ONCE)
        )
        names = {row.run_id for row in self._active.execute(old)}
        needed = sa.union(
            sa.select(segments_table.c.run_id).where(
                segments_table.c.run_id.in_(names),
                sa.or_(
                    segments_table.c.order >= floor,
                    segments_table.c.state.in_([state.value for state in PENDING]),
                    sa.not_(segments_table.c.published),
                ),
            ),
            sa.select(updates_table.c.run_id).where(
                updates_table.c.run_id.in_(names),
                sa.or_(updates_table.c.state == HELD, sa.not_(updates_table.c.published)),
            ),
        )
        names -= {row.run_id for row in self._active.execute(needed)}
        if names:
            for table in (segments_table, attempts_table, interruptions_table):
                self._active.execute(table.delete().where(table.c.run_id.in_(names)))
            self._active.execute(retired_table.insert(), [{'run_id': n} for n in sorted(names)])
        self._active.execute(
            updates_table.delete().where(
                updates_table.c.state == REJECTED,
                updates_table.c.published,
                sa.or_(
                    updates_table.c.number < self._next_number - self._keep_rejected,
                    updates_table.c.run_id.in_(names),
                ),
            )
        )
        newest = sa.select(sa.func.max(_rowid)).select_from(interruptions_table)
        floor = (self._active.execute(newest).scalar() or 0) - self._keep_tombstones
        self._active.execute(
            interruptions_table.delete().where(
                _rowid <= floor,
                interruptions_table.c.run_id.not_in(sa.select(segments_table.c.run_id)),
            )
        )
        return len(names)

    # --- updates ----------------------------------------------------------------------------

    def find_update(self, run_id: str, update_id: str) -> UpdateRecord | None:
        """The update of that name, or None."""
        with self._reading() as connection:
            row = _FIND_UPDATE(connection, run_id=run_id, update_id=update_id).first()
        return None if row is None else update_of(row, self.graph_id)

    def hold(self, update: Update, *, effect: bool = False) -> UpdateRecord:
        """Put a proposal on record, inside a transaction."""
        record = UpdateRecord(update, self._next_number, effect, HELD, '', time.time())
        _HOLD(
            self._active,
            run_id=update.run_id,
            update_id=update.update_id,
            number=record.number,
            effect=effect,
            ops=ops_to_json(update.ops),
            stamp=update.stamp,
            state=HELD,
            reason='',
            revision=None,
            published=True,
            wall=record.wall,
        )
        self._next_number += 1
        return record

    def release(self, number: int, stamp: int) -> UpdateRecord:
        """Release a held update under the next revision, inside a transaction."""
        return self._rule(
            _RELEASE, number, state=RELEASED, revision=self._take_revision(), stamp=stamp
        )

    def reject(self, number: int, reason: str) -> UpdateRecord:
        """Reject a held update for good, inside a transaction."""
        return self._rule(_REJECT, number, state=REJECTED, reason=reason)

    def _take_revision(self) -> int:
        revision = self._next_revision
        self._next_revision += 1
        return revision

    def _rule(self, statement: Statement, number: int, **values: Any) -> UpdateRecord:
        done = statement(
            self._active, of_number=number, published=False, wall=time.time(), **values
        )
        row = done.first()
        if row is None:
            raise LedgerError('ledger_unavailable', f'update {number} is not held any more')
        return update_of(row, self.graph_id)

    def held(self) -> list[UpdateRecord]:
        """Updates that wait, in order of receipt (after a restart)."""
        return self._updates_where(updates_table.c.state == HELD)

    def unpublished_updates(self) -> list[UpdateRecord]:
        """Updates that were released or rejected and not yet published, in order of rulings."""
        found = self._updates_where(sa.not_(updates_table.c.published))
        return sorted(found, key=lambda r: (r.state != RELEASED, r.update.revision, r.number))

    def _updates_where(self, condition: Any) -> list[UpdateRecord]:
        query = sa.select(updates_table).where(condition).order_by(updates_table.c.number)
        with self._reading() as connection:
            return [update_of(row, self.graph_id) for row in connection.execute(query)]

    def wall_now(self) -> float:
        """Seconds of the clock that :attr:`Segment.accepted` was read from."""
        return time.time()

    def _read_clock(self, connection: sa.Connection) -> None:
        query = sa.select(segments_table.c.era, sa.func.max(segments_table.c.receipt))
        newest = query.group_by(segments_table.c.era).order_by(segments_table.c.era.desc())
        found = connection.execute(newest.limit(1)).first()
        self.last_clock: tuple[int, int] = (0, 0) if found is None else (found[0], found[1])

    def _recall(self, connection: sa.Connection) -> None:
        """Read how far the counters have come; after a failed transaction they may be ahead."""
        self._next_order = _next(connection, segments_table.c.order)
        self._next_number = _next(connection, updates_table.c.number)
        self._next_revision = _next(connection, updates_table.c.revision)


_rowid: Any = sa.literal_column('interruptions.rowid')


def _in_state(states: Iterable[SegmentState]) -> Any:
    return sa.or_(*(segments_table.c.state == state.value for state in states))


_OF_SEGMENT = sa.and_(
    segments_table.c.run_id == sa.bindparam('of_run'),
    segments_table.c.number == sa.bindparam('of_number'),
)
_WAITS = sa.and_(_in_state(PENDING), segments_table.c.attempt == sa.bindparam('of_attempt'))
"""Whether a row has no outcome of that attempt yet."""
_OPEN_AGAIN = sa.and_(
    _in_state(OPEN_AGAIN), segments_table.c.attempt == sa.bindparam('of_attempt') - 1
)
"""Whether the attempt before that one left a row open."""
_ADD_SEGMENT = Statement(segments_table.insert())
_SET_STATE = Statement(
    segments_table.update().where(_OF_SEGMENT, sa.or_(_WAITS, _OPEN_AGAIN)),
    'state', 'attempt', 'evidence', 'evidence_digest', 'rules', 'starts', 'wall',
)  # fmt: skip
_DECIDE = Statement(
    segments_table.update().where(_OF_SEGMENT, _WAITS),
    'state', 'attempt', 'evidence', 'evidence_digest', 'outcome', 'published', 'wall',
)  # fmt: skip
_ADD_ATTEMPT = Statement(attempts_table.insert())
_MARK_OUTCOME = Statement(
    segments_table.update().where(
        _OF_SEGMENT, segments_table.c.attempt == sa.bindparam('of_attempt')
    ),
    'published',
)
_OF_UPDATE = updates_table.c.number == sa.bindparam('of_number')
_HOLD = Statement(updates_table.insert())
_FIND_UPDATE = Statement(
    sa.select(updates_table).where(
        updates_table.c.run_id == sa.bindparam('run_id'),
        updates_table.c.update_id == sa.bindparam('update_id'),
    )
)
_RULED = (
    updates_table.update()
    .where(_OF_UPDATE, updates_table.c.state == HELD)
    .returning(*updates_table.c)
)
_RELEASE = Statement(_RULED, 'state', 'published', 'wall', 'revision', 'stamp')
_REJECT = Statement(_RULED, 'state', 'published', 'wall', 'reason')
_MARK_UPDATE = Statement(updates_table.update().where(_OF_UPDATE), 'published')


def _next(connection: sa.Connection, column: sa.Column[Any]) -> int:
    return int(connection.execute(sa.select(sa.func.max(column))).scalar() or 0) + 1
