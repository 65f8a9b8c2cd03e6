"""An observation of still pictures and typed-in readings, without a robot and without ROS.

For trying an evaluator: what it is given has the form that the node would give it, so that the
answer is worth as much. Stamps are made up: everything was seen when the settling time was over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness_eval.config import Config
from harness_eval.contract import Image, Observation, State, View
from harness_eval.times import nanoseconds


@dataclass(frozen=True)
class Still:
    """A picture, and where it comes from.

    Attributes:
        picture: ``HxWx3 uint8, BGR`` or ``HxW`` (uint8 or uint16).
        origin: Name of its file, without the folder.
    """

    picture: Image
    origin: str

    @property
    def description(self) -> str:
        """Its size, depth and origin in a few words."""
        height, width = self.picture.shape[:2]
        kind = 'colour' if self.picture.ndim == 3 else 'grey'
        return f'{width}x{height} {kind}, {self.picture.dtype}, from {self.origin}'


def read_still(data: bytes, origin: str) -> Still:
    """Read a picture file of any kind that OpenCV knows.

    A transparent layer is left out, and samples of other types than 8 and 16 bits are refused: no
    camera message has them.

    Args:
        data: The file.
        origin: Its name, without the folder.

    Raises:
        ValueError: It is not such a picture.
    """
    import cv2

    found = None
    if data:
        found = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    if found is None:
        raise ValueError(f'{origin} is not a picture that OpenCV can read')
    picture: Image = found
    if picture.ndim == 3 and picture.shape[2] == 4:
        picture = np.ascontiguousarray(picture[:, :, :3])
    colour = picture.ndim == 3 and picture.dtype == np.uint8
    grey = picture.ndim == 2 and picture.dtype in (np.uint8, np.uint16)
    if not colour and not grey:
        raise ValueError(
            f'{origin} has samples of type {picture.dtype} in shape {picture.shape}; expected '
            'colour of 8 bits, or grey of 8 or 16 bits'
        )
    return Still(picture, origin)


def still_observation(
    config: Config,
    stills: Mapping[str, Still],
    readings: Mapping[str, float | tuple[float, ...]],
    now: int,
) -> Observation:
    """Make an observation of pictures and readings.

    Args:
        config: The whole configuration; has all these views and states.
        stills: Pictures by the name of the view.
        readings: Readings by the name of the state.
        now: Nanoseconds since the epoch; the end of the execution that is made up.
    """
    age = config.capture.settle
    stamp = now + nanoseconds(age)
    views = {name: _view(config, name, still, stamp, age) for name, still in stills.items()}
    states = {name: _state(config, name, value, stamp, age) for name, value in readings.items()}
    return Observation(views, states, t_end=now, spread=0.0)


def _view(config: Config, name: str, still: Still, stamp: int, age: float) -> View:
    settings = config.capture.views[name]

    def decode() -> Image:
        picture: Image = still.picture.copy()
        return picture

    return View(
        name=name,
        topic=settings.topic,
        type=settings.message_type,
        frame_id='',
        stamp=stamp,
        age=age,
        stamp_source='header',
        summary=f'{name}: {still.description}',
        decode=decode,
    )


def _state(
    config: Config, name: str, value: float | tuple[float, ...], stamp: int, age: float
) -> State:
    settings = config.capture.states[name]
    return State(
        name=name,
        topic=settings.topic,
        type=settings.type or '',
        frame_id='',
        stamp=stamp,
        age=age,
        stamp_source='header',
        value=value,
        summary=f'{name}: {value}, typed in',
    )
