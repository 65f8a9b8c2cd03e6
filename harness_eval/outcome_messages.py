"""Outcomes as messages, and messages as outcomes, for a node and for bags alike.

A node makes messages of rclpy, a bag those of the decoder; which fields they have, and what those
mean, is said here once. Nothing of ROS is imported.
"""

from __future__ import annotations

from collections.abc import Callable
import json
import math
from typing import Any

from harness_eval.contract import DecodeError, Status, Verdict
from harness_eval.decode import Decoder
from harness_eval.runs import Outcome, OutcomeKind
from harness_eval.times import nanoseconds_of, sec_and_nanosec

OUTCOME_TYPE = 'harness_eval_msgs/msg/RunOutcome'
VERDICT_TYPE = 'harness_eval_msgs/msg/Verdict'
HEADER_TYPE = 'std_msgs/msg/Header'
TIME_TYPE = 'builtin_interfaces/msg/Time'

New = Callable[..., Any]
"""Makes a message: of the type that is named first, with the fields that follow as keywords."""

_STATUSES = {Status.PROCESS: 1, Status.SUCCESS: 2, Status.FAILURE: 3}
_KINDS = {
    OutcomeKind.VERDICT: 1,
    OutcomeKind.ERROR: 2,
    OutcomeKind.ABSTAINED: 3,
    OutcomeKind.INTERRUPTED: 4,
}


def outcome_message(outcome: Outcome, new: New) -> Any:
    """An outcome as a ``RunOutcome``."""
    return new(
        OUTCOME_TYPE,
        header=_header(outcome.decided_at, new),
        run_id=outcome.run_id,
        tool=outcome.tool,
        segment=outcome.segment,
        attempt=outcome.attempt,
        kind=_KINDS[outcome.kind],
        verdict=verdict_message(outcome, new),
        error_kind=outcome.error_kind,
        message=outcome.message,
        evaluator=outcome.evaluator,
        retryable=outcome.retryable,
    )


def verdict_message(outcome: Outcome, new: New) -> Any:
    """The verdict of an outcome as a ``Verdict``; its status is ``UNSET`` if there is none."""
    verdict = outcome.verdict
    # An abstention keeps the score that was not sure enough in the place of the verdict's.
    score = outcome.score if verdict is None else verdict.score
    cost = None if verdict is None else verdict.cost
    report = None if verdict is None else verdict.report
    return new(
        VERDICT_TYPE,
        header=_header(outcome.decided_at, new),
        run_id=outcome.run_id,
        tool=outcome.tool,
        segment=outcome.segment,
        status=0 if verdict is None else _STATUSES[verdict.status],
        evidence=[] if verdict is None else list(verdict.evidence),
        failure_reason='' if verdict is None else verdict.failure_reason,
        failure_kind='' if verdict is None else verdict.failure_kind,
        score=math.nan if score is None else score,
        report_json='' if report is None else json.dumps(dict(report), sort_keys=True),
        evaluator=outcome.evaluator,
        route='' if verdict is None else verdict.route,
        cost=math.nan if cost is None else cost,
        input_digest=outcome.input_digest,
        completed_at=_time(outcome.completed_at, new),
        observed_from=_time(outcome.observed_from, new),
        observed_to=_time(outcome.observed_to, new),
    )


def outcome_of_message(message: Any) -> Outcome:
    """The outcome that a ``RunOutcome`` holds.

    Raises:
        ValueError: Its kind or its verdict's status is unset or unknown, or its report no JSON.
    """
    kinds = {number: kind for kind, number in _KINDS.items()}
    if message.kind not in kinds:
        raise ValueError(f'the kind of an outcome is {message.kind}, which is none')
    kind = kinds[message.kind]
    verdict = _verdict_of(message.verdict) if kind is OutcomeKind.VERDICT else None
    return Outcome(
        run_id=message.run_id,
        tool=message.tool,
        segment=message.segment,
        attempt=message.attempt,
        kind=kind,
        decided_at=nanoseconds_of(message.header.stamp),
        verdict=verdict,
        error_kind=message.error_kind,
        message=message.message,
        evaluator=message.evaluator,
        retryable=message.retryable,
        input_digest=message.verdict.input_digest,
        completed_at=nanoseconds_of(message.verdict.completed_at),
        observed_from=nanoseconds_of(message.verdict.observed_from),
        observed_to=nanoseconds_of(message.verdict.observed_to),
        score=None if verdict is not None else _number(message.verdict.score),
    )


def outcome_bytes(outcome: Outcome, decoder: Decoder) -> bytes:
    """The outcome as a ``RunOutcome``.

    Args:
        outcome: The outcome.
        decoder: Knows the definition of the type.

    Raises:
        DecodeError: It does not, or a text cannot be encoded.
    """
    return decoder.serialize(OUTCOME_TYPE, outcome_message(outcome, decoder.new))


def outcome_of_bytes(kind: str, data: bytes, decoder: Decoder) -> Outcome:
    """The outcome that a ``RunOutcome`` or a ``Verdict`` holds.

    Args:
        kind: Type of the message.
        data: Its CDR bytes.
        decoder: Knows the definition of the type.

    Raises:
        DecodeError: ``malformed_message``, ``not_an_outcome``, or the type is not known.
    """
    message = decoder.message(kind, data)
    try:
        if kind == VERDICT_TYPE:
            return _outcome_of_verdict(message)
        return outcome_of_message(message)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DecodeError('not_an_outcome', f'{kind} holds no outcome: {error}') from None


def _outcome_of_verdict(message: Any) -> Outcome:
    return Outcome(
        run_id=message.run_id,
        tool=message.tool,
        segment=message.segment,
        attempt=1,
        kind=OutcomeKind.VERDICT,
        decided_at=nanoseconds_of(message.header.stamp),
        verdict=_verdict_of(message),
        evaluator=message.evaluator,
        input_digest=message.input_digest,
        completed_at=nanoseconds_of(message.completed_at),
        observed_from=nanoseconds_of(message.observed_from),
        observed_to=nanoseconds_of(message.observed_to),
    )


def _verdict_of(message: Any) -> Verdict:
    statuses = {number: status for status, number in _STATUSES.items()}
    if message.status not in statuses:
        raise ValueError(f'the status of a verdict is {message.status}, which is none')
    return Verdict(
        status=statuses[message.status],
        evidence=tuple(message.evidence),
        failure_reason=message.failure_reason,
        failure_kind=message.failure_kind,
        score=_number(message.score),
        report=json.loads(message.report_json) if message.report_json else None,
        route=message.route,
        cost=_number(message.cost),
    )


def _header(stamp: int, new: New) -> Any:
    return new(HEADER_TYPE, stamp=_time(stamp, new), frame_id='')


def _time(nanoseconds: int, new: New) -> Any:
    sec, nanosec = sec_and_nanosec(nanoseconds)
    return new(TIME_TYPE, sec=sec, nanosec=nanosec)


def _number(value: float) -> float | None:
    """The number, or None for NaN (how messages say that there is none)."""
    return None if math.isnan(value) else float(value)
