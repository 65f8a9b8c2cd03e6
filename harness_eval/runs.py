"""The run state machine: what a completion means for what is already on record. Pure.

A run is one execution of a tool; a segmented tool's run has segments 0, 1, 2 and so on. Each
segment goes ``RECEIVED``, ``CAPTURED``, ``STARTED`` and then to ``SUCCESS``, ``FAILURE``,
``PROCESS`` or ``INTERRUPTED`` (final), or to ``ERROR`` or ``ABSTAINED`` (open again). Functions
here take what is on record and return what is to be done; nothing is changed in place.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import Enum
import hashlib
import json
import math
from typing import Any
import unicodedata

from harness_eval.config.models import EvaluationSettings
from harness_eval.contract import Abstention, EvaluationError, Status, Verdict

MAX_ID_LENGTH = 256
"""Most characters of a run id or an update id; longer ones are mistakes, not names."""
MAX_ARGUMENTS = 256
MAX_ARGUMENT_BYTES = 64 * 1024
"""Most bytes of all arguments of a completion together; a post-condition takes far less."""
MAX_SEGMENT = 2**32 - 1
"""Segments are ``uint32`` in the messages."""
MAX_STAMP = 2**31 * 10**9 - 1
"""Nanoseconds. Seconds are ``int32`` in the messages."""
UNPRINTABLE = frozenset({'Cc', 'Cs', 'Cf', 'Zl', 'Zp'})
"""Unicode categories that have no place in a line of a log, nor in a name: nobody sees them."""
MAX_REASON = 500
"""Most characters of a reason that comes from outside."""
INTERNAL_ERROR = 'internal_error'
"""Kind of the error that a fault inside the package becomes."""
REPEAT_WINDOW_NS = 60 * 10**9
"""How long after its receipt an unstamped completion may come again and still be the same one.

Without a stamp, a repetition and an agent that counts its runs from ``run_1`` again look alike;
an agent does not restart and finish a run within a minute of the first one's end by design, and
later repetitions are refused rather than answered with an old verdict.
"""


class SegmentState(str, Enum):
    """How far the evaluation of a segment has come."""

    RECEIVED = 'RECEIVED'
    CAPTURED = 'CAPTURED'
    STARTED = 'STARTED'
    SUCCESS = 'SUCCESS'
    FAILURE = 'FAILURE'
    PROCESS = 'PROCESS'
    INTERRUPTED = 'INTERRUPTED'
    ERROR = 'ERROR'
    ABSTAINED = 'ABSTAINED'


PENDING = frozenset({SegmentState.RECEIVED, SegmentState.CAPTURED, SegmentState.STARTED})
"""No outcome yet."""
CLOSED = frozenset({SegmentState.SUCCESS, SegmentState.FAILURE, SegmentState.INTERRUPTED})
"""The run takes no further segment."""
OPEN_AGAIN = frozenset({SegmentState.ERROR, SegmentState.ABSTAINED})
"""An outcome that is no verdict: it may be judged again."""


class OutcomeKind(str, Enum):
    """What the evaluation of a segment came to."""

    VERDICT = 'verdict'
    ERROR = 'error'
    ABSTAINED = 'abstained'
    INTERRUPTED = 'interrupted'


@dataclass(frozen=True)
class Completion:
    """A run, or a segment of one, has ended.

    Attributes:
        run_id: Names the execution.
        tool: Name of the tool in the configuration.
        segment: Number of the segment, from 0.
        stamp: Nanoseconds at which execution ended; 0 if unknown.
        arguments: What the tool was asked to do, as pairs.
        unique: The run id can name only one execution ever (an action's goal id), so that a
            repetition is a repetition however late it comes.
    """

    run_id: str
    tool: str
    segment: int = 0
    stamp: int = 0
    arguments: tuple[tuple[str, str], ...] = ()
    unique: bool = False

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that makes it the same completion when it comes again."""
        canonical = json.dumps(
            [self.run_id, self.tool, self.segment, self.stamp, sorted(self.arguments)]
        )
        return hashlib.sha256(canonical.encode('utf-8', 'surrogatepass')).hexdigest()


@dataclass(frozen=True)
class Outcome:
    """What the evaluation of one segment came to. Times are nanoseconds, 0 for none.

    Attributes:
        attempt: 1 for the first evaluation, one more each time it is judged again.
        decided_at: When it was decided, on the ROS clock.
        error_kind: Kind of the error or abstention; empty for a verdict.
        message: For a person: what was expected, found, and what to do.
        evaluator: Reference of the evaluator concerned; empty if none was called.
        retryable: Whether the same evidence judged again may give an answer.
        input_digest: SHA-256 (hex) of all that the evaluator was given; empty before that.
        completed_at: The end of the execution.
        observed_from: Earliest stamp of the observation.
        observed_to: Latest stamp of the observation.
    """

    run_id: str
    tool: str
    segment: int
    attempt: int
    kind: OutcomeKind
    decided_at: int
    verdict: Verdict | None = None
    error_kind: str = ''
    message: str = ''
    evaluator: str = ''
    retryable: bool = False
    input_digest: str = ''
    completed_at: int = 0
    observed_from: int = 0
    observed_to: int = 0

    def __post_init__(self) -> None:
        if (self.kind is OutcomeKind.VERDICT) != (self.verdict is not None):
            raise ValueError('an outcome has a verdict exactly when its kind is VERDICT')

    @property
    def state(self) -> SegmentState:
        """State of the segment that this outcome brings."""
        if self.verdict is not None:
            return SegmentState[self.verdict.status.name]
        return SegmentState[self.kind.name]

    @property
    def label(self) -> str:
        """The outcome in one or two words, for people: ``success``, ``error clock_skew``."""
        if self.verdict is not None:
            return self.verdict.status.value
        return f'{self.kind.value} {self.error_kind}'.strip()

    def to_json(self) -> str:
        """The outcome as JSON; :meth:`from_json` gives an equal one back."""
        data = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if self.verdict is not None:
            report = self.verdict.report
            data['verdict'] = {
                **{f.name: getattr(self.verdict, f.name) for f in dataclasses.fields(Verdict)},
                'report': None if report is None else dict(report),
            }
        return json.dumps(data, sort_keys=True, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        """The outcome that :meth:`to_json` wrote.

        Raises:
            ValueError: The text is not such an outcome.
        """
        try:
            data: dict[str, Any] = dict(json.loads(text))
            data['kind'] = OutcomeKind(data['kind'])
            if data['verdict'] is not None:
                verdict = dict(data['verdict'])
                verdict['status'] = Status(verdict['status'])
                verdict['evidence'] = tuple(verdict['evidence'])
                data['verdict'] = Verdict(**verdict)
            return cls(**data)
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError(f'not an outcome: {error}') from error


@dataclass(frozen=True)
class Segment:
    """One segment of a run, as it is on record.

    Attributes:
        completion: What was reported.
        order: Place among all accepted completions, from 1.
        receipt: Nanoseconds of the receipt on the node's clock.
        state: How far it has come.
        attempt: Number of the newest attempt, from 1.
        evidence: Name of its stored case; empty if nothing was captured.
        outcome: The newest outcome, if there is one.
    """

    completion: Completion
    order: int
    receipt: int
    state: SegmentState = SegmentState.RECEIVED
    attempt: int = 1
    evidence: str = ''
    outcome: Outcome | None = None

    @property
    def t_end(self) -> int:
        """The end of the execution: the later of the completion's stamp and its receipt."""
        return max(self.completion.stamp, self.receipt)


@dataclass(frozen=True)
class Run:
    """One execution of a tool, as it is on record.

    Attributes:
        run_id: Its name.
        segments: Its segments in order of their numbers; empty for a tombstone.
        interrupted: It was interrupted before its (next) completion came.
        retired: It ended so long ago that no more than its name is still kept.
    """

    run_id: str
    segments: tuple[Segment, ...] = ()
    interrupted: bool = False
    retired: bool = False

    @property
    def last(self) -> Segment | None:
        """The segment with the highest number."""
        return self.segments[-1] if self.segments else None

    @property
    def tool(self) -> str:
        """Name of the tool; empty for a tombstone."""
        return self.segments[-1].completion.tool if self.segments else ''

    @property
    def state(self) -> SegmentState:
        """State of the run: that of its last segment, or ``INTERRUPTED``."""
        if self.last is None or (self.interrupted and self.last.state not in CLOSED):
            return SegmentState.INTERRUPTED
        return self.last.state


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
        return Admission(Ruling.IGNORE, 'not_required', f'{tool!r} is not required')
    problem = completion_problem(completion)
    return None if problem is None else Admission(Ruling.FAIL, *problem)


def admit(
    completion: Completion, run: Run | None, evaluation: EvaluationSettings, receipt: int
) -> Admission:
    """What is to be done with a completion.

    Args:
        completion: What was reported.
        run: The run of that name on record, if there is one.
        evaluation: Which tools are required, which are segmented, and the budget.
        receipt: Nanoseconds of the receipt on the node's clock.
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
            return _again(completion, known, receipt)
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


def _again(completion: Completion, known: Segment, receipt: int) -> Admission:
    if completion.fingerprint != known.completion.fingerprint:
        return Admission(
            Ruling.REJECT,
            'conflicting_completion',
            f'run {completion.run_id!r} segment {completion.segment} is on record with another '
            'tool, stamp or arguments; run ids must never be reused',
        )
    late = not 0 <= receipt - known.receipt <= REPEAT_WINDOW_NS
    if completion.stamp == 0 and not completion.unique and late:
        return Admission(
            Ruling.REJECT,
            'conflicting_completion',
            f'run {completion.run_id!r} has no stamp and is on record from another time, so it '
            'cannot be told from a new run of that name; stamp the completions, or use run ids '
            'that are never reused',
        )
    return Admission(Ruling.ANSWER)


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


def id_problem(name: str) -> str:
    """What is wrong with a run id or an update id, to follow "has a run id"; or nothing."""
    if len(name) > MAX_ID_LENGTH:
        return f'of {len(name)} characters; at most {MAX_ID_LENGTH} are taken'
    if any(unicodedata.category(c) in UNPRINTABLE for c in name):
        return f'with control characters or others that nobody sees: {printable(name, 60)!r}'
    return ''


def printable(text: str, limit: int) -> str:
    """The text on one line, control characters replaced, cut to ``limit`` characters."""
    clean = ''.join(
        '\N{REPLACEMENT CHARACTER}' if unicodedata.category(c) in UNPRINTABLE else c
        for c in text[: limit + 1]
    )
    return clean if len(clean) <= limit else clean[: limit - 1] + '\N{HORIZONTAL ELLIPSIS}'


def settle_budget(verdict: Verdict, completion: Completion, max_segments: int) -> Verdict:
    """The verdict with the segment budget applied: ``process`` at the last one is a failure."""
    if verdict.status is not Status.PROCESS or completion.segment + 1 < max_segments:
        return verdict
    return dataclasses.replace(
        verdict,
        status=Status.FAILURE,
        failure_kind='segment_budget',
        failure_reason=f'not done after {max_segments} segments, which is all it may take',
    )


def outcome_of(
    answer: Verdict | EvaluationError,
    segment: Segment,
    *,
    decided_at: int,
    max_segments: int,
    evaluator: str = '',
    input_digest: str = '',
    observed: tuple[int, int] = (0, 0),
) -> Outcome:
    """The outcome of a segment from what its evaluation gave.

    Args:
        answer: A verdict, an :class:`~harness_eval.contract.Abstention`, or any other error.
        segment: The segment that was evaluated.
        decided_at: Nanoseconds on the ROS clock.
        max_segments: Segment budget of a run.
        evaluator: Reference of the evaluator that was asked.
        input_digest: Digest of what it was given.
        observed: Earliest and latest stamp of the observation.
    """
    base = Outcome(
        run_id=segment.completion.run_id,
        tool=segment.completion.tool,
        segment=segment.completion.segment,
        attempt=segment.attempt,
        kind=OutcomeKind.ERROR,
        decided_at=decided_at,
        evaluator=evaluator,
        input_digest=input_digest,
        completed_at=segment.t_end,
        observed_from=observed[0],
        observed_to=observed[1],
    )
    if isinstance(answer, Verdict):
        verdict = settle_budget(answer, segment.completion, max_segments)
        return dataclasses.replace(base, kind=OutcomeKind.VERDICT, verdict=verdict)
    return dataclasses.replace(
        base,
        kind=OutcomeKind.ABSTAINED if isinstance(answer, Abstention) else OutcomeKind.ERROR,
        error_kind=answer.kind,
        message=answer.message,
        evaluator=answer.evaluator or evaluator,
        retryable=answer.retryable,
    )


def internal_error(error: BaseException) -> EvaluationError:
    """What an exception that nobody expected comes to: an error of the run at hand alone."""
    # The text of an OSError names a file of this machine.
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return EvaluationError(
        INTERNAL_ERROR,
        printable(f'{type(error).__name__}: {reason}', MAX_REASON)
        + '; this is a fault of harness_eval, see the log of the node',
        retryable=True,
    )


def interruption(segment: Segment, reason: str, decided_at: int) -> Outcome:
    """The outcome of a segment whose evaluation somebody stopped."""
    return Outcome(
        run_id=segment.completion.run_id,
        tool=segment.completion.tool,
        segment=segment.completion.segment,
        attempt=segment.attempt,
        kind=OutcomeKind.INTERRUPTED,
        decided_at=decided_at,
        message=printable(reason, MAX_REASON) or 'interrupted',
        completed_at=segment.t_end,
    )


def finite_or_none(value: float) -> float | None:
    """The number, or None for NaN (how messages say that there is none)."""
    return None if math.isnan(value) else value
