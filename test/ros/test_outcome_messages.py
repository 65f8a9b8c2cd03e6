"""A node's messages and those of a bag hold the same, by the same numbers."""

from __future__ import annotations

import math

import pytest
from rclpy.serialization import deserialize_message, serialize_message

from harness_eval.contract import Status, Verdict
from harness_eval.decode import Decoder
from harness_eval.outcome_messages import (
    outcome_bytes,
    outcome_of_bytes,
    outcome_of_message,
    OUTCOME_TYPE,
)
from harness_eval.ros.messages import outcome_message
from harness_eval.runs import Outcome, OutcomeKind
from harness_eval_msgs.msg import RunOutcome
from harness_eval_msgs.msg import Verdict as VerdictMessage

T_END = 1_700_000_000_123_456_789
BASE = {
    'run_id': 'run-1',
    'tool': 'pick',
    'segment': 2,
    'attempt': 3,
    'decided_at': T_END + 5,
    'evaluator': 'plugin:a:b',
    'input_digest': 'ab' * 32,
    'completed_at': T_END,
    'observed_from': T_END + 1,
    'observed_to': T_END + 2,
}
SUCCESS = Verdict(
    Status.SUCCESS, ('seen',), score=0.93, report={'depth': 1.5}, route='m', cost=0.1
)
PROCESS = Verdict(Status.PROCESS, ('half',))
FAILURE = Verdict(Status.FAILURE, (), failure_reason='gone', failure_kind='dropped')
OUTCOMES = [
    *(
        Outcome(**BASE, kind=OutcomeKind.VERDICT, verdict=one)
        for one in (SUCCESS, PROCESS, FAILURE)
    ),
    Outcome(**BASE, kind=OutcomeKind.ERROR, error_kind='clock_skew', message='m', retryable=True),
    Outcome(**BASE, kind=OutcomeKind.ABSTAINED, error_kind='unsure', message='m', score=0.7),
    Outcome(**BASE, kind=OutcomeKind.INTERRUPTED, message='by hand'),
]


@pytest.mark.parametrize('outcome', OUTCOMES, ids=lambda one: one.state.value)
def test_an_outcome_comes_back_from_the_message_of_a_node_and_from_a_bag(outcome: Outcome) -> None:
    decoder = Decoder()
    data = outcome_bytes(outcome, decoder)
    message = deserialize_message(data, RunOutcome)
    assert str(message) == str(outcome_message(outcome))  # NaN is not equal to itself
    assert outcome_of_message(message) == outcome
    assert outcome_of_bytes(OUTCOME_TYPE, serialize_message(message), decoder) == outcome


def test_the_numbers_are_those_of_the_definitions() -> None:
    kinds = [outcome_message(one).kind for one in OUTCOMES]
    assert kinds == [
        *[RunOutcome.VERDICT] * 3,
        RunOutcome.ERROR,
        RunOutcome.ABSTAINED,
        RunOutcome.INTERRUPTED,
    ]
    assert [outcome_message(one).verdict.status for one in OUTCOMES] == [
        VerdictMessage.SUCCESS,
        VerdictMessage.PROCESS,
        VerdictMessage.FAILURE,
        *[VerdictMessage.UNSET] * 3,
    ]


def test_what_is_not_there_is_nan_and_what_was_not_sure_enough_is_kept() -> None:
    scores = [outcome_message(one).verdict.score for one in OUTCOMES]
    assert scores[0] == 0.93
    assert [math.isnan(score) for score in scores] == [False, True, True, True, False, True]
    assert math.isnan(outcome_message(OUTCOMES[1]).verdict.cost)


@pytest.mark.parametrize('number', [RunOutcome.UNSET, 9])
def test_an_unknown_number_is_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f'the kind of an outcome is {number}, which is none'):
        outcome_of_message(RunOutcome(kind=number))
    message = outcome_message(OUTCOMES[0])
    message.verdict.status = number
    with pytest.raises(ValueError, match=f'the status of a verdict is {number}, which is none'):
        outcome_of_message(message)
