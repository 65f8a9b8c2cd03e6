"""What judged criteria come to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
import math

from harness_eval.contract import Abstention, Status, Verdict
from harness_eval.evaluators.rubric.criteria_form import CANNOT_TELL, Judged, MET, NOT_MET
from harness_eval.judging import Thresholds
from harness_eval.lines import clean_line, show

_REASON = 200
"""Characters of the reason of each criterion that is not met."""


def weigh(
    judged: Sequence[Judged],
    thresholds: Thresholds,
    *,
    process_allowed: bool,
    evaluator: str,
    evidence: tuple[str, ...] = (),
) -> Verdict:
    """Make a verdict of judged criteria.

    The score is the weighted share of the criteria that are met. A ``must`` that is not met is
    failure, whatever the score. Criteria that nobody could tell count as met once and as not met
    once; if both come to the same status it is the verdict, otherwise nobody is sure.

    Args:
        judged: Each criterion of the rubric once.
        thresholds: Where a score becomes a verdict.
        process_allowed: Whether a score between the thresholds is ``process``.
        evaluator: Reference of the evaluator, for errors.
        evidence: What was seen; what was said of each criterion follows it.

    Raises:
        Abstention: ``unsure``, naming the criteria that could not be told, or the score.
    """
    lines = (*evidence, *(_line(one) for one in judged))
    low, high = _score(judged, MET), _score(judged, MET, CANNOT_TELL)
    unmet = [one for one in judged if one.answer == NOT_MET]
    untold = [one for one in judged if one.answer == CANNOT_TELL]
    score_line = f'score {_shown(low, high, thresholds)} of the weight is met'
    if any(one.criterion.must for one in unmet) or high < thresholds.failure:
        return Verdict(
            Status.FAILURE,
            (*lines, score_line),
            failure_reason=_reason([*unmet, *untold]),
            score=high,
        )
    if low >= thresholds.outcome and not any(one.criterion.must for one in untold):
        return Verdict(Status.SUCCESS, (*lines, score_line), score=low)
    between = thresholds.failure <= low and high < thresholds.outcome
    if process_allowed and between:
        return Verdict(Status.PROCESS, (*lines, score_line), score=low)
    why = f'{score_line}, thresholds {thresholds.failure:g} and {thresholds.outcome:g}'
    if untold:
        why = f'cannot be told: {_names(untold)}; {why}'
    if unmet:
        why = f'{why}; not met: {_names(unmet)}'
    raise Abstention('unsure', why, evaluator=evaluator, score=high)


def _score(judged: Sequence[Judged], *answers: str) -> float:
    """The weighted share with one of these answers; weights are scaled, lest a sum overflow."""
    largest = max(one.criterion.weight for one in judged)
    held = [one.criterion.weight / largest for one in judged if one.answer in answers]
    total = math.fsum(one.criterion.weight / largest for one in judged)
    return min(math.fsum(held) / total, 1.0)


def _shown(low: float, high: float, thresholds: Thresholds) -> str:
    bounds = (thresholds.failure, thresholds.outcome)
    shown = show(low, *bounds)
    return shown if low == high else f'{shown} to {show(high, *bounds)}'


def _reason(missing: Sequence[Judged]) -> str:
    """Name the criteria first, so that none is cut off behind long reasons."""
    details = (f'{one.criterion.name}: {clean_line(one.reasons, _REASON)}' for one in missing)
    return f'criteria not met: {_names(missing)}. {"; ".join(details)}'


def _names(judged: Sequence[Judged]) -> str:
    words = []
    for one in judged:
        told = '' if one.answer == NOT_MET else ' (cannot be told)'
        must = ' (must)' if one.criterion.must else ''
        words.append(f'{one.criterion.name}{must}{told}')
    return ', '.join(words)


def _line(one: Judged) -> str:
    words = {MET: 'met', NOT_MET: 'not met', CANNOT_TELL: 'cannot be told'}
    criterion = one.criterion
    what = f'weight {criterion.weight:g}{", must" if criterion.must else ""}'
    return f'{criterion.name} ({what}): {words[one.answer]}: {one.reasons}'
