"""A picture as the bytes of an image file, for a judge that is not in this process.

What an endpoint or a service gets is lossless, so that it sees what ours would (:func:`png_of`);
a model gets what its limits leave (:mod:`harness_eval.evaluators.model.pictures`). Both encode
the pixels alone, so that no metadata travels, and refuse alike what is no picture.
"""

from __future__ import annotations

from collections.abc import Sequence
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

    check_shape(picture, name)
    unit = ''
    if picture.dtype.kind == 'f' and picture.ndim == 2:
        picture, unit = _millimetres(picture, name), 'mm'
    if picture.dtype not in (np.uint8, np.uint16):
        raise unsendable(name, f'it has pixels of {picture.dtype}')
    return PngPicture(
        data=file_of(picture, name, 'png', [cv2.IMWRITE_PNG_COMPRESSION, PNG_COMPRESSION]),
        width=int(picture.shape[1]),
        height=int(picture.shape[0]),
        channels=3 if picture.ndim == 3 else 1,
        bits=picture.dtype.itemsize * 8,
        unit=unit,
    )


def check_shape(picture: Image, name: str) -> None:
    """Insist on pixels in one or three channels.

    Raises:
        EvaluatorError: ``unsendable_picture``.
    """
    colour = picture.ndim == 3 and picture.shape[2] == 3
    if not (picture.ndim == 2 or colour) or picture.size == 0:
        raise unsendable(
            name, f'it has the shape {picture.shape}; expected HxW or HxWx3 with pixels'
        )


def file_of(picture: Image, name: str, kind: str, options: Sequence[int] = ()) -> bytes:
    """Write the pixels as an image file.

    Args:
        picture: What OpenCV takes for this kind of file.
        name: What it is, for errors.
        kind: ``png`` or ``jpeg``.
        options: OpenCV's flags and their values, in turn.

    Raises:
        EvaluatorError: ``unsendable_picture``.
    """
    import cv2

    written, data = cv2.imencode(f'.{kind}', picture, list(options))
    if not written:
        raise unsendable(name, f'OpenCV cannot write it as {kind}')
    return data.tobytes()


def unsendable(name: str, why: str) -> EvaluatorError:
    """The error of a picture that no judge elsewhere can be sent."""
    return EvaluatorError('unsendable_picture', f'{name} cannot be sent: {why}')


def _millimetres(depth: Image, name: str) -> Image:
    read = np.isfinite(depth) | np.isposinf(depth)
    if np.any(depth[read] < 0.0):
        raise unsendable(
            name, 'it holds floats below zero, so it is no depth in metres; judge it in a plugin'
        )
    millimetres = np.where(read, depth.astype(np.float64) * MILLIMETRES_PER_METRE, 0.0)
    return np.minimum(np.rint(millimetres), FARTHEST).astype(np.uint16)
