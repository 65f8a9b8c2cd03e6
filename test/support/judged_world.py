"""Requests, views and pictures made in the test, without ROS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from harness_eval.config.checks import Check
from harness_eval.contract import (
    CameraInfo,
    EvaluationRequest,
    Image,
    Observation,
    PostCondition,
    State,
    View,
)

END = 1_000_000_000_000


def make_view(
    name: str,
    picture: Image | Exception,
    *,
    camera_info: CameraInfo | None = None,
    topic: str = 'cell/front/image_raw',
) -> View:
    """A view of a picture, or one whose decoding raises."""

    def decode() -> Image:
        if isinstance(picture, Exception):
            raise picture
        copied: Image = picture.copy()
        return copied

    return View(
        name=name,
        topic=topic,
        type='sensor_msgs/msg/Image',
        frame_id='camera',
        stamp=END + 400_000_000,
        age=0.4,
        stamp_source='header',
        summary=f'{name} in the test',
        decode=decode,
        camera_info=camera_info,
    )


def make_state(name: str, value: float | tuple[float, ...]) -> State:
    """A reading of a joint."""
    return State(
        name=name,
        topic='joint_states',
        type='sensor_msgs/msg/JointState',
        frame_id='',
        stamp=END + 400_000_000,
        age=0.4,
        stamp_source='header',
        value=value,
        summary=f'{name} in the test',
    )


def make_observation(*parts: View | State) -> Observation:
    """An observation of views and states."""
    return Observation(
        views={part.name: part for part in parts if isinstance(part, View)},
        states={part.name: part for part in parts if isinstance(part, State)},
        t_end=END,
        spread=0.0,
    )


def make_request(
    *parts: View | State,
    checks: tuple[Mapping[str, Any], ...] = (),
    references: Mapping[str, Image] | None = None,
    failure_kinds: tuple[str, ...] = (),
    process_allowed: bool = False,
) -> EvaluationRequest:
    """A request about views and states, with checks as they stand in the YAML."""
    post_condition = PostCondition(
        text='The part is in its place.',
        checks=tuple(Check.model_validate(dict(check)) for check in checks),
        references=dict(references or {}),
        failure_kinds=failure_kinds,
        process_allowed=process_allowed,
    )
    return EvaluationRequest(post_condition, make_observation(*parts))


def plain(value: int | tuple[int, int, int], width: int = 320, height: int = 240) -> Image:
    """A picture of one colour (BGR) or of one grey level."""
    if isinstance(value, int):
        return np.full((height, width), value, np.uint8)
    return np.full((height, width, 3), value, np.uint8)


def noise(seed: int, width: int = 64, height: int = 48) -> Image:
    """A colour picture of noise."""
    made: Image = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    return made


def marker_picture(dictionary: str, number: int, side: int) -> Image:
    """A marker of OpenCV's, ``side x side uint8``, with whichever function this version has."""
    import cv2

    aruco: Any = cv2.aruco
    code = getattr(aruco, dictionary)
    if hasattr(aruco, 'generateImageMarker'):
        found = aruco.getPredefinedDictionary(code)
        made: Image = aruco.generateImageMarker(found, number, side)
    else:
        made = aruco.drawMarker(aruco.Dictionary_get(code), number, side)
    return made


def with_marker(
    picture: Image, dictionary: str, number: int, left: int, top: int, side: int = 60
) -> Image:
    """A copy of a light picture with a marker pasted into it."""
    made: Image = picture.copy()
    marker = marker_picture(dictionary, number, side)
    if made.ndim == 3:
        marker = np.repeat(marker[:, :, None], 3, axis=2)
    made[top : top + side, left : left + side] = marker
    return made
