"""What the evaluation of a segment came to, from what it gave."""

from __future__ import annotations

import dataclasses

from harness_eval.contract import Abstention, EvaluationError, Status, Verdict
from harness_eval.lines import describe, printable
from harness_eval.runs.records import Completion, Outcome, OutcomeKind, Segment

MAX_REASON = 500
"""Most characters of a reason that comes from outside."""
SEGMENT_BUDGET = 'segment_budget'
"""Failure kind of a ``process`` that came with the last segment of a run."""
INTERNAL_ERROR = 'internal_error'
"""Kind of the error that a fault inside the package becomes."""


def settle_budget(verdict: Verdict, completion: Completion, max_segments: int) -> Verdict:
    """The verdict with the segment budget applied: ``process`` at the last one is a failure."""
    if verdict.status is not Status.PROCESS or completion.segment + 1 < max_segments:
        return verdict
    return dataclasses.replace(
        verdict,
        status=Status.FAILURE,
        failure_kind=SEGMENT_BUDGET,
        failure_reason=f'not done after {max_segments} segments, which is all it may take',
    )


def outcome_of(
    answer: Verdict | EvaluationError,
    segment: Segment,
    *,
    decided_at: int,
    max_segments: int,
    evaluator: str = '',
    input_digest: str = '',
    observed: tuple[int, int] = (0, 0),
) -> Outcome:
    """The outcome of a segment from what its evaluation gave.

    Args:
        answer: A verdict, an :class:`~harness_eval.contract.Abstention`, or any other error.
        segment: The segment that was evaluated.
        decided_at: Nanoseconds on the ROS clock.
        max_segments: Segment budget of a run.
        evaluator: Reference of the evaluator that was asked.
        input_digest: Digest of what it was given.
        observed: Earliest and latest stamp of the observation.
    """
    base = Outcome(
        run_id=segment.completion.run_id,
        tool=segment.completion.tool,
        segment=segment.completion.segment,
        attempt=segment.attempt,
        kind=OutcomeKind.ERROR,
        decided_at=decided_at,
        evaluator=evaluator,
        input_digest=input_digest,
        completed_at=segment.t_end,
        observed_from=observed[0],
        observed_to=observed[1],
    )
    if isinstance(answer, Verdict):
        verdict = settle_budget(answer, segment.completion, max_segments)
        return dataclasses.replace(base, kind=OutcomeKind.VERDICT, verdict=verdict)
    return dataclasses.replace(
        base,
        kind=OutcomeKind.ABSTAINED if isinstance(answer, Abstention) else OutcomeKind.ERROR,
        error_kind=answer.kind,
        message=answer.message,
        evaluator=answer.evaluator or evaluator,
        retryable=answer.retryable,
        score=answer.score if isinstance(answer, Abstention) else None,
    )


def internal_error(error: BaseException) -> EvaluationError:
    """What an exception that nobody expected comes to: an error of the run at hand alone."""
    return EvaluationError(
        INTERNAL_ERROR,
        describe(error) + '; this is a fault of harness_eval, see the log of the node',
        retryable=True,
    )


def interruption(segment: Segment, reason: str, decided_at: int) -> Outcome:
    """The outcome of a segment whose evaluation somebody stopped."""
    return Outcome(
        run_id=segment.completion.run_id,
        tool=segment.completion.tool,
        segment=segment.completion.segment,
        attempt=segment.attempt,
        kind=OutcomeKind.INTERRUPTED,
        decided_at=decided_at,
        message=printable(reason, MAX_REASON) or 'interrupted',
        completed_at=segment.t_end,
    )
