"""What an evaluator's answer means: the one place where it becomes a verdict, an error or neither.

Pure: no clock, no threads, no files. Whatever is not a well-formed answer is an error; nothing is
read into it. The rules are the same for every kind of evaluator, and they are applied again to
verdicts that evaluators built themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
import json
import math
from numbers import Number
from typing import Any, TYPE_CHECKING

import numpy as np

from harness_eval.contract import (
    Abstention,
    EvaluationRequest,
    EvaluatorError,
    Status,
    Verdict,
)
from harness_eval.lines import (
    clean_evidence,
    clean_line,
    describe,
    redact,
    redact_plain,
    show,
)

if TYPE_CHECKING:
    from harness_eval.config.models import EvaluationSettings

MAX_REASON = 2000
"""Characters of a failure reason, which lists every failed check."""

MAX_NAME = 200
"""Characters of a route."""

MAX_REPORT_BYTES = 256 * 1024
"""Bytes of a report as JSON; it travels in a message and is stored with each outcome."""

POST_CONDITION = 'post_condition'
"""Failure kind of a failure that nobody gave another one."""

FOREIGN_FAILURE_KINDS = (POST_CONDITION, 'stalled')
"""Failure kinds that every judge may use; ``segment_budget`` is the pipeline's own."""


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
        verdict = _validated(answer, request, evaluator)
        if not share:
            _refuse_contradiction(verdict, thresholds, evaluator)
        return verdict
    _refuse_masked(answer, evaluator)
    decided = _as_bool(answer)
    if decided is not None:
        return _from_bool(decided)
    score = _as_score(answer, evaluator)
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
        raise _malformed(
            f'the verdict says {verdict.status.value}, but its score {score} lies {where}; the '
            'score is the confidence that the post-condition holds; leave it out if there is none',
            evaluator,
        )


def _refuse_masked(answer: object, evaluator: str) -> None:
    # What a mask hides was not measured, whatever value lies under it.
    if isinstance(answer, np.ma.MaskedArray) and np.ma.getmaskarray(answer).any():
        raise _malformed(
            'the evaluator returned a masked value, which says that nothing was measured; return '
            'None to abstain',
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


def _as_bool(answer: object) -> bool | None:
    """Say what a boolean answers (also a boolean array or tensor of no dimensions)."""
    if isinstance(answer, (bool, np.bool_)):
        return bool(answer)
    if isinstance(answer, type):
        return None
    if getattr(answer, 'shape', None) == () and str(getattr(answer, 'dtype', '')).endswith('bool'):
        return bool(answer)
    return None


def _as_score(answer: object, evaluator: str) -> float:
    """Say what a real number is as a float; numbers are not read out of texts or lists."""
    kind = type(answer).__name__
    if not _is_real_number(answer):
        raise _malformed(
            f'the evaluator returned {_with_article(kind)}{_shape(answer)}; '
            'return a Verdict, a bool, a score in [0, 1] or None',
            evaluator,
        )
    try:
        return float(answer)  # type: ignore[arg-type]
    except OverflowError as error:
        raise EvaluatorError(
            'score_out_of_range',
            f'the score, of type {kind}, is far outside [0, 1]',
            evaluator=evaluator,
        ) from error
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise _malformed(
            f'the evaluator returned {_with_article(kind)} that is not a number', evaluator
        ) from error


def _is_real_number(answer: object) -> bool:
    if isinstance(answer, (type, Enum, str, bytes, bytearray, complex, np.complexfloating)):
        return False
    if isinstance(answer, (np.datetime64, np.timedelta64)):
        return False
    if isinstance(answer, Number):
        return hasattr(answer, '__float__')
    # Arrays and tensors of no dimensions: NumPy, torch, jax. float() would take one of a single
    # element too, but a judge that returns a batch may well have judged something else.
    dtype = str(getattr(answer, 'dtype', ''))
    real = any(word in dtype for word in ('float', 'int'))
    return getattr(answer, 'shape', None) == () and real and hasattr(answer, '__float__')


def _validated(verdict: Verdict, request: EvaluationRequest, evaluator: str) -> Verdict:
    """Rebuild a verdict that an evaluator made, with every field checked and bounded."""
    asked = request.post_condition
    if verdict.status is Status.PROCESS and not asked.process_allowed:
        raise EvaluatorError(
            'process_not_allowed',
            'the evaluator answered process for a tool that is not one of the segment_tools',
            evaluator=evaluator,
        )
    for field in ('failure_reason', 'failure_kind', 'route'):
        if not isinstance(getattr(verdict, field), str):
            raise _malformed_field(verdict, field, 'a string', evaluator)
    if verdict.status is Status.FAILURE:
        allowed = (*FOREIGN_FAILURE_KINDS, *asked.failure_kinds)
        if verdict.failure_kind and verdict.failure_kind not in allowed:
            raise EvaluatorError(
                'unknown_failure_kind',
                f'failure_kind {clean_line(_public(verdict.failure_kind), MAX_NAME)!r} is none of '
                f'{", ".join(allowed)}; name it under failure_kinds of the tool',
                evaluator=evaluator,
            )
    if not isinstance(verdict.evidence, (tuple, list)) or not all(
        isinstance(line, str) for line in verdict.evidence
    ):
        raise _malformed_field(verdict, 'evidence', 'a tuple of strings', evaluator)
    try:
        return Verdict(
            status=verdict.status,
            evidence=clean_evidence(tuple(map(_public, verdict.evidence))),
            failure_reason=clean_line(_public(verdict.failure_reason), MAX_REASON),
            failure_kind=verdict.failure_kind,
            score=_optional_number(verdict, 'score', evaluator),
            report=_plain_report(verdict.report, evaluator),
            route=clean_line(_public(verdict.route), MAX_NAME),
            cost=_optional_number(verdict, 'cost', evaluator),
        )
    except ValueError as error:
        raise _malformed(f'the verdict is not well-formed: {error}', evaluator) from error


def _optional_number(verdict: Verdict, field: str, evaluator: str) -> float | None:
    value = getattr(verdict, field)
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)) or not _is_real_number(value):
        raise _malformed_field(verdict, field, 'a number or None', evaluator)
    _refuse_masked(value, evaluator)
    number = _as_score(value, evaluator)
    if not math.isfinite(number) or number < 0.0:
        raise _malformed(
            f'{field} of the verdict must be a finite number of at least 0, not {number!r}',
            evaluator,
        )
    return abs(number)


def _plain_report(report: object, evaluator: str) -> Mapping[str, Any] | None:
    """Reduce a report to plain JSON values, so that it can be stored and sent."""
    if report is None:
        return None
    if not isinstance(report, Mapping):
        raise _malformed(
            f'report of the verdict must be a mapping, not {_with_article(type(report).__name__)}',
            evaluator,
        )
    try:
        text = json.dumps(dict(report), allow_nan=False, ensure_ascii=False, default=_plain_value)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise _malformed(
            f'report of the verdict cannot be written as JSON: {describe(error)}', evaluator
        ) from error
    if size > MAX_REPORT_BYTES:
        raise _malformed(
            f'report of the verdict has {size} bytes as JSON; at most {MAX_REPORT_BYTES} are kept',
            evaluator,
        )
    plain: dict[str, Any] = {
        redact(key): redact_plain(value) for key, value in json.loads(text).items()
    }
    return plain


def _public(text: str) -> str:
    # A text of megabytes is not looked through to its end: it is cut anyway.
    return redact(text[: 8 * MAX_REASON])


def _plain_value(value: object) -> object:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()  # what is masked becomes null
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f'a value of type {type(value).__name__} is not JSON')


def _malformed(message: str, evaluator: str) -> EvaluatorError:
    return EvaluatorError('malformed_answer', message, evaluator=evaluator)


def _malformed_field(
    verdict: Verdict, field: str, expected: str, evaluator: str
) -> EvaluatorError:
    kind = type(getattr(verdict, field)).__name__
    return _malformed(
        f'{field} of the verdict must be {expected}, not {_with_article(kind)}', evaluator
    )


def _with_article(noun: str) -> str:
    return f'{"an" if noun[:1].lower() in "aeiou" else "a"} {noun}'


def _shape(answer: object) -> str:
    shape = getattr(answer, 'shape', None)
    return f' of shape {tuple(shape)}' if isinstance(shape, tuple) else ''
