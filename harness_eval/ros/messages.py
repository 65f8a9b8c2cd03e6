"""Outcomes, verdicts and events as messages."""

from __future__ import annotations

import json
import math

from builtin_interfaces.msg import Time

from harness_eval.contract import Status, Verdict
from harness_eval.ledger import UpdateRecord
from harness_eval.runs import Outcome, OutcomeKind
from harness_eval.stages import Event, Stage
from harness_eval.times import nanoseconds_of, sec_and_nanosec
from harness_eval_msgs.msg import EvaluationEvent, RunOutcome, SceneGraphRejection
from harness_eval_msgs.msg import Verdict as VerdictMessage

_STATUSES = {
    Status.PROCESS: VerdictMessage.PROCESS,
    Status.SUCCESS: VerdictMessage.SUCCESS,
    Status.FAILURE: VerdictMessage.FAILURE,
}
_KINDS = {
    OutcomeKind.VERDICT: RunOutcome.VERDICT,
    OutcomeKind.ERROR: RunOutcome.ERROR,
    OutcomeKind.ABSTAINED: RunOutcome.ABSTAINED,
    OutcomeKind.INTERRUPTED: RunOutcome.INTERRUPTED,
}
_STAGES = {
    Stage.RECEIVED: EvaluationEvent.RECEIVED,
    Stage.CAPTURED: EvaluationEvent.CAPTURED,
    Stage.STARTED: EvaluationEvent.STARTED,
    Stage.COMPLETED: EvaluationEvent.COMPLETED,
    Stage.REJECTED: EvaluationEvent.REJECTED,
}


def time_message(nanoseconds: int) -> Time:
    """Nanoseconds since the epoch as a message."""
    sec, nanosec = sec_and_nanosec(nanoseconds)
    return Time(sec=sec, nanosec=nanosec)


def verdict_message(outcome: Outcome) -> VerdictMessage:
    """The verdict of an outcome; its status is ``UNSET`` if there is none."""
    message = VerdictMessage(score=math.nan, cost=math.nan)
    message.header.stamp = time_message(outcome.decided_at)
    message.run_id = outcome.run_id
    message.tool = outcome.tool
    message.segment = outcome.segment
    message.evaluator = outcome.evaluator
    message.input_digest = outcome.input_digest
    message.completed_at = time_message(outcome.completed_at)
    message.observed_from = time_message(outcome.observed_from)
    message.observed_to = time_message(outcome.observed_to)
    verdict = outcome.verdict
    if verdict is not None:
        message.status = _STATUSES[verdict.status]
        message.evidence = list(verdict.evidence)
        message.failure_reason = verdict.failure_reason
        message.failure_kind = verdict.failure_kind
        message.score = math.nan if verdict.score is None else verdict.score
        message.cost = math.nan if verdict.cost is None else verdict.cost
        message.route = verdict.route
        if verdict.report is not None:
            message.report_json = json.dumps(dict(verdict.report), sort_keys=True)
    return message


def outcome_message(outcome: Outcome) -> RunOutcome:
    """An outcome as a message."""
    message = RunOutcome()
    message.header.stamp = time_message(outcome.decided_at)
    message.run_id = outcome.run_id
    message.tool = outcome.tool
    message.segment = outcome.segment
    message.attempt = outcome.attempt
    message.kind = _KINDS[outcome.kind]
    message.verdict = verdict_message(outcome)
    message.error_kind = outcome.error_kind
    message.message = outcome.message
    message.evaluator = outcome.evaluator
    message.retryable = outcome.retryable
    return message


def outcome_of_message(message: RunOutcome) -> Outcome:
    """The outcome that a message holds.

    Raises:
        ValueError: Its kind or its verdict's status is unset or unknown.
    """
    kinds = {number: kind for kind, number in _KINDS.items()}
    if message.kind not in kinds:
        raise ValueError(f'the kind of an outcome is {message.kind}, which is none')
    inner = message.verdict
    verdict = None
    if message.kind == RunOutcome.VERDICT:
        statuses = {number: status for status, number in _STATUSES.items()}
        if inner.status not in statuses:
            raise ValueError(f'the status of a verdict is {inner.status}, which is none')
        verdict = Verdict(
            status=statuses[inner.status],
            evidence=tuple(inner.evidence),
            failure_reason=inner.failure_reason,
            failure_kind=inner.failure_kind,
            score=_finite_or_none(inner.score),
            report=json.loads(inner.report_json) if inner.report_json else None,
            route=inner.route,
            cost=_finite_or_none(inner.cost),
        )
    return Outcome(
        run_id=message.run_id,
        tool=message.tool,
        segment=message.segment,
        attempt=message.attempt,
        kind=kinds[message.kind],
        decided_at=nanoseconds_of(message.header.stamp),
        verdict=verdict,
        error_kind=message.error_kind,
        message=message.message,
        evaluator=message.evaluator,
        retryable=message.retryable,
        input_digest=inner.input_digest,
        completed_at=nanoseconds_of(inner.completed_at),
        observed_from=nanoseconds_of(inner.observed_from),
        observed_to=nanoseconds_of(inner.observed_to),
    )


def event_message(event: Event) -> EvaluationEvent:
    """A step as a message."""
    message = EvaluationEvent()
    message.header.stamp = time_message(event.stamp)
    message.run_id = event.run_id
    message.tool = event.tool
    message.segment = event.segment
    message.stage = _STAGES[event.stage]
    message.detail = event.detail
    return message


def rejection_message(record: UpdateRecord, stamp: int) -> SceneGraphRejection:
    """A rejected update as a message; ``stamp`` is when it was rejected, in nanoseconds."""
    message = SceneGraphRejection()
    message.header.stamp = time_message(stamp)
    message.run_id = record.update.run_id
    message.update_id = record.update.update_id
    message.reason = record.reason
    return message


def event_of_message(message: EvaluationEvent) -> Event:
    """The step that a message holds.

    Raises:
        ValueError: Its stage is unset or unknown.
    """
    stages = {number: stage for stage, number in _STAGES.items()}
    if message.stage not in stages:
        raise ValueError(f'the stage of an event is {message.stage}, which is none')
    return Event(
        message.run_id,
        message.tool,
        message.segment,
        stages[message.stage],
        nanoseconds_of(message.header.stamp),
        message.detail,
    )


def _finite_or_none(value: float) -> float | None:
    """The number, or None for NaN (how messages say that there is none)."""
    return None if math.isnan(value) else value
