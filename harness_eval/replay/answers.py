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
        score = outcome.score if outcome.verdict is None else outcome.verdict.score
        changed = known.thresholds is not None and known.thresholds != self._thresholds
        if outcome.kind is OutcomeKind.ERROR:
            raise EvaluatorError(
                outcome.error_kind,
                outcome.message,
                evaluator=outcome.evaluator,
                retryable=outcome.retryable,
            )
        if outcome.verdict is None:
            if changed and score is not None and self._settings.kind in _BY_SCORE:
                return self._unless_doubted(self._by_score(score, request, ()))
            if changed and (outcome.error_kind == 'unsure' or self._settings.named):
                raise self._none(
                    'the thresholds are others than when it was unsure, and no score of it alone '
                    'is on record'
                )
            raise Abstention(
                outcome.error_kind, outcome.message, evaluator=outcome.evaluator, score=score
            )
        return self._verdict(before_budget(outcome.verdict), request, changed)

    def _verdict(self, verdict: Verdict, request: EvaluationRequest, changed: bool) -> Verdict:
        if changed and verdict.score is not None:
            verdict = self._again(verdict, verdict.score, request)
        elif changed and self._settings.named:
            raise self._none('the thresholds are others than when its members were asked')
        else:
            # A share of criteria may stand beside another rule, so its score contradicts nothing.
            share = self._settings.kind not in _BY_SCORE
            verdict = interpret(
                verdict, request, self._thresholds, evaluator=self.evaluator, share=share
            )
        return self._unless_doubted(verdict)

    def _unless_doubted(self, verdict: Verdict) -> Verdict:
        answer = doubted(verdict, self._settings.unsure, self.evaluator)
        if isinstance(answer, EvaluationError):
            raise answer
        return answer

    def _again(self, verdict: Verdict, score: float, request: EvaluationRequest) -> Verdict:
        """The verdict that a recorded score means by the thresholds of now."""
        if self._settings.kind in _BY_SCORE:
            found = self._by_score(score, request, verdict.evidence)
            return verdict if found.status is verdict.status else found
        if self._settings.kind == 'rubric' and verdict.status is Status.FAILURE:
            if score < self._thresholds.failure:
                return verdict
        elif self._settings.kind == 'rubric' and verdict.status is Status.SUCCESS:
            found = self._by_score(score, request, verdict.evidence)
            return verdict if found.status is Status.SUCCESS else found
        raise self._none(
            'the thresholds are others than when it was judged, and what it comes to by them '
            'cannot be told from its score alone'
        )

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
