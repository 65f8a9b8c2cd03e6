"""What is posted to an endpoint, and what it may answer.

The JSON Schemas in ``docs/endpoint.md`` are made from these classes; a test keeps them equal.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Sent(BaseModel):
    model_config = ConfigDict(extra='forbid', frozen=True)


class _Answered(BaseModel):
    # A key that we do not know may be the one that takes back the others ("error": …).
    model_config = ConfigDict(extra='forbid', strict=True, frozen=True, allow_inf_nan=False)


Real = float | Literal['NaN', 'Infinity', '-Infinity']
"""A number; JSON has none for what is not finite, so these are written as protobuf does."""


class PictureSent(_Sent):
    """One picture, as a PNG file."""

    data: str = Field(
        description='The PNG file in base64 (RFC 4648, with padding).',
        json_schema_extra={'contentEncoding': 'base64', 'contentMediaType': 'image/png'},
    )
    format: Literal['png'] = 'png'
    width: int = Field(description='Columns.')
    height: int = Field(description='Rows.')
    channels: Literal[1, 3] = Field(description='3: colour, 1: grey or depth.')
    bits: Literal[8, 16] = Field(description='Bits of a sample.')
    unit: Literal['', 'mm'] = Field(
        description='mm: depth in millimetres, 0 where there is no reading, 65535 for all farther '
        'than 65.534 m. Empty: the samples are as the camera gave them.'
    )


class IntrinsicsSent(_Sent):
    """Intrinsics of a camera, as in sensor_msgs/CameraInfo."""

    width: int
    height: int
    model: str = Field(description='Name of the distortion model, for example plumb_bob.')
    matrix: list[list[Real]] = Field(description='3x3, the camera matrix K in pixels, row by row.')
    distortion: list[Real] = Field(description='The coefficients D.')


class ViewSent(_Sent):
    """One view of the observation."""

    image: PictureSent
    age: float = Field(description='Seconds between the end of the execution and the stamp.')
    stamp_source: Literal['header', 'receipt'] = Field(
        description='Whether the stamp is that of the header or of the receipt.'
    )
    frame_id: str = Field(description='Coordinate frame of the camera.')
    camera_info: IntrinsicsSent | None = Field(
        description='Intrinsics, where the view is configured to have them.'
    )


class StateSent(_Sent):
    """One reading of the observation that is no picture."""

    value: Real | list[Real] = Field(
        description='The reading; a list if the field selects several.'
    )
    age: float = Field(description='Seconds between the end of the execution and the stamp.')
    stamp_source: Literal['header', 'receipt']
    frame_id: str


class CriterionSent(_Sent):
    """One criterion of a rubric."""

    name: str
    text: str = Field(description='What must be true for it to be met.')
    weight: float = Field(description='Share of the score, above 0.')
    must: bool = Field(description='Whether it failing means failure, whatever the score.')


class RubricSent(_Sent):
    """What the work is judged by: a text, or criteria."""

    text: str
    criteria: list[CriterionSent]
    version: str


class OutputSent(_Sent):
    """One output of the report that is expected in the answer."""

    key: str
    title: str = Field(description='What it means.')
    type: str = Field(description='string, integer, number or boolean.')


class TaskSent(_Sent):
    """What must hold, and what may be answered."""

    prompt: str = Field(description='The post-condition; empty if the tool has only checks.')
    reference: dict[str, PictureSent] = Field(description='Reference pictures by name.')
    rubric: RubricSent | None = Field(description="The tool's rubric, if it has one.")
    report: list[OutputSent] = Field(
        description='What the report of a full answer is to hold; empty: no report.'
    )
    checks: list[dict[str, Any]] = Field(description="The tool's checks as they are configured.")
    failure_kinds: list[str] = Field(
        description='What failure_kind may be besides post_condition and stalled.'
    )
    process_allowed: bool = Field(description='Whether the status process is an allowed answer.')


class ObservationSent(_Sent):
    """What the world looks like after the end of the execution."""

    views: dict[str, ViewSent] = Field(description='Views by name.')
    states: dict[str, StateSent] = Field(description='Readings by name.')
    spread: float = Field(description='Seconds between the earliest and the latest stamp.')


class Question(_Sent):
    """What is posted."""

    task: TaskSent
    observation: ObservationSent


class RewardAnswer(_Answered):
    """The short answer: a score, of which the thresholds of the configuration make a verdict."""

    reward: float = Field(description='0 (does not hold) to 1 (holds).')
    info: Any = Field(None, description='Anything; it is not looked at.')


class VerdictAnswer(_Answered):
    """The full answer."""

    status: Literal['success', 'failure', 'process', 'abstain'] = Field(
        description='abstain: looked, and nobody can tell. process: only where process_allowed.'
    )
    evidence: list[str] = Field([], description='What was seen, one line each.')
    failure_reason: str = Field('', description='Why it does not hold; a failure has one.')
    failure_kind: str = Field('', description='One of the failure_kinds; empty: post_condition.')
    score: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    report: dict[str, Any] | None = Field(None, description="The tool's typed report.")
    route: str = Field('', description='Which model answered.')
    cost: Annotated[float, Field(ge=0.0)] | None = Field(None, description='Price of the answer.')
    info: Any = Field(None, description='Anything; it is not looked at.')
