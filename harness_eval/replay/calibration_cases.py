"""Which results say something about a threshold on scores, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from harness_eval.replay.agreement import came_to, has_own_truth
from harness_eval.replay.results import Result

UNSURE = 'unsure'
"""Kind of the abstention of a score between the thresholds."""

_DECIDED_BESIDE = ('checks:', 'vote:', 'cascade:')
"""Evaluators whose status does not come from holding their score against a threshold."""
_DECIDED_BY_SCORE = ('model:', 'rubric:')
"""Evaluators that hold it against the thresholds themselves."""


@dataclass(frozen=True)
class Cases:
    """Labelled results with scores, and what became of the rest.

    Attributes:
        scores: ``N float64``, each in [0, 1].
        correct: ``N bool``, whether the run truly succeeded.
        tools: Tool of each.
        left_out: Run ids of the results that were left out, by the reason.
        unknown: How many of ``scores`` stand for a failed run of which only is known that its
            judge was unsure; they are taken as 1, the worst there is.
        own_status: How many verdicts do not say that a threshold made them.
    """

    scores: npt.NDArray[np.float64]
    correct: npt.NDArray[np.bool_]
    tools: tuple[str, ...]
    left_out: Mapping[str, tuple[str, ...]]
    unknown: int = 0
    own_status: int = 0


def scored_cases(results: Iterable[Result]) -> Cases:
    """Choose the results that a threshold can be chosen by.

    Abstentions count with the score that left their judge unsure: under another threshold it may
    be a success. A judge that errs or sees nothing lets nothing pass under any threshold, so
    leaving those out can only make the bound too careful.

    Args:
        results: Judged segments, with the truth where it is known.
    """
    scores: list[float] = []
    correct: list[bool] = []
    tools: list[str] = []
    left_out: dict[str, list[str]] = {}
    unknown = own_status = 0
    for result in results:
        reason = _why_not(result)
        if reason:
            left_out.setdefault(reason, []).append(result.completion.run_id)
            continue
        score = score_of(result)
        unknown += score is None
        own_status += not _made_by_threshold(result)
        scores.append(1.0 if score is None else score)
        correct.append(result.truth is not None and result.truth.correct)
        tools.append(result.completion.tool)
    return Cases(
        np.array(scores, np.float64),
        np.array(correct, bool),
        tuple(tools),
        {reason: tuple(run_ids) for reason, run_ids in left_out.items()},
        unknown,
        own_status,
    )


def score_of(result: Result) -> float | None:
    """The score of a verdict, or the one that left its judge unsure; None: there is none."""
    verdict = result.outcome.verdict
    return result.outcome.score if verdict is None else verdict.score


def _why_not(result: Result) -> str:
    """Why a result says nothing about a threshold; empty if it does."""
    name, outcome = came_to(result), result.outcome
    if result.truth is None:
        return 'not labelled'
    if not has_own_truth(result):
        return 'the verdict is that of the oracle that knows the truth'
    if name == 'interrupted':
        return 'interrupted'
    if name == 'error':
        return 'the evaluation ended in an error'
    if outcome.evaluator.startswith(_DECIDED_BESIDE):
        kind = outcome.evaluator.partition(':')[0]
        return f'judged by an evaluator of kind {kind}, whose score decides nothing by itself'
    if score_of(result) is not None:
        return ''
    if name != 'abstained':
        return 'the judge said yes or no, without a score'
    if outcome.error_kind != UNSURE:
        return 'the judge abstained without a score'
    if result.truth.correct:
        return 'the judge was unsure, and its score is not on record'
    return ''


def _made_by_threshold(result: Result) -> bool:
    """Whether a verdict says that its score was held against a threshold."""
    verdict = result.outcome.verdict
    if verdict is None or result.outcome.evaluator.startswith(_DECIDED_BY_SCORE):
        return True
    return any(line.startswith('score ') and 'threshold' in line for line in verdict.evidence)
