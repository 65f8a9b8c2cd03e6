"""Answers of models and services that are on record, given again instead of asking.

An answer belongs to a question: it is given only where the digest of what would be sent now is
that of what was sent then, and where the same evaluator would be asked. Anything else is the error
``no_recorded_answer``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from harness_eval.config.evaluators import EvaluatorSettings
from harness_eval.contract import (
    Abstention,
    EvaluationError,
    EvaluationRequest,
    EvaluatorError,
    Status,
    Verdict,
)
from harness_eval.judging import doubted, interpret, Thresholds
from harness_eval.reported_calls import Cancellable, OnDone
from harness_eval.runs import Outcome, OutcomeKind, SEGMENT_BUDGET

Answers = Literal['live', 'recorded']

DETERMINISTIC = frozenset({'checks', 'plugin'})
"""Kinds that are judged anew in any case: what runs here gives the same answer for nothing."""

_BY_SCORE = frozenset({'model', 'endpoint', 'service'})
"""Kinds whose score alone, beside the thresholds, says what the verdict is."""


@dataclass(frozen=True)
class Recorded:
    """An outcome on record, with the thresholds that held then.

    Attributes:
        outcome: The outcome.
        thresholds: The thresholds; None: they are not on record.
    """

    outcome: Outcome
    thresholds: Thresholds | None = None


def asks_others(name: str, settings: Mapping[str, EvaluatorSettings]) -> bool:
    """Whether an evaluator asks a model or a service, itself or through its members."""
    one = settings[name]
    members = [member for _, names in one.named for member in names]
    if not members:
        return one.kind not in DETERMINISTIC
    return any(asks_others(member, settings) for member in members)


class RecordedJudge:
    """Stands for an evaluator of which the answers are on record.

    Args:
        ref: Reference of the evaluator.
        settings: Its settings.
        thresholds: Where a score becomes a verdict now.

    Attributes:
        evaluator: Reference of the evaluator.
    """

    def __init__(self, ref: str, settings: EvaluatorSettings, thresholds: Thresholds) -> None:
        self.evaluator = ref
        self._settings = settings
        self._thresholds = thresholds
        self._known: dict[str, Recorded] = {}

    def use(self, recorded: Iterable[Recorded]) -> None:
        """Know these answers, and no others."""
        self._known = {
            one.outcome.input_digest: one for one in recorded if one.outcome.input_digest
        }

    def call(self, request: EvaluationRequest, on_done: OnDone) -> Cancellable:
        """Give the recorded answer to a request, before this returns."""
        answer: Verdict | EvaluationError
        try:
            answer = self._answer(request)
        except EvaluationError as error:
            answer = error
        on_done(answer)
        return _Settled()

    def close(self) -> None:
        """Nothing is held."""

    def _answer(self, request: EvaluationRequest) -> Verdict:
        known = self._known.get(request.digest)
        if known is None:
            raise self._none(
                'the source has no answer to this question: the post-condition, the frames or '
                'what may be answered differ from those that were judged'
            )
        outcome = known.outcome
        if outcome.evaluator != self.evaluator:
            raise self._none(
                f'the source has an answer of {outcome.evaluator or "nobody"} to this question'
            )
        if outcome.kind is OutcomeKind.INTERRUPTED:
            raise self._none('the run was interrupted before it was judged')
        if outcome.kind is OutcomeKind.ERROR:
            raise EvaluatorError(
                outcome.error_kind,
                outcome.message,
                evaluator=outcome.evaluator,
                retryable=outcome.retryable,
            )
        changed = known.thresholds is not None and known.thresholds != self._thresholds
        if outcome.verdict is None:
            return self._unless_doubted(self._of_abstention(outcome, request, changed))
        verdict = before_budget(outcome.verdict)
        # Its score may be a share, beside which other rules decide: it contradicts nothing here.
        interpret(verdict, request, self._thresholds, evaluator=self.evaluator, share=True)
        return self._unless_doubted(self._of_verdict(verdict, request, changed))

    def _of_abstention(
        self, outcome: Outcome, request: EvaluationRequest, changed: bool
    ) -> Verdict:
        by_score = self._settings.kind in _BY_SCORE
        if changed and outcome.score is not None and by_score:
            return self._by_score(outcome.score, request, ())
        if changed and (outcome.error_kind == 'unsure' or self._settings.named):
            raise self._none(
                'the thresholds are others than when it was unsure, and no score by which they '
                'would decide is on record'
            )
        raise Abstention(
            outcome.error_kind, outcome.message, evaluator=outcome.evaluator, score=outcome.score
        )

    def _of_verdict(self, verdict: Verdict, request: EvaluationRequest, changed: bool) -> Verdict:
        """The verdict that is on record, or the one that its score means by now."""
        kind, score = self._settings.kind, verdict.score
        if score is None or kind in ('vote', 'cascade'):
            if changed and self._settings.named:
                raise self._none('the thresholds are others than when its members were asked')
            return verdict
        if self._holds(verdict.status, score, changed):
            return verdict
        if kind in _BY_SCORE or verdict.status is Status.SUCCESS:
            return self._by_score(score, request, verdict.evidence)
        if not changed or verdict.status is Status.FAILURE:
            return verdict  # a criterion that must be met may have failed, whatever the score
        raise self._none(
            'the thresholds are others than when it was judged, and whether it would be a success '
            'by them cannot be told from the score alone'
        )

    def _holds(self, status: Status, score: float, changed: bool) -> bool:
        """Whether an evaluator that gives this score would give this status by now."""
        upper, lower = self._thresholds.outcome, self._thresholds.failure
        if status is Status.PROCESS:
            # A model says itself that it goes on; from the others the score does.
            low_enough = score >= lower or self._settings.kind == 'model' or not changed
            return score < upper and low_enough
        return score >= upper if status is Status.SUCCESS else score < lower

    def _unless_doubted(self, verdict: Verdict) -> Verdict:
        answer = doubted(verdict, self._settings.unsure, self.evaluator)
        if isinstance(answer, EvaluationError):
            raise answer
        return answer

    def _by_score(
        self, score: float, request: EvaluationRequest, evidence: tuple[str, ...]
    ) -> Verdict:
        made = interpret(score, request, self._thresholds, evaluator=self.evaluator)
        return replace(made, evidence=(*made.evidence, *evidence))

    def _none(self, why: str) -> EvaluatorError:
        return EvaluatorError(
            'no_recorded_answer',
            f"{why}; '--answers live' asks the evaluator",
            evaluator=self.evaluator,
        )


class _Settled:
    """A call that is over."""

    def cancel(self) -> bool:
        """Come too late."""
        return False


def before_budget(verdict: Verdict) -> Verdict:
    """The verdict as its evaluator gave it, before the segment budget made it a failure."""
    if verdict.failure_kind != SEGMENT_BUDGET:
        return verdict
    return replace(verdict, status=Status.PROCESS, failure_kind='', failure_reason='')
