"""A view's ``usable`` condition fails first."""

from __future__ import annotations

from typing import Any

from judged_world import make_observation, make_view, plain, with_marker
import pytest

from harness_eval.config.checks import UsableCondition
from harness_eval.contract import Abstention, DecodeError, EvaluatorError
from harness_eval.usable import check_usable

TABLE = with_marker(plain((230, 230, 230)), 'DICT_4X4_50', 0, left=20, top=20)
COVERED = plain((0, 0, 0))

MARKER = UsableCondition.model_validate({'marker': {'dictionary': 'DICT_4X4_50', 'id': 0}})
LIGHT: Any = UsableCondition.model_validate(
    {'color': {'lower': [0, 0, 200], 'upper': [179, 50, 255], 'coverage': [0.5, 1.0]}}
)


@pytest.mark.parametrize('condition', [MARKER, LIGHT])
def test_a_view_that_shows_what_it_must_is_usable(condition: UsableCondition) -> None:
    check_usable(make_observation(make_view('front', TABLE)), {'front': condition})


@pytest.mark.parametrize(
    ('condition', 'seen'),
    [(MARKER, 'marker 0 of DICT_4X4_50 not seen, nor any other marker'),
     (LIGHT, 'its color covers 0 of the picture, wanted within [0.5, 1]')],
)  # fmt: skip
def test_a_covered_view_is_an_abstention_that_names_it_and_what_was_seen(
    condition: UsableCondition, seen: str
) -> None:
    with pytest.raises(Abstention) as caught:
        check_usable(make_observation(make_view('front', COVERED)), {'front': condition})
    assert caught.value.kind == 'view_unusable'
    assert "view 'front' (cell/front/image_raw) is not usable" in caught.value.message
    assert seen in caught.value.message


def test_a_marker_that_must_lie_in_a_region_shows_a_camera_that_was_moved() -> None:
    condition = UsableCondition.model_validate(
        {'marker': {'dictionary': 'DICT_4X4_50', 'id': 0, 'region': [0.5, 0.5, 1.0, 1.0]}}
    )
    with pytest.raises(Abstention, match=r'wanted within \[0.50, 0.50, 1.00, 1.00\]'):
        check_usable(make_observation(make_view('front', TABLE)), {'front': condition})


def test_every_view_that_is_not_usable_is_named() -> None:
    observation = make_observation(
        make_view('front', COVERED), make_view('side', TABLE), make_view('wrist', COVERED)
    )
    with pytest.raises(Abstention) as caught:
        check_usable(observation, {'front': MARKER, 'side': MARKER, 'wrist': LIGHT})
    assert "'front'" in caught.value.message
    assert "'wrist'" in caught.value.message
    assert "'side'" not in caught.value.message


def test_a_view_without_a_condition_is_not_even_decoded() -> None:
    broken = make_view('wrist', DecodeError('truncated_image', 'half a JPEG'))
    check_usable(make_observation(make_view('front', TABLE), broken), {'front': MARKER})


def test_a_condition_of_a_view_that_the_tool_does_not_need_is_not_looked_at() -> None:
    check_usable(make_observation(make_view('front', TABLE)), {'front': MARKER, 'wrist': MARKER})


def test_a_view_that_cannot_be_decoded_is_an_error_and_no_abstention() -> None:
    broken = make_view('front', DecodeError('truncated_image', 'half a JPEG'))
    with pytest.raises(DecodeError):
        check_usable(make_observation(broken), {'front': MARKER})


def test_a_colour_cannot_be_looked_for_in_a_grey_view() -> None:
    with pytest.raises(EvaluatorError, match='colour'):
        check_usable(make_observation(make_view('front', plain(200))), {'front': LIGHT})
