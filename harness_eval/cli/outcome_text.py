"""An outcome for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import RenderableType

from harness_eval.cli.exit_codes import code_of_state
from harness_eval.cli.screen import plain, state_text
from harness_eval.lines import show
from harness_eval.runs import Outcome, OutcomeKind
from harness_eval.times import seconds


def interruption_without_outcome(run_id: str, tool: str, segment: int) -> Outcome:
    """What an interrupted run comes to where no completion was left to have an outcome."""
    return Outcome(
        run_id=run_id,
        tool=tool,
        segment=segment,
        attempt=0,
        kind=OutcomeKind.INTERRUPTED,
        decided_at=0,
        message='the run was interrupted; no further completion of it is taken',
    )


def outcome_rows(outcome: Outcome) -> Iterator[tuple[str, RenderableType]]:
    """What an outcome says, as names and values."""
    verdict = outcome.verdict
    if verdict is None:
        if outcome.error_kind:
            again = ' (may be judged again)' if outcome.retryable else ''
            yield 'kind', plain(outcome.error_kind + again)
        if outcome.message:
            yield 'message', plain(outcome.message)
    else:
        if verdict.failure_reason:
            yield 'reason', plain(verdict.failure_reason)
            yield 'kind', plain(verdict.failure_kind)
        for line in verdict.evidence:
            yield 'evidence', plain(line)
        if verdict.score is not None:
            yield 'score', show(verdict.score)
    if outcome.evaluator:
        route = '' if verdict is None or not verdict.route else f' through {verdict.route}'
        yield 'evaluator', plain(outcome.evaluator + route)
    stamps = ', '.join(_stamps(outcome))
    if stamps:
        yield 'after end', stamps
    if outcome.input_digest:
        yield 'digest', plain(outcome.input_digest)


def outcome_heading(outcome: Outcome) -> Iterator[tuple[str, RenderableType]]:
    """What an outcome is about, as names and values."""
    yield 'state', state_text(outcome.state.value)
    yield 'run', plain(outcome.run_id)
    if outcome.tool:
        yield 'tool', plain(outcome.tool)
    attempt = f', attempt {outcome.attempt}' if outcome.attempt > 1 else ''
    yield 'segment', f'{outcome.segment}{attempt}'


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """An outcome as plain data; see ``docs/cli.md``. Stamps are seconds since the epoch."""
    verdict = outcome.verdict
    return {
        'run_id': outcome.run_id,
        'tool': outcome.tool,
        'segment': outcome.segment,
        'attempt': outcome.attempt,
        'state': outcome.state.value,
        'exit_code': code_of_state(outcome.state.value),
        'evidence': [] if verdict is None else list(verdict.evidence),
        'failure_reason': '' if verdict is None else verdict.failure_reason,
        'failure_kind': '' if verdict is None else verdict.failure_kind,
        'score': None if verdict is None else verdict.score,
        'report': None if verdict is None or verdict.report is None else dict(verdict.report),
        'route': '' if verdict is None else verdict.route,
        'cost': None if verdict is None else verdict.cost,
        'error_kind': outcome.error_kind,
        'message': outcome.message,
        'retryable': outcome.retryable,
        'evaluator': outcome.evaluator,
        'input_digest': outcome.input_digest,
        'completed_at': seconds_or_none(outcome.completed_at),
        'observed_from': seconds_or_none(outcome.observed_from),
        'observed_to': seconds_or_none(outcome.observed_to),
        'decided_at': seconds_or_none(outcome.decided_at),
    }


def seconds_or_none(nanoseconds: int) -> float | None:
    """A stamp in seconds; None for the 0 that says there is none."""
    return seconds(nanoseconds) if nanoseconds else None


def _stamps(outcome: Outcome) -> Iterator[str]:
    """When it was observed and decided, in seconds after the end of the execution."""
    end = outcome.completed_at
    if not end:
        return
    if outcome.observed_from:
        first = seconds(outcome.observed_from - end)
        last = seconds(outcome.observed_to - end)
        yield f'observed {first:.3f} to {last:.3f} s'
    if outcome.decided_at:
        yield f'decided {seconds(outcome.decided_at - end):.3f} s'
