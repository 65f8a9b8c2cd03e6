"""The numbers that say how well a judge judges, as plain records.

:mod:`harness_eval.replay.metrics` reckons them and says what counts where. A number that is not
defined (nothing labelled, one class only) is None and says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

CONFIDENCE = 0.95
"""Of every interval."""
BINS = 10
"""Bins of equal width over [0, 1] for the expected calibration error."""
COLUMNS = ('success', 'failure', 'process', 'abstained', 'error')
"""What a result can come to, as columns of the confusion matrix."""
TRUTHS = ('success', 'failure')
"""Rows of the confusion matrix."""


@dataclass(frozen=True)
class Number:
    """A number, or why there is none.

    Attributes:
        value: The number; None: it is not defined.
        reason: Why it is not; empty if it is.
    """

    value: float | None
    reason: str = ''


@dataclass(frozen=True)
class Rate:
    """A share of cases with its 95 % interval (Wilson's score interval).

    Attributes:
        count: Cases that it counts.
        of: Cases among which.
        value: ``count / of``; None if there are none.
        low: Lower end of the interval.
        high: Upper end of the interval.
        reason: Why there is no value; empty if there is one.
    """

    count: int
    of: int
    value: float | None
    low: float | None
    high: float | None
    reason: str = ''


@dataclass(frozen=True)
class Bin:
    """One bin of the calibration curve.

    Attributes:
        count: Results whose score lies in it.
        score: Their mean score.
        correct: Share of them whose truth is success.
    """

    count: int
    score: float
    correct: float


@dataclass(frozen=True)
class RiskPoint:
    """One point of the selective-risk curve.

    Attributes:
        confidence: Verdicts at least this confident are accepted.
        coverage: Share of the decided results with a score that this accepts.
        risk: Share of wrong verdicts among them.
    """

    confidence: float
    coverage: float
    risk: float


@dataclass(frozen=True)
class Cost:
    """What judging cost, in the unit that the evaluators use.

    Attributes:
        total: Sum of the costs that are known.
        mean: Their mean.
        known: Verdicts whose cost is known.
        of: All verdicts.
    """

    total: Number
    mean: Number
    known: int
    of: int


@dataclass(frozen=True)
class Latency:
    """How long judging took, in seconds.

    Attributes:
        median: Half took at most this.
        p95: 95 % took at most this.
        measured: Results that were timed while they were judged.
        recorded: Results for which the time from the end of the execution to the decision is on
            record instead, which includes the capture.
    """

    median: Number
    p95: Number
    measured: int
    recorded: int


@dataclass(frozen=True)
class ToolScores:
    """The numbers of one tool, or of all.

    Attributes:
        tool: Its name; empty for all.
        results: How many results there are.
        labelled: How many of them have a truth to be held against.
        unlabelled: How many have none.
        circular: How many of those have none because the oracle itself gave the verdict.
        interrupted: How many were interrupted; not in any other number but ``results``.
        decided: How many are labelled and say ``success`` or ``failure``.
        confusion: Labelled results by truth and by what they came to.
        coverage: Share of all results that are neither abstained nor an error.
        balanced_accuracy: Mean of the shares judged right of both classes.
        false_success: Of the truly failed, the share called ``success``.
        false_success_of_verdicts: Of the ``success`` verdicts, the share that is wrong.
        false_failure: Of the truly successful, the share called ``failure``.
        kappa: Cohen's kappa of truth and verdict.
        brier: Brier score: mean squared difference of score and truth; 0 is best.
        calibration_error: Expected calibration error over :data:`BINS` bins of equal width.
        calibration: The bins that hold something.
        risk: Selective-risk curve, from the most confident on.
        risk_area: Its area: mean risk over all that could be accepted; 0 is best.
        scored: Verdicts with a truth and a score, on which the last five rest.
        cost: What judging cost.
        latency: How long it took.
    """

    tool: str
    results: int
    labelled: int
    unlabelled: int
    circular: int
    interrupted: int
    decided: int
    confusion: Mapping[str, Mapping[str, int]]
    coverage: Rate
    balanced_accuracy: Number
    false_success: Rate
    false_success_of_verdicts: Rate
    false_failure: Rate
    kappa: Number
    brier: Number
    calibration_error: Number
    calibration: tuple[Bin, ...]
    risk: tuple[RiskPoint, ...]
    risk_area: Number
    scored: int
    cost: Cost
    latency: Latency

    def to_plain(self) -> dict[str, Any]:
        """As plain data for JSON; what is not defined is null beside its reason."""
        return asdict(self)


@dataclass(frozen=True)
class Scores:
    """The numbers of each tool and of all.

    Attributes:
        per_tool: By name of the tool, in alphabetical order.
        overall: Over all results.
    """

    per_tool: Mapping[str, ToolScores]
    overall: ToolScores

    def to_plain(self) -> dict[str, Any]:
        """As plain data for JSON; it holds no NaN and no infinity."""
        return {
            'confidence': CONFIDENCE,
            'overall': self.overall.to_plain(),
            'per_tool': {tool: scores.to_plain() for tool, scores in self.per_tool.items()},
        }
