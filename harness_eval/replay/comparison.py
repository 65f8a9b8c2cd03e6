"""What comparing two configurations gives: pairs of results, and what they come to. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import Enum
import math
from typing import Any

from harness_eval.replay.agreement import agrees
from harness_eval.replay.paired_test import PairedTest
from harness_eval.replay.results import Result, Skipped, Truth


class Decision(str, Enum):
    """What is to become of the candidate."""

    PROMOTE = 'promote'
    HOLD = 'hold'
    REJECT = 'reject'


@dataclass(frozen=True)
class Pair:
    """One segment under both configurations.

    Attributes:
        base: What it came to under the configuration in use.
        candidate: What it came to under the other one.
        truth: What really happened, if somebody knows.
        metric: What decides: ``truth``, ``report`` or ``score``; empty: nothing does.
        name: Key of the output of the report, where that decides.
        base_value: The metric under the configuration in use, in its own unit; NaN: none.
        candidate_value: The same under the other one.
        difference: How much better the candidate is, in [-1, 1]; 0 where nothing decides.
    """

    base: Result
    candidate: Result
    truth: Truth | None = None
    metric: str = ''
    name: str = ''
    base_value: float = float('nan')
    candidate_value: float = float('nan')
    difference: float = 0.0

    @property
    def regression(self) -> bool:
        """The candidate's verdict contradicts the truth and the base's did not.

        An error or an abstention of the base is no excuse: what it withheld, this one gets wrong.
        """
        return agrees(self.candidate, self.truth) is False and (
            agrees(self.base, self.truth) is not False
        )

    @property
    def correction(self) -> bool:
        """The base's verdict contradicts the truth and the candidate's agrees with it."""
        found = agrees(self.candidate, self.truth)
        return found is True and agrees(self.base, self.truth) is False

    @property
    def changed(self) -> bool:
        """The two came to different outcomes."""
        return self.base.outcome.label != self.candidate.outcome.label


@dataclass(frozen=True)
class Comparison:
    """What came of comparing two configurations.

    Attributes:
        decision: What is to become of the candidate.
        reasons: Why, for a person; the weightiest first.
        pairs: Every segment that both replays have, in their order.
        mean: Mean difference over the pairs that have a metric; NaN: none has.
        test: Whether that is more than chance.
        base: Base name of the configuration in use.
        candidate: Base name of the other one.
        min_gain: The mean difference that a promotion takes.
        significance: The largest probability of chance that counts.
        unpaired: Segments that one replay alone has: source, run id and number.
        skipped: What either replay could not judge, each once.
        notes: What else a reader should know.
    """

    decision: Decision
    reasons: tuple[str, ...]
    pairs: tuple[Pair, ...]
    mean: float
    test: PairedTest
    base: str
    candidate: str
    min_gain: float
    significance: float
    unpaired: tuple[tuple[str, str, int], ...] = ()
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def compared(self) -> tuple[Pair, ...]:
        """The pairs that have a metric."""
        return tuple(pair for pair in self.pairs if pair.metric)

    @property
    def regressions(self) -> tuple[Pair, ...]:
        """Labelled segments that the candidate alone gets wrong."""
        return tuple(pair for pair in self.pairs if pair.regression)

    @property
    def corrections(self) -> tuple[Pair, ...]:
        """Labelled segments that the base gets wrong and the candidate right."""
        return tuple(pair for pair in self.pairs if pair.correction)

    def by_metric(self) -> dict[str, int]:
        """How many pairs were compared by which metric."""
        return {
            metric: sum(pair.metric == metric for pair in self.pairs)
            for metric in ('truth', 'report', 'score')
        }

    def by_tool(self) -> dict[str, tuple[Pair, ...]]:
        """The pairs of each tool, in order of their first."""
        return by_tool(self.pairs)

    def verdicts(self) -> tuple[int, int]:
        """How many of the pairs have a verdict under the base, and under the candidate."""
        return (
            sum(pair.base.outcome.verdict is not None for pair in self.pairs),
            sum(pair.candidate.outcome.verdict is not None for pair in self.pairs),
        )

    def to_plain(self) -> dict[str, Any]:
        """The comparison as plain data for JSON; no path of the machine is in it."""
        base, candidate = self.verdicts()
        return {
            'decision': self.decision.value,
            'reasons': list(self.reasons),
            'notes': list(self.notes),
            'base': self.base,
            'candidate': self.candidate,
            'mean_gain': _number(self.mean),
            'min_gain': self.min_gain,
            'significance': self.significance,
            'test': asdict(self.test),
            'segments': len(self.pairs),
            'compared': self.by_metric(),
            'verdicts': {'base': base, 'candidate': candidate},
            'tools': {tool: _tool(pairs) for tool, pairs in self.by_tool().items()},
            'regressions': [_pair(pair) for pair in self.regressions],
            'corrections': [_pair(pair) for pair in self.corrections],
            'pairs': [_pair(pair) for pair in self.pairs],
            'unpaired': [list(key) for key in self.unpaired],
            'skipped': [asdict(one) for one in self.skipped],
        }


def by_tool(pairs: Iterable[Pair]) -> dict[str, tuple[Pair, ...]]:
    """Pairs of each tool, in order of their first."""
    found: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        found[pair.candidate.completion.tool].append(pair)
    return {tool: tuple(these) for tool, these in found.items()}


def differences(pairs: Iterable[Pair]) -> list[float]:
    """The differences of the pairs that have a metric."""
    return [pair.difference for pair in pairs if pair.metric]


def mean_gain(pairs: Iterable[Pair]) -> float:
    """Mean difference of the pairs that have a metric; NaN: none has."""
    found = differences(pairs)
    return math.fsum(found) / len(found) if found else float('nan')


def said(result: Result) -> str:
    """Why a segment came to what it came to, in one line; empty for a success."""
    outcome = result.outcome
    return outcome.message if outcome.verdict is None else outcome.verdict.failure_reason


def _tool(pairs: tuple[Pair, ...]) -> dict[str, Any]:
    return {
        'segments': len(pairs),
        'compared': len(differences(pairs)),
        'mean_gain': _number(mean_gain(pairs)),
        'regressions': sum(pair.regression for pair in pairs),
        'corrections': sum(pair.correction for pair in pairs),
        'changed': sum(pair.changed for pair in pairs),
    }


def _pair(pair: Pair) -> dict[str, Any]:
    completion = pair.candidate.completion
    return {
        'source': pair.candidate.source,
        'run_id': completion.run_id,
        'segment': completion.segment,
        'tool': completion.tool,
        'truth': None if pair.truth is None else pair.truth.correct,
        'base': pair.base.outcome.label,
        'candidate': pair.candidate.outcome.label,
        'metric': pair.metric if not pair.name else f'{pair.metric} {pair.name}',
        'base_value': _number(pair.base_value),
        'candidate_value': _number(pair.candidate_value),
        'difference': pair.difference if pair.metric else None,
        'regression': pair.regression,
        'reason': said(pair.candidate),
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
