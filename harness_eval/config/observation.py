"""The settings of the ``capture:`` block: views, states and which frames count."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness_eval.config.base import (
    Flag,
    MessageType,
    Name,
    Number,
    PositiveSeconds,
    Seconds,
    Settings,
    Text,
    Topic,
)
from harness_eval.config.checks import UsableCondition
from harness_eval.message_types import COMPRESSED_IMAGE, IMAGE

Stamp = Literal['header', 'receipt']


class ViewSettings(Settings):
    """One camera.

    Attributes:
        topic: Image topic; relative names are resolved by the node.
        type: ``sensor_msgs/msg/Image`` or ``sensor_msgs/msg/CompressedImage``; default: compressed
            if the topic's last word is ``compressed``, raw otherwise.
        camera_info: Topic of its ``sensor_msgs/msg/CameraInfo``; captured with the image.
        stamp: ``header``, or ``receipt`` for a type without a header.
        usable: What must be seen in it before anything is concluded.
        always_on: Keep the subscription open, for a camera that starts lazily.
        may_repeat: Accept frames that repeat byte for byte (a simulated camera without noise).
    """

    topic: Topic
    type: Literal['sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage'] | None = None
    camera_info: Topic | None = None
    stamp: Stamp = 'header'
    usable: UsableCondition | None = None
    always_on: Flag = False
    may_repeat: Flag = False

    @property
    def message_type(self) -> str:
        """The message type, with the default filled in."""
        if self.type is not None:
            return self.type
        return COMPRESSED_IMAGE if self.topic.split('/')[-1] == 'compressed' else IMAGE


class StateSettings(Settings):
    """One reading.

    Attributes:
        topic: Topic; relative names are resolved by the node.
        field: Field path into the message, for example ``position[name=finger_joint]``.
        type: Message type; default: whatever the topic has.
        reduce: How several values become one: ``min``, ``mean`` or ``max``; default: all of them
            are kept, and a check on the state holds only if it holds for each.
        stamp: ``header``, or ``receipt`` for a type without a header.
        always_on: Keep the subscription open.
    """

    topic: Topic
    field: Text
    type: MessageType | None = None
    reduce: Literal['min', 'mean', 'max'] | None = None
    stamp: Stamp = 'header'
    always_on: Flag = False


class CaptureSettings(Settings):
    """Which frames form an observation.

    Attributes:
        views: Cameras by name.
        states: Readings by name; no state has the name of a view.
        settle: Seconds after the end before a frame counts.
        slop: Seconds between the earliest and the latest stamp of one observation, at most.
        timeout: Seconds on the ROS clock to find a complete observation.
        wall_timeout: Seconds on the wall clock, for a ROS clock that stands still.
        max_clock_skew: Seconds that a stamp may be off the clock before it is an error.
        max_ahead: Seconds that a stamp may lie after its receipt; must be less than ``settle``.
    """

    views: dict[Name, ViewSettings] = Field(default_factory=dict)
    states: dict[Name, StateSettings] = Field(default_factory=dict)
    settle: Seconds = 0.3
    slop: Seconds = 0.05
    timeout: Annotated[Number, Field(gt=0.0, le=3600.0)] = 3.0
    wall_timeout: PositiveSeconds = 30.0
    max_clock_skew: Seconds = 1.0
    max_ahead: Seconds = 0.05
