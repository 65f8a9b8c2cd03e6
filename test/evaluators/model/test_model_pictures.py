"""Pictures on their way to a model: small enough, and still what the camera saw."""

from __future__ import annotations

import base64

import cv2
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_world import noise, plain
import numpy as np
import pytest

from harness_eval.contract import EvaluatorError, Image
from harness_eval.evaluators.model.pictures import encode_all, Limits, Original, Region, Sent

ROOMY = Limits(each=256 * 1024, together=1024 * 1024, side=1024)


def shown(sent: Sent) -> Image:
    """The picture as its receiver sees it."""
    data = base64.b64decode(sent.url.partition(',')[2], validate=True)
    picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    assert picture is not None
    return picture


def one(picture: Image, limits: Limits = ROOMY, region: Region | None = None) -> Sent:
    (sent,) = encode_all([Original("view 'front'", picture, region)], limits)
    assert shown(sent).shape[:2] == (sent.height, sent.width)
    return sent


def test_a_small_picture_keeps_its_size() -> None:
    sent = one(noise(1, 320, 240))
    assert (sent.width, sent.height, sent.remark) == (320, 240, '')
    assert sent.url.startswith('data:image/jpeg;base64,')


def test_a_large_picture_is_scaled_to_the_longest_side_without_distortion() -> None:
    sent = one(plain((10, 20, 30), 1920, 1080))
    assert (sent.width, sent.height) == (1024, 576)


def test_a_grey_picture_travels_without_loss() -> None:
    picture = noise(3, 60, 40)[:, :, 0]
    sent = one(picture)
    assert sent.url.startswith('data:image/png;base64,')
    assert np.array_equal(shown(sent), picture)


def test_the_worst_picture_still_fits_into_its_bytes() -> None:
    sent = one(noise(4, 1024, 1024))
    assert len(sent.url) <= ROOMY.each
    assert min(sent.width, sent.height) >= 300


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(1, 500), st.integers(1, 400)), min_size=1, max_size=5),
    st.integers(12_000, 60_000),
    st.integers(60_000, 120_000),
    st.integers(64, 512),
)
def test_each_and_all_pictures_stay_within_the_limits(
    sizes: list[tuple[int, int]], each: int, together: int, side: int
) -> None:
    originals = [
        Original(f'view {index}', noise(index, width, height))
        for index, (width, height) in enumerate(sizes)
    ]
    sent = encode_all(originals, Limits(each, together, side))
    assert len(sent) == len(sizes)
    assert max(len(picture.url) for picture in sent) <= each
    assert sum(len(picture.url) for picture in sent) <= together
    assert all(max(picture.width, picture.height) <= side for picture in sent)


def test_a_small_picture_leaves_its_share_to_a_large_one() -> None:
    originals = [Original('a', plain(9, 32, 32)), Original('b', noise(5, 512, 512))]
    limits = Limits(each=100_000, together=100_000, side=512)
    small, large = encode_all(originals, limits)
    assert (small.width, small.height) == (32, 32)
    assert len(large.url) > 60_000


def test_a_picture_that_cannot_get_small_enough_is_an_error_and_never_left_out() -> None:
    with pytest.raises(EvaluatorError) as caught:
        one(noise(6, 200, 200), Limits(each=300, together=300, side=512))
    assert caught.value.kind == 'picture_too_large'
    assert "view 'front'" in caught.value.message


def test_a_region_is_cut_before_the_picture_is_scaled() -> None:
    picture = plain((0, 0, 0), 2000, 1000)
    picture[:, 1000:] = (255, 255, 255)
    sent = one(picture, region=(0.5, 0.0, 1.0, 1.0))
    assert (sent.width, sent.height) == (1000, 1000)
    assert shown(sent).min() > 250


def test_a_depth_is_shown_as_brightness_and_the_model_is_told() -> None:
    depth = np.full((4, 4), 1500, np.uint16)
    depth[0, 0], depth[3, 3] = 0, 3000
    sent = one(depth)
    assert sent.remark == (
        'values shown as brightness, from 1500 (dark grey) to 3000 (white); black: no reading'
    )
    picture = shown(sent)
    assert (picture[0, 0], picture[1, 1], picture[3, 3]) == (0, 40, 255)


def test_a_depth_in_floats_shows_what_was_not_read_as_black() -> None:
    depth = np.array([[np.nan, 0.5], [np.inf, 2.0]], np.float32)
    assert shown(one(depth)).tolist() == [[0, 40], [0, 255]]


@pytest.mark.parametrize(
    'picture',
    [
        np.zeros((0, 5, 3), np.uint8),
        np.zeros((5, 5, 4), np.uint8),
        np.zeros((5, 5), np.complex64),
        np.zeros((5, 5), np.uint16),
        np.full((5, 5), np.nan, np.float32),
    ],
    ids=['empty', 'four channels', 'complex', 'no reading', 'nan'],
)
def test_a_picture_that_shows_nothing_is_an_error(picture: Image) -> None:
    with pytest.raises(EvaluatorError) as caught:
        one(picture)
    assert caught.value.kind == 'unsendable_picture'


def test_the_picture_of_the_observation_is_not_touched() -> None:
    picture = noise(7, 1600, 900)
    before = picture.copy()
    picture.setflags(write=False)
    one(picture)
    assert np.array_equal(picture, before)
