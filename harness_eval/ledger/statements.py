"""Statements of the hot path, built and compiled once.

A run takes some fifteen statements. SQLAlchemy builds, caches and looks up an expression anew for
each, which costs about ten times what SQLite takes to execute it.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite


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

    def __call__(self, connection: sa.Connection, **values: Any) -> sa.CursorResult[Any]:
        """Execute it.

        Raises:
            KeyError: A parameter is missing.
        """
        given = {**self._fixed, **values}
        return connection.exec_driver_sql(self._text, tuple(given[n] for n in self._names))


def next_number(connection: sa.Connection, column: sa.Column[Any]) -> int:
    """The number after the highest in a column."""
    return int(connection.execute(sa.select(sa.func.max(column))).scalar() or 0) + 1
