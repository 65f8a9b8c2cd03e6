"""A comparison for people: the decision and why, the gain by tool, and what got worse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness_eval.cli.reasoned_rows import ReasonedRows
from harness_eval.cli.screen import fields, many, plain
from harness_eval.replay.comparison import Comparison, Pair, said
from harness_eval.replay.report.tables import gain_table
from harness_eval.replay.report.tables import Table as Cells

MOST_LISTED = 50
"""Segments that are listed on the screen; --json and --html have them all."""

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
        yield from (Text(), _table(gains), Text())
    for title, pairs in (('got worse', found.regressions), ('put right', found.corrections)):
        if pairs:
            yield from _listed(title, pairs)


def _table(cells: Cells) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in cells.head:
        if name == cells.head[0]:
            table.add_column(name, overflow='fold', min_width=6)
        else:
            table.add_column(name, justify='right', no_wrap=True)
    for row in cells.cells:
        table.add_row(*(plain(cell.text) for cell in row))
    return table


def _listed(title: str, pairs: Sequence[Pair]) -> Iterator[RenderableType]:
    yield Text(f'{title}: {many(len(pairs), "segment")}', style='bold')
    yield ReasonedRows(
        ('tool', 'run', 'segment', 'really', 'base', 'candidate'),
        ((_cells(pair), _why(pair)) for pair in pairs[:MOST_LISTED]),
    )
    if len(pairs) > MOST_LISTED:
        yield Text(f'and {len(pairs) - MOST_LISTED} more, see --json or --html')


def _cells(pair: Pair) -> list[Text]:
    completion = pair.candidate.completion
    truth = 'success' if pair.truth is not None and pair.truth.correct else 'failure'
    sides = (pair.base.outcome.label, pair.candidate.outcome.label)
    said_of_it = (completion.tool, completion.run_id, str(completion.segment), truth, *sides)
    return [Text(plain(one, 80)) for one in said_of_it]


def _why(pair: Pair) -> str:
    """Why the candidate's verdict is what it is; a success has no reason, its base may have."""
    if said(pair.candidate):
        return said(pair.candidate)
    return f'base: {said(pair.base)}' if said(pair.base) else ''
