"""The picture of an outcome shows the views, the status and the evidence, whatever they are."""

from __future__ import annotations

from typing import Any

import cv2
from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
import pytest

from harness_eval.contract import DecodeError, Image, Observation, View
from harness_eval.evidence_picture import (
    ascii_fold,
    encode_jpeg,
    evidence_picture,
    MAX_LINES,
    PictureCaption,
    visible,
)

GREEN, RED, BLUE, AMBER = (75, 142, 46), (52, 48, 196), (184, 108, 38), (18, 130, 214)


def view(name: str, picture: Image | None, stamp_source: str = 'header') -> View:
    def decode() -> Image:
        if picture is None:
            raise DecodeError('malformed_image', f'view {name}: the JPEG was cut')
        return picture

    kind = 'sensor_msgs/msg/Image'
    return View(name, f'/{name}', kind, 'optical', 0, 0.342, stamp_source, '', decode)


def observation(*views: View) -> Observation:
    return Observation({one.name: one for one in views}, {}, 0, 0.0)


def caption(status: str = 'success', lines: Any = ('it is held',), **more: Any) -> PictureCaption:
    named = {'tool': 'pick_object', 'run_id': 'run_1', 'segment': 0, 'score': 0.97, **more}
    return PictureCaption(status=status, lines=lines, **named)


def plain(color: tuple[int, int, int], width: int = 64, height: int = 48) -> Image:
    return np.full((height, width, 3), color, np.uint8)


def share(picture: Image, color: tuple[int, int, int]) -> float:
    return float((picture == color).all(axis=-1).mean())


@pytest.mark.parametrize(
    ('status', 'color'),
    [
        ('success', GREEN),
        ('failure', RED),
        ('process', BLUE),
        ('error', AMBER),
        ('abstained', (120, 116, 112)),
        ('interrupted', (66, 58, 52)),
        ('SUCCESS', GREEN),
        ('something else', (120, 116, 112)),
    ],
)
def test_the_header_has_the_colour_of_the_status(status: str, color: tuple[int, int, int]) -> None:
    picture = evidence_picture(caption(status), observation(view('front', plain((1, 2, 3)))))
    assert share(picture[:72], color) > 0.8
    # Something is written on it.
    assert share(picture[:72], (255, 255, 255)) > 0.002


def test_nothing_but_success_is_green() -> None:
    for status in ('failure', 'process', 'error', 'abstained', 'interrupted', 'unset', ''):
        picture = evidence_picture(caption(status), observation(view('front', plain((1, 2, 3)))))
        assert share(picture, GREEN) == 0.0


def test_every_view_is_shown_at_the_same_height() -> None:
    colors = [(200, 10, 10), (10, 200, 10), (10, 10, 200)]
    sizes = [(64, 48), (640, 480), (48, 64)]
    views = [
        view(f'camera_{index}', plain(color, *size))
        for index, (color, size) in enumerate(zip(colors, sizes, strict=True))
    ]
    picture = evidence_picture(caption(), observation(*views))
    heights = [int((picture == color).all(axis=-1).any(axis=1).sum()) for color in colors]
    widths = [int((picture == color).all(axis=-1).any(axis=0).sum()) for color in colors]
    assert heights == [320, 320, 320]
    assert widths == [427, 427, 240]


def test_a_view_that_does_not_decode_is_a_hatched_box_with_the_reason() -> None:
    whole = evidence_picture(caption(), observation(view('front', plain((200, 10, 10)))))
    broken = evidence_picture(
        caption(), observation(view('front', plain((200, 10, 10))), view('wrist', None))
    )
    assert share(broken, (200, 10, 10)) > 0.2
    assert share(broken, (84, 74, 67)) > 0.02
    assert share(whole, (84, 74, 67)) == 0.0


def test_a_missing_view_is_drawn_even_without_an_observation() -> None:
    picture = evidence_picture(caption('error', score=None), None, {'wrist': 'no publisher'})
    assert share(picture, (84, 74, 67)) > 0.02
    assert picture.shape[1] == 720


def test_without_anything_seen_a_low_box_leaves_the_room_to_the_text() -> None:
    why = 'the camera may have stopped: 0 frames came though 1 publisher is there'
    nothing = evidence_picture(caption('error', [why], score=None), None)
    one_view = evidence_picture(
        caption('error', [why], score=None), observation(view('front', plain((1, 2, 3))))
    )
    assert nothing.shape[1] == 720
    assert nothing.shape[0] < one_view.shape[0] - 200
    assert 0.02 < share(nothing, (84, 74, 67)) < 0.2


def test_evidence_beyond_the_room_is_counted_and_not_drawn() -> None:
    seen = observation(view('front', plain((1, 2, 3))))
    heights = [
        evidence_picture(caption(lines=['a line'] * count), seen).shape[0]
        for count in (0, 1, MAX_LINES, MAX_LINES + 1, 500)
    ]
    assert heights[1] - heights[0] == 25
    assert heights[2] - heights[0] == 25 * MAX_LINES
    assert heights[2] == heights[3] == heights[4]


def test_a_long_line_is_wrapped_within_the_picture() -> None:
    line = 'a marker was seen at a place that takes many words to tell of ' * 4
    picture = evidence_picture(caption(lines=[line]), observation(view('f', plain((1, 2, 3)))))
    assert share(picture[:, -16:][80:], (34, 29, 26)) == 1.0
    one = evidence_picture(caption(lines=['short']), observation(view('f', plain((1, 2, 3)))))
    assert picture.shape[0] >= one.shape[0] + 2 * 25


texts = st.text(max_size=60)


@given(
    status=texts,
    tool=texts,
    run_id=texts,
    lines=st.lists(texts, max_size=20),
    score=st.none() | st.floats(),
    missing=st.dictionaries(texts, texts, max_size=2),
    sizes=st.lists(st.tuples(st.integers(1, 400), st.integers(1, 400)), max_size=6),
)
@settings(max_examples=60)
def test_whatever_is_written_a_picture_comes_out(
    status: str, tool: str, run_id: str, lines: Any, score: Any, missing: Any, sizes: Any
) -> None:
    views = [view(str(index), plain((9, 9, 9), *size)) for index, size in enumerate(sizes)]
    picture = evidence_picture(
        PictureCaption(status, tool, run_id, 3, lines, score), observation(*views), missing
    )
    assert picture.dtype == np.uint8
    assert picture.shape[2] == 3
    assert 720 <= picture.shape[1] <= 1600


def test_a_run_id_of_a_megabyte_does_no_harm() -> None:
    long = 'x' * 1_000_000
    seen = observation(view('front', plain((1, 2, 3))))
    picture = evidence_picture(caption(run_id=long, tool=long, lines=[long]), seen)
    assert picture.shape[1] == 720


def test_depth_is_stretched_and_holes_are_marked() -> None:
    depth = np.linspace(1.0, 2.0, 100, dtype=np.float32).reshape(10, 10)
    depth[0, 0] = np.nan
    shown = visible(depth)
    assert shown.shape == (10, 10, 3)
    assert tuple(shown[0, 0]) == (70, 40, 40)
    assert shown[0, 2, 0] < 30
    assert shown[9, 9, 0] > 240
    millimetres = np.array([[0, 1000], [2000, 3000]], np.uint16)
    assert tuple(visible(millimetres)[0, 0]) == (70, 40, 40)
    assert visible(millimetres)[0, 1, 0] < visible(millimetres)[1, 1, 0]


@pytest.mark.parametrize(
    'picture',
    [
        np.full((4, 4), np.nan, np.float32),
        np.zeros((4, 4), np.uint16),
        np.full((4, 4), 1.5, np.float32),
        np.full((4, 4), np.inf, np.float32),
        np.zeros((1, 1), np.uint8),
    ],
)
def test_pictures_without_contrast_can_be_shown_too(picture: Image) -> None:
    assert visible(picture).shape == (*picture.shape, 3)
    shown = evidence_picture(caption(), observation(view('depth', picture)))
    assert shown.dtype == np.uint8


@pytest.mark.parametrize(
    ('text', 'folded'),
    [
        ('größer ≥ 0.5°', 'grosser >= 0.5 deg'),
        ('a → b — c…', 'a -> b - c...'),
        ('line\nbreak\tand \x07bell', 'line break and ?bell'),
        ('日本', '??'),
        ('plain', 'plain'),
    ],
)
def test_what_cannot_be_drawn_is_written_otherwise(text: str, folded: str) -> None:
    assert ascii_fold(text) == folded


@given(st.text())
def test_folded_text_can_always_be_drawn(text: str) -> None:
    assert all(' ' <= char <= '~' for char in ascii_fold(text))


def decoded(data: bytes) -> Image:
    return np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR))


def test_a_jpeg_is_made_small_enough() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (600, 900, 3), np.uint8)
    whole = encode_jpeg(noise, 85, 10_000_000)
    small = encode_jpeg(noise, 85, 60_000)
    assert len(whole) > 300_000
    assert len(small) <= 60_000
    assert decoded(whole).shape == noise.shape
    height, width = decoded(small).shape[:2]
    assert abs(width / height - 1.5) < 0.02


def test_what_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(ValueError, match='cannot be made to fit'):
        encode_jpeg(np.zeros((64, 64, 3), np.uint8), max_bytes=50)
    with pytest.raises(ValueError, match='uint8'):
        encode_jpeg(np.zeros((4, 4), np.uint16))
