"""What one check found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """What was measured for one condition.

    Attributes:
        holds: Whether the condition holds.
        found: What was measured, and what was wanted, in one line.
    """

    holds: bool
    found: str


@dataclass(frozen=True)
class CheckResult:
    """What one check found.

    Attributes:
        name: How the evidence calls the check.
        holds: Whether its condition holds.
        evidence: One line: the measured value beside its bound, and whether it holds.
        view: Name of the view that it looked at; empty for a state.
    """

    name: str
    holds: bool
    evidence: str
    view: str = ''


def interval(low: float, high: float) -> str:
    """Write bounds as ``[low, high]``, as exactly as they were given."""
    return f'[{low:.12g}, {high:.12g}]'
