"""A comparison for people: the decision and why, the gain by tool, and what got worse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness_eval.cli.screen import fields, many, plain
from harness_eval.replay.comparison import Comparison, Pair, said
from harness_eval.replay.report.tables import gain_table
from harness_eval.replay.report.tables import Table as Cells

MOST_LISTED = 50
"""Segments that are listed on the screen; --json and --html have them all."""

_REASON = 100
_STYLES = {'promote': 'bold green', 'hold': 'bold yellow', 'reject': 'bold red'}


def comparison_parts(found: Comparison) -> Iterator[RenderableType]:
    """What is printed of a comparison."""
    gains = gain_table(found)
    yield fields(
        [
            ('decision', Text(found.decision.value, style=_STYLES[found.decision.value])),
            ('base', plain(found.base)),
            ('candidate', plain(found.candidate)),
            *(('reason', plain(reason)) for reason in found.reasons),
            *(('note', plain(note)) for note in found.notes),
            ('how', plain(gains.note)),
        ]
    )
    if found.pairs:
        yield _table(gains)
    for title, pairs in (('got worse', found.regressions), ('put right', found.corrections)):
        if pairs:
            yield from _listed(title, pairs)


def _table(cells: Cells) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in cells.head:
        table.add_column(name, justify='left' if name == cells.head[0] else 'right')
    for row in cells.cells:
        table.add_row(*(plain(cell.text) for cell in row))
    return table


def _listed(title: str, pairs: Sequence[Pair]) -> Iterator[RenderableType]:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ('tool', 'run', 'segment', 'really', 'base', 'candidate', 'reason'):
        table.add_column(name, overflow='fold', justify='right' if name == 'segment' else 'left')
    for pair in pairs[:MOST_LISTED]:
        completion = pair.candidate.completion
        table.add_row(
            plain(completion.tool, 80),
            plain(completion.run_id, 80),
            str(completion.segment),
            'success' if pair.truth is not None and pair.truth.correct else 'failure',
            plain(pair.base.outcome.label, 80),
            plain(pair.candidate.outcome.label, 80),
            plain(_why(pair), _REASON),
        )
    yield Text(f'{title}: {many(len(pairs), "segment")}', style='bold')
    yield table
    if len(pairs) > MOST_LISTED:
        yield Text(f'and {len(pairs) - MOST_LISTED} more, see --json or --html')


def _why(pair: Pair) -> str:
    """Why the candidate's verdict is what it is; a success has no reason, its base may have."""
    if said(pair.candidate):
        return said(pair.candidate)
    return f'base: {said(pair.base)}' if said(pair.base) else ''
