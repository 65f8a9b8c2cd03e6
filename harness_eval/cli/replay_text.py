"""The results of a replay as a table, and in a line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from harness_eval.cli.reasoned_rows import ReasonedRows
from harness_eval.cli.screen import complain, plain, state_text
from harness_eval.lines import clean_line
from harness_eval.replay.agreement import agrees
from harness_eval.replay.results import count_verdicts, Replayed, Result

MOST_TOLD = 20
"""Skipped sources that are told one by one; a file of results has them all."""
_ORDER = ('success', 'failure', 'process', 'abstained', 'error', 'interrupted')


def tell_skipped(judged: Replayed) -> None:
    """Say on the standard error what was skipped."""
    for one in judged.skipped[:MOST_TOLD]:
        message = one.message.removeprefix(f'{one.source}: ')
        complain(f'skipped {one.source}: {one.kind}: {message}')
    more = len(judged.skipped) - MOST_TOLD
    if more > 0:
        complain(f'and {more} more were skipped')


def results_rows(results: Sequence[Result]) -> ReasonedRows:
    """One row a segment; what is other than recorded, or against the truth, is marked.

    What nothing is known of has no column.
    """
    recorded = any(one.recorded is not None for one in results)
    truth = any(one.truth is not None for one in results)
    names = ['tool', 'run', 'segment', 'outcome']
    names += ['recorded'] * recorded + ['truth'] * truth
    return ReasonedRows(
        names,
        (
            (
                [
                    Text(plain(one.completion.tool, 80)),
                    Text(plain(one.completion.run_id, 80)),
                    Text(str(one.completion.segment)),
                    state_text(one.outcome.state.value),
                    *([_recorded(one)] * recorded),
                    *([_truth(one)] * truth),
                ],
                _reason(one),
            )
            for one in results
        ),
    )


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
    if known:
        wrong = sum(_is_wrong(one) for one in known)
        said += f'; {wrong} of {len(known)} verdicts with a known truth wrong'
    return f'{said}; {len(judged.skipped)} skipped'


def _is_wrong(one: Result) -> bool:
    return agrees(one, one.truth) is False
