"""Writing what becomes of proposed updates of the scene graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
import time
from typing import Any

import sqlalchemy as sa

from harness_eval.contract import LedgerError
from harness_eval.ledger.connection import LedgerFile
from harness_eval.ledger.statements import next_number, Statement
from harness_eval.ledger.tables import (
    HELD,
    REJECTED,
    RELEASED,
    update_of,
    UpdateRecord,
    updates_table,
)
from harness_eval.scene_graph import ops_to_json, Update


class UpdateRecords(LedgerFile):
    """The proposed updates of a ledger. Writes belong inside a transaction."""

    def find_update(self, run_id: str, update_id: str) -> UpdateRecord | None:
        """The update of that name, or None."""
        with self._reading() as connection:
            row = _FIND_UPDATE(connection, run_id=run_id, update_id=update_id).first
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

    def release(self, held: UpdateRecord, stamp: int) -> UpdateRecord:
        """Release a held update under the next revision, inside a transaction.

        Args:
            held: The update, as it was held.
            stamp: Nanoseconds for its header.

        Raises:
            LedgerError: On record it is not held any more.
        """
        revision = self._next_revision
        wall = self._rule(_RELEASE, held.number, state=RELEASED, revision=revision, stamp=stamp)
        self._next_revision += 1
        update = replace(held.update, graph_id=self.graph_id, revision=revision, stamp=stamp)
        return replace(held, update=update, state=RELEASED, wall=wall)

    def reject(self, held: UpdateRecord, reason: str) -> UpdateRecord:
        """Reject a held update for good, inside a transaction.

        Raises:
            LedgerError: On record it is not held any more.
        """
        wall = self._rule(_REJECT, held.number, state=REJECTED, reason=reason)
        return replace(held, state=REJECTED, reason=reason, wall=wall)

    def _rule(self, statement: Statement, number: int, **values: Any) -> float:
        wall = time.time()
        done = statement(self._active, of_number=number, published=False, wall=wall, **values)
        if done.rowcount != 1:
            raise LedgerError('ledger_unavailable', f'update {number} is not held any more')
        return wall

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

    def mark_updates_published(self, updates: Sequence[UpdateRecord]) -> None:
        """Note, inside a transaction, which released and rejected updates were published."""
        for record in updates:
            _MARK_UPDATE(self._active, of_number=record.number, published=True)

    def _recall(self, connection: sa.Connection) -> None:
        super()._recall(connection)
        self._next_number = next_number(connection, updates_table.c.number)
        self._next_revision = next_number(connection, updates_table.c.revision)


_OF_UPDATE = updates_table.c.number == sa.bindparam('of_number')
_HOLD = Statement(updates_table.insert())
_FIND_UPDATE = Statement(
    sa.select(updates_table).where(
        updates_table.c.run_id == sa.bindparam('run_id'),
        updates_table.c.update_id == sa.bindparam('update_id'),
    )
)
_RULED = updates_table.update().where(_OF_UPDATE, updates_table.c.state == HELD)
_RELEASE = Statement(_RULED, 'state', 'published', 'wall', 'revision', 'stamp')
_REJECT = Statement(_RULED, 'state', 'published', 'wall', 'reason')
_MARK_UPDATE = Statement(updates_table.update().where(_OF_UPDATE), 'published')
