"""Promote a candidate configuration, hold it or reject it, from two replays of one set. Pure.

Each segment that both replays judged is compared by the most trusted metric that *both* produced:

1. ``truth``: 1 if the verdict agrees with what really happened (a label, or the oracle), else 0;
   an error, an abstention, ``process`` and the verdict of an oracle itself produce none;
2. ``report``: the output of the tool's report that its configuration names as its ``metric``,
   divided by its scale;
3. ``score``: the judge's own score, in [0, 1]; that of an abstention too, if it has one.

A difference is what the candidate has more of it, cut to [-1, 1], so that none counts more than a
wrong verdict put right. A score is that of success: of a run that truly failed a lower one is the
better one. A segment without any metric says nothing and vetoes nothing.
:mod:`harness_eval.replay.decision` says what the differences come to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import math

from harness_eval.contract import EvaluationError
from harness_eval.replay.agreement import agrees
from harness_eval.replay.comparison import Comparison, Pair
from harness_eval.replay.decision import decide, Rule
from harness_eval.replay.results import Metric, Replayed, Result, Truth

MIN_GAIN = 0.05
"""Mean improvement that a promotion takes, where nothing else is asked for."""

SIGNIFICANCE = 0.05
"""Largest probability of chance at which a mean counts as better, or as worse."""


class CompareError(EvaluationError):
    """Two replays cannot be compared."""


def compare(
    base: Replayed,
    candidate: Replayed,
    *,
    min_gain: float = MIN_GAIN,
    significance: float = SIGNIFICANCE,
) -> Comparison:
    """Decide about a candidate configuration.

    Args:
        base: A replay with the configuration in use.
        candidate: A replay of the same sources with the other one.
        min_gain: Mean difference that a promotion takes over all tools or within one, at least 0.
        significance: Largest probability of chance that counts, above 0 and below 1.

    Raises:
        CompareError: ``conflicting_truth``: the two replays know different truths of a segment.
        ValueError: ``min_gain`` or ``significance`` is out of range.
    """
    rule = Rule(min_gain, significance)
    matched, unpaired = _matched(base.results, candidate.results)
    metrics, notes = _metrics(base.metrics, candidate.metrics)
    pairs = tuple(_compared(first, second, metrics) for first, second in matched)
    decision, reasons, mean, test = decide(pairs, rule)
    notes += _lost(pairs)
    return Comparison(
        decision,
        reasons,
        pairs,
        mean,
        test,
        base.config,
        candidate.config,
        min_gain,
        significance,
        tuple(unpaired),
        tuple(dict.fromkeys((*base.skipped, *candidate.skipped))),
        tuple(notes),
    )


def _lost(pairs: Iterable[Pair]) -> list[str]:
    """What no difference shows: segments that the candidate has no verdict on any more."""
    lost = sum(
        pair.base.outcome.verdict is not None and pair.candidate.outcome.verdict is None
        for pair in pairs
    )
    if not lost:
        return []
    return [f'the candidate has no verdict on {lost} segments on which the base has one']


def _matched(
    base: Iterable[Result], candidate: Iterable[Result]
) -> tuple[list[tuple[Result, Result]], list[tuple[str, str, int]]]:
    """Pair what has the same key, one after the other where several have it."""
    groups: dict[tuple[str, str, int], tuple[list[Result], list[Result]]] = {}
    for side, results in enumerate((base, candidate)):
        for result in results:
            groups.setdefault(result.key, ([], []))[side].append(result)
    pairs: list[tuple[Result, Result]] = []
    unpaired = []
    for key, (first, second) in groups.items():
        if len(first) == len(second):
            pairs += zip(first, second, strict=True)
        else:  # nobody can tell which belongs to which
            unpaired.append(key)
    return pairs, unpaired


def _metrics(
    base: Mapping[str, Metric], candidate: Mapping[str, Metric]
) -> tuple[dict[str, Metric], list[str]]:
    """The metric of each tool; none where the two configurations disagree on what is better."""
    found, notes = {}, []
    for tool in dict.fromkeys((*base, *candidate)):
        first, second = base.get(tool), candidate.get(tool)
        if first is not None and second is not None and first != second:
            notes.append(f'the metric of {tool} is another in the candidate, so neither is used')
        else:
            found[tool] = first or second
    return {tool: metric for tool, metric in found.items() if metric is not None}, notes


def _compared(base: Result, candidate: Result, metrics: Mapping[str, Metric]) -> Pair:
    if base.truth and candidate.truth and base.truth.correct != candidate.truth.correct:
        raise CompareError(
            'conflicting_truth',
            f'the two replays know different truths of run {candidate.completion.run_id!r}, '
            f'segment {candidate.completion.segment}, of {candidate.source}; replay both with the '
            'same labels',
        )
    truth = candidate.truth or base.truth
    metric = metrics.get(candidate.completion.tool)
    values = (
        ('truth', '', 1.0, _agreement(base, truth), _agreement(candidate, truth)),
        *(
            ('report', one.name, _signed(one), _reported(base, one), _reported(candidate, one))
            for one in (metric,)
            if one is not None
        ),
        ('score', '', _better_score(truth), _score(base), _score(candidate)),
    )
    for kind, name, unit, first, second in values:
        if first is not None and second is not None:
            difference = max(-1.0, min(1.0, (second - first) / unit))
            return Pair(base, candidate, truth, kind, name, first, second, difference)
    return Pair(base, candidate, truth)


def _agreement(result: Result, truth: Truth | None) -> float | None:
    found = agrees(result, truth)
    return None if found is None else float(found)


def _better_score(truth: Truth | None) -> float:
    """Which way a score gets better; a high one of a run that truly failed is the worse one."""
    return -1.0 if truth is not None and not truth.correct else 1.0


def _signed(metric: Metric) -> float:
    return metric.scale if metric.goal == 'maximize' else -metric.scale


def _reported(result: Result, metric: Metric) -> float | None:
    verdict = result.outcome.verdict
    value = None if verdict is None else (verdict.report or {}).get(metric.name)
    if not isinstance(value, (bool, int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _score(result: Result) -> float | None:
    verdict = result.outcome.verdict
    return result.outcome.score if verdict is None else verdict.score
