"""Intrinsics describe the image that is published."""

from __future__ import annotations

from cdr_messages import CAMERA_INFO, camera_info, DECODER, IMAGE, image_of
import numpy as np
import pytest

from harness_eval.contract import DecodeError

K = [[500.0, 0.0, 320.0], [0.0, 510.0, 240.0], [0.0, 0.0, 1.0]]


def test_matrix_distortion_and_size_are_those_of_the_message() -> None:
    info = DECODER.camera_info(CAMERA_INFO, camera_info())
    assert (info.width, info.height, info.model) == (640, 480, 'plumb_bob')
    np.testing.assert_array_equal(info.matrix, K)
    np.testing.assert_array_equal(info.distortion, [0.1, -0.2, 0.001, 0.002, 0.0])


def test_a_region_of_interest_moves_the_principal_point() -> None:
    info = DECODER.camera_info(CAMERA_INFO, camera_info(roi=(100, 40, 320, 200)))
    assert (info.width, info.height) == (320, 200)
    np.testing.assert_array_equal(info.matrix, [[500, 0, 220], [0, 510, 200], [0, 0, 1]])


def test_binning_shrinks_the_picture_and_its_focal_lengths() -> None:
    info = DECODER.camera_info(CAMERA_INFO, camera_info(binning=(2, 4)))
    assert (info.width, info.height) == (320, 120)
    np.testing.assert_array_equal(info.matrix, [[250, 0, 160], [0, 127.5, 60], [0, 0, 1]])


@pytest.mark.parametrize(
    ('data', 'kind'),
    [
        (camera_info(k=(0.0,) * 9), 'uncalibrated_camera'),
        (camera_info(k=(np.nan,) * 9), 'malformed_message'),
        (
            camera_info(k=(-500.0, 0.0, 320.0, 0.0, 510.0, 240.0, 0.0, 0.0, 1.0)),
            'malformed_message',
        ),
        (camera_info(k=(1.0,) * 9), 'malformed_message'),
        (camera_info(width=0), 'malformed_message'),
        (camera_info(binning=(1000, 1)), 'malformed_message'),
    ],
)
def test_intrinsics_that_no_camera_has_are_an_error(data: bytes, kind: str) -> None:
    with pytest.raises(DecodeError) as caught:
        DECODER.camera_info(CAMERA_INFO, data)
    assert caught.value.kind == kind


def test_an_image_is_no_camera_info() -> None:
    with pytest.raises(DecodeError) as caught:
        DECODER.camera_info(IMAGE, image_of(np.zeros((2, 2), np.uint8), 'mono8'))
    assert caught.value.kind == 'not_a_camera_info'
