"""Outcomes, verdicts and events as messages."""

from __future__ import annotations

from typing import Any

from builtin_interfaces.msg import Time
from std_msgs.msg import Header

from harness_eval import outcome_messages
from harness_eval.ledger import UpdateRecord
from harness_eval.outcome_messages import HEADER_TYPE, OUTCOME_TYPE, TIME_TYPE, VERDICT_TYPE
from harness_eval.runs import Outcome
from harness_eval.stages import Event, Stage
from harness_eval.times import nanoseconds_of, sec_and_nanosec
from harness_eval_msgs.msg import EvaluationEvent, RunOutcome, SceneGraphRejection
from harness_eval_msgs.msg import Verdict as VerdictMessage

_CLASSES = {
    OUTCOME_TYPE: RunOutcome,
    VERDICT_TYPE: VerdictMessage,
    HEADER_TYPE: Header,
    TIME_TYPE: Time,
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
    return outcome_messages.verdict_message(outcome, _new)


def outcome_message(outcome: Outcome) -> RunOutcome:
    """An outcome as a message."""
    return outcome_messages.outcome_message(outcome, _new)


def _new(name: str, **fields: Any) -> Any:
    return _CLASSES[name](**fields)


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
