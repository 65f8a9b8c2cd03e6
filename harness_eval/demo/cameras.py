"""Rendered camera pictures of the cell, with their intrinsics and a little sensor noise.

An OpenGL context belongs to the thread that made it: make, use and close :class:`Cameras` in one
thread. ``MUJOCO_GL`` must be set before MuJoCo is first imported; importing this module sets it to
``egl``, which needs no display, unless it is set already.
"""

from __future__ import annotations

import os

os.environ.setdefault('MUJOCO_GL', 'egl')

from dataclasses import dataclass
import math
from typing import Final

import cv2
import mujoco
import numpy as np
import numpy.typing as npt

from harness_eval.demo import layout as at
from harness_eval.demo.cell import Cell

Picture = npt.NDArray[np.uint8]

CAMERAS: Final = ('front', 'wrist')

NOISE_SIGMA: Final = 1.6
"""Grey levels of noise of a small industrial sensor in room light."""

_NOISE_PLAY: Final = 64  # pixels by which the noise field is larger than a picture
_SEEN_GROUPS: Final = (1, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Intrinsics:
    """A pinhole camera without distortion.

    Attributes:
        width: Pixels.
        height: Pixels.
        focal: Focal length in pixels, the same along both axes.
        centre: Principal point in pixels; the middle of the first pixel is (0, 0).
    """

    width: int
    height: int
    focal: float
    centre: tuple[float, float]


def intrinsics(camera: str) -> Intrinsics:
    """Intrinsics of a camera, from its vertical field of view.

    Raises:
        KeyError: There is no such camera.
    """
    (width, height), fovy = {
        'front': (at.FRONT_CAMERA_SIZE, at.FRONT_CAMERA_FOVY),
        'wrist': (at.WRIST_CAMERA_SIZE, at.WRIST_CAMERA_FOVY),
    }[camera]
    focal = 0.5 * height / math.tan(math.radians(fovy) / 2)
    return Intrinsics(width, height, focal, ((width - 1) / 2, (height - 1) / 2))


class Cameras:
    """Both cameras of a cell.

    Args:
        cell: What they look at.
        seed: Of the sensor noise.
        noise: Standard deviation of the sensor noise, grey levels.
    """

    def __init__(self, cell: Cell, seed: int = 0, noise: float = NOISE_SIGMA) -> None:
        """Make the OpenGL contexts, in the thread that will use them."""
        self._cell = cell
        self._rng = np.random.default_rng(seed)
        self._options = mujoco.MjvOption()
        self._options.geomgroup[:] = _SEEN_GROUPS
        self._renderers: dict[str, mujoco.Renderer] = {}
        self._noise: dict[str, npt.NDArray[np.int16]] = {}
        self._corner: dict[str, tuple[int, int]] = {}
        for name in CAMERAS:
            lens = intrinsics(name)
            self._renderers[name] = mujoco.Renderer(cell.model, lens.height, lens.width)
            shape = (lens.height + _NOISE_PLAY, lens.width + _NOISE_PLAY, 3)
            field = self._rng.normal(0.0, noise, shape)
            self._noise[name] = np.rint(field).astype(np.int16)
            self._corner[name] = (0, 0)

    def picture(self, camera: str) -> Picture:
        """What the camera sees now, ``HxWx3 uint8, RGB``; no two are the same byte for byte.

        Raises:
            KeyError: There is no such camera.
        """
        renderer = self._renderers[camera]
        renderer.update_scene(self._cell.data, camera, self._options)
        clean = renderer.render()
        height, width = clean.shape[:2]
        top, left = self._next_corner(camera)
        noise = self._noise[camera][top : top + height, left : left + width]
        return np.asarray(cv2.add(clean, noise, dtype=cv2.CV_8U), dtype=np.uint8)

    def _next_corner(self, camera: str) -> tuple[int, int]:
        while True:
            top, left = (int(value) for value in self._rng.integers(0, _NOISE_PLAY, 2))
            if (top, left) != self._corner[camera]:
                self._corner[camera] = (top, left)
                return top, left

    def close(self) -> None:
        """Give the OpenGL contexts back."""
        for renderer in self._renderers.values():
            renderer.close()
        self._renderers.clear()
