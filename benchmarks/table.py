"""The one table that all benchmarks end in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.rows import Row

WIDTH = 170
"""Columns of the table when nobody's terminal says otherwise (a pipe, a log)."""


def print_table(rows: Sequence[Row], machine: Mapping[str, Any], *, quick: bool = False) -> None:
    """Print what was measured to standard output."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    console.print(table_of(rows, machine, quick=quick))


def table_of(rows: Sequence[Row], machine: Mapping[str, Any], *, quick: bool = False) -> Table:
    """The table of what was measured.

    Args:
        rows: What was measured.
        machine: On what.
        quick: Whether too little was measured for the figures to mean much.
    """
    where = ', '.join(f'{name} {value}' for name, value in machine.items() if value != '')
    title = 'quick, the figures mean little' if quick else 'harness_eval'
    table = Table(title=title, caption=where)
    table.add_column('what')
    table.add_column('unit')
    for header in ('value', 'least', 'p99 or most', 'n', 'rep.'):
        table.add_column(header, justify='right')
    table.add_column('compared with')
    for header in ('its value', 'ratio', 'target', 'met'):
        table.add_column(header, justify='right')
    for row in rows:
        table.add_row(
            row.name,
            row.unit,
            f'{_figure(row.value)} ({row.statistic})',
            _figure(row.low),
            _figure(row.high),
            str(row.samples),
            str(row.repetitions),
            row.reference_name,
            '' if row.reference is None else _figure(row.reference),
            '' if row.ratio is None else f'{row.ratio:.3g}',
            '' if row.target is None else str(row.target),
            {True: '[green]yes', False: '[red]no', None: ''}[row.met],
        )
    return table


def _figure(value: float) -> str:
    return f'{value:.3g}' if abs(value) < 1000 else f'{value:.0f}'
