"""What a completion means for what is already on record."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from harness_eval.config.errors import did_you_mean
from harness_eval.config.models import EvaluationSettings
from harness_eval.lines import printable
from harness_eval.runs.names import id_problem, MAX_ID_LENGTH
from harness_eval.runs.records import CLOSED, Completion, PENDING, Run, Segment
from harness_eval.times import SECOND, seconds

MAX_ARGUMENTS = 256
MAX_ARGUMENT_BYTES = 64 * 1024
"""Most bytes of all arguments of a completion together; a post-condition takes far less."""
MAX_SEGMENT = 2**32 - 1
"""Segments are ``uint32`` in the messages."""
MAX_STAMP = 2**31 * SECOND - 1
"""Nanoseconds. Seconds are ``int32`` in the messages."""
REPEAT_SECONDS = 2.0
"""How long after its receipt an unstamped completion may come again and still be the same one.

Without a stamp, a repetition and an agent that counts its runs from ``run_1`` again look alike.
A sender that heard no answer repeats itself within moments; no tool runs anew and ends within
them, and later repetitions are refused rather than answered with an old verdict.
"""
REPEAT_WINDOW = 60.0
"""The same, in seconds of the wall clock, while the first one has no outcome yet."""


@dataclass(frozen=True)
class Arrival:
    """When a completion came.

    Attributes:
        receipt: Nanoseconds of its receipt on the node's clock.
        wall: Seconds of the wall clock.
        era: How often the node's clock had gone back before.
    """

    receipt: int
    wall: float
    era: int = 0


class Ruling(str, Enum):
    """What is done with a completion."""

    TAKE = 'take'
    IGNORE = 'ignore'
    ANSWER = 'answer'
    REJECT = 'reject'
    FAIL = 'fail'


@dataclass(frozen=True)
class Admission:
    """What is done with a completion, and why.

    Attributes:
        ruling: ``TAKE`` it as a new segment; ``IGNORE`` it; ``ANSWER`` with what is on record;
            ``REJECT`` it (an event says why); ``FAIL``: end it as an error.
        reason: Machine-readable reason of a rejection, or kind of the error.
        detail: The same for a person.
        recorded: For ``FAIL``: whether the error is a segment of the run on record (a gap) or
            only an answer (the completion itself cannot be recorded).
    """

    ruling: Ruling
    reason: str = ''
    detail: str = ''
    recorded: bool = False


def screen(completion: Completion, evaluation: EvaluationSettings) -> Admission | None:
    """What is to be done with a completion whatever is on record; None if that matters.

    A completion that passes holds nothing that the record or a message cannot carry.

    Args:
        completion: What was reported.
        evaluation: Which tools are required.
    """
    if completion.tool not in evaluation.required_tools:
        tool = printable(completion.tool, MAX_ID_LENGTH)
        hint = did_you_mean(tool, evaluation.required_tools, what='required_tools')
        return Admission(Ruling.IGNORE, 'not_required', f'{tool!r} is not required{hint}')
    problem = completion_problem(completion)
    return None if problem is None else Admission(Ruling.FAIL, *problem)


def admit(
    completion: Completion, run: Run | None, evaluation: EvaluationSettings, arrival: Arrival
) -> Admission:
    """What is to be done with a completion.

    Args:
        completion: What was reported.
        run: The run of that name on record, if there is one.
        evaluation: Which tools are required, which are segmented, and the budget.
        arrival: When it came.
    """
    screened = screen(completion, evaluation)
    if screened is not None:
        return screened
    if run is not None:
        if run.retired:
            return Admission(
                Ruling.REJECT,
                'conflicting_completion',
                f'run {completion.run_id!r} ended long ago and its answer is not kept any more; '
                'run ids must never be reused',
            )
        known = next((s for s in run.segments if s.completion.segment == completion.segment), None)
        if known is not None:
            return _again(completion, known, arrival)
        if run.last is not None and completion.tool != run.tool:
            return Admission(
                Ruling.REJECT,
                'conflicting_completion',
                f'run {completion.run_id!r} is a run of {run.tool!r}, not of {completion.tool!r}',
            )
        if run.interrupted:
            return Admission(
                Ruling.REJECT, 'run_interrupted', f'run {completion.run_id!r} was interrupted'
            )
        if run.state in CLOSED:
            return Admission(
                Ruling.REJECT,
                'run_closed',
                f'run {completion.run_id!r} has ended as {run.state.value}',
            )
    return _next_segment(completion, run, evaluation)


def _again(completion: Completion, known: Segment, arrival: Arrival) -> Admission:
    if completion.fingerprint != known.completion.fingerprint:
        return Admission(
            Ruling.REJECT,
            'conflicting_completion',
            f'run {completion.run_id!r} segment {completion.segment} is on record with another '
            'tool, stamp or arguments; run ids must never be reused',
        )
    if completion.unique:
        return Admission(Ruling.ANSWER)
    if arrival.era != known.era:
        return Admission(
            Ruling.REJECT,
            'conflicting_completion',
            f'run {completion.run_id!r} segment {completion.segment} is on record from before the '
            "node's clock went back (a simulation that was reset, a bag that loops), so it cannot "
            'be told from a new run of that name; use run ids that are never reused',
        )
    if completion.stamp == 0 and not _may_be_repeated(known, arrival):
        return Admission(
            Ruling.REJECT,
            'conflicting_completion',
            f'run {completion.run_id!r} has no stamp and is on record from another time, so it '
            'cannot be told from a new run of that name; stamp the completions, or use run ids '
            'that are never reused',
        )
    return Admission(Ruling.ANSWER)


def _may_be_repeated(known: Segment, arrival: Arrival) -> bool:
    """Whether an unstamped completion can only be the known one again."""
    age = abs(arrival.wall - known.accepted)
    elapsed = seconds(arrival.receipt - known.receipt)
    if known.state in PENDING:
        return elapsed >= 0 and age <= REPEAT_WINDOW
    return 0 <= elapsed <= REPEAT_SECONDS and age <= REPEAT_SECONDS


def _next_segment(
    completion: Completion, run: Run | None, evaluation: EvaluationSettings
) -> Admission:
    number = completion.segment
    if number > 0 and completion.tool not in evaluation.segment_tools:
        return Admission(
            Ruling.REJECT,
            'not_a_segment_tool',
            f'segment {number} of {completion.tool!r}, which is not one of segment_tools',
        )
    if number >= evaluation.max_segments:
        return Admission(
            Ruling.REJECT,
            'segment_budget',
            f'segment {number}, but max_segments is {evaluation.max_segments}',
        )
    last = None if run is None else run.last
    if last is not None and last.state in PENDING:
        return Admission(
            Ruling.REJECT,
            'segment_pending',
            f'segment {last.completion.segment} has no outcome yet; wait for it',
        )
    expected = 0 if last is None else last.completion.segment + 1
    if number < expected:
        return Admission(
            Ruling.REJECT, 'segment_out_of_order', f'segment {number} after {expected - 1}'
        )
    if number > expected:
        return Admission(
            Ruling.FAIL,
            'missing_segment',
            f'segment {number} of run {completion.run_id!r} came, but segment {expected} never '
            'did; report the end of every segment, over the action if the topic loses messages',
            recorded=True,
        )
    return Admission(Ruling.TAKE)


def completion_problem(completion: Completion) -> tuple[str, str] | None:
    """Why a completion cannot be recorded: an error kind and a message, or None if it can."""
    if not completion.run_id.strip():
        return 'empty_run_id', f'a completion of {completion.tool!r} came without a run id'
    problem = id_problem(completion.run_id)
    if problem:
        return 'invalid_run_id', f'a completion of {completion.tool!r} has a run id {problem}'
    if not 0 <= completion.segment <= MAX_SEGMENT:
        return (
            'invalid_completion',
            'its segment is not one of 0 to 2^32 - 1; segments are counted from 0',
        )
    if abs(completion.stamp) > MAX_STAMP:
        return (
            'invalid_completion',
            'its stamp is beyond 2^31 s; stamps count from the epoch of the ROS clock',
        )
    names = [name for name, _ in completion.arguments]
    if len(names) > MAX_ARGUMENTS:
        return (
            'invalid_completion',
            f'{len(names)} arguments, but a completion may have at most {MAX_ARGUMENTS}',
        )
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        return 'invalid_completion', f'argument {printable(twice, 60)!r} is given twice'
    size = sum(
        len(n.encode('utf-8', 'replace')) + len(v.encode('utf-8', 'replace'))
        for n, v in completion.arguments
    )
    if size > MAX_ARGUMENT_BYTES:
        return (
            'invalid_completion',
            f'{size} bytes of arguments, but at most {MAX_ARGUMENT_BYTES} are taken',
        )
    return None
