"""Reading a ledger, while a node writes it or after."""

from __future__ import annotations

import sqlalchemy as sa

from harness_eval.contract import LedgerError
from harness_eval.ledger.tables import (
    attempts_table,
    base_name,
    BUSY_TIMEOUT_MS,
    check_version,
    engine_url,
    ledger_path,
    outcome_of_row,
    read_graph_id,
    read_run,
    RunRow,
    segment_of,
    segments_table,
    translated,
    update_of,
    UpdateRecord,
    updates_table,
)
from harness_eval.runs import Outcome, Run
from harness_eval.scene_graph import Update


class LedgerReader:
    """Reads a ledger; any number of these may look while one node writes.

    Args:
        url: SQLAlchemy URL, for example ``sqlite:////var/lib/robot/ledger.sqlite3``.

    Raises:
        LedgerError: ``ledger_missing``, ``ledger_unsupported`` or ``ledger_unavailable``.
    """

    def __init__(self, url: str) -> None:
        path = ledger_path(url)
        if path is None or not path.exists():
            raise LedgerError(
                'ledger_missing', f'there is no ledger {base_name(path)}; has the node run?'
            )
        self._engine = sa.create_engine(
            engine_url(path, mode='ro', uri='true'),
            connect_args={'timeout': BUSY_TIMEOUT_MS / 1000, 'check_same_thread': False},
            poolclass=sa.pool.StaticPool,
        )
        try:
            with translated('read'), self._engine.connect() as connection:
                check_version(connection)
        except LedgerError:
            self.close()
            raise

    def close(self) -> None:
        """Give the connection back."""
        self._engine.dispose()

    def graph_id(self) -> str:
        """Identity of the graph whose revisions are counted here."""
        with translated('read'), self._engine.connect() as connection:
            return read_graph_id(connection)

    def run(self, run_id: str) -> Run | None:
        """The run of that name, or None; also None if no more than its name is still kept."""
        with translated('read'), self._engine.connect() as connection:
            run = read_run(connection, run_id)
        return None if run is None or run.retired else run

    def attempts(self, run_id: str) -> list[Outcome]:
        """Every outcome of every segment of a run, in order of segments and attempts."""
        query = (
            sa.select(attempts_table.c.outcome)
            .where(attempts_table.c.run_id == run_id)
            .order_by(attempts_table.c.number, attempts_table.c.attempt)
        )
        with translated('read'), self._engine.connect() as connection:
            return [outcome_of_row(row) for row in connection.execute(query)]

    def latest(self, limit: int) -> list[RunRow]:
        """The newest segments, newest first."""
        query = sa.select(segments_table).order_by(segments_table.c.order.desc()).limit(limit)
        with translated('read'), self._engine.connect() as connection:
            return [RunRow(segment_of(row), row.wall) for row in connection.execute(query)]

    def updates_of(self, run_id: str) -> list[UpdateRecord]:
        """Every update that was proposed for a run, in order of receipt."""
        query = (
            sa.select(updates_table)
            .where(updates_table.c.run_id == run_id)
            .order_by(updates_table.c.number)
        )
        with translated('read'), self._engine.connect() as connection:
            graph = read_graph_id(connection)
            return [update_of(row, graph) for row in connection.execute(query)]

    def released(self, after: int, limit: int) -> tuple[str, int, list[Update]]:
        """Graph id, newest revision, and released updates after a revision, oldest first."""
        query = (
            sa.select(updates_table)
            .where(updates_table.c.revision > after)
            .order_by(updates_table.c.revision)
            .limit(limit)
        )
        newest = sa.select(sa.func.max(updates_table.c.revision))
        with translated('read'), self._engine.connect() as connection:
            graph = read_graph_id(connection)
            found = [update_of(row, graph).update for row in connection.execute(query)]
            return graph, connection.execute(newest).scalar() or 0, found
