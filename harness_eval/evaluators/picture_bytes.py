"""A picture as bytes for a judge in another process: lossless, so that it sees what ours would."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from harness_eval.contract import EvaluatorError, Image

PNG_COMPRESSION = 1
"""zlib level: the lowest is four times quicker than the default for a tenth more bytes."""

MILLIMETRES_PER_METRE = 1000.0
FARTHEST = np.iinfo(np.uint16).max


@dataclass(frozen=True)
class PngPicture:
    """A picture as a PNG file.

    Attributes:
        data: The file.
        width: Columns.
        height: Rows.
        channels: 3 (colour) or 1.
        bits: Bits of a sample, 8 or 16.
        unit: ``mm`` for a depth that came as floats, where 0 says that there is no reading; empty
            otherwise.
    """

    data: bytes
    width: int
    height: int
    channels: int
    bits: int
    unit: str


def png_of(picture: Image, name: str) -> PngPicture:
    """Write a picture as PNG.

    Pictures of 8 and 16 bits are written as they are. A picture of floats is depth in metres
    (REP 118) and written as the depth in millimetres that the same REP knows: 16 bits, 0 where
    there is no reading, 65535 for all that is farther than 65.534 m.

    Args:
        picture: ``HxWx3 uint8, BGR`` or ``HxW`` of uint8, uint16 or float32.
        name: What it is, for errors, for example ``view 'front'``.

    Raises:
        EvaluatorError: ``unsendable_picture``: floats below zero, which are no depth, or a picture
            of another type or shape.
    """
    import cv2

    unit = ''
    if picture.dtype.kind == 'f' and picture.ndim == 2:
        picture, unit = _millimetres(picture, name), 'mm'
    colour = picture.ndim == 3 and picture.shape[2] == 3
    if not (picture.ndim == 2 or colour) or picture.dtype not in (np.uint8, np.uint16):
        raise _unsendable(name, f'its pixels are {picture.dtype} of shape {picture.shape}')
    if picture.size == 0:
        raise _unsendable(name, 'it has no pixels')
    written, data = cv2.imencode('.png', picture, [cv2.IMWRITE_PNG_COMPRESSION, PNG_COMPRESSION])
    if not written:
        raise _unsendable(name, 'OpenCV cannot write it as PNG')
    return PngPicture(
        data=data.tobytes(),
        width=int(picture.shape[1]),
        height=int(picture.shape[0]),
        channels=3 if colour else 1,
        bits=picture.dtype.itemsize * 8,
        unit=unit,
    )


def _millimetres(depth: Image, name: str) -> Image:
    read = np.isfinite(depth) | np.isposinf(depth)
    if np.any(depth[read] < 0.0):
        raise _unsendable(
            name, 'it holds floats below zero, so it is no depth in metres; judge it in a plugin'
        )
    millimetres = np.where(read, depth.astype(np.float64) * MILLIMETRES_PER_METRE, 0.0)
    return np.minimum(np.rint(millimetres), FARTHEST).astype(np.uint16)


def _unsendable(name: str, why: str) -> EvaluatorError:
    return EvaluatorError('unsendable_picture', f'{name} cannot be sent: {why}')
