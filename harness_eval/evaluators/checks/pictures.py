"""Pictures as the checks need them, and regions of them in pixels."""

from __future__ import annotations

from dataclasses import dataclass
import math

import numpy as np

from harness_eval.contract import EvaluationRequest, EvaluatorError, Image, View

WHOLE = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class PixelRegion:
    """A rectangle of whole pixels, at least one; ``right`` and ``bottom`` are not part of it."""

    left: int
    top: int
    right: int
    bottom: int

    def of(self, picture: Image) -> Image:
        """The part of a picture that lies in the region; not a copy."""
        return picture[self.top : self.bottom, self.left : self.right]


def pixel_region(
    region: tuple[float, float, float, float] | None, width: int, height: int
) -> PixelRegion:
    """Turn ``[x0, y0, x1, y1]`` in fractions of the picture into whole pixels.

    Each edge goes to the nearest edge between two pixels (halves up), so that neighbouring
    regions neither overlap nor leave a gap. A region thinner than that has one pixel, the one
    that its middle lies in.
    """
    x0, y0, x1, y1 = region or WHOLE
    left, right = _edges(x0, x1, width)
    top, bottom = _edges(y0, y1, height)
    return PixelRegion(left, top, right, bottom)


def _edges(low: float, high: float, size: int) -> tuple[int, int]:
    first, last = math.floor(low * size + 0.5), math.floor(high * size + 0.5)
    if first < last:
        return first, last
    middle = min(math.floor((low + high) / 2 * size), size - 1)
    return middle, middle + 1


def view_named(request: EvaluationRequest, name: str) -> View:
    """Find a view of the observation.

    Raises:
        EvaluatorError: ``missing_view``; a check is never skipped.
    """
    views = request.observation.views
    if name not in views:
        known = ', '.join(sorted(views)) or 'none'
        raise EvaluatorError(
            'missing_view', f'a check looks at view {name!r}; the observation has {known}'
        )
    return views[name]


def reference_named(request: EvaluationRequest, name: str) -> Image:
    """Find a reference picture of the post-condition.

    Raises:
        EvaluatorError: ``missing_reference``.
    """
    references = request.post_condition.references
    if name not in references:
        known = ', '.join(sorted(references)) or 'none'
        raise EvaluatorError(
            'missing_reference', f'a check compares with reference {name!r}; the tool has {known}'
        )
    return references[name]


def grey(picture: Image, whose: str) -> Image:
    """Make a picture grey, ``HxW uint8``, by OpenCV's weights of blue, green and red.

    Args:
        picture: ``HxWx3 uint8, BGR`` or ``HxW uint8``.
        whose: What errors call it, for example ``view 'front'``.

    Raises:
        EvaluatorError: ``eight_bits_needed`` for any other picture, ``empty_picture``.
    """
    _check_pixels(picture, whose)
    if picture.ndim == 2:
        return picture
    import cv2

    made: Image = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    return made


def colour(picture: Image, whose: str) -> Image:
    """Insist on a colour picture, ``HxWx3 uint8, BGR``.

    Raises:
        EvaluatorError: ``colour_needed`` for a picture of one channel, ``eight_bits_needed`` for
            other types, ``empty_picture``.
    """
    if picture.ndim == 2:
        raise EvaluatorError(
            'colour_needed',
            f'{whose} has one channel ({picture.dtype}); a color check needs a colour picture',
        )
    _check_pixels(picture, whose)
    return picture


def same_size(picture: Image, reference: Image, view: str, name: str) -> None:
    """Insist that a reference picture has the size of the view; neither is ever resized.

    Raises:
        EvaluatorError: ``reference_size``.
    """
    if picture.shape[:2] != reference.shape[:2]:
        (height, width), (ref_height, ref_width) = picture.shape[:2], reference.shape[:2]
        raise EvaluatorError(
            'reference_size',
            f'reference {name!r} is {ref_width}x{ref_height}, view {view!r} is {width}x{height}; '
            'record the reference with this camera at this resolution',
        )


def _check_pixels(picture: Image, whose: str) -> None:
    if picture.size == 0:
        raise EvaluatorError('empty_picture', f'{whose} has no pixels ({picture.shape})')
    channels = picture.shape[2] if picture.ndim == 3 else 1
    if picture.dtype != np.uint8 or picture.ndim not in (2, 3) or channels not in (1, 3):
        raise EvaluatorError(
            'eight_bits_needed',
            f'{whose} is {picture.dtype} with shape {picture.shape}; the checks on pictures need '
            '8 bits and one or three channels (a depth image cannot be checked)',
        )
    if picture.ndim == 3 and channels != 3:
        raise EvaluatorError(
            'eight_bits_needed', f'{whose} has shape {picture.shape}; expected HxW or HxWx3'
        )
