"""The results of a replay as a table, and in a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions
from rich.text import Text

from harness_eval.cli.screen import complain, plain, state_text
from harness_eval.lines import clean_line, printable
from harness_eval.replay.comparison import agrees
from harness_eval.replay.results import count_verdicts, Replayed, Result

MOST_TOLD = 20
"""Skipped sources that are told one by one; a file of results has them all."""
_REASON = 120
"""Most characters of a reason beside a row; a file of results and a page have all of it."""
_ROOM = 60
"""Columns that a reason takes to stand beside its row."""
_LINES = 3
"""Lines of a reason beneath its row."""
_LEAST = 20
"""Columns of such a line, however narrow the terminal."""
_GAP = '  '
_INDENT = '    '
_ORDER = ('success', 'failure', 'process', 'abstained', 'error', 'interrupted')


def tell_skipped(judged: Replayed) -> None:
    """Say on the standard error what was skipped."""
    for one in judged.skipped[:MOST_TOLD]:
        message = one.message.removeprefix(f'{one.source}: ')
        complain(f'skipped {one.source}: {one.kind}: {message}')
    more = len(judged.skipped) - MOST_TOLD
    if more > 0:
        complain(f'and {more} more were skipped')


class ResultsTable:
    """One row a segment; what is other than recorded, or against the truth, is marked.

    The reason stands beside where there is room (always in a pipe: a row is a line there), else
    in lines of its own beneath. What nothing is known of has no column.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        recorded = any(one.recorded is not None for one in results)
        truth = any(one.truth is not None for one in results)
        names = ['tool', 'run', 'segment', 'outcome']
        names += ['recorded'] * recorded + ['truth'] * truth
        self._right = names.index('segment')
        self._rows = [[Text(name, style='bold') for name in names]]
        self._reasons = ['reason', *(plain(_reason(one)) for one in results)]
        for one in results:
            cells = [Text(plain(one.completion.tool, 80)), Text(plain(one.completion.run_id, 80))]
            cells.append(Text(str(one.completion.segment)))
            cells.append(state_text(one.outcome.state.value))
            self._rows.append(cells + [_recorded(one)] * recorded + [_truth(one)] * truth)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Lay the rows out for a width."""
        widths = [
            max(cell.cell_len for cell in column) for column in zip(*self._rows, strict=True)
        ]
        room = options.max_width - sum(widths) - len(_GAP) * len(widths)
        beside = room >= _ROOM
        for number, (cells, reason) in enumerate(zip(self._rows, self._reasons, strict=True)):
            line = Text(no_wrap=True, overflow='ignore')
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
                cell.align('right' if place == self._right else 'left', width)
                line.append_text(cell).append(_GAP)
            if beside:
                line.append(printable(reason, min(room, _REASON)), cells[0].style)
            line.rstrip()
            yield line
            if reason and not beside and number > 0:
                yield from _beneath(console, reason, options.max_width)
        yield Text()


def _beneath(console: Console, reason: str, width: int) -> Iterator[Text]:
    width = max(width - len(_INDENT), _LEAST)
    lines = Text(reason, style='dim').wrap(console, width)
    if len(lines) > _LINES:
        lines[_LINES - 1].truncate(width - 1)
        lines[_LINES - 1].append('…')
    for line in lines[:_LINES]:
        yield Text(_INDENT, no_wrap=True, overflow='ignore').append_text(line)


def _recorded(one: Result) -> Text:
    if one.recorded is None:
        return Text('-', style='dim')
    state = state_text(one.recorded.state.value)
    return Text.assemble(state, (' differs', 'bold')) if differs(one) else state


def differs(one: Result) -> bool:
    """Whether a result is another than what is on record of its segment."""
    known = one.recorded
    return known is not None and known.label != one.outcome.label


def _truth(one: Result) -> Text:
    if one.truth is None:
        return Text('-', style='dim')
    truth = state_text('SUCCESS' if one.truth.correct else 'FAILURE')
    return Text.assemble(truth, (' wrong', 'bold')) if _is_wrong(one) else truth


def _reason(one: Result) -> str:
    """Why it came to this; a success has no reason, but the truth may know better."""
    verdict = one.outcome.verdict
    if verdict is None:
        return clean_line(f'{one.outcome.error_kind}: {one.outcome.message}')
    if verdict.failure_reason:
        return verdict.failure_reason
    if one.truth is not None and one.truth.note and _is_wrong(one):
        return clean_line(f'{one.truth.source}: {one.truth.note}')
    return ''


def summary(judged: Replayed) -> str:
    """Everything in a line."""
    counts = count_verdicts(judged.results)
    parts = [f'{counts[name]} {name}' for name in _ORDER if counts.get(name)]
    said = f'{len(judged.results)} judged'
    if parts:
        said += f': {", ".join(parts)}'
    changed = sum(differs(one) for one in judged.results)
    if any(one.recorded is not None for one in judged.results):
        said += f'; {changed} other than recorded'
    known = [one for one in judged.results if agrees(one, one.truth) is not None]
    if known or any(one.truth is not None for one in judged.results):
        wrong = sum(_is_wrong(one) for one in known)
        said += f'; {wrong} of {len(known)} verdicts with a known truth wrong'
    return f'{said}; {len(judged.skipped)} skipped'


def _is_wrong(one: Result) -> bool:
    return agrees(one, one.truth) is False
