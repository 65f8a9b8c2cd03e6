"""What is on record of a run: completions, segments, outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
import hashlib
import json
from typing import Any

from harness_eval.contract import Status, Verdict


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


Key = tuple[str, int]
"""A run id and the number of a segment."""

_ENCODER = json.JSONEncoder(sort_keys=True, allow_nan=False)

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
    def key(self) -> Key:
        """What tells its segment from all others."""
        return self.run_id, self.segment

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
        score: The score that was not sure enough, of an abstention that had one. A verdict has
            its own.
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
    score: float | None = None

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
        data = dict(vars(self))
        if self.verdict is not None:
            report = self.verdict.report
            data['verdict'] = {
                **vars(self.verdict),
                'report': None if report is None else dict(report),
            }
        return _ENCODER.encode(data)

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
        evidence_digest: SHA-256 (hex) over the frames of that case; empty if there is none.
        streams: Digest of the streams that its evidence consists of.
        rules: Digest of what it is judged by in this attempt.
        starts: How often its evaluator was asked in this attempt.
        era: How often the node's clock had gone back before it came; see ``receipt``.
        accepted: Seconds of the wall clock when it was put on record.
    """

    completion: Completion
    order: int
    receipt: int
    state: SegmentState = SegmentState.RECEIVED
    attempt: int = 1
    evidence: str = ''
    outcome: Outcome | None = None
    evidence_digest: str = ''
    streams: str = ''
    rules: str = ''
    starts: int = 0
    era: int = 0
    accepted: float = 0.0

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
