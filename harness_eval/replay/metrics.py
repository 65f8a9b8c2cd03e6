"""How well a judge judges: numbers over results whose truth is known, per tool and in all.

The positive class is ``success``. What counts where:

* Rates, agreement and risk are over *decided* results: labelled ones with the verdict ``success``
  or ``failure``.
* ``process`` says "not done yet" and takes no side: it is a column of the confusion matrix, counts
  as covered, and its score counts where scores are held against the truth; it is in no rate.
* Errors and abstentions are in no rate. They lower the coverage, which needs no labels.
* Interruptions are counted apart and nowhere else: somebody stopped the evaluation.
* A verdict that an oracle gave is not held against that oracle, which would agree with itself.

The formulas are those of scikit-learn and SciPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from harness_eval.contract import Status
from harness_eval.replay.agreement import came_to, has_own_truth
from harness_eval.replay.results import Result
from harness_eval.replay.scores import (
    Bin,
    BINS,
    COLUMNS,
    CONFIDENCE,
    Cost,
    Latency,
    Number,
    Rate,
    RiskPoint,
    Scores,
    ToolScores,
    TRUTHS,
)
from harness_eval.runs import OutcomeKind
from harness_eval.times import SECOND

_P95 = 95
_NO_SCORE = 'no labelled verdict carries a score'

_Floats = npt.NDArray[np.float64]


def score(results: Iterable[Result]) -> Scores:
    """The numbers over results.

    Args:
        results: Judged segments, with the truth where it is known.
    """
    every = list(results)
    by_tool: dict[str, list[Result]] = {}
    for result in every:
        by_tool.setdefault(result.completion.tool, []).append(result)
    return Scores(
        {tool: _scores(tool, by_tool[tool]) for tool in sorted(by_tool)}, _scores('', every)
    )


def rate(count: int, of: int, nothing: str) -> Rate:
    """A share with its Wilson interval.

    Args:
        count: Cases that it counts.
        of: Cases among which.
        nothing: Why there is no share if ``of`` is 0.
    """
    from scipy.stats import binomtest

    if not of:
        return Rate(count, of, None, None, None, nothing)
    interval = binomtest(count, of).proportion_ci(CONFIDENCE, method='wilson')
    # Rounding may lead out of [0, 1] by the last digit.
    low, high = max(0.0, float(interval.low)), min(1.0, float(interval.high))
    return Rate(count, of, count / of, low, high)


def _scores(tool: str, results: Sequence[Result]) -> ToolScores:
    judged = [one for one in results if one.outcome.kind is not OutcomeKind.INTERRUPTED]
    labelled = [one for one in results if has_own_truth(one)]
    known = [one for one in judged if has_own_truth(one)]
    decided = [one for one in known if came_to(one) in TRUTHS]
    true, said = _truths(decided), _said(decided)
    covered = sum(one.outcome.kind is OutcomeKind.VERDICT for one in judged)
    scored = [one for one in known if _score_of(one) is not None]
    curve, area = _risk([one for one in scored if came_to(one) in TRUTHS])
    calibration = _calibration(scored)
    none = '' if decided else 'no labelled result has the verdict success or failure'
    return ToolScores(
        tool=tool,
        results=len(results),
        labelled=len(labelled),
        unlabelled=len(results) - len(labelled),
        circular=sum(one.truth is not None and not has_own_truth(one) for one in results),
        interrupted=len(results) - len(judged),
        decided=len(decided),
        confusion=_confusion(known),
        coverage=rate(covered, len(judged), 'nothing was judged'),
        balanced_accuracy=_balanced_accuracy(true, said),
        false_success=rate(
            int((~true & said).sum()), int((~true).sum()), none or 'no decided run truly failed'
        ),
        false_success_of_verdicts=rate(
            int((~true & said).sum()), int(said.sum()), none or 'no verdict is success'
        ),
        false_failure=rate(
            int((true & ~said).sum()), int(true.sum()), none or 'no decided run truly succeeded'
        ),
        kappa=_kappa(true, said),
        brier=_brier(scored),
        calibration_error=_calibration_error(calibration),
        calibration=calibration,
        risk=curve,
        risk_area=area,
        scored=len(scored),
        cost=_cost(judged),
        latency=_latency(judged),
    )


def _truths(results: Sequence[Result]) -> npt.NDArray[np.bool_]:
    return np.array([one.truth is not None and one.truth.correct for one in results], bool)


def _said(results: Sequence[Result]) -> npt.NDArray[np.bool_]:
    return np.array([came_to(one) == Status.SUCCESS.value for one in results], bool)


def _score_of(result: Result) -> float | None:
    verdict = result.outcome.verdict
    return None if verdict is None else verdict.score


def _confusion(known: Sequence[Result]) -> dict[str, dict[str, int]]:
    from sklearn.metrics import confusion_matrix

    if not known:
        return {truth: dict.fromkeys(COLUMNS, 0) for truth in TRUTHS}
    true = [TRUTHS[0] if correct else TRUTHS[1] for correct in _truths(known)]
    matrix = confusion_matrix(true, [came_to(one) for one in known], labels=list(COLUMNS))
    return {
        truth: {column: int(count) for column, count in zip(COLUMNS, row, strict=True)}
        for truth, row in zip(TRUTHS, matrix, strict=False)
    }


def _one_class(true: npt.NDArray[np.bool_]) -> str:
    """Why agreement of truth and verdict is not defined; empty if it is."""
    if not true.size:
        return 'no labelled result has the verdict success or failure'
    if true.all():
        return 'every decided run truly succeeded; it takes failures too'
    if not true.any():
        return 'every decided run truly failed; it takes successes too'
    return ''


def _balanced_accuracy(true: npt.NDArray[np.bool_], said: npt.NDArray[np.bool_]) -> Number:
    from sklearn.metrics import balanced_accuracy_score

    reason = _one_class(true)
    return Number(None, reason) if reason else Number(float(balanced_accuracy_score(true, said)))


def _kappa(true: npt.NDArray[np.bool_], said: npt.NDArray[np.bool_]) -> Number:
    from sklearn.metrics import cohen_kappa_score

    reason = _one_class(true)
    if reason:
        return Number(None, reason)
    return Number(float(cohen_kappa_score(true, said, labels=[False, True])))


def _score_array(scored: Sequence[Result]) -> _Floats:
    return np.array([_score_of(one) for one in scored], np.float64)


def _brier(scored: Sequence[Result]) -> Number:
    from sklearn.metrics import brier_score_loss

    if not scored:
        return Number(None, _NO_SCORE)
    loss: Any = brier_score_loss(_truths(scored), _score_array(scored), pos_label=True)
    return Number(float(loss))


def _calibration(scored: Sequence[Result]) -> tuple[Bin, ...]:
    from sklearn.calibration import calibration_curve

    if not scored:
        return ()
    scores = _score_array(scored)
    shares, means = calibration_curve(_truths(scored), scores, n_bins=BINS, pos_label=True)
    # The same bins again, of which it tells no counts.
    inner = np.linspace(0.0, 1.0, BINS + 1)[1:-1]
    counts = np.bincount(np.searchsorted(inner, scores), minlength=BINS)
    return tuple(
        Bin(int(count), float(mean), float(share))
        for count, mean, share in zip(counts[counts > 0], means, shares, strict=True)
    )


def _calibration_error(bins: Sequence[Bin]) -> Number:
    """Naeini, Cooper and Hauskrecht, AAAI 2015: the mean gap of score and share, over the bins."""
    if not bins:
        return Number(None, _NO_SCORE)
    gaps = [abs(one.correct - one.score) for one in bins]
    return Number(float(np.average(gaps, weights=[one.count for one in bins])))


def _risk(scored: Sequence[Result]) -> tuple[tuple[RiskPoint, ...], Number]:
    """The selective-risk curve and its area.

    Geifman and El-Yaniv, Selective Classification for Deep Neural Networks, NeurIPS 2017. The
    confidence of ``success`` is its score, that of ``failure`` one minus its score. Verdicts of
    equal confidence are accepted together, so that their order in the file changes nothing.
    """
    if not scored:
        return (), Number(None, 'no decided result carries a score')
    said = _said(scored)
    scores = _score_array(scored)
    wrong = _truths(scored) != said
    levels, place = np.unique(np.where(said, scores, 1.0 - scores), return_inverse=True)
    accepted = np.cumsum(np.bincount(place)[::-1])
    errors = np.cumsum(np.bincount(place, weights=wrong)[::-1])
    risks = errors / accepted
    points = tuple(
        RiskPoint(float(level), float(count / accepted[-1]), float(risk))
        for level, count, risk in zip(levels[::-1], accepted, risks, strict=True)
    )
    widths = np.diff(accepted, prepend=0)
    return points, Number(float(np.average(risks, weights=widths)))


def _cost(judged: Sequence[Result]) -> Cost:
    verdicts = [one.outcome.verdict for one in judged if one.outcome.verdict is not None]
    known = [one.cost for one in verdicts if one.cost is not None and math.isfinite(one.cost)]
    if not known:
        unknown = Number(None, 'no verdict tells its cost')
        return Cost(unknown, unknown, 0, len(verdicts))
    total = sum(known)
    if not math.isfinite(total):
        beyond = Number(None, 'the sum is too large for a number')
        return Cost(beyond, beyond, len(known), len(verdicts))
    return Cost(Number(total), Number(total / len(known)), len(known), len(verdicts))


def _latency(judged: Sequence[Result]) -> Latency:
    measured = [one.seconds for one in judged if math.isfinite(one.seconds) and one.seconds >= 0]
    recorded = [_recorded_seconds(one) for one in judged if math.isnan(one.seconds)]
    seconds = measured + [one for one in recorded if one is not None]
    if not seconds:
        unknown = Number(None, 'no time is known')
        return Latency(unknown, unknown, 0, 0)
    return Latency(
        Number(float(np.median(seconds))),
        Number(float(np.percentile(seconds, _P95))),
        len(measured),
        len(seconds) - len(measured),
    )


def _recorded_seconds(result: Result) -> float | None:
    """Seconds from the end of the execution to the decision, if both are on record in order.

    What no evaluator was asked about took no time to judge, however long its capture waited.
    """
    outcome = result.outcome
    if outcome.verdict is None and not outcome.evaluator:
        return None
    if not outcome.decided_at or not outcome.completed_at:
        return None
    seconds = (outcome.decided_at - outcome.completed_at) / SECOND
    return seconds if seconds >= 0.0 else None
