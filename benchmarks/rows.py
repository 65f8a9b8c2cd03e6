"""What a benchmark gives back: one line of the table, and the statistics that fill it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
import math
import statistics
from typing import Any


@dataclass(frozen=True)
class Target:
    """What a figure is held against.

    Attributes:
        bound: The bound itself, in the unit of the row.
        at_least: Whether more is better; otherwise less is.
    """

    bound: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        """Whether a figure keeps the target."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f'{">=" if self.at_least else "<="} {self.bound:g}'


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: What was measured.
        unit: Unit of every figure but the ratio.
        value: The figure that the target is about.
        statistic: What ``value`` is of its samples, for example ``median`` or ``p99``.
        low: Least sample, or least of the repetitions.
        high: 99th percentile of the samples, or the greatest of the repetitions if they are few.
        samples: How many samples ``value`` rests on.
        repetitions: How many times the measurement was made, from its start.
        target: What the figure should be; None: it is only shown.
        reference: The same figure of what it is compared with, measured in the same run.
        reference_name: What that is.
    """

    name: str
    unit: str
    value: float
    statistic: str
    low: float
    high: float
    samples: int
    repetitions: int
    target: Target | None = None
    reference: float | None = None
    reference_name: str = ''

    @property
    def ratio(self) -> float | None:
        """The figure as a multiple of its reference."""
        return self.value / self.reference if self.reference else None

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None without one."""
        return None if self.target is None else self.target.met(self.value)

    def as_json(self) -> dict[str, Any]:
        """The row as plain data."""
        data = asdict(self)
        data['target'] = None if self.target is None else str(self.target)
        return {**data, 'ratio': self.ratio, 'met': self.met}


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that so large a share of all is at most (nearest rank).

    Args:
        samples: At least one.
        share: From 0 to 1.
    """
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def row(
    name: str,
    unit: str,
    samples: Sequence[float],
    *,
    statistic: str = 'median',
    repetitions: int,
    target: Target | None = None,
    reference: Sequence[float] = (),
    reference_name: str = '',
) -> Row:
    """A row from its samples.

    Args:
        name: What was measured.
        unit: Unit of the samples.
        samples: At least one.
        statistic: ``median`` or ``p99``, of the samples and of the reference alike.
        repetitions: How many times the measurement was made, from its start.
        target: What the figure should be.
        reference: Samples of what it is compared with.
        reference_name: What that is.
    """
    compute = _STATISTICS[statistic]
    return Row(
        name=name,
        unit=unit,
        value=compute(samples),
        statistic=statistic,
        low=min(samples),
        high=percentile(samples, 0.99),
        samples=len(samples),
        repetitions=repetitions,
        target=target,
        reference=compute(reference) if reference else None,
        reference_name=reference_name,
    )


def _p99(samples: Sequence[float]) -> float:
    return percentile(samples, 0.99)


_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    'median': statistics.median,
    'p99': _p99,
}
