"""How a run ends for an agent: the outcome of a success, or an exception for everything else."""

from __future__ import annotations

from harness_eval.contract import HarnessEvalError, Status
from harness_eval.runs import Outcome, OutcomeKind


class RunNotSuccessfulError(HarnessEvalError):
    """A run did not end in success.

    Attributes:
        run_id: The run.
        outcome: What the evaluation came to; None if there was none in time.
        reason: Why, for a person.
        evidence: What was seen, one line each.
    """

    def __init__(self, run_id: str, reason: str, outcome: Outcome | None = None) -> None:
        """Say why, and keep the outcome."""
        super().__init__(f'run {run_id!r}: {reason}')
        self.run_id = run_id
        self.reason = reason
        self.outcome = outcome
        verdict = None if outcome is None else outcome.verdict
        self.evidence: tuple[str, ...] = () if verdict is None else verdict.evidence


class RunFailed(RunNotSuccessfulError):
    """The evaluator looked, and the post-condition does not hold.

    Attributes:
        failure_kind: ``post_condition``, ``segment_budget``, ``stalled`` or one of the tool's
            own kinds of failure, by which an agent chooses how to recover.
    """

    def __init__(self, run_id: str, reason: str, outcome: Outcome) -> None:
        """Take the kind of failure from the verdict."""
        super().__init__(run_id, reason, outcome)
        self.failure_kind = '' if outcome.verdict is None else outcome.verdict.failure_kind


class RunError(RunNotSuccessfulError):
    """The evaluation could not be done; nothing is known of the world.

    Attributes:
        error_kind: Machine-readable kind, for example ``clock_skew``.
        retryable: Whether judging the same evidence again may give an answer.
    """

    def __init__(self, run_id: str, reason: str, outcome: Outcome) -> None:
        """Take the kind of error from the outcome."""
        super().__init__(run_id, reason, outcome)
        self.error_kind = outcome.error_kind
        self.retryable = outcome.retryable


class RunAbstained(RunNotSuccessfulError):
    """The evaluator looked and has no answer, for example because a view is covered."""


class RunInterrupted(RunNotSuccessfulError):
    """Somebody stopped the evaluation."""


class NoOutcome(RunNotSuccessfulError):
    """No outcome came in time; it may still come, and is on record then."""


def successful(outcome: Outcome) -> Outcome:
    """The outcome if its verdict is ``success``.

    Raises:
        RunNotSuccessfulError: Any other outcome, as the exception of its kind.
    """
    verdict = outcome.verdict
    if verdict is not None and verdict.status is Status.SUCCESS:
        return outcome
    if verdict is not None:
        reason = verdict.failure_reason or 'not done yet'
        raise RunFailed(outcome.run_id, reason, outcome)
    if outcome.kind is OutcomeKind.ABSTAINED:
        reason = f'{outcome.error_kind}: {outcome.message}'
        raise RunAbstained(outcome.run_id, reason, outcome)
    if outcome.kind is OutcomeKind.INTERRUPTED:
        raise RunInterrupted(outcome.run_id, outcome.message or 'interrupted', outcome)
    raise RunError(outcome.run_id, f'{outcome.error_kind}: {outcome.message}', outcome)
