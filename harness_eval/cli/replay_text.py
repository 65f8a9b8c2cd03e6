"""The results of a replay as a table, and in a line."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from harness_eval.cli.screen import complain, plain, state_text
from harness_eval.contract import Status
from harness_eval.lines import clean_line
from harness_eval.replay.results import count_verdicts, Replayed, Result
from harness_eval.runs import Outcome

MOST_TOLD = 20
"""Skipped sources that are told one by one; a file of results has them all."""
_REASON = 300
"""Characters of a reason in the table."""
_ORDER = ('success', 'failure', 'process', 'abstained', 'error', 'interrupted')


def tell_skipped(judged: Replayed) -> None:
    """Say on the standard error what was skipped."""
    for one in judged.skipped[:MOST_TOLD]:
        complain(f'skipped {one.source}: {one.kind}: {one.message}')
    more = len(judged.skipped) - MOST_TOLD
    if more > 0:
        complain(f'and {more} more were skipped')


def results_table(results: Sequence[Result]) -> Table:
    """One row a segment; an outcome that is other than the one on record is marked."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ('tool', 'run', 'segment', 'outcome', 'recorded', 'truth', 'reason'):
        table.add_column(name, overflow='fold', justify='right' if name == 'segment' else 'left')
    for one in results:
        completion = one.completion
        table.add_row(
            plain(completion.tool, 80),
            plain(completion.run_id, 80),
            str(completion.segment),
            state_text(one.outcome.state.value),
            _recorded(one),
            _truth(one),
            plain(_reason(one.outcome), _REASON),
        )
    return table


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
    return state_text('SUCCESS' if one.truth.correct else 'FAILURE')


def _reason(outcome: Outcome) -> str:
    if outcome.verdict is None:
        return clean_line(f'{outcome.error_kind}: {outcome.message}')
    if outcome.verdict.failure_reason:
        return outcome.verdict.failure_reason
    return outcome.verdict.evidence[0] if outcome.verdict.evidence else ''


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
    known = [one for one in judged.results if one.truth is not None]
    if known:
        wrong = sum(_is_wrong(one) for one in known)
        said += f'; {wrong} of {len(known)} with a known truth wrong'
    return f'{said}; {len(judged.skipped)} skipped'


def _is_wrong(one: Result) -> bool:
    verdict = one.outcome.verdict
    if verdict is None or one.truth is None or verdict.status is Status.PROCESS:
        return False
    return (verdict.status is Status.SUCCESS) is not one.truth.correct
