"""How an answer becomes a verdict, an error or neither, by its score where it has one."""

from __future__ import annotations

from dataclasses import dataclass
import math
from typing import TYPE_CHECKING

from harness_eval.contract import Abstention, EvaluationRequest, EvaluatorError, Status, Verdict
from harness_eval.judging.values import as_bool, as_score, malformed, refuse_masked
from harness_eval.judging.verdicts import validated
from harness_eval.lines import show

if TYPE_CHECKING:
    from harness_eval.config.models import EvaluationSettings


@dataclass(frozen=True)
class Thresholds:
    """Where a score becomes a verdict.

    Attributes:
        outcome: A score at or above it is success.
        failure: A score below it is failure; between the two nobody is sure.

    Raises:
        ValueError: Not ``0 <= failure <= outcome <= 1``, or an outcome threshold of 0, at which
            every score would be a success.
    """

    outcome: float = 0.9
    failure: float = 0.5

    @classmethod
    def of(cls, evaluation: EvaluationSettings) -> Thresholds:
        """The thresholds of a configuration."""
        return cls(evaluation.outcome_threshold, evaluation.failure_threshold)

    def __post_init__(self) -> None:
        if not 0.0 <= self.failure <= self.outcome <= 1.0:
            raise ValueError(
                'thresholds must satisfy 0 <= failure_threshold <= outcome_threshold <= 1, '
                f'not failure_threshold {self.failure} and outcome_threshold {self.outcome}'
            )
        if self.outcome == 0.0:
            raise ValueError('an outcome_threshold of 0 would make every score a success')


def interpret(
    answer: object,
    request: EvaluationRequest,
    thresholds: Thresholds,
    *,
    evaluator: str,
    clamp: bool = False,
    share: bool = False,
) -> Verdict:
    """Turn what an evaluator returned into a verdict, or raise.

    ``True`` and ``False`` are success and failure. A real number in [0, 1] is a score. ``None``
    abstains. A :class:`Verdict` is validated and bounded again. A score from a 32-bit float is
    compared as it is: ``float32(0.9)`` lies below 0.9.

    Args:
        answer: What the evaluator returned, already awaited.
        request: What it was asked; says whether ``process`` and which failure kinds are allowed.
        thresholds: Where a score becomes a verdict.
        evaluator: Reference of the evaluator, for errors.
        clamp: Cut a finite score outside [0, 1], with a line of evidence that says so.
        share: The score of a verdict is a weighted share, beside which other rules decide. Every
            other score says how sure the judge is, and must not contradict the status: success
            below the failure threshold, or failure at or above the outcome threshold.

    Raises:
        EvaluatorError: The answer is not well-formed: ``malformed_answer``,
            ``score_out_of_range``, ``process_not_allowed`` or ``unknown_failure_kind``.
        Abstention: ``no_answer`` for ``None``; ``unsure`` for a score between the thresholds when
            ``process`` is not allowed.
    """
    if answer is None:
        raise Abstention('no_answer', 'the evaluator gave no answer (None)', evaluator=evaluator)
    if isinstance(answer, Verdict):
        verdict = validated(answer, request, evaluator)
        if not share:
            _refuse_contradiction(verdict, thresholds, evaluator)
        return verdict
    refuse_masked(answer, evaluator)
    decided = as_bool(answer)
    if decided is not None:
        return _from_bool(decided)
    score = as_score(answer, evaluator)
    return _from_score(score, request, thresholds, evaluator, clamp)


def _refuse_contradiction(verdict: Verdict, thresholds: Thresholds, evaluator: str) -> None:
    if verdict.score is None:
        return
    where = ''
    if verdict.status is Status.SUCCESS and verdict.score < thresholds.failure:
        where = f'below the failure threshold {thresholds.failure:g}'
    if verdict.status is Status.FAILURE and verdict.score >= thresholds.outcome:
        where = f'at or above the outcome threshold {thresholds.outcome:g}'
    if where:
        score = show(verdict.score, thresholds.outcome, thresholds.failure)
        raise malformed(
            f'the verdict says {verdict.status.value}, but its score {score} lies {where}; the '
            'score is the confidence that the post-condition holds; leave it out if there is none',
            evaluator,
        )


class Unsure(Abstention):
    """A verdict whose score lies in its evaluator's ``unsure`` band.

    Args:
        verdict: The verdict that it is not.
        band: Lowest and highest score, both included, that say nothing.
        evaluator: Reference of the evaluator.
    """

    def __init__(self, verdict: Verdict, band: tuple[float, float], evaluator: str) -> None:
        score = show(verdict.score or 0.0, *band)
        super().__init__(
            'unsure',
            f'score {score}, in the unsure band [{band[0]:g}, {band[1]:g}]',
            evaluator=evaluator,
            score=verdict.score,
        )
        self.verdict = verdict


def doubted(
    verdict: Verdict, band: tuple[float, float] | None, evaluator: str
) -> Verdict | Unsure:
    """Give the verdict, or the abstention that its score means where the evaluator is unsure."""
    if band is None or verdict.score is None or not band[0] <= verdict.score <= band[1]:
        return verdict
    return Unsure(verdict, band, evaluator)


def _from_bool(decided: bool) -> Verdict:
    evidence = (f'the evaluator answered {decided}',)
    if decided:
        return Verdict(Status.SUCCESS, evidence)
    return Verdict(Status.FAILURE, evidence, failure_reason='the evaluator answered False')


def _from_score(
    raw: float, request: EvaluationRequest, thresholds: Thresholds, evaluator: str, clamp: bool
) -> Verdict:
    evidence: tuple[str, ...] = ()
    score = raw
    if not 0.0 <= raw <= 1.0:
        if not clamp or not math.isfinite(raw):
            hint = 'return a score in [0, 1]'
            if math.isfinite(raw):
                hint += ', or set "clamp: true" for this evaluator to cut it'
            raise EvaluatorError(
                'score_out_of_range',
                f'the score {raw!r} is outside [0, 1]; {hint}',
                evaluator=evaluator,
            )
        score = min(max(raw, 0.0), 1.0)
        evidence = (f'warning: the score {raw!r} was outside [0, 1] and was cut to {score:g}',)
    score = abs(score)  # -0.0 is 0.0
    shown = show(score, thresholds.outcome, thresholds.failure)
    upper, lower = f'{thresholds.outcome:g}', f'{thresholds.failure:g}'
    if score >= thresholds.outcome:
        line = f'score {shown}, at or above the outcome threshold {upper}'
        return Verdict(Status.SUCCESS, (line, *evidence), score=score)
    if score < thresholds.failure:
        line = f'score {shown}, below the failure threshold {lower}'
        return Verdict(Status.FAILURE, (line, *evidence), failure_reason=line, score=score)
    line = f'score {shown}, between the thresholds {lower} and {upper}'
    if request.post_condition.process_allowed:
        return Verdict(Status.PROCESS, (line, *evidence), score=score)
    raise Abstention('unsure', '; '.join((line, *evidence)), evaluator=evaluator, score=score)
