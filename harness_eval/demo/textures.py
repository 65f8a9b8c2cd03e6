"""Pictures for the surfaces of the cell: fiducial markers and materials, made at run time.

Nothing binary is kept in the repository; every texture is drawn here with OpenCV and NumPy and
handed to MuJoCo as PNG bytes.
"""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.uint8]

MARKER_CELLS = 6
"""Cells along one edge of a ``DICT_4X4_50`` marker with its black border."""

QUIET_ZONE_CELLS = 1
"""White cells around a marker; the detector needs a contrast there."""

_CELL_PIXELS = 32
_MATERIAL_SIZE = 512


def marker(number: int) -> Picture:
    """A tag of ``DICT_4X4_50`` with its white quiet zone, ``HxWx3 uint8``."""
    dictionary = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_4X4_50)
    side = MARKER_CELLS * _CELL_PIXELS
    # OpenCV 4.7 renamed the function; Ubuntu 24.04 still has 4.6.
    draw: Any = getattr(cv2.aruco, 'generateImageMarker', None)
    if draw is None:
        draw = cv2.aruco.drawMarker  # type: ignore[attr-defined, unused-ignore]
    square = draw(dictionary, number, side)
    margin = QUIET_ZONE_CELLS * _CELL_PIXELS
    framed = cv2.copyMakeBorder(
        square, margin, margin, margin, margin, cv2.BORDER_CONSTANT, value=(255,)
    )
    # A printed black is not 0 and paper is not 255; this leaves room for light and noise.
    toned = np.interp(framed, (0, 255), (16, 242)).astype(np.uint8)
    return np.repeat(toned[:, :, None], 3, axis=2)


def wood(rng: np.random.Generator) -> Picture:
    """Light birch planks with a soft grain, ``HxWx3 uint8, RGB``."""
    size = _MATERIAL_SIZE
    rows = np.arange(size)[:, None] / size
    columns = np.arange(size)[None, :] / size
    plank_count = 5
    plank = np.floor(rows * plank_count).astype(int)
    shift = rng.uniform(0, 10, plank_count)[plank]
    tone = rng.uniform(-9, 9, plank_count)[plank]
    coarse = rng.normal(size=(size // 4, 8)).astype(np.float32)
    grain = cv2.resize(coarse, (size, size), interpolation=cv2.INTER_CUBIC)
    waves = np.sin(
        2 * np.pi * (7 * rows * plank_count + 0.35 * np.sin(2 * np.pi * (columns + shift)) + shift)
    )
    value = 4.0 * waves + 5.0 * grain + tone + rng.normal(0, 1.5, (size, size))
    seam = np.abs((rows * plank_count) % 1.0 - 0.5) > 0.492
    value = np.where(seam, value - 38, value)
    base = np.array([205.0, 176.0, 138.0])
    return _picture(base + value[:, :, None] * np.array([1.0, 0.95, 0.85]))


def brushed_metal(rng: np.random.Generator) -> Picture:
    """Brushed aluminium, ``HxWx3 uint8, RGB``."""
    size = _MATERIAL_SIZE
    streaks = cv2.GaussianBlur(
        rng.normal(0, 26, (size, size)).astype(np.float32), (0, 0), sigmaX=40, sigmaY=0.7
    )
    value = 186.0 + streaks * (7.0 / max(float(streaks.std()), 1e-6))
    return _picture(value[:, :, None] + np.array([-2.0, 0.0, 4.0]))


def cardboard(rng: np.random.Generator) -> Picture:
    """Corrugated cardboard, ``HxWx3 uint8, RGB``."""
    size = _MATERIAL_SIZE
    columns = np.arange(size)[None, :]
    flute = 3.0 * np.sin(2 * np.pi * columns / 13.0)
    fibres = cv2.GaussianBlur(
        rng.normal(0, 30, (size, size)).astype(np.float32), (0, 0), sigmaX=3, sigmaY=1
    )
    base = np.array([176.0, 139.0, 98.0])
    return _picture(base + (flute + fibres)[:, :, None])


def _picture(values: npt.NDArray[Any]) -> Picture:
    return np.asarray(np.clip(values, 0, 255), dtype=np.uint8)


def png(picture: Picture) -> bytes:
    """The picture (RGB) as PNG bytes.

    Raises:
        ValueError: OpenCV cannot encode it.
    """
    done, data = cv2.imencode('.png', cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
    if not done:
        raise ValueError(f'OpenCV cannot encode a picture of shape {picture.shape} as PNG')
    return data.tobytes()
