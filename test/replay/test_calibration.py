"""The lowest threshold whose false successes are bounded: exact, and as often as it claims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta, binom
from scored_results import result

from harness_eval.contract import Status, Verdict
from harness_eval.replay.calibration import (
    calibrate,
    CalibrationError,
    counts,
    GRID,
    lowest_threshold,
    needed_cases,
    SHORT_GRID,
    Target,
    upper_bound,
)
from harness_eval.replay.calibration_cases import Cases, scored_cases
from harness_eval.replay.results import Result

DRAWS = 2000
Sample = Callable[[np.random.Generator, int], np.ndarray[Any, Any]]


def cases(failed: Any, succeeded: Any = (), tool: str = 'pick') -> Cases:
    scores = np.concatenate([np.asarray(failed, float), np.asarray(succeeded, float)])
    correct = np.arange(len(scores)) >= len(failed)
    return Cases(scores, correct, (tool,) * len(scores), {})


def refused(these: Cases, target: Target) -> CalibrationError:
    with pytest.raises(CalibrationError) as caught:
        calibrate(these, target)
    return caught.value


# --- the bound -----------------------------------------------------------------------------------


@pytest.mark.parametrize(('wrong', 'of'), [(0, 1), (0, 149), (1, 300), (5, 50), (50, 50)])
def test_the_upper_bound_is_that_of_clopper_and_pearson(wrong: int, of: int) -> None:
    expected = beta.ppf(0.95, wrong + 1, of - wrong) if wrong < of else 1.0
    assert upper_bound(wrong, of, 0.95) == pytest.approx(expected)


@pytest.mark.parametrize(
    ('wrong', 'maximum', 'confidence', 'needed'),
    [(0, 0.02, 0.95, 149), (0, 0.05, 0.95, 59), (0, 0.01, 0.99, 459), (1, 0.02, 0.95, 236),
     (0, 0.5, 0.5, 1)],
)  # fmt: skip
def test_the_fewest_cases_that_show_a_rate(
    wrong: int, maximum: float, confidence: float, needed: int
) -> None:
    target = Target(maximum, confidence)
    assert needed_cases(wrong, target) == needed
    assert upper_bound(wrong, needed, confidence) <= maximum
    assert needed == wrong + 1 or upper_bound(wrong, needed - 1, confidence) > maximum


def test_with_enough_failures_the_lowest_threshold_above_them_is_taken() -> None:
    found = calibrate(cases(np.linspace(0.0, 0.7312, 149), [0.7, 0.732, 0.95, 0.99]), Target())
    assert found.threshold == 0.732
    assert (found.wrong, found.of) == (0, 149)
    assert (found.passing.count, found.passing.of) == (3, 4)
    assert (found.unsure.count, found.unsure.of) == (
        sum(np.linspace(0.0, 0.7312, 149) >= 0.5) + 1, 153,
    )  # fmt: skip


def test_as_many_false_successes_are_let_through_as_the_bound_allows() -> None:
    failed = np.concatenate([np.full(235, 0.1), [0.8, 0.9]])  # 237 in all
    assert calibrate(cases(failed), Target()).threshold == 0.801
    assert needed_cases(2, Target()) > 237
    assert calibrate(cases(np.append(failed, [0.1] * 100)), Target()).threshold == 0.5


def test_a_score_at_the_threshold_counts_as_success() -> None:
    assert calibrate(cases([0.9] * 149), Target()).threshold == 0.901
    assert calibrate(cases([0.8999999] * 149), Target()).threshold == 0.9


def test_no_threshold_lies_below_that_of_failure() -> None:
    low = cases([0.001] * 149)
    assert calibrate(low, Target(failure_threshold=0.5)).threshold == 0.5
    assert calibrate(low, Target(failure_threshold=0.4321)).threshold == 0.433
    assert calibrate(low, Target(failure_threshold=0.0)).threshold == 0.002
    assert calibrate(low, Target(failure_threshold=0.9999)).threshold == 1.0
    for of in ('failures', 'verdicts'):
        target = Target(of=of, failure_threshold=1.0)  # type: ignore[arg-type]
        assert target.thresholds.tolist() == [1.0]


def test_the_grids_hold_what_a_yaml_holds_when_it_is_read_again() -> None:
    for grid in (GRID, SHORT_GRID):
        assert all(float(f'{threshold:g}') == threshold for threshold in grid)
        assert (np.diff(grid) < 0).all()
        assert grid.min() > 0.0


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize('number', [0, 1, 148])
def test_too_few_failures_are_refused_with_the_number_it_takes(number: int) -> None:
    error = refused(cases([0.1] * number, [0.9] * 500), Target())
    assert (error.kind, error.needed) == ('too_few_cases', 149)
    assert f'{number} labelled failed runs with a score are there' in error.message
    assert 'it takes at least 149, none of them a false success' in error.message


def test_a_judge_that_is_sure_of_failures_has_no_threshold() -> None:
    error = refused(cases([1.0] * 3 + [0.1] * 200), Target())
    assert (error.kind, error.needed) == ('no_threshold', needed_cases(3, Target()))
    assert 'at 1, 3 of 203 failed runs are false successes' in error.message
    assert str(needed_cases(3, Target())) in error.message


def test_a_target_that_nobody_can_show_is_refused() -> None:
    error = refused(cases([0.1] * 10), Target(maximum=1e-12))
    assert (error.kind, error.needed) == ('too_few_cases', 0)
    assert 'at least a billion' in error.message


@pytest.mark.parametrize(
    'bad',
    [{'maximum': 0.0}, {'maximum': 1.0}, {'maximum': float('nan')}, {'confidence': 0.0},
     {'confidence': 1.0}, {'confidence': 95.0}, {'failure_threshold': -0.1},
     {'failure_threshold': float('nan')}],
)  # fmt: skip
def test_a_target_out_of_range_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Target(**bad)  # type: ignore[arg-type]


# --- of verdicts ---------------------------------------------------------------------------------


def test_of_verdicts_counts_what_is_wrong_of_what_passes() -> None:
    target = Target(0.05, 0.9, 'verdicts')
    assert len(target.thresholds) == 11
    assert target.level == pytest.approx(0.1 / 11)
    these = cases([0.6] * 50, [0.97] * 200)
    found = calibrate(these, target)
    assert (found.threshold, found.wrong, found.of) == (0.65, 0, 200)


def test_of_verdicts_is_refused_with_the_number_it_takes() -> None:
    target = Target(0.02, 0.95, 'verdicts')
    needed = needed_cases(0, target)
    assert 0.98**needed <= 0.05 / 11 < 0.98 ** (needed - 1)
    error = refused(cases([0.1] * 500, [0.97] * (needed - 1)), target)
    assert (error.kind, error.needed) == ('too_few_cases', needed)
    error = refused(cases([0.97] * 100, [0.97] * 900), target)
    assert error.kind == 'no_threshold'
    assert '100 of 1000 runs at or above a threshold are false successes' in error.message
    assert calibrate(cases([], [0.97] * needed), target).threshold == 0.5


# --- as often as it claims -----------------------------------------------------------------------


def _uniform(rng: np.random.Generator, n: int) -> np.ndarray[Any, Any]:
    return rng.random(n)


def _at(*atoms: tuple[float, float]) -> Sample:
    """Scores of a few values, each with its probability."""
    values, shares = zip(*atoms, strict=True)
    return lambda rng, n: rng.choice(values, n, p=shares)


DISTRIBUTIONS: dict[str, tuple[Sample, Callable[[float], float]]] = {
    'uniform': (_uniform, lambda t: 1 - t),
    'most scores low': (lambda rng, n: rng.beta(1, 8, n), lambda t: beta.sf(t, 1, 8)),
    # The rate jumps from just above the maximum to nothing: to err is as likely as it can be.
    'ties just above the maximum': (
        _at((0.95, 0.0201), (0.2, 0.9799)), lambda t: 0.0201 if t <= 0.95 else 0.0,
    ),
    'ties at a threshold of the grid and just below it': (
        _at((0.9, 0.021), (0.8999, 0.2), (0.1, 0.779)),
        lambda t: 0.021 * (t <= 0.9) + 0.2 * (t <= 0.8999) + 0.779 * (t <= 0.1),
    ),
    'sure of failures': (_at((1.0, 0.0205), (0.0, 0.9795)), lambda t: 0.0205 if t > 0 else 1.0),
    'a staircase around the maximum': (
        _at(*((round(0.6 + 0.02 * step, 2), 0.0022) for step in range(20)), (0.1, 0.956)),
        lambda t: 0.0022 * sum(t <= round(0.6 + 0.02 * step, 2) for step in range(20))
        + 0.956 * (t <= 0.1),
    ),
}  # fmt: skip


@pytest.mark.parametrize('name', DISTRIBUTIONS)
def test_the_false_success_rate_is_bounded_as_often_as_the_confidence_claims(name: str) -> None:
    sample, true_rate = DISTRIBUTIONS[name]
    target, n = Target(0.02, 0.9), 160
    rng = np.random.default_rng(20_240_607)
    violations = given = 0
    for _ in range(DRAWS):
        wrong, of = counts(sample(rng, n), np.zeros(n, bool), target)
        threshold = lowest_threshold(wrong, of, target)
        if threshold is not None:
            given += 1
            violations += true_rate(threshold) > target.maximum
    # A violation rate of 0.1 stays below this with a probability of 1 - 1e-4.
    assert violations <= binom.ppf(1 - 1e-4, DRAWS, 1 - target.confidence)
    assert given > 0


def test_the_bound_is_not_more_careful_than_an_exact_test_is() -> None:
    """Where the rate jumps just above the maximum, it errs as often as one test may."""
    n, target, rng = 400, Target(0.02, 0.9), np.random.default_rng(7)
    sample, true_rate = DISTRIBUTIONS['ties just above the maximum']
    violations = 0
    for _ in range(DRAWS):
        wrong, of = counts(sample(rng, n), np.zeros(n, bool), target)
        threshold = lowest_threshold(wrong, of, target)
        violations += threshold is not None and true_rate(threshold) > target.maximum
    most = max(k for k in range(n) if binom.cdf(k, n, 0.02) <= 0.1)
    assert violations / DRAWS == pytest.approx(binom.cdf(most, n, 0.0201), abs=0.02)


@pytest.mark.parametrize(
    ('score_of_failed', 'score_of_succeeded', 'share_failed'),
    [
        (_uniform, lambda rng, n: rng.beta(8, 1, n), 0.3),
        # At each threshold a little more than the maximum is wrong.
        (_uniform, _uniform, 0.055),
        (_at((0.95, 1.0)), _at((0.95, 1.0)), 0.051),
    ],
)
def test_the_share_of_wrong_verdicts_is_bounded_as_often_as_the_confidence_claims(
    score_of_failed: Sample, score_of_succeeded: Sample, share_failed: float
) -> None:
    target, n = Target(0.05, 0.9, 'verdicts'), 500
    rng = np.random.default_rng(11)
    many = np.random.default_rng(12)
    truth = {}
    failed, succeeded = score_of_failed(many, 400_000), score_of_succeeded(many, 400_000)
    for threshold in target.thresholds:
        wrong = share_failed * (failed >= threshold).mean()
        truth[threshold] = wrong / max(
            wrong + (1 - share_failed) * (succeeded >= threshold).mean(), 1e-12
        )
    violations = 0
    for _ in range(DRAWS):
        correct = rng.random(n) >= share_failed
        scores = np.where(correct, score_of_succeeded(rng, n), score_of_failed(rng, n))
        threshold = lowest_threshold(*counts(scores, correct, target), target)
        violations += threshold is not None and truth[threshold] > target.maximum
    assert violations <= binom.ppf(1 - 1e-4, DRAWS, 1 - target.confidence)


# --- which results say something -----------------------------------------------------------------


def test_results_that_say_nothing_of_a_threshold_are_left_out_with_the_reason() -> None:
    found = scored_cases([
        result('success', True, score=0.95),
        result('failure', False, score=0.3),
        result('process', False, score=0.6),
        result('abstained', False, score=0.7),
        result('success', None, score=0.95, run_id='new'),
        result('success', True),
        result('failure', False),
        result('error', False),
        result('interrupted', False),
        result('abstained', False, error_kind='view_unusable'),
        result('abstained', True),
        result('success', True, score=1.0, evaluator='checks:cell'),
        result('failure', False, score=0.5, evaluator='vote:both'),
        result('success', True, score=0.9, truth_from='oracle', route='oracle:sim'),
    ])  # fmt: skip
    assert found.scores.tolist() == [0.95, 0.3, 0.6, 0.7]
    assert found.correct.tolist() == [True, False, False, False]
    assert found.unknown == 0
    assert {reason: len(run_ids) for reason, run_ids in found.left_out.items()} == {
        'not labelled': 1,
        'the judge said yes or no, without a score': 2,
        'the evaluation ended in an error': 1,
        'interrupted': 1,
        'the judge abstained without a score': 1,
        'the judge was unsure, and its score is not on record': 1,
        'judged by an evaluator of kind checks, whose score decides nothing by itself': 1,
        'judged by an evaluator of kind vote, whose score decides nothing by itself': 1,
        'the verdict is that of the oracle that knows the truth': 1,
    }
    assert found.left_out['not labelled'] == ('new',)


def test_a_failed_run_whose_unsure_score_is_lost_is_taken_as_the_worst() -> None:
    found = scored_cases([result('abstained', False)])
    assert (found.scores.tolist(), found.unknown) == ([1.0], 1)


@pytest.mark.parametrize(
    ('evaluator', 'line', 'own'),
    [
        ('plugin:judge', '', 1),
        ('plugin:judge', 'score 0.95, at or above the outcome threshold 0.9', 0),
        ('model:vlm', '', 0),
        ('rubric:tidy', '', 0),
    ],
)
def test_verdicts_that_no_threshold_made_are_counted(evaluator: str, line: str, own: int) -> None:
    verdict = Verdict(Status.SUCCESS, (line,) if line else (), score=0.95)
    assert scored_cases([_with(verdict, evaluator)]).own_status == own


def _with(verdict: Verdict, evaluator: str) -> Result:
    from dataclasses import replace

    one = result('success', True, evaluator=evaluator)
    return replace(one, outcome=replace(one.outcome, verdict=verdict))


def test_each_tool_has_its_own_counts() -> None:
    both = [cases([0.1] * 150, [0.9], 'pick'), cases([0.1] * 100 + [0.97], [0.8], 'place')]
    found = calibrate(
        Cases(
            np.concatenate([one.scores for one in both]),
            np.concatenate([one.correct for one in both]),
            both[0].tools + both[1].tools,
            {},
        ),
        Target(),
    )
    assert found.threshold == 0.5
    assert found.per_tool == {'pick': (0, 150), 'place': (1, 101)}
