"""A verdict that an evaluator made, rebuilt with every field checked and bounded."""

from __future__ import annotations

from collections.abc import Mapping
import json
import math
from typing import Any

import numpy as np

from harness_eval.contract import EvaluationRequest, EvaluatorError, Status, Verdict
from harness_eval.judging.values import (
    as_score,
    is_real_number,
    malformed,
    refuse_masked,
    with_article,
)
from harness_eval.lines import clean_evidence, clean_line, describe, redact, redact_plain

MAX_FAILURE_REASON = 2000
"""Characters of a failure reason, which lists every failed check."""

MAX_NAME = 200
"""Characters of a route."""

MAX_REPORT_BYTES = 256 * 1024
"""Bytes of a report as JSON; it travels in a message and is stored with each outcome."""

POST_CONDITION = 'post_condition'
"""Failure kind of a failure that nobody gave another one."""

FOREIGN_FAILURE_KINDS = (POST_CONDITION, 'stalled')
"""Failure kinds that every judge may use; ``segment_budget`` is the pipeline's own."""


def validated(verdict: Verdict, request: EvaluationRequest, evaluator: str) -> Verdict:
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
            failure_reason=clean_line(_public(verdict.failure_reason), MAX_FAILURE_REASON),
            failure_kind=verdict.failure_kind,
            score=_optional_number(verdict, 'score', evaluator),
            report=_plain_report(verdict.report, evaluator),
            route=clean_line(_public(verdict.route), MAX_NAME),
            cost=_optional_number(verdict, 'cost', evaluator),
        )
    except ValueError as error:
        raise malformed(f'the verdict is not well-formed: {error}', evaluator) from error


def _optional_number(verdict: Verdict, field: str, evaluator: str) -> float | None:
    value = getattr(verdict, field)
    if value is None:
        return None
    if isinstance(value, (bool, np.bool_)) or not is_real_number(value):
        raise _malformed_field(verdict, field, 'a number or None', evaluator)
    refuse_masked(value, evaluator)
    number = as_score(value, evaluator)
    if not math.isfinite(number) or number < 0.0:
        raise malformed(
            f'{field} of the verdict must be a finite number of at least 0, not {number!r}',
            evaluator,
        )
    return abs(number)


def _plain_report(report: object, evaluator: str) -> Mapping[str, Any] | None:
    """Reduce a report to plain JSON values, so that it can be stored and sent."""
    if report is None:
        return None
    if not isinstance(report, Mapping):
        raise malformed(
            f'report of the verdict must be a mapping, not {with_article(type(report).__name__)}',
            evaluator,
        )
    try:
        text = json.dumps(dict(report), allow_nan=False, ensure_ascii=False, default=_plain_value)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise malformed(
            f'report of the verdict cannot be written as JSON: {describe(error)}', evaluator
        ) from error
    if size > MAX_REPORT_BYTES:
        raise malformed(
            f'report of the verdict has {size} bytes as JSON; at most {MAX_REPORT_BYTES} are kept',
            evaluator,
        )
    plain: dict[str, Any] = {
        redact(key): redact_plain(value) for key, value in json.loads(text).items()
    }
    return plain


def _public(text: str) -> str:
    # A text of megabytes is not looked through to its end: it is cut anyway.
    return redact(text[: 8 * MAX_FAILURE_REASON])


def _plain_value(value: object) -> object:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()  # what is masked becomes null
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f'a value of type {type(value).__name__} is not JSON')


def _malformed_field(
    verdict: Verdict, field: str, expected: str, evaluator: str
) -> EvaluatorError:
    kind = type(getattr(verdict, field)).__name__
    return malformed(
        f'{field} of the verdict must be {expected}, not {with_article(kind)}', evaluator
    )
