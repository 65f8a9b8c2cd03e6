"""A post-condition judged by its checks."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from judged_world import make_request, make_state, make_view, plain
import pytest

from harness_eval.config.checks import Check
from harness_eval.config.evaluators import ChecksSettings
from harness_eval.contract import DecodeError, EvaluationRequest, EvaluatorError, Status, Verdict
from harness_eval.evaluators import build_evaluator, EvaluatorContext
from harness_eval.evaluators.checks import run_check
from harness_eval.judging import interpret, Thresholds


def state_check(name: str, low: float, high: float, **rest: Any) -> dict[str, Any]:
    return {'state': {'name': name, 'between': [low, high]}, **rest}


def judge(request: EvaluationRequest, thresholds: Thresholds | None = None) -> Verdict:
    thresholds = thresholds or Thresholds()
    context = EvaluatorContext(thresholds)
    evaluator = build_evaluator('cell', ChecksSettings(kind='checks'), context)
    answer = evaluator.evaluate(request)
    verdict = interpret(answer, request, thresholds, evaluator=evaluator.ref, share=True)
    assert verdict == answer  # it keeps all rules by itself
    return verdict


GRIPPER = make_state('gripper', 0.02)
HELD = state_check('gripper', 0.005, 0.060)
OPEN = state_check('gripper', 0.070, 0.080)


def test_success_gives_each_measured_value_beside_its_bound() -> None:
    verdict = judge(make_request(GRIPPER, checks=(HELD,)))
    assert verdict == Verdict(
        Status.SUCCESS, ('state gripper: 0.02, wanted within [0.005, 0.06]: holds',), score=1.0
    )


def test_one_required_check_that_fails_is_failure_whatever_the_score() -> None:
    verdict = judge(make_request(GRIPPER, checks=({**HELD, 'weight': 1000}, OPEN)))
    assert verdict.status is Status.FAILURE
    assert verdict.score == pytest.approx(1000 / 1001)
    assert verdict.failure_reason == 'state gripper: 0.02, wanted within [0.07, 0.08]: fails'
    assert verdict.failure_kind == 'post_condition'
    assert [line[-5:] for line in verdict.evidence] == ['holds', 'fails']


def test_an_optional_check_may_fail_and_lowers_the_score() -> None:
    verdict = judge(make_request(GRIPPER, checks=(HELD, {**OPEN, 'optional': True, 'weight': 3})))
    assert (verdict.status, verdict.score) == (Status.SUCCESS, 0.25)
    assert verdict.evidence[1].endswith(': fails (optional)')


def test_the_failure_kind_is_that_of_the_first_failed_check_that_names_one() -> None:
    checks = (
        {**HELD, 'failure_kind': 'unused'},
        OPEN,
        {**OPEN, 'optional': True, 'failure_kind': 'unused'},
        {**OPEN, 'failure_kind': 'dropped'},
        {**OPEN, 'failure_kind': 'missed_grasp'},
    )
    verdict = judge(
        make_request(GRIPPER, checks=checks, failure_kinds=('dropped', 'missed_grasp'))
    )
    assert verdict.failure_kind == 'dropped'
    assert verdict.failure_reason.count('fails') == 3


def test_a_segment_tool_that_is_part_of_the_way_gets_process() -> None:
    request = make_request(GRIPPER, checks=(HELD, OPEN), process_allowed=True)
    verdict = judge(request)
    assert (verdict.status, verdict.score) == (Status.PROCESS, 0.5)
    assert verdict.failure_reason == ''


def test_a_segment_tool_below_the_failure_threshold_gets_failure() -> None:
    request = make_request(GRIPPER, checks=(HELD, OPEN, OPEN), process_allowed=True)
    assert judge(request).status is Status.FAILURE


def test_a_segment_tool_whose_checks_all_hold_gets_success() -> None:
    request = make_request(GRIPPER, checks=(HELD,), process_allowed=True)
    assert judge(request).status is Status.SUCCESS


def test_a_high_outcome_threshold_does_not_make_an_optional_check_required() -> None:
    checks = (HELD, {**OPEN, 'optional': True})
    assert judge(make_request(GRIPPER, checks=checks), Thresholds(1.0, 0.9)).status is (
        Status.SUCCESS
    )


@pytest.mark.parametrize('checks', [(), ({**HELD, 'optional': True},)])
def test_without_a_required_check_there_is_no_verdict(checks: tuple[Any, ...]) -> None:
    with pytest.raises(EvaluatorError) as caught:
        judge(make_request(GRIPPER, checks=checks))
    assert caught.value.kind == 'no_checks'


@pytest.mark.parametrize('failing', [False, True])
def test_a_check_that_cannot_be_made_is_an_error_whatever_the_others_say(failing: bool) -> None:
    color = {'view': 'front', 'lower': [0, 0, 0], 'upper': [9, 9, 9], 'coverage': [0.1, 1.0]}
    checks = (OPEN if failing else HELD, {'color': color, 'optional': True})
    view = make_view('front', DecodeError('truncated_image', 'half a JPEG'))
    with pytest.raises(DecodeError, match='half a JPEG'):
        judge(make_request(GRIPPER, view, checks=checks))


@pytest.mark.parametrize(
    ('check', 'kind'),
    [(state_check('lid', 0, 1), 'missing_state'),
     ({'marker': {'view': 'wrist', 'dictionary': 'DICT_4X4_50', 'id': 1, 'visible': False}},
      'missing_view'),
     ({'change': {'view': 'front', 'reference': 'goal', 'fraction': [0, 0.1]}},
      'missing_reference'),
     ({'similar': {'view': 'front', 'reference': 'goal', 'at_least': 0.9}}, 'missing_reference')],
)  # fmt: skip
def test_a_check_of_what_was_not_captured_is_an_error(check: Mapping[str, Any], kind: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        judge(make_request(GRIPPER, make_view('front', plain(9)), checks=(check,)))
    assert caught.value.kind == kind


def test_a_named_check_keeps_its_name_and_its_view() -> None:
    color = {'view': 'front', 'lower': [0, 0, 0], 'upper': [9, 9, 9], 'coverage': [0.1, 1.0]}
    check = Check.model_validate({'color': color, 'name': 'the table is dark'})
    found = run_check(check, make_request(make_view('front', plain((5, 5, 5)))))
    assert (found.name, found.holds, found.view) == ('the table is dark', True, 'front')
    assert found.evidence == (
        'the table is dark (front): covers 1 of the picture, wanted within [0.1, 1]: holds'
    )


def measured(value: float | tuple[float, ...], low: float, high: float) -> Any:
    check = Check.model_validate(state_check('reading', low, high))
    return run_check(check, make_request(make_state('reading', value)))


@pytest.mark.parametrize(
    ('value', 'low', 'high', 'holds'),
    [(1.0, 1.0, 2.0, True), (2.0, 1.0, 2.0, True), (0.999999, 1.0, 2.0, False),
     (math.inf, 0.0, 5.0, False), (-math.inf, 0.0, 5.0, False),
     ((1.0, 1.5, 2.0), 1.0, 2.0, True), ((1.0, 1.5, 2.1), 1.0, 2.0, False)],
)  # fmt: skip
def test_a_reading_holds_within_its_bounds_both_included(
    value: float | tuple[float, ...], low: float, high: float, holds: bool
) -> None:
    assert measured(value, low, high).holds is holds


def test_a_reading_just_outside_is_not_rounded_onto_its_bound() -> None:
    assert measured(0.99999999, 1.0, 2.0).evidence == (
        'state reading: 0.99999999, wanted within [1, 2]: fails'
    )


def test_several_values_are_summed_up_in_one_line() -> None:
    assert measured((0.5, 1.5, 2.5), 1.0, 2.0).evidence == (
        'state reading: 3 values from 0.5 to 2.5, 2 outside, wanted within [1, 2]: fails'
    )


@pytest.mark.parametrize(
    ('value', 'kind'),
    [(math.nan, 'not_a_number'), ((1.0, math.nan), 'not_a_number'), ((), 'empty_reading')],
)
def test_a_reading_that_is_none_is_an_error_and_no_failure(value: Any, kind: str) -> None:
    with pytest.raises(EvaluatorError) as caught:
        measured(value, 0.0, 2.0)
    assert caught.value.kind == kind


WEIGHTS = st.floats(1e-300, 1e300)


@given(
    checks=st.lists(st.tuples(st.booleans(), st.booleans(), WEIGHTS), min_size=1, max_size=8),
    process_allowed=st.booleans(),
    failure=st.floats(0.0, 0.9),
)
def test_it_is_success_exactly_if_every_required_check_holds(
    checks: list[tuple[bool, bool, float]], process_allowed: bool, failure: float
) -> None:
    written = tuple(
        {**(HELD if holds else OPEN), 'optional': optional, 'weight': weight}
        for holds, optional, weight in checks
    )
    request = make_request(GRIPPER, checks=written, process_allowed=process_allowed)
    if all(optional for _holds, optional, _weight in checks):
        with pytest.raises(EvaluatorError):
            judge(request)
        return
    verdict = judge(request, Thresholds(0.9, failure))
    assert verdict.score is not None
    assert 0.0 <= verdict.score <= 1.0
    total = sum(Fraction(weight) for _holds, _optional, weight in checks)
    held = sum(Fraction(weight) for holds, _optional, weight in checks if holds)
    assert verdict.score == pytest.approx(float(held / total), abs=1e-9)
    required_hold = all(holds for holds, optional, _weight in checks if not optional)
    assert (verdict.status is Status.SUCCESS) == required_hold
    assert (verdict.status is Status.PROCESS) == (
        not required_hold and process_allowed and verdict.score >= failure
    )
