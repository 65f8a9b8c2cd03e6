"""Runs of an evaluator node that is watched from inside, and what is left of their time."""

from __future__ import annotations

from dataclasses import dataclass
import json
from typing import Any

from benchmarks.processes import Child

Interval = tuple[int, int]
"""Beginning and end in monotonic nanoseconds."""


@dataclass(frozen=True)
class Record:
    """What an observed evaluator saw, in the order in which it happened."""

    captures: list[dict[str, int]]
    stores: list[Interval]
    judges: list[Interval]

    @classmethod
    def of(cls, child: Child) -> Record:
        """End a child and read what it saw."""
        child.close()
        data: dict[str, Any] = json.loads(child.wait_for('record'))
        return cls(
            captures=data['captures'],
            stores=[(began, ended) for began, ended in data['stores']],
            judges=[(began, ended) for began, ended in data['judges']],
        )

    def capture_within(self, run: Interval) -> dict[str, int]:
        """The one capture of a run."""
        (found,) = [c for c in self.captures if run[0] <= c['began'] and c['ended'] <= run[1]]
        return found

    def overhead(self, run: Interval) -> float:
        """Milliseconds of a run that went into neither capture, nor storage, nor judging.

        Args:
            run: From the report of its end to the receipt of its verdict.
        """
        capture = self.capture_within(run)
        (store,) = [s for s in self.stores if run[0] <= s[0] and s[1] <= run[1]]
        (judge,) = [j for j in self.judges if run[0] <= j[0] and j[1] <= run[1]]
        taken = (capture['ended'] - capture['began']) + _length(store) + _length(judge)
        return (_length(run) - taken) / 1e6


def _length(interval: Interval) -> int:
    return interval[1] - interval[0]
