"""The ``color`` check: a share of a region has a colour."""

from __future__ import annotations

import numpy as np

from harness_eval.config.checks import UsableColor
from harness_eval.contract import Image, View
from harness_eval.evaluators.checks.pictures import colour, pixel_region
from harness_eval.evaluators.checks.result import interval, Measurement
from harness_eval.lines import show

MAX_HUE = 179
"""OpenCV's largest hue of 8-bit pictures: half degrees."""


def measure_color(view: View, settings: UsableColor) -> Measurement:
    """Measure which share of the pixels of a region lies in a range of hue, saturation and value.

    Raises:
        DecodeError: The view cannot be decoded.
        EvaluatorError: ``colour_needed`` for a picture of one channel, which has no hue.
    """
    picture = colour(view.image, f'view {view.name!r}')
    height, width = picture.shape[:2]
    region = pixel_region(settings.region, width, height).of(picture)
    covered = coverage(region, settings.lower, settings.upper)
    low, high = settings.coverage
    where = 'picture' if settings.region is None else 'region'
    return Measurement(
        low <= covered <= high,
        f'covers {show(covered, low, high)} of the {where}, wanted within {interval(low, high)}',
    )


def coverage(picture: Image, lower: tuple[int, int, int], upper: tuple[int, int, int]) -> float:
    """Give the share of pixels in a range, both ends included.

    Args:
        picture: ``HxWx3 uint8, BGR``.
        lower: Lowest hue (0..179), saturation and value (0..255).
        upper: Highest of the same; hue wraps around if ``lower`` has the larger one.
    """
    import cv2

    hsv = cv2.cvtColor(np.ascontiguousarray(picture), cv2.COLOR_BGR2HSV)
    if lower[0] <= upper[0]:
        ranges = [(lower, upper)]
    else:
        ranges = [(lower, (MAX_HUE, *upper[1:])), ((0, *lower[1:]), upper)]
    counted = sum(
        int(cv2.countNonZero(cv2.inRange(hsv, np.array(low), np.array(high))))
        for low, high in ranges
    )
    return counted / int(hsv.shape[0] * hsv.shape[1])
