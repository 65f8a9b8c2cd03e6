"""The lowest threshold on scores whose false successes are bounded, with a stated confidence.

Two rates can be bounded. Both are of the population that the labelled cases were drawn from,
independently of each other:

* ``failures``: P(score >= threshold | the run truly failed): the false-success rate. It does not
  depend on how often runs fail.
* ``verdicts``: P(the run truly failed | score >= threshold): how much of what passes is wrong. It
  holds only where runs fail as often as among the labelled cases.

Each threshold is tested by the exact binomial test: with ``k`` of ``n`` cases wrong it is safe if
P(Binomial(n, maximum) <= k) <= 1 - confidence, which is the same as the one-sided upper bound of
Clopper and Pearson (Biometrika 26, 1934) lying at or below the maximum. Choosing among thresholds
by the same cases is paid for:

* ``failures``: the thresholds of a grid that is fixed beforehand are tested from the highest one
  downwards, each at the full level, up to the first that is not safe. Such fixed-sequence testing
  is Learn then Test (Angelopoulos, Bates, Candes, Jordan and Lei, arXiv:2110.01052):
  the true rate rises as the threshold falls, so the only way to err is to err at the first
  threshold that is truly unsafe. It costs nothing for the number of thresholds, and no valid
  correction chooses a lower one by the same test.
* ``verdicts``: the rate need not rise as the threshold falls, and few verdicts are left at the
  highest thresholds, so a sequence from above would stop at once. A short grid is tested at the
  level that Bonferroni gives each, and the lowest safe one is taken.

What is shown is that the rate lies at or below the maximum that was asked for, and nothing less.
The bound of Clopper and Pearson at the chosen threshold may lie lower, but it is that of a
threshold fixed beforehand: with few distinct scores it fails more often than the confidence says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from harness_eval.contract import EvaluationError
from harness_eval.lines import show
from harness_eval.replay.calibration_cases import Cases
from harness_eval.replay.metrics import rate
from harness_eval.replay.scores import Rate

Of = Literal['failures', 'verdicts']

GRID: npt.NDArray[np.float64] = np.arange(1000, 0, -1) / 1000.0
"""Thresholds for ``failures``, from the highest downwards."""
SHORT_GRID: npt.NDArray[np.float64] = np.array([99, *range(95, 0, -5)]) / 100.0
"""Thresholds for ``verdicts``, from the highest downwards."""

_Floats = npt.NDArray[np.float64]
_Counts = npt.NDArray[np.int64]
_MOST_CASES = 10**9
"""Nobody labels more; a target that takes more is out of reach."""


class CalibrationError(EvaluationError):
    """No threshold can be given.

    Args:
        kind: ``too_few_cases`` or ``no_threshold``.
        message: What is there, what is needed, and what to do.
        needed: Cases that it takes at least; 0: more cases do not help.
    """

    def __init__(self, kind: str, message: str, needed: int) -> None:
        super().__init__(kind, message)
        self.needed = needed


@dataclass(frozen=True)
class Target:
    """What is asked of a threshold.

    Attributes:
        maximum: Highest rate of false successes, in (0, 1).
        confidence: Probability with which the rate lies below it, in (0, 1).
        of: Among what false successes are counted; see the module.
        failure_threshold: A score below it is failure, in [0, 1]; no threshold for success lies
            below it.

    Raises:
        ValueError: Out of range.
    """

    maximum: float = 0.02
    confidence: float = 0.95
    of: Of = 'failures'
    failure_threshold: float = 0.5

    def __post_init__(self) -> None:
        for name in ('maximum', 'confidence'):
            value = getattr(self, name)
            if not 0.0 < value < 1.0:
                raise ValueError(f'{name} must lie between 0 and 1, not {value}')
        if not 0.0 <= self.failure_threshold <= 1.0:
            raise ValueError(f'failure_threshold must lie in [0, 1], not {self.failure_threshold}')

    @property
    def thresholds(self) -> _Floats:
        """The thresholds that are tested, from the highest downwards."""
        if self.of == 'failures':
            return GRID[self.failure_threshold <= GRID]
        return np.array([t for t in SHORT_GRID if t >= self.failure_threshold] or [1.0])

    @property
    def level(self) -> float:
        """The probability of error that each test may have."""
        tests = 1 if self.of == 'failures' else len(self.thresholds)
        return (1.0 - self.confidence) / tests


@dataclass(frozen=True)
class Calibration:
    """A threshold, and what it does on the cases that it was chosen by.

    Attributes:
        target: What was asked.
        threshold: A score at or above it is success.
        wrong: Failed runs at or above it.
        of: Cases among which they are counted.
        passing: Truly successful runs at or above it, among all truly successful ones.
        unsure: Cases between the two thresholds, among all.
        per_tool: For each tool ``wrong`` and ``of``.
    """

    target: Target
    threshold: float
    wrong: int
    of: int
    passing: Rate
    unsure: Rate
    per_tool: Mapping[str, tuple[int, int]]


def calibrate(cases: Cases, target: Target) -> Calibration:
    """Choose the lowest threshold that is safe.

    Args:
        cases: Labelled cases with scores.
        target: What is asked.

    Raises:
        CalibrationError: ``too_few_cases`` or ``no_threshold``.
    """
    wrong, of = counts(cases.scores, cases.correct, target)
    threshold = lowest_threshold(wrong, of, target)
    if threshold is None:
        raise _refusal(wrong, of, target)
    place = int(np.flatnonzero(target.thresholds == threshold)[0])
    above = cases.scores >= threshold
    judged = ~cases.correct if target.of == 'failures' else above
    tools = np.array(cases.tools)
    return Calibration(
        target=target,
        threshold=threshold,
        wrong=int(wrong[place]),
        of=int(of[place]),
        passing=rate(
            int((above & cases.correct).sum()), int(cases.correct.sum()), 'no run succeeded'
        ),
        unsure=rate(
            int((~above & (cases.scores >= target.failure_threshold)).sum()),
            len(cases.scores),
            'there are no cases',
        ),
        per_tool={
            tool: (
                int((above & ~cases.correct & (tools == tool)).sum()),
                int((judged & (tools == tool)).sum()),
            )
            for tool in sorted(set(cases.tools))
        },
    )


def counts(
    scores: _Floats, correct: npt.NDArray[np.bool_], target: Target
) -> tuple[_Counts, _Counts]:
    """At each threshold of a target: false successes, and cases among which they are counted.

    Args:
        scores: ``N float64``.
        correct: ``N bool``, whether the run truly succeeded.
        target: Gives the thresholds.
    """
    failed = np.sort(scores[~correct])
    wrong = failed.size - np.searchsorted(failed, target.thresholds, 'left')
    if target.of == 'failures':
        return wrong, np.full_like(wrong, failed.size)
    every = np.sort(scores)
    return wrong, every.size - np.searchsorted(every, target.thresholds, 'left')


def lowest_threshold(wrong: _Counts, of: _Counts, target: Target) -> float | None:
    """The lowest threshold that is safe, corrected for choosing it; None: none is.

    Args:
        wrong: False successes at each threshold of the target, from the highest downwards.
        of: Cases among which they are counted.
        target: What is asked.
    """
    from scipy.stats import binom

    # Of ``failures`` those above the first that is not safe: ``of`` stays, ``wrong`` only grows.
    safe = (of > 0) & (binom.cdf(wrong, of, target.maximum) <= target.level)
    return float(target.thresholds[safe][-1]) if safe.any() else None


def upper_bound(wrong: int, of: int, confidence: float) -> float:
    """The exact one-sided upper bound of a rate (Clopper and Pearson)."""
    from scipy.stats import binomtest

    interval = binomtest(wrong, of, alternative='less').proportion_ci(confidence, method='exact')
    return float(interval.high)


def needed_cases(wrong: int, target: Target) -> int:
    """The fewest cases with which a threshold is safe at which ``wrong`` of them are wrong.

    Args:
        wrong: False successes.
        target: What is asked.

    Returns:
        The number; 0 if more than a billion would be needed.
    """
    from scipy.stats import binom

    low, high = wrong, wrong + 1  # safe at ``high``, not at ``low``
    while binom.cdf(wrong, high, target.maximum) > target.level:
        low, high = high, 2 * high
        if high > _MOST_CASES:
            return 0
    while high - low > 1:
        middle = (low + high) // 2
        if binom.cdf(wrong, middle, target.maximum) <= target.level:
            high = middle
        else:
            low = middle
    return high


def _refusal(wrong: _Counts, of: _Counts, target: Target) -> CalibrationError:
    what = 'failed runs' if target.of == 'failures' else 'runs at or above a threshold'
    asked = f'at most {target.maximum:g} with confidence {target.confidence:g}'
    fewest, there = needed_cases(0, target), int(of.max(initial=0))
    if there < fewest or not fewest:
        return CalibrationError(
            'too_few_cases',
            f'{there} labelled {what} with a score are there; to show {asked} it takes at least '
            f'{fewest or "a billion"}, none of them a false success; label more cases, or ask '
            'for less',
            fewest,
        )
    best = 0  # of ``failures`` the others are only tested if the highest threshold is safe
    if target.of == 'verdicts':
        best = min(
            map(int, np.flatnonzero(of)),
            key=lambda place: needed_cases(int(wrong[place]), target) or _MOST_CASES,
        )
    count, total = int(wrong[best]), int(of[best])
    needed = needed_cases(count, target)
    at = show(float(target.thresholds[best]))
    bound = upper_bound(count, total, 1.0 - target.level)
    more = (
        f'it would take {needed} with no further false success'
        if needed
        else 'no number of cases would do'
    )
    return CalibrationError(
        'no_threshold',
        f'no threshold shows {asked}: at {at}, {count} of {total} {what} are false successes, '
        f'which may be a rate of {show(bound)}; {more}; the judge itself must become better at '
        'telling failures, or ask for less',
        needed,
    )
