"""Intrinsics of a camera from a decoded ``sensor_msgs/CameraInfo``."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness_eval.contract import CameraInfo, DecodeError


def intrinsics(message: Any) -> CameraInfo:
    """Take the intrinsics of the image as it is published.

    The message describes the full sensor; a region of interest moves the principal point and
    binning shrinks everything, as ``image_geometry`` does it.

    Args:
        message: A decoded ``sensor_msgs/CameraInfo``.

    Raises:
        DecodeError: ``uncalibrated_camera``: K is zero, as drivers leave it without a calibration;
            ``malformed_message``: sizes or numbers that no camera has.
    """
    matrix = np.array(message.k, dtype=np.float64).reshape(3, 3)
    distortion = np.array(message.d, dtype=np.float64).reshape(-1)
    width, height = int(message.width), int(message.height)
    if not np.isfinite(matrix).all() or not np.isfinite(distortion).all():
        raise DecodeError('malformed_message', 'the camera matrix or its distortion is not finite')
    if not matrix.any():
        raise DecodeError(
            'uncalibrated_camera',
            'the camera matrix K of the camera_info is zero: the camera is not calibrated; '
            'calibrate it, or leave out camera_info',
        )
    if matrix[0, 0] <= 0 or matrix[1, 1] <= 0 or (matrix[2] != (0, 0, 1)).any():
        raise DecodeError(
            'malformed_message',
            f'expected focal lengths above zero and a last row 0 0 1 in the camera matrix, found '
            f'{matrix.tolist()}',
        )
    region = message.roi
    if region.width and region.height:
        matrix[0, 2] -= region.x_offset
        matrix[1, 2] -= region.y_offset
        width, height = int(region.width), int(region.height)
    # Zero and one both mean: no binning.
    across, down = max(1, int(message.binning_x)), max(1, int(message.binning_y))
    matrix[0] /= across
    matrix[1] /= down
    width, height = width // across, height // down
    if not width or not height:
        raise DecodeError(
            'malformed_message', f'the camera_info is of an image of {width}x{height} pixels'
        )
    return CameraInfo(width, height, matrix, distortion, str(message.distortion_model))
