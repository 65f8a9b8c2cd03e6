"""What the answer of a judging service means; the calling itself is tested with real ROS 2."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from judged_world import make_request
import pytest

from harness_eval.config.evaluators import ServiceSettings
from harness_eval.contract import Abstention, EvaluationError, EvaluatorError, Status, Verdict
from harness_eval.evaluators import build_evaluator
from harness_eval.evaluators.service import read_reply
from harness_eval.evaluators.service_forms import (
    ABSTAIN,
    FAILURE,
    JudgeReply,
    PROCESS,
    SUCCESS,
    UNSET,
)
from harness_eval.judging import interpret, Thresholds


def read(clamp: bool = False, **fields: Any) -> Verdict:
    return read_reply(JudgeReply(**fields), make_request(), Thresholds(), 'service:x', clamp=clamp)


def fault(**fields: Any) -> tuple[str, bool]:
    with pytest.raises(EvaluatorError) as caught:
        read(**fields)
    assert caught.value.evaluator == 'service:x'
    return caught.value.kind, caught.value.retryable


def test_a_status_is_the_verdict_with_all_that_comes_with_it() -> None:
    verdict = read(
        status=FAILURE,
        evidence=('empty',),
        failure_reason='nothing is held',
        failure_kind='stalled',
        score=0.1,
        route='net-3',
        cost=0.5,
    )
    assert verdict == Verdict(
        Status.FAILURE, ('empty',), 'nothing is held', 'stalled', 0.1, None, 'net-3', 0.5
    )


def test_a_score_without_status_is_decided_by_the_thresholds_and_keeps_the_evidence() -> None:
    verdict = read(score=0.95, evidence=('seen',), route='net-3', cost=0.0)
    assert (verdict.status, verdict.score, verdict.route) == (Status.SUCCESS, 0.95, 'net-3')
    assert verdict.evidence[-1] == 'seen'
    assert read(score=0.0, evidence=('nothing',)).status is Status.FAILURE
    with pytest.raises(Abstention) as caught:
        read(score=0.7)
    assert caught.value.kind == 'unsure'


def test_clamp_cuts_a_score_without_status() -> None:
    assert read(score=1.2, clamp=True).score == 1.0


@pytest.mark.parametrize(
    ('fields', 'expected'),
    [
        ({}, 'malformed_answer'),
        ({'score': 0.0, 'cost': 0.0}, 'malformed_answer'),
        ({'status': 5, 'score': 1.0}, 'malformed_answer'),
        ({'status': 255}, 'malformed_answer'),
        ({'status': FAILURE}, 'malformed_answer'),
        ({'status': SUCCESS, 'failure_reason': 'it fell'}, 'malformed_answer'),
        ({'status': SUCCESS, 'failure_kind': 'dropped'}, 'malformed_answer'),
        ({'status': SUCCESS, 'score': 1.5}, 'malformed_answer'),
        ({'status': SUCCESS, 'score': math.inf}, 'malformed_answer'),
        ({'status': UNSET, 'score': 1.0, 'failure_reason': 'it fell'}, 'malformed_answer'),
        ({'status': ABSTAIN, 'failure_reason': 'it fell'}, 'malformed_answer'),
        ({'score': 1.5}, 'score_out_of_range'),
        ({'score': -math.inf}, 'score_out_of_range'),
    ],
)
def test_whatever_is_no_well_formed_answer_is_an_error(
    fields: dict[str, Any], expected: str
) -> None:
    assert fault(**fields) == (expected, False)


def test_an_error_of_the_service_outweighs_all_else_it_says() -> None:
    assert fault(status=SUCCESS, score=1.0, error='no GPU') == ('service_error', True)


def test_process_is_refused_where_it_is_not_allowed() -> None:
    verdict = read(status=PROCESS)
    with pytest.raises(EvaluatorError) as caught:
        interpret(verdict, make_request(), Thresholds(), evaluator='service:x')
    assert caught.value.kind == 'process_not_allowed'


def test_without_a_node_the_error_says_so() -> None:
    judge = build_evaluator('remote', ServiceSettings(kind='service', service='judge'))
    with pytest.raises(EvaluatorError) as caught:
        judge.evaluate(make_request())
    assert (caught.value.kind, caught.value.evaluator) == ('no_ros', 'service:judge')


@given(
    st.builds(
        JudgeReply,
        status=st.integers(0, 255),
        score=st.floats(),
        evidence=st.lists(st.text(max_size=5), max_size=2).map(tuple),
        failure_reason=st.text(max_size=5),
        failure_kind=st.sampled_from(['', 'dropped', 'stalled']),
        route=st.text(max_size=5),
        cost=st.floats(),
        error=st.sampled_from(['', '', 'no GPU', ' ']),
    )
)
def test_only_a_clean_success_is_ever_a_success(reply: JudgeReply) -> None:
    request = make_request(process_allowed=True)
    try:
        found = read_reply(reply, request, Thresholds(), 'x')
        verdict = interpret(found, request, Thresholds(), evaluator='x')
    except EvaluationError:
        return
    assert not reply.error
    if verdict.status is Status.SUCCESS:
        assert reply.status == SUCCESS or (reply.status == UNSET and 0.9 <= reply.score <= 1.0)
        assert not reply.failure_reason
        assert not reply.failure_kind
