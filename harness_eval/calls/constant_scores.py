"""Whether a judge gives every run the same score, by which it tells nothing apart."""

from __future__ import annotations

from collections import deque

WATCHED = 20
"""Scores in a row that are looked at."""


class ConstantScores:
    """The newest scores of one evaluator. Pure.

    Args:
        watched: How many scores in a row have to be equal.
    """

    def __init__(self, watched: int = WATCHED) -> None:
        self._newest: deque[float] = deque(maxlen=watched)
        self._constant = False

    @property
    def constant(self) -> float | None:
        """The score that all of the newest runs got; ``None`` if they differ or are too few."""
        return self._newest[-1] if self._constant else None

    def add(self, score: float) -> bool:
        """Note a score.

        Returns:
            Whether the scores are constant now and were not before.
        """
        before = self._constant
        self._newest.append(score)
        full = len(self._newest) == self._newest.maxlen
        self._constant = full and min(self._newest) == max(self._newest)
        return self._constant and not before
