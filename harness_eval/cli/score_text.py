"""The numbers of ``score`` for people: tables that fit 80 columns and need no colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from harness_eval.cli.screen import many, plain
from harness_eval.replay.scores import Number, Rate, RiskPoint, Scores, ToolScores

_NONE = '-'
_ALL = 'all'
_COVERAGES = (0.5, 0.8, 1.0)
"""Of the selective-risk curve, what is printed."""
_MILLISECONDS_BELOW = 1.0


def score_parts(scores: Scores) -> Iterator[RenderableType]:
    """The tables, and under them what is not defined and why."""
    rows = list(scores.per_tool.values())
    if len(rows) != 1:
        rows.append(scores.overall)
    overall = scores.overall
    yield f'{many(overall.results, "result")}, {overall.labelled} labelled, ' + (
        f'{overall.unlabelled} unlabelled'
        + (f' ({overall.circular} decided by their own oracle)' if overall.circular else '')
        + (f', {overall.interrupted} interrupted' if overall.interrupted else '')
    )
    yield from _titled('judged', _judged(rows))
    known = [row for row in rows if row.labelled]
    if known:
        yield from _titled('wrong verdicts, with 95 % intervals', _wrong(known))
        yield from _titled('truth and verdict', _confusion(known))
    scored = [row for row in rows if row.scored]
    if scored:
        yield from _titled('scores and truth', _scores(scored))
    title = 'time and cost of judging' if _tell_cost(rows) else 'time of judging'
    yield from _titled(title, _spent(rows))
    reasons = list(_reasons(rows))
    if reasons:
        yield from _titled('not defined', Text('\n'.join(reasons)))


def _titled(title: str, part: RenderableType) -> Iterator[RenderableType]:
    yield Text(f'\n{title}', style='bold')
    yield part


def _table(*headings: str, left: int = 1) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for place, heading in enumerate(headings):
        if place < left:
            table.add_column(heading, overflow='fold', min_width=6)
        else:
            table.add_column(heading, justify='right', no_wrap=True)
    return table


def _judged(rows: Sequence[ToolScores]) -> Table:
    table = _table('tool', 'results', 'labelled', 'decided', 'coverage', 'bal. acc.', 'kappa')
    for row in rows:
        table.add_row(
            _name(row),
            str(row.results),
            str(row.labelled),
            str(row.decided),
            _share(row.coverage.value),
            _number(row.balanced_accuracy),
            _number(row.kappa),
        )
    return table


def _wrong(rows: Sequence[ToolScores]) -> Table:
    table = _table('tool', 'false success', 'of success verd.', 'false failure')
    for row in rows:
        table.add_row(
            _name(row),
            _rate(row.false_success),
            _rate(row.false_success_of_verdicts),
            _rate(row.false_failure),
        )
    return table


def _confusion(rows: Sequence[ToolScores]) -> Table:
    columns = list(rows[0].confusion['success'])
    table = _table('tool', 'truth', *columns, left=2)
    for row in rows:
        name = _name(row)
        for truth, counts in row.confusion.items():
            table.add_row(name, truth, *(str(counts[column]) for column in columns))
            name = ''
    return table


def _scores(rows: Sequence[ToolScores]) -> Table:
    risks = [f'risk {share:.0%}' for share in _COVERAGES]
    table = _table('tool', 'scored', 'Brier', 'cal. err.', *risks, 'area')
    for row in rows:
        table.add_row(
            _name(row),
            str(row.scored),
            _number(row.brier),
            _number(row.calibration_error),
            *(_risk_at(row.risk, share) for share in _COVERAGES),
            _number(row.risk_area),
        )
    return table


def _spent(rows: Sequence[ToolScores]) -> Table:
    told = _tell_cost(rows)
    table = _table('tool', 'median', 'p95', 'timed', *(('cost', 'each', 'known') if told else ()))
    for row in rows:
        latency, cost = row.latency, row.cost
        cells = [_seconds(latency.median), _seconds(latency.p95)]
        cells.append(str(latency.measured + latency.recorded))
        if told:
            cells += [_money(cost.total), _money(cost.mean), f'{cost.known} of {cost.of}']
        table.add_row(_name(row), *cells)
    return table


def _tell_cost(rows: Sequence[ToolScores]) -> bool:
    """Whether any verdict tells its cost; most judges have none, and that needs no columns."""
    return any(row.cost.known for row in rows)


def _reasons(rows: Sequence[ToolScores]) -> Iterator[str]:
    """Each reason with the numbers and the tools that it concerns."""
    numbers: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        for what, number in _numbers(row):
            if number.value is None and (what != 'cost' or _tell_cost(rows)):
                numbers.setdefault((number.reason, _name(row)), []).append(what)
    tools: dict[tuple[str, str], list[str]] = {}
    for (reason, tool), names in numbers.items():
        tools.setdefault((', '.join(names), reason), []).append(tool)
    for (listed, reason), concerned in tools.items():
        whose = 'everywhere' if 1 < len(rows) == len(concerned) else ', '.join(concerned)
        yield f'{whose}: {listed}: {reason}'


def _numbers(row: ToolScores) -> Iterator[tuple[str, Number | Rate]]:
    yield 'coverage', row.coverage
    yield 'time', row.latency.median
    yield 'cost', row.cost.total
    if not row.labelled:
        yield 'everything that needs the truth', Number(None, 'nothing is labelled')
        return
    yield 'balanced accuracy', row.balanced_accuracy
    yield 'kappa', row.kappa
    yield 'false success', row.false_success
    yield 'false success of verdicts', row.false_success_of_verdicts
    yield 'false failure', row.false_failure
    yield 'Brier score', row.brier
    yield 'calibration error', row.calibration_error
    yield 'risk', row.risk_area


def _name(row: ToolScores) -> str:
    return plain(row.tool, 40) or _ALL


def _share(value: float | None) -> str:
    return _NONE if value is None else f'{value:.1%}'


def _number(number: Number) -> str:
    return _NONE if number.value is None else f'{number.value:.3f}'


def _rate(rate: Rate) -> str:
    if rate.value is None or rate.low is None or rate.high is None:
        return _NONE
    interval = f'[{100 * rate.low:.1f}, {100 * rate.high:.1f}]'
    return f'{rate.count}/{rate.of} {rate.value:.1%} {interval}'


def _risk_at(curve: Sequence[RiskPoint], share: float) -> str:
    """Risk when at least this share is accepted."""
    risk = next((point.risk for point in curve if point.coverage >= share), None)
    return _share(risk)


def _seconds(number: Number) -> str:
    if number.value is None:
        return _NONE
    if number.value < _MILLISECONDS_BELOW:
        return f'{1000 * number.value:.3g} ms'
    return f'{number.value:.3g} s'


def _money(number: Number) -> str:
    return _NONE if number.value is None else f'{number.value:.4g}'
