"""How long an evaluator is left alone that asks to be called less often."""

from __future__ import annotations

from collections.abc import Callable
import math
import random

from harness_eval.contract import EvaluationError, EvaluatorError

RATE_LIMITED = 'rate_limited'
"""Kind of the error of an evaluator that is called too often."""

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds of a pause, doubled each time, where nobody says how long it should be. The first is
also the shortest that can be asked for: a server that says 0 is not asked in a tight loop."""

LONGEST_ASKED_FOR = 60.0
"""Seconds of a pause that an evaluator may ask for; it is tried again after them, whatever it
said: a header that is wrong must not end the judging for a day."""

JITTER = 0.25
"""Share by which a pause is lengthened or shortened by chance."""


def asks_for_a_pause(outcome: object) -> bool:
    """Whether an outcome says that the evaluator is called too often."""
    if not isinstance(outcome, EvaluationError):
        return False
    return outcome.kind == RATE_LIMITED or _asked_for(outcome) is not None


def _asked_for(error: EvaluationError) -> float | None:
    return error.retry_after if isinstance(error, EvaluatorError) else None


class BackOff:
    """When an evaluator may be called again. Pure; shared by all calls of one evaluator.

    Calls that were under way together and are all refused count as one refusal: the pause is
    doubled only when a call is refused that began after the last one.

    Args:
        chance: Gives numbers from 0 to 1.

    Attributes:
        until: Steady seconds until which nothing is called.
    """

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self.until = -math.inf
        self._chance = chance
        self._refusals = 0
        self._refused_at = -math.inf

    def refused(self, error: EvaluationError, began: float, now: float) -> None:
        """Begin or lengthen a pause.

        Args:
            error: What :func:`asks_for_a_pause` was true of.
            began: When the call that was refused began, steady seconds.
            now: Steady seconds.
        """
        asked = _asked_for(error)
        news = began >= self.until and began >= self._refused_at
        if asked is not None:
            pause = min(max(asked, FIRST_PAUSE), LONGEST_ASKED_FOR)
            self.until = max(self.until, now + pause)
        elif news:
            pause = min(FIRST_PAUSE * 2.0**self._refusals, LONGEST_PAUSE)
            self.until = now + pause * (1.0 + JITTER * (2.0 * self._chance() - 1.0))
        if news:
            # No further than the longest pause: two to the power of it stays a number.
            self._refusals = min(self._refusals + 1, 16)
        self._refused_at = now

    def answered(self, began: float) -> None:
        """Note that a call was not refused: the next pause is short again.

        Args:
            began: When the call began; one that began before the last refusal says nothing.
        """
        if began >= self._refused_at:
            self._refusals = 0
