"""Where a marker is, in metres, from its corners and the intrinsics of the camera."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from harness_eval.contract import CameraInfo, EvaluatorError, View
from harness_eval.evaluators.checks.fiducials import Corners

PINHOLE_MODELS = ('plumb_bob', 'rational_polynomial')
"""Distortion models of ``sensor_msgs/distortion_models.hpp`` with OpenCV's coefficients."""

FISHEYE_MODEL = 'equidistant'
FISHEYE_COEFFICIENTS = 4
PINHOLE_COEFFICIENTS = (4, 5, 8, 12, 14)
"""Numbers of coefficients that OpenCV's pinhole model has."""


def marker_position(view: View, corners: Corners, size: float) -> tuple[float, float, float]:
    """Find the centre of a square marker in the camera's optical frame.

    Method: the corners are undistorted, then Collins and Bartoli, Infinitesimal plane-based pose
    estimation, IJCV 109 (2014), as ``SOLVEPNP_IPPE_SQUARE`` of OpenCV.

    Args:
        view: The view with its intrinsics.
        corners: ``4x2 float64``, pixels.
        size: Edge length in metres.

    Returns:
        ``(x, y, z)`` in metres: x right, y down, z forward.

    Raises:
        EvaluatorError: ``camera_info_missing``, ``camera_info_size``, ``uncalibrated_camera``,
            ``distortion_model``, ``rectified_view`` or ``opencv_failed``: intrinsics that do not
            describe this picture would give a wrong position, so none is given.
    """
    import cv2

    info = _trusted_intrinsics(view)
    half = size / 2.0
    # The order that IPPE_SQUARE asks for.
    square = np.array([[-half, half, 0], [half, half, 0], [half, -half, 0], [-half, -half, 0]])
    try:
        rays = _undistorted(info, corners, view.name)
        solved, _rotation, translation = cv2.solvePnP(
            square, rays, np.eye(3), None, flags=cv2.SOLVEPNP_IPPE_SQUARE
        )
    except cv2.error as error:
        raise EvaluatorError(
            'opencv_failed', f'no position of the marker in view {view.name!r}: {error.err}'
        ) from error
    x, y, z = (float(value) for value in np.asarray(translation).reshape(3))
    if not solved or not np.isfinite([x, y, z]).all() or z <= 0.0:
        raise EvaluatorError(
            'opencv_failed',
            f'the corners of the marker in view {view.name!r} give no position before the camera',
        )
    return x, y, z


def _trusted_intrinsics(view: View) -> CameraInfo:
    info = view.camera_info
    if info is None:
        raise EvaluatorError(
            'camera_info_missing',
            f'a position is checked in view {view.name!r}, which has no camera_info; '
            f'set capture.views.{view.name}.camera_info',
        )
    height, width = view.image.shape[:2]
    if (info.width, info.height) != (width, height):
        raise EvaluatorError(
            'camera_info_size',
            f'camera_info of view {view.name!r} describes {info.width}x{info.height} pixels, the '
            f'picture has {width}x{height}; binned and cropped pictures need their own intrinsics',
        )
    matrix, distortion = np.asarray(info.matrix), np.asarray(info.distortion)
    calibrated = (
        matrix.shape == (3, 3)
        and bool(np.isfinite(matrix).all() and np.isfinite(distortion).all())
        and bool(matrix[0, 0] > 0 and matrix[1, 1] > 0)
    )
    if not calibrated:
        raise EvaluatorError(
            'uncalibrated_camera',
            f'camera_info of view {view.name!r} holds no usable camera matrix K; calibrate it',
        )
    rectified = any(word.startswith('image_rect') for word in view.topic.split('/'))
    if rectified and bool(np.any(distortion)):
        raise EvaluatorError(
            'rectified_view',
            f'view {view.name!r} comes from the rectified topic {view.topic!r}, while K and D of '
            'its camera_info describe the raw picture; check positions in the raw topic',
        )
    return info


def _undistorted(info: CameraInfo, corners: Corners, view: str) -> npt.NDArray[np.float64]:
    """Make pixels into ``4x1x2`` points on the plane at distance 1."""
    import cv2

    pixels = np.ascontiguousarray(corners, dtype=np.float64).reshape(4, 1, 2)
    matrix = np.asarray(info.matrix, dtype=np.float64)
    distortion = np.asarray(info.distortion, dtype=np.float64).reshape(-1)
    if not distortion.any():
        distortion = np.zeros(0)
    elif info.model == FISHEYE_MODEL and distortion.size == FISHEYE_COEFFICIENTS:
        return np.asarray(cv2.fisheye.undistortPoints(pixels, matrix, distortion), np.float64)
    elif info.model not in PINHOLE_MODELS or distortion.size not in PINHOLE_COEFFICIENTS:
        raise EvaluatorError(
            'distortion_model',
            f'camera_info of view {view!r} has distortion model {info.model!r} with '
            f'{distortion.size} coefficients; known: {", ".join(PINHOLE_MODELS)} with '
            f'{", ".join(map(str, PINHOLE_COEFFICIENTS))}, {FISHEYE_MODEL} with '
            f'{FISHEYE_COEFFICIENTS}',
        )
    coefficients = distortion if distortion.size else None
    return np.asarray(cv2.undistortPoints(pixels, matrix, coefficients), np.float64)
