"""Outcomes as the CDR bytes of their messages, made and read without ROS."""

from __future__ import annotations

import json
import math
from typing import Any

from harness_eval.contract import DecodeError, Status, Verdict
from harness_eval.decode import Decoder
from harness_eval.runs import Outcome, OutcomeKind
from harness_eval.times import nanoseconds_of, sec_and_nanosec

OUTCOME_TYPE = 'harness_eval_msgs/msg/RunOutcome'
VERDICT_TYPE = 'harness_eval_msgs/msg/Verdict'

_STATUSES = {Status.PROCESS: 1, Status.SUCCESS: 2, Status.FAILURE: 3}
_KINDS = {
    OutcomeKind.VERDICT: 1,
    OutcomeKind.ERROR: 2,
    OutcomeKind.ABSTAINED: 3,
    OutcomeKind.INTERRUPTED: 4,
}


def outcome_bytes(outcome: Outcome, decoder: Decoder) -> bytes:
    """The outcome as a ``RunOutcome``.

    Args:
        outcome: The outcome.
        decoder: Knows the definition of the type.

    Raises:
        DecodeError: It does not, or a text cannot be encoded.
    """
    message = decoder.new(
        OUTCOME_TYPE,
        header=_header(outcome.decided_at, decoder),
        run_id=outcome.run_id,
        tool=outcome.tool,
        segment=outcome.segment,
        attempt=outcome.attempt,
        kind=_KINDS[outcome.kind],
        verdict=_verdict(outcome, decoder),
        error_kind=outcome.error_kind,
        message=outcome.message,
        evaluator=outcome.evaluator,
        retryable=outcome.retryable,
    )
    return decoder.serialize(OUTCOME_TYPE, message)


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
        return _outcome_of(message)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise DecodeError('not_an_outcome', f'{kind} holds no outcome: {error}') from None


def _header(stamp: int, decoder: Decoder) -> Any:
    return decoder.new('std_msgs/msg/Header', stamp=_time(stamp, decoder), frame_id='')


def _time(nanoseconds: int, decoder: Decoder) -> Any:
    sec, nanosec = sec_and_nanosec(nanoseconds)
    return decoder.new('builtin_interfaces/msg/Time', sec=sec, nanosec=nanosec)


def _verdict(outcome: Outcome, decoder: Decoder) -> Any:
    """The verdict of an outcome; its status is ``UNSET`` if there is none."""
    verdict = outcome.verdict
    # An abstention keeps the score that was not sure enough in the place of the verdict's.
    score = outcome.score if verdict is None else verdict.score
    cost = None if verdict is None else verdict.cost
    report = None if verdict is None else verdict.report
    return decoder.new(
        VERDICT_TYPE,
        header=_header(outcome.decided_at, decoder),
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
        completed_at=_time(outcome.completed_at, decoder),
        observed_from=_time(outcome.observed_from, decoder),
        observed_to=_time(outcome.observed_to, decoder),
    )


def _outcome_of(message: Any) -> Outcome:
    kinds = {number: kind for kind, number in _KINDS.items()}
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


def _number(value: float) -> float | None:
    """The number, or None for NaN (how messages say that there is none)."""
    return None if math.isnan(value) else float(value)
