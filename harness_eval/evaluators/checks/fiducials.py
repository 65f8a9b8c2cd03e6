"""Fiducial markers through OpenCV 4.6 (old functions of ``cv2.aruco``) up to 5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from harness_eval.contract import EvaluatorError, Image, View
from harness_eval.evaluators.checks.pictures import grey

Corners = npt.NDArray[np.float64]
"""``4x2 float64``: pixels, clockwise from the marker's own top left; centres of pixels are whole
numbers, as OpenCV has them."""

REFINE_SHARE = 1 / 16
"""Half the window that a corner is refined in, as a share of the marker's shortest edge: half a
cell of the finest dictionaries, so that only the corner itself is in it."""

MAX_REFINE_WINDOW = 5
"""Half the largest window, OpenCV's default."""

REFINE_ROUNDS = 30
REFINE_STEP = 0.01
"""Refinement stops after so many rounds, or at a step of so many pixels."""


@dataclass(frozen=True)
class Sighting:
    """One marker that was seen.

    Attributes:
        id: Its number in the dictionary.
        corners: Its corners in pixels.
        centre: Its centre as fractions of the picture's width and height.
    """

    id: int
    corners: Corners
    centre: tuple[float, float]


class Fiducials:
    """Finds the markers of views, each view and dictionary once.

    One object serves one evaluation and one thread.
    """

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[Sighting, ...]] = {}

    def seen(self, view: View, dictionary: str, marker: int) -> tuple[Sighting, ...]:
        """Find all markers of a dictionary in a view.

        Args:
            view: Where to look.
            dictionary: Name of an OpenCV dictionary, for example ``DICT_APRILTAG_36h11``.
            marker: Number that is looked for; it must exist in the dictionary, since a marker
                that cannot be seen would always be "absent".

        Raises:
            DecodeError: The view cannot be decoded.
            EvaluatorError: ``unknown_marker``, ``no_aruco``, ``opencv_failed``, or a picture that
                markers cannot be looked for in.
        """
        key = (view.name, dictionary)
        if key not in self._found:
            self._found[key] = find(grey(view.image, f'view {view.name!r}'), dictionary)
        size = _size(_dictionary(dictionary))
        if marker >= size:
            raise EvaluatorError(
                'unknown_marker',
                f'{dictionary} has the markers 0 to {size - 1}, a check asks for {marker}',
            )
        return self._found[key]


def find(picture: Image, dictionary: str) -> tuple[Sighting, ...]:
    """Find all markers of a dictionary in a grey picture, in order of their numbers.

    Method: Garrido-Jurado et al., Automatic generation and detection of highly reliable fiducial
    markers under occlusion, Pattern Recognition 47 (2014), as in OpenCV with its default
    parameters; the corners are refined afterwards.
    """
    import cv2

    detect = _detector(_dictionary(dictionary))
    try:
        corners, ids, _rejected = detect(picture)
        if ids is None:
            return ()
        numbers = [int(number) for number in np.asarray(ids).reshape(-1)]
        sightings = [
            _sighting(number, _refined(picture, np.asarray(found).reshape(4, 2)), picture)
            for number, found in zip(numbers, corners, strict=True)
        ]
    except cv2.error as error:
        raise EvaluatorError(
            'opencv_failed', f'OpenCV could not look for markers of {dictionary}: {error.err}'
        ) from error
    return tuple(sorted(sightings, key=lambda sighting: (sighting.id, sighting.centre)))


def _sighting(number: int, corners: Corners, picture: Image) -> Sighting:
    x, y = _crossing(corners)
    height, width = picture.shape[:2]
    return Sighting(number, corners, ((x + 0.5) / width, (y + 0.5) / height))


def _crossing(corners: Corners) -> tuple[float, float]:
    """Where the diagonals cross: the picture of the centre, also in perspective."""
    a, b, c, d = np.column_stack([corners, np.ones(4)])
    point = np.cross(np.cross(a, c), np.cross(b, d))
    if abs(point[2]) < np.finfo(np.float64).eps:
        mean = corners.mean(axis=0)
        return float(mean[0]), float(mean[1])
    return float(point[0] / point[2]), float(point[1] / point[2])


def _refined(picture: Image, corners: npt.NDArray[Any]) -> Corners:
    """Refine corners to a fraction of a pixel, in a window that fits the marker.

    OpenCV's own refinement has a window of fixed size, which is too large for small markers.
    """
    import cv2

    edges = np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1)
    half = min(MAX_REFINE_WINDOW, int(edges.min() * REFINE_SHARE))
    if half < 1:
        return corners.astype(np.float64)
    stop = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, REFINE_ROUNDS, REFINE_STEP)
    start = np.ascontiguousarray(corners, dtype=np.float32).reshape(4, 1, 2)
    refined = cv2.cornerSubPix(picture, start, (half, half), (-1, -1), stop)
    made: Corners = np.asarray(refined, dtype=np.float64).reshape(4, 2)
    return made


def _dictionary(name: str) -> Any:
    aruco = _aruco()
    number = getattr(aruco, name, None) if name.startswith('DICT_') else None
    if not isinstance(number, int):
        raise EvaluatorError(
            'unknown_marker', f'this OpenCV has no dictionary of markers called {name!r}'
        )
    if hasattr(aruco, 'getPredefinedDictionary'):
        return aruco.getPredefinedDictionary(number)
    return aruco.Dictionary_get(number)


def _size(dictionary: Any) -> int:
    return int(dictionary.bytesList.shape[0])


def _detector(dictionary: Any) -> Callable[[Image], tuple[Any, Any, Any]]:
    aruco = _aruco()
    if hasattr(aruco, 'ArucoDetector'):  # OpenCV 4.7 and later
        detector = aruco.ArucoDetector(dictionary, aruco.DetectorParameters())
        return lambda picture: detector.detectMarkers(picture)
    parameters = aruco.DetectorParameters_create()
    return lambda picture: aruco.detectMarkers(picture, dictionary, parameters=parameters)


def _aruco() -> Any:
    import cv2

    aruco = getattr(cv2, 'aruco', None)
    if aruco is None:
        raise EvaluatorError(
            'no_aruco',
            f'OpenCV {cv2.__version__} was built without cv2.aruco; install python3-opencv, '
            'opencv-contrib-python-headless below 4.7, or opencv-python-headless from 4.7 on',
        )
    return aruco
