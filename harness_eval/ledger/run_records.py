"""Writing what becomes of runs and their segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
import json
import time
from typing import Any

import sqlalchemy as sa

from harness_eval.contract import LedgerError
from harness_eval.ledger.connection import LedgerFile
from harness_eval.ledger.statements import next_number, Statement
from harness_eval.ledger.tables import (
    attempts_table,
    interruptions_table,
    outcome_of_row,
    read_run,
    segment_of,
    segments_table,
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


class RunRecords(LedgerFile):
    """The runs of a ledger. Writes belong inside a transaction."""

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

    def seconds_since_event(self, run_id: str) -> float:
        """Wall-clock seconds since the run's last event; never negative."""
        query = sa.select(sa.func.max(segments_table.c.wall)).where(
            segments_table.c.run_id == run_id
        )
        with self._reading() as connection:
            last = connection.execute(query).scalar()
        return max(0.0, time.time() - last) if last is not None else 0.0

    def mark_outcomes_published(self, outcomes: Sequence[Outcome]) -> None:
        """Note, inside a transaction, which outcomes were published."""
        for outcome in outcomes:
            _MARK_OUTCOME(
                self._active,
                of_run=outcome.run_id,
                of_number=outcome.segment,
                of_attempt=outcome.attempt,
                published=True,
            )

    def _recall(self, connection: sa.Connection) -> None:
        super()._recall(connection)
        self._next_order = next_number(connection, segments_table.c.order)


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
