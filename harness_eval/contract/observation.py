"""What the world looked like: pictures and readings, with their moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

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
