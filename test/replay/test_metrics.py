"""How well a judge judges, in numbers that never hide what they rest on."""

from __future__ import annotations

from dataclasses import replace
import json
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest
from scored_results import result

from harness_eval.replay.metrics import score
from harness_eval.replay.results import Result, Truth
from harness_eval.replay.scores import Bin, Number, Rate, RiskPoint, ToolScores

pytestmark = pytest.mark.filterwarnings('error')

EVERY = ('success', 'failure', 'process', 'abstained', 'error', 'interrupted')


def of(*results: Result) -> ToolScores:
    return score(results).overall


def several(count: int, said: str, truth: bool | None, **more: Any) -> list[Result]:
    return [result(said, truth, **more) for _ in range(count)]


MIXED = (
    *several(45, 'success', True),
    *several(5, 'failure', True),
    *several(2, 'success', False),
    *several(38, 'failure', False),
    *several(3, 'process', False),
    *several(1, 'process', True),
    *several(4, 'abstained', True),
    *several(2, 'error', False),
    *several(7, 'interrupted', False),
    *several(10, 'success', None),
)


def test_counts_say_what_the_numbers_rest_on() -> None:
    scores = of(*MIXED)
    assert (scores.results, scores.labelled, scores.unlabelled) == (117, 107, 10)
    assert (scores.interrupted, scores.decided, scores.circular) == (7, 90, 0)
    assert scores.confusion == {
        'success': {'success': 45, 'failure': 5, 'process': 1, 'abstained': 4, 'error': 0},
        'failure': {'success': 2, 'failure': 38, 'process': 3, 'abstained': 0, 'error': 2},
    }


def test_rates_are_those_of_the_books() -> None:
    scores = of(*MIXED)
    assert scores.balanced_accuracy.value == pytest.approx((45 / 50 + 38 / 40) / 2)
    assert scores.false_success.value == pytest.approx(2 / 40)
    assert scores.false_success_of_verdicts.value == pytest.approx(2 / 47)
    assert scores.false_failure.value == pytest.approx(5 / 50)
    # Observed 83 of 90; expected by chance (50 * 47 + 40 * 43) / 90**2.
    chance = (50 * 47 + 40 * 43) / 90**2
    assert scores.kappa.value == pytest.approx((83 / 90 - chance) / (1 - chance))
    assert scores.coverage.value == pytest.approx(104 / 110)
    assert (scores.coverage.count, scores.coverage.of) == (104, 110)


def test_intervals_are_those_of_wilson() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3 (score): 81/263 and 0/20.
    rate = of(*several(81, 'success', False), *several(182, 'failure', False)).false_success
    assert (rate.low, rate.high) == (
        pytest.approx(0.2553, abs=5e-5),
        pytest.approx(0.3662, abs=5e-5),
    )
    rate = of(*several(20, 'failure', False)).false_success
    assert (rate.low, rate.high) == (
        pytest.approx(0.0, abs=1e-12),
        pytest.approx(0.1611, abs=5e-5),
    )


def test_nothing_is_in_a_rate_but_decided_results_with_a_truth() -> None:
    decided = of(*MIXED)
    again = of(*(one for one in MIXED if one.outcome.verdict is None), *MIXED)
    assert _rates(again) == _rates(decided)
    assert again.coverage.value is not None
    assert decided.coverage.value is not None
    assert again.coverage.value < decided.coverage.value


def test_each_tool_has_its_own_numbers_and_all_have_theirs() -> None:
    scores = score([
        *several(3, 'success', True, tool='place'),
        *several(2, 'success', False, tool='pick'),
    ])  # fmt: skip
    assert list(scores.per_tool) == ['pick', 'place']
    assert scores.per_tool['pick'].false_success.value == 1.0
    assert scores.per_tool['place'].false_success.value is None
    assert (scores.overall.tool, scores.overall.decided) == ('', 5)
    assert scores.per_tool['pick'].tool == 'pick'


@pytest.mark.parametrize(
    ('results', 'number', 'reason'),
    [
        ([], 'balanced_accuracy', 'no labelled result'),
        ([], 'coverage', 'nothing was judged'),
        ([result('interrupted', True)], 'coverage', 'nothing was judged'),
        ([result('success')], 'kappa', 'no labelled result'),
        ([result('success', True)], 'balanced_accuracy', 'every decided run truly succeeded'),
        ([result('success', False)], 'kappa', 'every decided run truly failed'),
        ([result('success', True)], 'false_success', 'no decided run truly failed'),
        ([result('success', False)], 'false_failure', 'no decided run truly succeeded'),
        ([result('failure', False)], 'false_success_of_verdicts', 'no verdict is success'),
        ([result('process', False)], 'false_success', 'no labelled result has the verdict'),
        ([result('success', True)], 'brier', 'no labelled verdict carries a score'),
        ([result('success', True)], 'calibration_error', 'no labelled verdict carries a score'),
        ([result('process', True, score=0.6)], 'risk_area', 'no decided result carries a score'),
    ],
)
def test_a_number_that_is_not_defined_is_none_and_says_why(
    results: list[Result], number: str, reason: str
) -> None:
    found = getattr(of(*results), number)
    assert found.value is None
    assert found.reason.startswith(reason)


def test_scores_are_held_against_the_truth() -> None:
    scores = of(
        result('success', True, score=0.95),
        result('success', False, score=0.97),
        result('failure', False, score=0.15),
        result('process', True, score=0.15),
        result('abstained', True, score=0.7),
        result('success', True),
    )
    assert scores.scored == 4
    errors = [0.05**2, 0.97**2, 0.15**2, 0.85**2]
    assert scores.brier.value == pytest.approx(sum(errors) / 4)
    assert scores.calibration == (
        Bin(2, pytest.approx(0.15), 0.5), Bin(2, pytest.approx(0.96), 0.5),
    )  # fmt: skip
    assert scores.calibration_error.value == pytest.approx((0.35 + 0.46) / 2)


def test_a_bin_weighs_as_much_in_the_calibration_error_as_it_holds() -> None:
    scores = of(*several(3, 'success', True, score=0.95), *several(1, 'failure', True, score=0.15))
    assert scores.calibration_error.value == pytest.approx((3 * 0.05 + 0.85) / 4)


@pytest.mark.parametrize('truth', [True, False])
def test_scores_of_one_class_have_a_brier_score_too(truth: bool) -> None:
    scores = of(*several(3, 'success', truth, score=0.9))
    assert scores.brier.value == pytest.approx(0.01 if truth else 0.81)
    assert scores.calibration_error.value == pytest.approx(0.1 if truth else 0.9)


@pytest.mark.parametrize('edge', [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_a_score_on_the_edge_of_a_bin_is_counted_once(edge: float) -> None:
    scores = of(result('process', True, score=edge), result('process', False, score=edge))
    assert [one.count for one in scores.calibration] == [2]


def test_the_risk_falls_with_what_is_accepted() -> None:
    # Confidences 0.99 (right), 0.95 (right), 0.9 (one right, one wrong), 0.75 (wrong).
    scores = of(
        result('success', True, score=0.99),
        result('failure', False, score=0.05),
        result('success', False, score=0.9),
        result('success', True, score=0.9),
        result('failure', True, score=0.25),
    )
    assert scores.risk == (
        RiskPoint(0.99, 0.2, 0.0),
        RiskPoint(0.95, 0.4, 0.0),
        RiskPoint(0.9, 0.8, 0.25),
        RiskPoint(0.75, 1.0, pytest.approx(0.4)),
    )
    assert scores.risk_area.value == pytest.approx((0 + 0 + 0.25 + 0.25 + 0.4) / 5)


def test_an_oracle_that_decides_is_not_held_against_itself() -> None:
    decided = result('success', True, truth_from='oracle', route='oracle:sim')
    scores = of(decided, result('success', False, truth_from='oracle'))
    assert (scores.labelled, scores.unlabelled, scores.circular) == (1, 1, 1)
    assert scores.false_success.of == 1
    assert of(replace(decided, truth=Truth(False, 'label'))).false_success.value == 1.0


def test_costs_that_are_not_known_are_not_zero() -> None:
    cost = of(
        result('success', True, cost=0.02),
        result('failure', None, cost=0.04),
        result('failure', False),
        result('failure', False, cost=math.nan),
        result('error'),
    ).cost
    assert (cost.total.value, cost.mean.value) == (pytest.approx(0.06), pytest.approx(0.03))
    assert (cost.known, cost.of) == (2, 4)
    assert of(result('success')).cost.total == Number(None, 'no verdict tells its cost')


def test_latency_is_measured_or_else_what_is_on_record() -> None:
    timed = [result('success', seconds=float(second)) for second in range(1, 100)]
    latency = of(*timed, result('error', seconds=1000.0)).latency
    assert (latency.median.value, latency.measured, latency.recorded) == (50.5, 100, 0)
    assert latency.p95.value == pytest.approx(95.05)
    latency = of(
        result('success', decided_after=2.0),
        result('abstained', decided_after=4.0),
        result('success', decided_after=-3.0),
        result('success', seconds=6.0, decided_after=90.0),
        result('interrupted', seconds=500.0),
    ).latency
    assert (latency.median.value, latency.measured, latency.recorded) == (4.0, 1, 2)
    assert of(result('success')).latency.median.reason == 'no time is known'


def test_what_no_evaluator_was_asked_about_has_no_latency() -> None:
    never = result('error', evaluator='', decided_after=3.3)
    latency = of(result('success', decided_after=0.2), never).latency
    assert (latency.p95.value, latency.recorded) == (0.2, 1)
    assert of(never).latency.median.value is None


numbers = st.floats(0.0, 1.0) | st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0])
results = st.builds(
    result,
    st.sampled_from(EVERY),
    st.sampled_from([True, False, None]),
    score=st.none() | numbers,
    tool=st.sampled_from(['pick', 'place']),
    truth_from=st.sampled_from(['label', 'oracle']),
    route=st.sampled_from(['', 'oracle:sim']),
    cost=st.none() | st.floats(allow_nan=True),
    seconds=st.floats(0.0, 1e300) | st.just(math.nan),
    decided_after=st.floats(-1e6, 1e6),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(results, max_size=30), st.lists(results, max_size=5))
def test_any_mixture_has_numbers_within_their_range(
    mixture: list[Result], more: list[Result]
) -> None:
    scores = score(mixture)
    json.dumps(scores.to_plain(), allow_nan=False)
    assert sum(one.results for one in scores.per_tool.values()) == scores.overall.results
    for one in (scores.overall, *scores.per_tool.values()):
        for rate in (one.coverage, one.false_success, one.false_success_of_verdicts,
                     one.false_failure):  # fmt: skip
            _in_range(rate)
        for name, low, high in (('balanced_accuracy', 0.0, 1.0), ('kappa', -1.0, 1.0),
                                ('brier', 0.0, 1.0), ('calibration_error', 0.0, 1.0),
                                ('risk_area', 0.0, 1.0)):  # fmt: skip
            number = getattr(one, name)
            assert (number.value is None) == bool(number.reason)
            assert number.value is None or low - 1e-9 <= number.value <= high + 1e-9
        assert sum(one.count for one in one.calibration) == one.scored
        assert [p.coverage for p in one.risk] == sorted(p.coverage for p in one.risk)
        assert not one.risk or one.risk[-1].coverage == 1.0
    beside = [one for one in more if one.outcome.verdict is None]
    assert _rates(score([*mixture, *beside]).overall) == _rates(scores.overall)


def _in_range(rate: Rate) -> None:
    assert (rate.value is None) == bool(rate.reason) == (rate.of == 0)
    if rate.value is not None:
        assert rate.low is not None
        assert rate.high is not None
        assert 0.0 <= rate.low <= rate.value + 1e-12
        assert rate.value - 1e-12 <= rate.high <= 1.0


def _rates(scores: ToolScores) -> tuple[Any, ...]:
    """All that an error or an abstention must not change."""
    return (
        scores.decided, scores.balanced_accuracy, scores.false_success, scores.kappa,
        scores.false_success_of_verdicts, scores.false_failure, scores.brier,
        scores.calibration_error, scores.calibration, scores.risk, scores.risk_area,
        scores.cost.total,
    )  # fmt: skip
