"""A stage of the set-up is repeated when something that went into it changed, and only then."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
import prepare
import pytest
from stamp import fingerprint, Stamp


@pytest.fixture
def work() -> list[str]:
    return []


def stage(tmp_path: Path, work: list[str], *, value: str = 'a', content: str = 'x') -> str:
    source = tmp_path / 'input.txt'
    source.write_text(content)
    return prepare._stage(tmp_path, 'stage', [value], [source], lambda: work.append('done'))


@pytest.fixture(autouse=True)
def _own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, 'ROOT', tmp_path)


def test_a_finished_stage_is_not_repeated(tmp_path: Path, work: list[str]) -> None:
    assert stage(tmp_path, work) == stage(tmp_path, work)
    assert work == ['done']


@pytest.mark.parametrize('change', [{'value': 'b'}, {'content': 'y'}])
def test_a_stage_is_repeated_when_an_input_changed(
    tmp_path: Path, work: list[str], change: dict[str, str]
) -> None:
    before = stage(tmp_path, work)
    assert stage(tmp_path, work, **change) != before
    assert work == ['done', 'done']


def test_an_interrupted_stage_is_taken_up_again(tmp_path: Path, work: list[str]) -> None:
    stage(tmp_path, work)

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare._stage(tmp_path, 'stage', ['other'], [], interrupted)
    # Also with the inputs of the last time that it was finished: its results may be half replaced.
    stage(tmp_path, work)
    assert work == ['done', 'done']


def test_a_stamp_fits_its_inputs_and_no_others(tmp_path: Path) -> None:
    stamp = Stamp(tmp_path / 'stamps' / 'one')
    assert not stamp.fits('a')
    stamp.write('a')
    assert stamp.fits('a')
    assert not stamp.fits('b')
    stamp.remove()
    stamp.remove()
    assert not stamp.fits('a')


@given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_two_lists_of_values_have_one_fingerprint_only_if_they_are_equal(
    one: list[str], other: list[str]
) -> None:
    same = fingerprint(one, [], Path('/')) == fingerprint(other, [], Path('/'))
    assert same == (one == other)


def test_a_renamed_file_is_a_changed_input_and_the_order_is_none(tmp_path: Path) -> None:
    first, second = tmp_path / 'first', tmp_path / 'second'
    first.write_text('1')
    second.write_text('2')
    both = fingerprint([], [first, second], tmp_path)
    assert fingerprint([], [second, first], tmp_path) == both
    third = second.rename(tmp_path / 'third')
    assert fingerprint([], [first, third], tmp_path) != both
