"""Writing a ledger: one process, one thread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from harness_eval.contract import LedgerError
from harness_eval.ledger.run_records import RunRecords
from harness_eval.ledger.tables import (
    attempts_table,
    HELD,
    interruptions_table,
    REJECTED,
    RELEASED,
    retired_table,
    segments_table,
    UpdateRecord,
    updates_table,
)
from harness_eval.ledger.update_records import UpdateRecords
from harness_eval.runs import (
    Outcome,
    PENDING,
)

KEEP_SEGMENTS = 20_000
"""How many of the newest segments are kept whole; some 5 KB each with their outcome."""
KEEP_REJECTED = 20_000
"""Rejections older than so many updates are forgotten."""
KEEP_TOMBSTONES = 20_000
"""Interruptions of runs that never ended are forgotten after so many newer ones."""
RETIRE_AT_ONCE = 200
"""Most segments that one :meth:`Ledger.retire` looks at, so that it takes milliseconds."""


class Ledger(RunRecords, UpdateRecords):
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

    def mark_published(self, outcomes: Sequence[Outcome], updates: Sequence[UpdateRecord]) -> None:
        """Note, inside a transaction, what was published."""
        self.mark_outcomes_published(outcomes)
        self.mark_updates_published(updates)

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

    def _read_clock(self, connection: sa.Connection) -> None:
        query = sa.select(segments_table.c.era, sa.func.max(segments_table.c.receipt))
        newest = query.group_by(segments_table.c.era).order_by(segments_table.c.era.desc())
        found = connection.execute(newest.limit(1)).first()
        self.last_clock: tuple[int, int] = (0, 0) if found is None else (found[0], found[1])


_rowid: Any = sa.literal_column('interruptions.rowid')
