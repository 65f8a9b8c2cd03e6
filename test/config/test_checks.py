"""The parts of a check that need no file: marker dictionaries, effects and sizes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
import pytest

from harness_eval.config.checks import Check
from harness_eval.config.effects import EffectSettings
from harness_eval.config.markers import DICTIONARY_SIZES
from harness_eval.config.sizes import parse_size


@pytest.mark.parametrize('name', DICTIONARY_SIZES)
def test_each_dictionary_is_one_of_opencv_with_as_many_markers(name: str) -> None:
    cv2 = pytest.importorskip('cv2', reason='OpenCV is not installed')
    dictionary = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, name))
    assert dictionary.bytesList.shape[0] == DICTIONARY_SIZES[name]


def test_a_check_knows_its_kind_and_the_settings_of_it() -> None:
    check = Check.model_validate({'state': {'name': 'grip', 'between': [0, 1]}, 'weight': 2})
    assert check.kind == 'state'
    assert check.settings is check.state
    assert check.weight == 2.0


def test_a_hue_range_may_wrap_and_a_saturation_range_may_not() -> None:
    wrapped = {'view': 'v', 'lower': [170, 0, 0], 'upper': [10, 255, 255], 'coverage': [0.1, 1]}
    assert Check.model_validate({'color': wrapped}).kind == 'color'
    with pytest.raises(ValidationError, match='a saturation in lower'):
        Check.model_validate({'color': {**wrapped, 'lower': [0, 9, 0], 'upper': [9, 8, 9]}})


def test_a_marker_that_is_asked_to_be_absent_has_no_position() -> None:
    marker = {'view': 'v', 'dictionary': 'DICT_4X4_50', 'id': 1, 'visible': False, 'size': 0.1}
    with pytest.raises(ValidationError, match="no 'position'"):
        Check.model_validate({'marker': {**marker, 'position': {'x': [0, 1]}}})


def test_an_effect_knows_its_operation_its_names_and_its_attributes() -> None:
    effect = EffectSettings.model_validate({'add_edge': ['{a}', 'on', 'b', {'by': '{c}', 'n': 1}]})
    assert effect.op == 'add_edge'
    assert effect.names == ('{a}', 'on', 'b')
    assert effect.attributes == {'by': '{c}', 'n': 1}
    assert list(effect.texts()) == ['{a}', 'on', 'b', '{c}']


@pytest.mark.parametrize(
    'effect',
    [
        {},
        {'add_node': []},
        {'add_node': ['a', 'b']},
        {'add_node': ['a', {}]},
        {'add_node': ['a', {'b': [1]}]},
        {'add_node': ['a', {'b': None}]},
        {'add_node': ['a', {'b': float('nan')}]},
        {'add_node': [' ']},
        {'add_node': 'a'},
        {'remove_node': ['a', 'b']},
        {'set_attributes': ['a']},
        {'add_edge': ['a', 'b']},
        {'add_edge': ['a', 'b', 3]},
        {'remove_edge': ['a', 'b', 'c', {'d': 1}]},
        {'remove_edge': ['a', 'b', '']},
        {'remove_edge': ['a', 'b', 'c'], 'remove_node': ['a']},
    ],
)
def test_an_effect_that_is_not_one_whole_operation_is_refused(effect: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EffectSettings.model_validate(effect)


@pytest.mark.parametrize(
    ('text', 'size'),
    [
        ('2GiB', 2 * 1024**3),
        ('500MB', 500_000_000),
        ('1.5 kB', 1500),
        ('1KB', 1000),
        ('1KiB', 1024),
        ('1TiB', 1024**4),
        ('12B', 12),
        (7, 7),
    ],
)
def test_a_size_is_read_as_people_write_it(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    'value',
    ['2', '2G', '2gib', 'GiB', '-1B', '1iB', '0B', '1e3B', '2GiB ', '٣B', '', 0, -1, True, 1.5,
     float('nan'), None, [], '9' * 40 + 'B', 2**63],
)  # fmt: skip
def test_anything_else_is_no_size(value: object) -> None:
    with pytest.raises(ValueError, match='expected a number of bytes above 0'):
        parse_size(value)


@given(st.integers(1, 2**40), st.sampled_from(['', 'k', 'M', 'G', 'T']))
def test_a_whole_number_of_units_is_that_many_times_the_unit(amount: int, prefix: str) -> None:
    unit = 1000 ** ['', 'k', 'M', 'G', 'T'].index(prefix)
    if amount * unit < 2**53:
        assert parse_size(f'{amount}{prefix}B') == amount * unit
