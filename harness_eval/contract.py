"""What crosses the evaluator boundary: the request, the observation, the verdict and the errors.

This module imports nothing else of the package. Times are integers in nanoseconds since the
epoch of the ROS clock in use; durations are floats in seconds unless the name ends in ``_ns``.

An evaluator is given an :class:`EvaluationRequest` and nothing more. The type has no place for a
run id, for a claim of success or for the reasoning of the agent, so none of them can reach it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
import hashlib
import json
import math
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[Any]
"""A picture: ``HxWx3 uint8, BGR`` for colour, ``HxW`` (uint8, uint16 or float32) otherwise."""


def frozen(picture: Image) -> Image:
    """Copy a picture so that nobody can ever write to it.

    A read-only flag can be taken back by whoever holds the array, and a judge that draws on what
    it is shown would spoil it for the next. Memory of a ``bytes`` object cannot be made writable.
    """
    if not picture.size:
        return picture
    return np.frombuffer(picture.tobytes(), picture.dtype).reshape(picture.shape)


class Status(str, Enum):
    """The three things a verdict can say."""

    PROCESS = 'process'
    SUCCESS = 'success'
    FAILURE = 'failure'


class HarnessEvalError(Exception):
    """Base class of every error that this package raises on purpose."""


class EvaluationError(HarnessEvalError):
    """The evaluation could not be done. It is never a verdict.

    Args:
        kind: Machine-readable name in ``snake_case``, for example ``clock_skew``.
        message: What was expected, what was found, where, and what to do.
        evaluator: Reference of the evaluator concerned, without credentials; empty if none.
        retryable: Whether judging the same evidence again may give an answer.
    """

    def __init__(
        self, kind: str, message: str, *, evaluator: str = '', retryable: bool = False
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.evaluator = evaluator
        self.retryable = retryable

    def __str__(self) -> str:
        where = f' [{self.evaluator}]' if self.evaluator else ''
        return f'{self.kind}{where}: {self.message}'


class CaptureError(EvaluationError):
    """The observation could not be made (rules 4 and 5)."""


class DecodeError(EvaluationError):
    """A message could not be turned into a picture or a reading."""


class EvaluatorError(EvaluationError):
    """The evaluator raised, hung, answered nonsense or is quarantined.

    Args:
        kind: Machine-readable name; ``rate_limited`` for an evaluator that is called too often.
        message: What was expected, what was found, where, and what to do.
        evaluator: Reference of the evaluator concerned, without credentials; empty if none.
        retryable: Whether judging the same evidence again may give an answer.
        retry_after: Seconds for which the evaluator asks to be left alone, if it does; all its
            calls are held back for so long.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        evaluator: str = '',
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(kind, message, evaluator=evaluator, retryable=retryable)
        self.retry_after = retry_after


class LedgerError(EvaluationError):
    """The durable record could not be read or written."""


class Abstention(EvaluationError):
    """Nobody can tell from this observation; for example a view that is not usable.

    Args:
        kind: Machine-readable name in ``snake_case``, for example ``unsure``.
        message: What was seen, and why it does not suffice.
        evaluator: Reference of the evaluator concerned, without credentials; empty if none.
        retryable: Whether judging the same evidence again may give an answer.
        score: The score in [0, 1] that was not sure enough, if there is one; it is kept so that
            thresholds can be chosen from what is on record.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        evaluator: str = '',
        retryable: bool = False,
        score: float | None = None,
    ) -> None:
        super().__init__(kind, message, evaluator=evaluator, retryable=retryable)
        self.score = score


@dataclass(frozen=True)
class CameraInfo:
    """Intrinsics of one camera, as in ``sensor_msgs/CameraInfo``.

    Attributes:
        width: Image width in pixels.
        height: Image height in pixels.
        matrix: ``3x3 float64``, the camera matrix K in pixels.
        distortion: ``N float64``, the coefficients D.
        model: Name of the distortion model, for example ``plumb_bob``.
    """

    width: int
    height: int
    matrix: npt.NDArray[np.float64]
    distortion: npt.NDArray[np.float64]
    model: str


@dataclass(frozen=True)
class View:
    """One camera image of an observation. The picture is decoded when it is first asked for.

    Attributes:
        name: Name of the view in the configuration.
        topic: Topic that it came from, as resolved.
        type: Message type, for example ``sensor_msgs/msg/Image``.
        frame_id: Coordinate frame of the camera.
        stamp: Nanoseconds of the header's stamp (or of the receipt, see ``stamp_source``).
        age: Seconds between the end of the execution and ``stamp``; never negative.
        stamp_source: ``header`` or ``receipt``.
        summary: The view in one line, for evidence and logs.
        decode: Makes the picture from the message; raises :class:`DecodeError`.
        camera_info: Intrinsics if a ``camera_info`` topic is configured.
    """

    name: str
    topic: str
    type: str
    frame_id: str
    stamp: int
    age: float
    stamp_source: str
    summary: str
    decode: Callable[[], Image] = field(repr=False, compare=False)
    camera_info: CameraInfo | None = field(default=None, repr=False, compare=False)

    @cached_property
    def image(self) -> Image:
        """The picture, ``HxWx3 uint8, BGR`` or ``HxW``; read-only.

        Raises:
            DecodeError: The message does not hold a picture that can be trusted.
        """
        return frozen(self.decode())


@dataclass(frozen=True)
class State:
    """One reading of an observation that is not a picture.

    Attributes:
        name: Name of the state in the configuration.
        topic: Topic that it came from, as resolved.
        type: Message type.
        frame_id: Coordinate frame, empty if the message has none.
        stamp: Nanoseconds of the header's stamp (or of the receipt, see ``stamp_source``).
        age: Seconds between the end of the execution and ``stamp``; never negative.
        stamp_source: ``header`` or ``receipt``.
        value: The reading; a tuple if the field path selects several and nothing reduces them.
        summary: The reading in one line, for evidence and logs.
    """

    name: str
    topic: str
    type: str
    frame_id: str
    stamp: int
    age: float
    stamp_source: str
    value: float | tuple[float, ...]
    summary: str


@dataclass(frozen=True)
class Observation:
    """All views and states that a post-condition needs, from after the end of the execution.

    Attributes:
        views: Views by name.
        states: States by name.
        t_end: Nanoseconds of the end of the execution (the later of stamp and receipt).
        spread: Seconds between the earliest and the latest stamp; at most ``slop``.
    """

    views: Mapping[str, View]
    states: Mapping[str, State]
    t_end: int
    spread: float


@dataclass(frozen=True)
class Criterion:
    """One criterion of a rubric.

    Attributes:
        name: How evidence and failure reasons call it.
        text: What must be true for it to be met.
        weight: Share of the score, above 0.
        must: Whether it failing means failure, whatever the score.
    """

    name: str
    text: str
    weight: float = 1.0
    must: bool = False


@dataclass(frozen=True)
class Rubric:
    """What a tool's work is judged by: free text, or criteria with names and weights.

    Attributes:
        text: Markdown; empty if there are criteria.
        criteria: The criteria; empty if there is a text.
        version: What this version of it is called.

    Raises:
        ValueError: Both or none of text and criteria, a name twice, a weight that is not above 0.
    """

    text: str = ''
    criteria: tuple[Criterion, ...] = ()
    version: str = ''

    def __post_init__(self) -> None:
        if bool(self.text.strip()) == bool(self.criteria):
            raise ValueError('a rubric has either a text or criteria')
        if len({criterion.name for criterion in self.criteria}) < len(self.criteria):
            raise ValueError('each criterion of a rubric has a name of its own')
        if not all(0.0 < criterion.weight < math.inf for criterion in self.criteria):
            raise ValueError('the weight of a criterion is a finite number above 0')

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of all it says, its version included."""
        criteria = [[one.name, one.text, one.weight, one.must] for one in self.criteria]
        said = json.dumps([self.version, self.text, criteria], ensure_ascii=True)
        return hashlib.sha256(said.encode('ascii')).hexdigest()


@dataclass(frozen=True)
class ReportOutput:
    """One output of a tool's typed report, as whoever fills it in needs to know it.

    Attributes:
        key: Its name in the report.
        title: What it means.
        type: ``string``, ``integer``, ``number`` or ``boolean``.
        one_of: The texts that are expected of a string; empty if any may come.
    """

    key: str
    title: str
    type: str
    one_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class PostCondition:
    """What must hold after the tool, with the declared arguments filled in.

    Attributes:
        text: The sentence; empty if only checks are given.
        checks: The tool's checks as plain data, validated by ``harness_eval.config``, in order.
        references: Reference pictures by name, ``HxWx3 uint8, BGR``.
        failure_kinds: What a failure may be called.
        process_allowed: Whether ``process`` is an allowed answer (segment tools only).
        rubric: What a rubric evaluator judges it by, if it has one.
        report: Outputs that the judge fills in beside its verdict.
        regions: The part of a view that an evaluator is shown, ``(x0, y0, x1, y1)`` in fractions
            of width and height, by evaluator and view; whole views where none is named.
    """

    text: str = ''
    checks: tuple[Any, ...] = ()
    references: Mapping[str, Image] = field(default_factory=dict)
    failure_kinds: tuple[str, ...] = ()
    process_allowed: bool = False
    rubric: Rubric | None = None
    report: tuple[ReportOutput, ...] = ()
    regions: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class EvaluationRequest:
    """Everything that an evaluator is given.

    Attributes:
        post_condition: What must hold.
        observation: What the world looks like after the end.
        digest: SHA-256 (hex) of both, by which an answer can be kept; empty if it is not known.
    """

    post_condition: PostCondition
    observation: Observation
    digest: str = field(default='', compare=False)


@dataclass(frozen=True)
class Verdict:
    """What an evaluator decided.

    Attributes:
        status: ``process``, ``success`` or ``failure``.
        evidence: What was seen, one line each.
        failure_reason: Why the post-condition does not hold; set for ``failure`` and only then.
        failure_kind: ``post_condition``, ``segment_budget``, ``stalled`` or one of the tool's own
            failure kinds; set for ``failure`` and only then.
        score: Confidence in [0, 1] that the post-condition holds, if there is one.
        report: The tool's typed report, if there is one.
        route: Which model or service answered; empty for the evaluator itself.
        cost: Price of the judgement, if known.

    Raises:
        ValueError: A failure without a reason, a reason without a failure, a score out of range.
    """

    status: Status
    evidence: tuple[str, ...] = ()
    failure_reason: str = ''
    failure_kind: str = ''
    score: float | None = None
    report: Mapping[str, Any] | None = None
    route: str = ''
    cost: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.status, Status):
            raise ValueError(f'status must be a Status, not {self.status!r}')
        if self.status is Status.FAILURE:
            if not self.failure_reason.strip():
                raise ValueError('a failure needs a failure_reason')
            if not self.failure_kind:
                object.__setattr__(self, 'failure_kind', 'post_condition')
        elif self.failure_reason or self.failure_kind:
            raise ValueError(f'{self.status.value} carries no failure_reason and no failure_kind')
        if self.score is not None and not 0.0 <= self.score <= 1.0:
            raise ValueError(f'score {self.score} is outside [0, 1]')


Answer = Verdict | float | bool | None
"""What an evaluator may return. ``None`` abstains; a float is a score in [0, 1]."""


@runtime_checkable
class Evaluator(Protocol):
    """Whatever judges a post-condition against an observation.

    Attributes:
        ref: How errors and verdicts name it; no credentials, no query.
    """

    ref: str

    def evaluate(self, request: EvaluationRequest) -> Answer | Awaitable[Answer]:
        """Judge the request. It may block; it runs on a thread of its own with a deadline.

        Raises:
            EvaluationError: The evaluation could not be done. Any other exception is turned
                into one by the caller.
        """
        ...
