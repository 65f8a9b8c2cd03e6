"""The request and the response of ``harness_eval_msgs/srv/Judge`` as plain data.

The pictures are encoded here. What an answer means is said in
:mod:`harness_eval.evaluators.service`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
import hashlib
import json
import math

from harness_eval.contract import EvaluationRequest, Image, State, View
from harness_eval.evaluators.elsewhere import plain_check
from harness_eval.evaluators.picture_bytes import png_of, PngPicture

UNSET, PROCESS, SUCCESS, FAILURE, ABSTAIN = range(5)
"""What ``status`` in the answer may be; a test keeps them equal to the constants of ``Judge``."""


@dataclass(frozen=True)
class SentPicture:
    """A picture of the question: a view, or a reference, whose age is NaN.

    Attributes:
        name: Name of the view or of the reference.
        age: Seconds between the end of the execution and ``stamp``.
        stamp: Nanoseconds.
        frame_id: Coordinate frame.
        format: As in ``sensor_msgs/CompressedImage``.
        data: The PNG file.
    """

    name: str
    age: float
    stamp: int
    frame_id: str
    format: str
    data: bytes


@dataclass(frozen=True)
class SentState:
    """A reading of the question.

    Attributes:
        name: Name of the state.
        age: Seconds between the end of the execution and ``stamp``.
        stamp: Nanoseconds.
        frame_id: Coordinate frame.
        values: One element for a scalar.
    """

    name: str
    age: float
    stamp: int
    frame_id: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class JudgeQuestion:
    """The request of ``harness_eval_msgs/srv/Judge`` as plain data."""

    post_condition: str
    checks_json: str
    failure_kinds: tuple[str, ...]
    process_allowed: bool
    views: tuple[SentPicture, ...]
    states: tuple[SentState, ...]
    references: tuple[SentPicture, ...]

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of all of it: equal digests, equal questions.

        It is that of a JSON text with sorted keys and without white space, in which each file
        stands as its own SHA-256. The CDR bytes would not do: their padding may hold anything.
        """
        text = json.dumps(
            asdict(self), sort_keys=True, separators=(',', ':'), default=_sha256_of_bytes
        )
        return hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()


def _sha256_of_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True)
class JudgeReply:
    """The response of ``harness_eval_msgs/srv/Judge`` as plain data; see there."""

    status: int = UNSET
    score: float = math.nan
    evidence: tuple[str, ...] = ()
    failure_reason: str = ''
    failure_kind: str = ''
    route: str = ''
    cost: float = math.nan
    error: str = ''


def question_of(request: EvaluationRequest) -> JudgeQuestion:
    """The question as plain data, with every picture as PNG.

    Raises:
        EvaluatorError: ``unsendable_picture``.
        DecodeError: A picture cannot be decoded.
    """
    asked, seen = request.post_condition, request.observation
    return JudgeQuestion(
        post_condition=asked.text,
        checks_json=json.dumps([plain_check(check) for check in asked.checks])
        if asked.checks
        else '',
        failure_kinds=asked.failure_kinds,
        process_allowed=asked.process_allowed,
        views=tuple(map(_view, seen.views.values())),
        states=tuple(map(_state, seen.states.values())),
        references=tuple(_reference(name, one) for name, one in asked.references.items()),
    )


def _view(view: View) -> SentPicture:
    png = png_of(view.image, f'view {view.name!r}')
    return SentPicture(view.name, view.age, view.stamp, view.frame_id, _format(png), png.data)


def _reference(name: str, picture: Image) -> SentPicture:
    png = png_of(picture, f'reference {name!r}')
    return SentPicture(name, math.nan, 0, '', _format(png), png.data)


def _state(state: State) -> SentState:
    values = state.value if isinstance(state.value, tuple) else (state.value,)
    return SentState(state.name, state.age, state.stamp, state.frame_id, values)


def _format(png: PngPicture) -> str:
    """The format as image_transport writes it, by which cv_bridge decodes."""
    encoding = 'bgr8' if png.channels == 3 else 'mono8' if png.bits == 8 else '16UC1'
    if png.channels == 3 and png.bits == 16:
        encoding = 'bgr16'
    return f'{encoding}; png compressed {encoding}'
