"""Colour, change and similarity against independent computations in NumPy."""

from __future__ import annotations

import colorsys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from judged_world import make_request, make_view, noise, plain
import numpy as np
import pytest

from harness_eval.config.checks import Check
from harness_eval.contract import EvaluatorError, Image
from harness_eval.evaluators.checks import CheckResult, run_check
from harness_eval.evaluators.checks.change import changed_share
from harness_eval.evaluators.checks.color import coverage
from harness_eval.evaluators.checks.pictures import grey, pixel_region, PixelRegion
from harness_eval.evaluators.checks.similar import correlation

RED, BLUE, GREY = (0, 0, 255), (255, 0, 0), (128, 128, 128)


def run(kind: str, picture: Image, goal: Image | None = None, **settings: Any) -> CheckResult:
    check = Check.model_validate({kind: {'view': 'front', **settings}})
    references = {} if goal is None else {'goal': goal}
    return run_check(check, make_request(make_view('front', picture), references=references))


def fault(kind: str, picture: Image, goal: Image | None = None, **settings: Any) -> Any:
    with pytest.raises(EvaluatorError) as caught:
        run(kind, picture, goal, **settings)
    return caught.value


# Regions


@pytest.mark.parametrize(
    ('region', 'pixels'),
    [(None, (0, 0, 320, 240)), ((0.0, 0.0, 1.0, 1.0), (0, 0, 320, 240)),
     ((0.25, 0.5, 0.75, 1.0), (80, 120, 240, 240)), ((0.7, 0.1, 0.8, 0.3), (224, 24, 256, 72)),
     ((0.0, 0.0, 1e-9, 1e-9), (0, 0, 1, 1)), ((0.0016, 0.0, 0.00195, 1.0), (0, 0, 1, 240)),
     ((0.9999, 0.9999, 1.0, 1.0), (319, 239, 320, 240))],
)  # fmt: skip
def test_a_region_covers_whole_pixels(region: Any, pixels: tuple[int, ...]) -> None:
    assert pixel_region(region, 320, 240) == PixelRegion(*pixels)


@given(
    edges=st.lists(st.floats(0.0, 1.0), min_size=4, max_size=4, unique=True),
    width=st.integers(1, 4000),
    height=st.integers(1, 3000),
)
def test_a_region_is_never_empty_and_never_outside(
    edges: list[float], width: int, height: int
) -> None:
    (x0, x1), (y0, y1) = sorted(edges[:2]), sorted(edges[2:])
    region = pixel_region((x0, y0, x1, y1), width, height)
    assert 0 <= region.left < region.right <= width
    assert 0 <= region.top < region.bottom <= height
    if region.right - region.left == 1:
        assert region.left <= (x0 + x1) / 2 * width <= region.right
    assert abs(region.left - x0 * width) <= 1.0
    assert abs(region.right - x1 * width) <= 1.0


@given(middle=st.floats(0.01, 0.99), width=st.integers(100, 4000))
def test_neighbouring_regions_neither_overlap_nor_leave_a_gap(middle: float, width: int) -> None:
    left = pixel_region((0.0, 0.0, middle, 1.0), width, 10)
    right = pixel_region((middle, 0.0, 1.0, 1.0), width, 10)
    assert left.right == right.left


# Colour


def test_the_share_of_a_colour_is_measured_exactly() -> None:
    picture = plain(GREY)
    picture[60:120, 80:240] = RED
    found = run('color', picture, lower=[0, 100, 100], upper=[10, 255, 255], coverage=[0.1, 0.2])
    assert found.holds
    assert found.evidence == (
        'color 0,100,100..10,255,255 in front: covers 0.125 of the picture, '
        'wanted within [0.1, 0.2]: holds'
    )


def test_only_the_region_counts() -> None:
    picture = plain(GREY)
    picture[:, :160] = BLUE
    settings: dict[str, Any] = {'lower': [110, 100, 100], 'upper': [130, 255, 255]}
    left = run('color', picture, region=[0.0, 0.0, 0.5, 1.0], coverage=[1.0, 1.0], **settings)
    right = run('color', picture, region=[0.5, 0.0, 1.0, 1.0], coverage=[0.0, 0.0], **settings)
    assert left.holds
    assert right.holds
    assert 'covers 1 of the region' in left.evidence


def test_a_range_of_hue_wraps_around_red() -> None:
    picture = plain(GREY)
    picture[:, :80] = (0, 20, 255)  # hue about 2
    picture[:, 80:160] = (20, 0, 255)  # hue about 178
    picture[:, 160:240] = BLUE
    assert coverage(picture, (170, 100, 100), (10, 255, 255)) == 0.5


def test_coverage_outside_its_bounds_fails() -> None:
    found = run(
        'color', plain(GREY), lower=[0, 100, 100], upper=[10, 255, 255], coverage=[0.01, 1.0]
    )
    assert not found.holds
    assert found.evidence.endswith('covers 0 of the picture, wanted within [0.01, 1]: fails')


@given(
    seed=st.integers(0, 1000),
    hues=st.tuples(st.integers(0, 179), st.integers(0, 179)),
    saturations=st.tuples(st.integers(0, 255), st.integers(0, 255)),
    values=st.tuples(st.integers(0, 255), st.integers(0, 255)),
)
def test_coverage_agrees_with_an_independent_computation(
    seed: int, hues: tuple[int, int], saturations: tuple[int, int], values: tuple[int, int]
) -> None:
    picture = noise(seed, 12, 8)
    (s0, s1), (v0, v1) = sorted(saturations), sorted(values)
    certain = possible = 0
    for blue, green, red in picture.reshape(-1, 3):
        h, s, v = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
        h, s, v = h * 180, s * 255, round(v * 255)
        certain += _in_hue(h, *hues, -1) and s0 + 1 <= s <= s1 - 1 and v0 <= v <= v1
        possible += _in_hue(h, *hues, 1) and s0 - 1 <= s <= s1 + 1 and v0 <= v <= v1
    measured = coverage(picture, (hues[0], s0, v0), (hues[1], s1, v1)) * 96
    # OpenCV rounds hue and saturation to whole numbers; pixels at an edge may fall either way.
    assert certain <= round(measured) <= possible


def _in_hue(hue: float, low: int, high: int, margin: int) -> bool:
    """Whether a hue lies in a range on the circle that is widened by a margin at both ends."""
    width = (high - low) % 180 + 2 * margin
    return width >= 0 and (hue - low + margin) % 180 <= width


def test_a_picture_of_one_channel_has_no_colour_and_that_is_an_error() -> None:
    error = fault('color', plain(9), lower=[0, 0, 0], upper=[9, 9, 9], coverage=[0.0, 0.5])
    assert error.kind == 'colour_needed'
    assert "view 'front'" in error.message


# Change


def test_the_share_of_changed_pixels_is_measured_exactly() -> None:
    before, now = plain(GREY), plain(GREY)
    now[:60, :80] = (200, 200, 200)
    found = run('change', now, before, reference='goal', fraction=[0.05, 0.2])
    assert found.holds
    assert found.evidence == (
        'change against goal in front: 0.0625 of the picture changed by 25 levels or more, '
        'wanted within [0.05, 0.2]: holds'
    )


def test_a_difference_equal_to_the_threshold_counts() -> None:
    now, before = plain(125), plain(100)
    assert changed_share(now, before, 25) == 1.0
    assert changed_share(before, now, 25) == 1.0
    assert changed_share(now, before, 26) == 0.0


def test_black_against_white_does_not_wrap_around() -> None:
    assert changed_share(plain(0), plain(255), 255) == 1.0
    assert changed_share(plain(255), plain(0), 255) == 1.0


@given(seeds=st.tuples(st.integers(0, 99), st.integers(0, 99)), threshold=st.integers(1, 255))
def test_change_agrees_with_an_independent_computation(
    seeds: tuple[int, int], threshold: int
) -> None:
    now, before = (noise(seed)[:, :, 0] for seed in seeds)
    differing = sum(
        abs(int(a) - int(b)) >= threshold for a, b in zip(now.ravel(), before.ravel(), strict=True)
    )
    assert changed_share(now, before, threshold) == differing / now.size


def test_only_the_region_is_compared() -> None:
    before, now = plain(GREY), plain(GREY)
    now[:, :160] = 255
    right: dict[str, Any] = {
        'region': [0.5, 0.0, 1.0, 1.0],
        'reference': 'goal',
        'fraction': [0.0, 0.0],
    }
    assert run('change', now, before, **right).holds


@pytest.mark.parametrize('kind', ['change', 'similar'])
def test_a_reference_of_another_size_is_an_error_and_never_resized(kind: str) -> None:
    bound: dict[str, Any] = {'fraction': [0.0, 0.5]} if kind == 'change' else {'at_least': 0.5}
    error = fault(kind, noise(1, 64, 48), noise(1, 128, 96), reference='goal', **bound)
    assert error.kind == 'reference_size'
    assert "reference 'goal' is 128x96, view 'front' is 64x48" in error.message


def test_a_grey_camera_is_compared_with_a_reference_in_grey() -> None:
    picture = noise(3)[:, :, 0]
    reference = np.repeat(picture[:, :, None], 3, axis=2)
    assert changed_share(grey(picture, 'view'), grey(reference, 'reference'), 1) == 0.0


# Similarity


@given(
    seeds=st.tuples(st.integers(0, 99), st.integers(0, 99)),
    gain=st.floats(0.2, 0.8),
    offset=st.integers(0, 50),
)
def test_correlation_agrees_with_an_independent_computation(
    seeds: tuple[int, int], gain: float, offset: int
) -> None:
    first = noise(seeds[0])[:, :, 0]
    mixed = gain * first + (0.9 - gain) * noise(seeds[1])[:, :, 0]
    second = np.clip(mixed + offset, 0, 255).astype(np.uint8)
    expected = np.corrcoef(first.ravel().astype(float), second.ravel().astype(float))[0, 1]
    assert correlation(first, second) == pytest.approx(expected, abs=1e-12)


@given(seeds=st.tuples(st.integers(0, 999), st.integers(0, 999)))
def test_correlation_lies_between_minus_1_and_1_and_is_symmetric(seeds: tuple[int, int]) -> None:
    first, second = (noise(seed, 9, 7)[:, :, 1] for seed in seeds)
    value = correlation(first, second)
    assert value is not None
    assert -1.0 <= value <= 1.0
    assert value == pytest.approx(correlation(second, first), abs=1e-12)
    assert correlation(first, first) == pytest.approx(1.0, abs=1e-12)
    assert correlation(first, 255 - first) == pytest.approx(-1.0, abs=1e-12)


def test_a_picture_that_is_only_darker_is_still_similar() -> None:
    reference = noise(4)
    found = run('similar', (reference // 2 + 10), reference, reference='goal', at_least=0.95)
    assert found.holds


def test_another_picture_is_not_similar_and_the_evidence_says_how_much() -> None:
    found = run('similar', noise(5), noise(6), reference='goal', at_least=0.5)
    assert not found.holds
    assert 'wanted at least 0.5: fails' in found.evidence


@pytest.mark.parametrize('flat', ['view', 'reference'])
def test_a_flat_region_is_an_error_and_never_a_number(flat: str) -> None:
    pictures = [plain(GREY, 64, 48), noise(7)]
    if flat == 'reference':
        pictures.reverse()
    error = fault('similar', *pictures, reference='goal', at_least=0.5)
    assert error.kind == 'flat_region'
    assert error.message.startswith(flat)


# Pictures that none of them can look at


@pytest.mark.parametrize(
    'picture',
    [np.zeros((4, 4), np.uint16), np.zeros((4, 4), np.float32), np.zeros((4, 4, 4), np.uint8),
     np.zeros((4, 4, 1), np.uint8)],
)  # fmt: skip
def test_a_depth_picture_is_an_error(picture: Image) -> None:
    error = fault('change', picture, plain(0, 4, 4), reference='goal', fraction=[0.0, 0.5])
    assert error.kind == 'eight_bits_needed'


@pytest.mark.parametrize('shape', [(0, 4, 3), (4, 0, 3)])
def test_a_picture_without_pixels_is_an_error(shape: tuple[int, ...]) -> None:
    empty = np.zeros(shape, np.uint8)
    error = fault('color', empty, lower=[0, 0, 0], upper=[9, 9, 9], coverage=[0.0, 0.5])
    assert error.kind == 'empty_picture'
