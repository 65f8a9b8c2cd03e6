"""A field path is read as it is written, and nothing else is one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
import pytest

from harness_eval.field_path import FieldPath, Index, Match, Slice, Step

names = st.from_regex(r'[a-z_][a-z0-9_]{0,6}', fullmatch=True)
bounds = st.none() | st.integers(-99, 99)
selectors = (
    st.none()
    | st.builds(Index, st.integers(-99, 99))
    | st.builds(Slice, bounds, bounds).filter(
        lambda cut: (
            cut.start is None
            or cut.stop is None
            or (cut.start < 0) != (cut.stop < 0)
            or cut.start < cut.stop
        )
    )
    | st.builds(Match, st.lists(names, min_size=1, max_size=3).map('.'.join), st.text(max_size=12))
)
paths = st.lists(st.builds(Step, names, selectors), min_size=1, max_size=5).map(
    lambda steps: FieldPath(tuple(steps))
)


@given(paths)
def test_a_path_is_written_as_it_is_read(path: FieldPath) -> None:
    assert FieldPath.parse(str(path)) == path


@given(st.text(max_size=40) | st.text('ab.[]:=-"\\01 ', max_size=20))
def test_any_text_is_a_path_or_a_clear_refusal(written: str) -> None:
    try:
        path = FieldPath.parse(written)
    except ValueError as error:
        assert str(error).startswith('field path')
    else:
        assert FieldPath.parse(str(path)) == path


@pytest.mark.parametrize(
    ('written', 'words'),
    [
        ('', 'expected a field name at character 1'),
        ('a..b', 'expected a field name at character 3'),
        ('a.', 'expected a field name at character 3'),
        ('[0]', 'expected a field name at character 1'),
        ('a[0', 'is not closed'),
        ('a[]', 'must be an index'),
        ('a[x]', 'must be an index'),
        ('a[5:3]', 'selects no element'),
        ('a[0][1]', 'expected a dot or the end at character 5'),
        ('a b', 'expected a dot or the end at character 2'),
        ('a[1:9:2]', 'must be an index'),
    ],
)
def test_a_wrong_path_is_refused_with_the_place(written: str, words: str) -> None:
    with pytest.raises(ValueError, match='field path') as caught:
        FieldPath.parse(written)
    assert words in str(caught.value)
