"""Statements of the hot path, built and compiled once.

A run takes some fifteen statements. SQLAlchemy builds, caches and looks up an expression anew for
each, which costs about ten times what SQLite takes to execute it. So these are executed by the
driver, on the ledger's one connection and within its transaction.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite


class Executed(NamedTuple):
    """What a statement came to.

    Attributes:
        rows: Its rows, with a field for each column.
        rowcount: How many rows it changed; -1: it changes none.
    """

    rows: list[Any]
    rowcount: int

    @property
    def first(self) -> Any:
        """The first row; None if there is none."""
        return self.rows[0] if self.rows else None


class Statement:
    """A statement with named parameters, as text that SQLite executes as it stands.

    Result rows hold what SQLite gives: a Boolean column reads as 0 or 1.

    Args:
        clause: The expression; ``sa.bindparam(name)`` stands for what each execution gives.
        columns: The columns that an insert or update sets, each from the parameter of its name;
            none: all.
    """

    def __init__(self, clause: Any, *columns: str) -> None:
        """Compile it."""
        compiled = clause.compile(dialect=sqlite.dialect(), column_keys=columns or None)
        self._text = str(compiled)
        self._names: tuple[str, ...] = tuple(compiled.positiontup)
        self._fixed = {
            name: compiled.binds[name].value
            for name in self._names
            if not compiled.binds[name].required
        }
        self._row: Any = None  # the type of its rows

    def __call__(self, connection: sa.Connection, **values: Any) -> Executed:
        """Execute it.

        Raises:
            KeyError: A parameter is missing.
            sqlite3.Error: It cannot be executed.
        """
        given = {**self._fixed, **values}
        cursor = connection.connection.cursor()
        try:
            cursor.execute(self._text, tuple(given[name] for name in self._names))
            if cursor.description is None:
                return Executed([], cursor.rowcount)
            if self._row is None:
                names = [column[0] for column in cursor.description]
                self._row = namedtuple('Row', names)  # type: ignore[misc]
            rows = [self._row._make(row) for row in cursor.fetchall()]
            return Executed(rows, cursor.rowcount)
        finally:
            cursor.close()


def next_number(connection: sa.Connection, column: sa.Column[Any]) -> int:
    """The number after the highest in a column."""
    return int(connection.execute(sa.select(sa.func.max(column))).scalar() or 0) + 1
