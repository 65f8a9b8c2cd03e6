"""What a well-formed answer of a model comes to. Pure."""

from __future__ import annotations

from harness_eval.contract import Abstention, Status, Verdict
from harness_eval.evaluators.model.errors import ModelError
from harness_eval.evaluators.model.parse import Seen
from harness_eval.evaluators.model.verdict_form import CANNOT_TELL, ReadVerdict
from harness_eval.judging import POST_CONDITION, Thresholds
from harness_eval.lines import show


def decide(
    found: ReadVerdict, thresholds: Thresholds, *, evaluator: str, extra: tuple[str, ...] = ()
) -> Verdict:
    """Say what a well-formed answer comes to.

    Status and score have to agree: success from the outcome threshold on, failure below the
    failure threshold. An answer whose score lies between the two is not sure, whatever its status
    says, and one whose score says the opposite of its status is no answer at all.

    Args:
        found: The answer.
        thresholds: Where a score becomes a verdict.
        evaluator: Reference of the evaluator, for errors.
        extra: Further lines of evidence.

    Raises:
        Abstention: ``no_answer`` for ``cannot_tell``, ``unsure``.
        ModelError: ``not_applicable``, ``contradictory_answer``.
    """
    if not found.applies:
        raise ModelError(
            'not_applicable',
            f'the rubric cannot apply to this: {found.reasons}',
            evaluator=evaluator,
        )
    if found.status == CANNOT_TELL:
        raise Abstention(
            'no_answer', f'the model cannot tell: {found.reasons}', evaluator=evaluator
        )
    status = Status(found.status)
    _check_agreement(found, status, thresholds, evaluator)
    failed = status is Status.FAILURE
    return Verdict(
        status,
        (*evidence_of(found.observations), f'reasons: {found.reasons}', *found.remarks, *extra),
        failure_reason=found.reasons if failed else '',
        failure_kind=(found.failure_kind or POST_CONDITION) if failed else '',
        score=found.score,
        report=found.report,
    )


def evidence_of(observations: tuple[Seen, ...]) -> tuple[str, ...]:
    """What was seen, one line each."""
    return tuple(f'{seen.source}: {seen.seen}' for seen in observations)


def _check_agreement(
    found: ReadVerdict, status: Status, thresholds: Thresholds, evaluator: str
) -> None:
    upper, lower = thresholds.outcome, thresholds.failure
    score = found.score
    sure = {
        Status.SUCCESS: score >= upper,
        Status.FAILURE: score < lower,
        Status.PROCESS: score < upper,
    }
    if sure[status]:
        return
    shown = show(score, upper, lower)
    if status is not Status.PROCESS and lower <= score < upper:
        raise Abstention(
            'unsure',
            f'the model says {status.value} with a score of {shown}, between the thresholds '
            f'{lower:g} and {upper:g}: {found.reasons}',
            evaluator=evaluator,
            score=score,
        )
    raise ModelError(
        'contradictory_answer',
        f'the model says {status.value} and gives the post-condition a score of {shown} '
        f'(thresholds {lower:g} and {upper:g})',
        evaluator=evaluator,
        retryable=True,
    )
