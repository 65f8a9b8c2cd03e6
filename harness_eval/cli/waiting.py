"""Which outcome a waiting command is waiting for. Pure: no ROS, no clock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from harness_eval.cli.outcome_text import interruption_without_outcome
from harness_eval.contract import Status
from harness_eval.runs import CLOSED, Outcome, PENDING, SegmentState


class NeverComesError(Exception):
    """What is waited for cannot come any more; the text says why."""


@dataclass(frozen=True)
class OnRecord:
    """What an evaluator node knows about a run.

    Attributes:
        run_id: The run.
        tool: Its tool; empty if no completion of it came.
        state: State of the run.
        segment: Number of its last segment.
        outcomes: The newest outcome of each segment that has one, in order of segments.
    """

    run_id: str
    tool: str
    state: SegmentState
    segment: int
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True)
class Wanted:
    """What is waited for.

    Attributes:
        segment: Number of a segment; None: the last one, whichever that is.
        final: Whether ``process`` is waited through, until the run as a whole is decided.
        attempt: The earliest attempt that counts; 0 is one at a completion that was refused.
    """

    segment: int | None = None
    final: bool = False
    attempt: int = 0


def answer(run: OnRecord, wanted: Wanted) -> Outcome | None:
    """The outcome that is waited for, or None if it may still come.

    Raises:
        NeverComesError: The run is closed, and the segment that is waited for is not part of it.
    """
    number = run.segment if wanted.segment is None else wanted.segment
    if number == run.segment and run.state in PENDING:
        return None
    found = next((o for o in run.outcomes if o.segment == number), None)
    if run.state is SegmentState.INTERRUPTED and (found is None or found.state not in CLOSED):
        return interruption_without_outcome(run.run_id, run.tool, number)
    if found is None and run.state in CLOSED:
        raise NeverComesError(
            f'the run ended as {run.state.value} with segment {run.segment}, so that segment '
            f'{number} will never come'
        )
    if found is None or found.attempt < wanted.attempt:
        return None
    processing = found.verdict is not None and found.verdict.status is Status.PROCESS
    return None if wanted.final and processing else found


def heard(run_id: str, outcomes: Iterable[Outcome]) -> OnRecord | None:
    """What the outcomes that a node has published say of a run; None if there are none of it.

    Args:
        run_id: The run.
        outcomes: In any order; the newest attempt at each segment counts.
    """
    newest: dict[int, Outcome] = {}
    for outcome in outcomes:
        known = newest.get(outcome.segment)
        if outcome.run_id == run_id and (known is None or known.attempt < outcome.attempt):
            newest[outcome.segment] = outcome
    if not newest:
        return None
    ordered = tuple(newest[number] for number in sorted(newest))
    last = ordered[-1]
    return OnRecord(run_id, last.tool, last.state, last.segment, ordered)


def merged(run: OnRecord | None, published: OnRecord | None) -> OnRecord | None:
    """What is on record and what was published, together.

    A decision is put on record before it is published, so that the record is never behind. There
    is one exception: where the record cannot be written, the run ends in an error that is only
    published.

    Args:
        run: What is on record; None if nothing is, or nobody could be asked.
        published: What was published, as :func:`heard` gives it.
    """
    if run is None or published is None:
        return run or published
    last = published.outcomes[-1]
    known = next((o.attempt for o in run.outcomes if o.segment == last.segment), 0)
    news = last.segment == run.segment and last.attempt > known and last.verdict is None
    if run.state not in PENDING or not news:
        return run
    outcomes = (*(o for o in run.outcomes if o.segment != last.segment), last)
    return replace(run, state=last.state, outcomes=outcomes)


def is_old(age: float, max_age: float) -> bool:
    """Whether an outcome found at the first look is too old to be about a run that just ended.

    An age that is negative by more than that comes from another clock or another simulation.

    Args:
        age: Seconds since the outcome was decided.
        max_age: Seconds.
    """
    return abs(age) > max_age
