"""The numbers as tables of texts. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness_eval.replay.comparison import Comparison, differences, mean_gain
from harness_eval.replay.report.entries import safe
from harness_eval.replay.scores import Number, Rate, Scores, ToolScores

NONE = '\N{EN DASH}'
"""What stands where there is no number."""


@dataclass(frozen=True)
class Cell:
    """One cell.

    Attributes:
        text: The value.
        small: What belongs to it: an interval, a number of cases.
        title: Why there is no value.
    """

    text: str
    small: str = ''
    title: str = ''


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: What it tells.
        head: Names of the columns; the first names the rows.
        cells: The rows.
        note: How to read it.
    """

    title: str
    head: Sequence[str]
    cells: Sequence[Sequence[Cell]]
    note: str = ''

    @property
    def rows(self) -> list[list[tuple[str, Cell]]]:
        """Each cell beside the name of its column, which a narrow screen shows in front of it."""
        return [list(zip(self.head, row, strict=True)) for row in self.cells]


def score_table(scores: Scores, title: str) -> Table:
    """How well the judges judge.

    Args:
        scores: The numbers.
        title: Heading of the table.
    """
    rows = list(scores.per_tool.values())
    if len(rows) != 1:
        rows = [scores.overall, *rows]
    head: tuple[str, ...] = (
        'tool',
        'segments',
        'labelled',
        'balanced accuracy',
        'false success',
        'false failure',
        'kappa',
        'coverage',
        'Brier score',
        'calibration error',
        'risk area',
        'cost',
        'seconds',
    )
    cells = [_scored(one) for one in rows]
    if all(one.cost.total.value is None for one in rows):
        place = head.index('cost')
        head = (*head[:place], *head[place + 1 :])
        cells = [[*row[:place], *row[place + 1 :]] for row in cells]
    note = (
        'False success: of the runs that really failed, the share called a success. Coverage: the '
        'share with a verdict. In brackets 95 % intervals (Wilson). Errors and abstentions are in '
        'no rate. Seconds: the median, and what 95 % took at most.'
    )
    return Table(title, head, cells, note)


def gain_table(comparison: Comparison) -> Table:
    """What the candidate gains, by tool."""
    head = ('tool', 'segments', 'compared', 'mean gain', 'put right', 'got worse', 'changed')
    rows = []
    tools = comparison.by_tool()
    groups = {**({'all': comparison.pairs} if len(tools) != 1 else {}), **tools}
    for tool, pairs in groups.items():
        compared = len(differences(pairs))
        gain = f'{mean_gain(pairs):+.3f}' if compared else NONE
        rows.append(
            [
                Cell(safe(tool, 100)),
                Cell(str(len(pairs))),
                Cell(str(compared)),
                Cell(gain, title='' if compared else 'nothing is known of these segments'),
                Cell(str(sum(pair.correction for pair in pairs))),
                Cell(str(sum(pair.regression for pair in pairs))),
                Cell(str(sum(pair.changed for pair in pairs))),
            ]
        )
    counts = comparison.by_metric().items()
    by_metric = ', '.join(f'{count} by {name}' for name, count in counts if count)
    test = comparison.test
    differ = f'{test.differing} segments that differ'
    if test.differing == 1:
        differ = '1 segment that differs'
    chance = (
        f' Test: {test.method}, p = {test.better:.2g} for better, {test.worse:.2g} for worse, '
        f'from {differ}.'
        if test.method
        else ' No segment differs.'
    )
    unpaired = len(comparison.unpaired)
    alone = f' {unpaired} segments are in one replay alone.' if unpaired else ''
    return Table(
        'Gain of the candidate', head, rows, f'Compared {by_metric or "nothing"}.{chance}{alone}'
    )


def _scored(one: ToolScores) -> list[Cell]:
    return [
        Cell(safe(one.tool, 100) or 'all'),
        Cell(str(one.results)),
        Cell(str(one.labelled)),
        _number(one.balanced_accuracy),
        _rate(one.false_success),
        _rate(one.false_failure),
        _number(one.kappa),
        _rate(one.coverage),
        _number(one.brier),
        _number(one.calibration_error),
        _number(one.risk_area),
        _number(one.cost.total, f'{one.cost.known} known'),
        _number(
            one.latency.median,
            '' if one.latency.p95.value is None else f'95 %: {one.latency.p95.value:.3f}',
        ),
    ]


def _number(number: Number, small: str = '') -> Cell:
    if number.value is None:
        return Cell(NONE, title=safe(number.reason))
    return Cell(f'{number.value:.3f}', small)


def _rate(rate: Rate) -> Cell:
    if rate.value is None or rate.low is None or rate.high is None:
        return Cell(NONE, title=safe(rate.reason))
    return Cell(
        f'{100 * rate.value:.1f} %',
        f'[{100 * rate.low:.1f}, {100 * rate.high:.1f}] of {rate.of}',
    )
