"""What is counted of the calls of one evaluator."""

from __future__ import annotations

from dataclasses import dataclass

from harness_eval.calls.call import Outcome
from harness_eval.contract import Abstention, Verdict


@dataclass(frozen=True)
class JudgeHealth:
    """What diagnostics show of one evaluator. The counters run since the start.

    Attributes:
        evaluator: Its reference.
        running: Calls whose thread is alive, abandoned ones included.
        waiting: Calls that wait for their turn.
        abandoned: Calls that are past their deadline and still hang.
        quarantined: Whether further calls are refused.
        calls: Calls made, refused ones included.
        verdicts: Calls that ended in a verdict, cached ones included.
        cached: Verdicts that came from the cache.
        abstained: Calls that ended in an abstention.
        errors: Calls that ended in an error, timed out and refused ones included.
        timed_out: Calls that ended at their deadline.
        busy: Calls that waited for their turn in vain.
        rate_limited: Times that the evaluator asked to be called less often.
        late: Answers that came after the deadline and were dropped.
        cancelled: Calls that nobody waited for any more.
        constant_score: The score that all of the newest runs got; ``None`` if they differ.
    """

    evaluator: str
    running: int
    waiting: int
    abandoned: int
    quarantined: bool
    calls: int
    verdicts: int
    cached: int
    abstained: int
    errors: int
    timed_out: int
    busy: int
    rate_limited: int
    late: int
    cancelled: int
    constant_score: float | None


@dataclass
class Counts:
    """The counters of :class:`JudgeHealth`; the lock of the calls guards them."""

    calls: int = 0
    verdicts: int = 0
    cached: int = 0
    abstained: int = 0
    errors: int = 0
    timed_out: int = 0
    busy: int = 0
    rate_limited: int = 0
    late: int = 0
    cancelled: int = 0

    def count(self, outcome: Outcome) -> None:
        """Count what a call ended in."""
        if isinstance(outcome, Verdict):
            self.verdicts += 1
        elif isinstance(outcome, Abstention):
            self.abstained += 1
        else:
            self.errors += 1
