"""What an evaluator's answer means."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from judged_world import make_request
import numpy as np
import pytest

from harness_eval.contract import Abstention, EvaluationError, EvaluatorError, Status, Verdict
from harness_eval.judging import doubted, interpret, MAX_FAILURE_REASON, Thresholds, Unsure

PLAIN = make_request(failure_kinds=('dropped',))
SEGMENT = make_request(failure_kinds=('dropped',), process_allowed=True)
DEFAULT = Thresholds()


def judged(answer: object, *, request: Any = PLAIN, clamp: bool = False) -> Verdict:
    return interpret(answer, request, DEFAULT, evaluator='test:judge', clamp=clamp)


def fault(answer: object, *, request: Any = PLAIN, clamp: bool = False) -> EvaluationError:
    with pytest.raises(EvaluationError) as caught:
        judged(answer, request=request, clamp=clamp)
    assert caught.value.evaluator == 'test:judge'
    return caught.value


@pytest.mark.parametrize('answer', [True, np.True_, np.array(True)])
def test_true_is_success(answer: object) -> None:
    assert judged(answer) == Verdict(Status.SUCCESS, ('the evaluator answered True',))


@pytest.mark.parametrize('answer', [False, np.False_, np.array(False)])
def test_false_is_failure_with_a_reason(answer: object) -> None:
    verdict = judged(answer)
    assert verdict.status is Status.FAILURE
    assert verdict.failure_reason == 'the evaluator answered False'
    assert verdict.failure_kind == 'post_condition'


@pytest.mark.parametrize(
    'answer',
    [1, 0.95, np.float64(0.95), np.float32(0.95), np.int8(1), np.array(0.95), Decimal('0.95'),
     Fraction(19, 20)],
)  # fmt: skip
def test_every_real_number_is_a_score(answer: object) -> None:
    verdict = judged(answer)
    assert verdict.status is Status.SUCCESS
    assert verdict.score == pytest.approx(float(answer), abs=1e-7)  # type: ignore[arg-type]
    assert type(verdict.score) is float


class Tensor:
    """What torch and jax return: no number class, but a shape, a dtype and __float__."""

    def __init__(self, value: Any, shape: tuple[int, ...], dtype: str) -> None:
        self.value, self.shape, self.dtype = value, shape, dtype

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)


def test_a_tensor_without_dimensions_is_a_score() -> None:
    assert judged(Tensor(0.97, (), 'torch.float32')).score == 0.97


def test_a_boolean_tensor_without_dimensions_is_a_bool() -> None:
    assert judged(Tensor(False, (), 'torch.bool')).failure_reason == 'the evaluator answered False'


@pytest.mark.parametrize(
    ('score', 'status'),
    [(0.9, Status.SUCCESS), (1.0, Status.SUCCESS), (0.0, Status.FAILURE), (-0.0, Status.FAILURE),
     (0.49999999, Status.FAILURE)],
)  # fmt: skip
def test_the_outcome_threshold_is_included_and_the_failure_threshold_is_not(
    score: float, status: Status
) -> None:
    assert judged(score).status is status


@pytest.mark.parametrize('score', [0.5, 0.7, 0.8999999])
def test_between_the_thresholds_a_segment_tool_gets_process(score: float) -> None:
    verdict = judged(score, request=SEGMENT)
    assert (verdict.status, verdict.score) == (Status.PROCESS, score)


@pytest.mark.parametrize('score', [0.5, 0.7, 0.8999999])
def test_between_the_thresholds_another_tool_gets_an_abstention(score: float) -> None:
    error = fault(score)
    assert isinstance(error, Abstention)
    assert (error.kind, error.score) == ('unsure', score)


def test_a_failing_score_stands_in_evidence_and_reason() -> None:
    verdict = judged(0.25)
    assert verdict.evidence == ('score 0.25, below the failure threshold 0.5',)
    assert verdict.failure_reason == 'score 0.25, below the failure threshold 0.5'
    assert verdict.score == 0.25


def test_a_score_just_below_its_threshold_is_not_rounded_onto_it() -> None:
    assert judged(0.4999999).evidence[0].startswith('score 0.4999999, below')


def test_none_abstains() -> None:
    error = fault(None)
    assert isinstance(error, Abstention)
    assert error.kind == 'no_answer'


@pytest.mark.parametrize(
    'answer',
    [3.7, -0.01, 1.0000001, float('inf'), float('-inf'), float('nan'), np.float32('nan'),
     np.array(2), 10**400, Decimal('NaN'), Fraction(-1, 3)],
)  # fmt: skip
def test_a_score_outside_0_to_1_is_an_error(answer: object) -> None:
    error = fault(answer)
    assert isinstance(error, EvaluatorError)
    assert error.kind == 'score_out_of_range'


def test_clamp_cuts_a_finite_score_and_says_so() -> None:
    verdict = judged(3.7, clamp=True)
    assert (verdict.status, verdict.score) == (Status.SUCCESS, 1.0)
    assert verdict.evidence[1] == 'warning: the score 3.7 was outside [0, 1] and was cut to 1'
    assert judged(-2, clamp=True).score == 0.0


@pytest.mark.parametrize('answer', [float('nan'), float('inf'), 10**400])
def test_clamp_never_cuts_what_is_not_finite(answer: object) -> None:
    assert fault(answer, clamp=True).kind == 'score_out_of_range'


@pytest.mark.parametrize(
    ('answer', 'named'),
    [('0.95', 'a str'), (b'1', 'a bytes'), ({'score': 1.0}, 'a dict'), ((True, 'why'), 'a tuple'),
     ([0.9], 'a list'), (1 + 0j, 'a complex'), (np.complex128(1), 'a complex128'),
     (np.array([0.9]), 'a ndarray of shape (1,)'), (np.array(['0.9'])[0], 'a str'),
     (Tensor(0.9, (1,), 'torch.float32'), 'a Tensor of shape (1,)'), (object(), 'an object'),
     (Status.SUCCESS, 'a Status'), (float, 'a type'), (np.timedelta64(1), 'a timedelta64'),
     (lambda: 1.0, 'a function'), (Decimal('sNaN'), 'a Decimal')],
)  # fmt: skip
def test_any_other_type_is_an_error_that_names_it(answer: object, named: str) -> None:
    error = fault(answer)
    assert isinstance(error, EvaluatorError)
    assert error.kind == 'malformed_answer'
    assert named in error.message


def test_a_coroutine_that_nobody_awaited_is_an_error() -> None:
    coroutine = asyncio.sleep(0)
    assert 'coroutine' in fault(coroutine).message
    coroutine.close()


def test_process_from_a_tool_without_segments_is_an_error() -> None:
    assert fault(Verdict(Status.PROCESS)).kind == 'process_not_allowed'
    assert judged(Verdict(Status.PROCESS), request=SEGMENT).status is Status.PROCESS


@pytest.mark.parametrize('kind', ['post_condition', 'stalled', 'dropped'])
def test_a_known_failure_kind_is_kept(kind: str) -> None:
    answer = Verdict(Status.FAILURE, failure_reason='it fell', failure_kind=kind)
    assert judged(answer).failure_kind == kind


@pytest.mark.parametrize('kind', ['segment_budget', 'wrong_object', 'Dropped'])
def test_an_unknown_failure_kind_is_an_error(kind: str) -> None:
    answer = Verdict(Status.FAILURE, failure_reason='it fell', failure_kind=kind)
    error = fault(answer)
    assert error.kind == 'unknown_failure_kind'
    assert kind in error.message


def test_evidence_is_one_clean_line_each() -> None:
    answer = Verdict(
        Status.SUCCESS,
        ('held\nby \x1b[31mthe\x00 gripper\u202e', '  \x07 ', 'a\ud800b', 'é\u2028x'),
    )
    assert judged(answer).evidence == ('held by [31mthe gripper', 'ab', 'é x')


def test_evidence_is_cut_with_a_mark() -> None:
    answer = Verdict(Status.SUCCESS, tuple(f'line {i}' for i in range(100)))
    evidence = judged(answer).evidence
    assert len(evidence) == 64
    assert evidence[62] == 'line 62'
    assert evidence[63] == '… (37 more lines were cut)'


def test_a_long_line_is_cut_with_a_mark() -> None:
    line = judged(Verdict(Status.SUCCESS, ('x' * 1_000_000,))).evidence[0]
    assert len(line) == 500
    assert line.endswith('x … (cut)')


def test_a_line_of_500_characters_is_kept_whole() -> None:
    assert judged(Verdict(Status.SUCCESS, ('x' * 500,))).evidence == ('x' * 500,)


def test_a_failure_reason_is_bounded_and_clean() -> None:
    reason = judged(Verdict(Status.FAILURE, failure_reason='it\nfell ' * 1000)).failure_reason
    assert reason.startswith('it fell it fell')
    assert len(reason) <= MAX_FAILURE_REASON


@pytest.mark.parametrize(
    'fields',
    [{'evidence': 'one string'}, {'evidence': (1,)}, {'evidence': None}, {'score': '0.9'},
     {'score': True}, {'score': float('nan')}, {'score': 1.5}, {'cost': float('inf')},
     {'cost': -1}, {'cost': 'free'}, {'route': None}, {'report': 'text'},
     {'report': {'x': float('nan')}}, {'report': {'x': object()}},
     {'report': {'x': 'y' * 300_000}}, {'report': {'x': '\ud800'}},
     {'failure_reason': 'why'}, {'status': 'success'}],
)  # fmt: skip
def test_a_verdict_with_a_malformed_field_is_an_error(fields: dict[str, Any]) -> None:
    answer = Verdict(Status.SUCCESS)
    for field, value in fields.items():
        object.__setattr__(answer, field, value)
    assert fault(answer).kind == 'malformed_answer'


def test_a_failure_whose_reason_is_only_control_characters_is_an_error() -> None:
    assert fault(Verdict(Status.FAILURE, failure_reason='\x00\x01')).kind == 'malformed_answer'


def test_a_report_becomes_plain_json() -> None:
    report = {'depth': np.float64(0.5), 'hits': np.arange(2), 'parts': ('a', 'b')}
    answer = Verdict(Status.SUCCESS, report=report, score=np.float32(1.0), cost=0)
    verdict = judged(answer)
    assert verdict.report == {'depth': 0.5, 'hits': [0, 1], 'parts': ['a', 'b']}
    assert type(verdict.score) is float


@pytest.mark.parametrize(('outcome', 'failure'), [(0.4, 0.5), (1.1, 0.5), (0.9, -0.1), (0.0, 0.0),
                                                  (float('nan'), 0.5)])  # fmt: skip
def test_thresholds_that_decide_nothing_are_refused(outcome: float, failure: float) -> None:
    with pytest.raises(ValueError, match='threshold'):
        Thresholds(outcome, failure)


@given(
    score=st.floats(),
    outcome=st.floats(0.01, 1.0),
    failure=st.floats(0.0, 1.0),
    segment=st.booleans(),
    clamp=st.booleans(),
)
def test_a_score_is_success_exactly_at_or_above_the_outcome_threshold(
    score: float, outcome: float, failure: float, segment: bool, clamp: bool
) -> None:
    thresholds = Thresholds(outcome, min(failure, outcome))
    request = SEGMENT if segment else PLAIN
    valid = 0.0 <= score <= 1.0 or (clamp and np.isfinite(score))
    try:
        verdict = interpret(score, request, thresholds, evaluator='x', clamp=clamp)
    except Abstention:
        assert valid
        assert not segment
        assert thresholds.failure <= max(score, 0.0) < outcome
    except EvaluatorError:
        assert not valid
    else:
        assert valid
        assert verdict.score == min(max(score, 0.0), 1.0)
        assert (verdict.status is Status.SUCCESS) == (verdict.score >= outcome)
        assert (verdict.status is Status.FAILURE) == (verdict.score < thresholds.failure)


@given(
    st.one_of(
        st.none(), st.text(), st.binary(), st.lists(st.floats()), st.complex_numbers(),
        st.dictionaries(st.text(), st.floats()), st.dates(), st.timedeltas(), st.uuids(),
        st.integers(min_value=2), st.integers(max_value=-1), st.decimals(min_value=2),
    )
)  # fmt: skip
def test_nothing_else_ever_becomes_a_verdict(answer: object) -> None:
    with pytest.raises(EvaluationError):
        judged(answer, request=SEGMENT)


def test_a_score_in_the_unsure_band_is_an_abstention_that_keeps_the_verdict() -> None:
    verdict = Verdict(Status.SUCCESS, score=0.92)
    found = doubted(verdict, (0.4, 0.92), 'test:judge')
    assert isinstance(found, Unsure)
    assert (found.kind, found.evaluator, found.verdict) == ('unsure', 'test:judge', verdict)
    assert found.score == 0.92


@pytest.mark.parametrize('score', [None, 0.39, 0.921])
def test_a_score_outside_the_unsure_band_or_none_leaves_the_verdict(score: float | None) -> None:
    verdict = Verdict(Status.SUCCESS, score=score)
    assert doubted(verdict, (0.4, 0.92), 'test:judge') is verdict
    assert doubted(verdict, None, 'test:judge') is verdict


@pytest.mark.parametrize(
    'answer',
    [np.ma.array(True, mask=True), np.ma.array(1.0, mask=True), np.ma.array(1, mask=True),
     np.ma.array([1.0], mask=True)[0], np.ma.masked],
)  # fmt: skip
def test_a_masked_answer_says_that_nothing_was_measured(answer: Any) -> None:
    with pytest.raises(EvaluatorError) as caught:
        interpret(answer, make_request(), Thresholds(), evaluator='plugin:a:b')
    assert caught.value.kind == 'malformed_answer'


def contradictory(status: Status, score: float) -> Verdict:
    reason = 'not held' if status is Status.FAILURE else ''
    return Verdict(status, ('seen',), failure_reason=reason, score=score)


@pytest.mark.parametrize(
    ('status', 'score', 'fits'),
    [(Status.SUCCESS, 0.0, False), (Status.SUCCESS, 0.49, False), (Status.SUCCESS, 0.5, True),
     (Status.FAILURE, 0.89, True), (Status.FAILURE, 0.9, False), (Status.FAILURE, 1.0, False)],
)  # fmt: skip
def test_a_verdict_whose_score_says_the_opposite_is_malformed(
    status: Status, score: float, fits: bool
) -> None:
    verdict = contradictory(status, score)
    if fits:
        found = interpret(verdict, make_request(), Thresholds(), evaluator='plugin:a:b')
        assert (found.status, found.score) == (status, score)
        return
    with pytest.raises(EvaluatorError, match=f'says {status.value}, but its score') as caught:
        interpret(verdict, make_request(), Thresholds(), evaluator='plugin:a:b')
    assert caught.value.kind == 'malformed_answer'


@pytest.mark.parametrize(('status', 'score'), [(Status.SUCCESS, 0.1), (Status.FAILURE, 0.95)])
def test_beside_a_weighted_share_other_rules_may_decide(status: Status, score: float) -> None:
    verdict = contradictory(status, score)
    found = interpret(verdict, make_request(), Thresholds(), evaluator='checks:a', share=True)
    assert found.status is status
