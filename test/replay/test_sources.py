"""What somebody types leads to cases and bags, each once, in an order that stays."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given
import hypothesis.strategies as st
import pytest
from recordings import mcap, ros1, rosbag2, split
from rosbags.rosbag2 import StoragePlugin

from harness_eval.replay.bags import open_bag
from harness_eval.replay.sources import (
    BagSource,
    CaseSource,
    find_sources,
    SourceError,
    told_apart,
)

ITEMS = [('/a', 10**9 + n, f'{n}') for n in range(6)]


def case(folder: Path) -> Path:
    """A folder that is a case as far as finding it goes; it holds a bag as well."""
    rosbag2(folder, ITEMS)
    (folder / 'case.json').write_text('{}')
    return folder


def found(*patterns: Path | str) -> list[CaseSource | BagSource]:
    sources, skipped = find_sources([str(pattern) for pattern in patterns])
    assert skipped == []
    return sources


def test_a_case_is_a_case_although_it_holds_a_bag(tmp_path: Path) -> None:
    one = CaseSource(case(tmp_path / 'run_1'))
    for meant in (one.path, one.path / 'case.json', one.path / 'metadata.yaml'):
        assert found(meant) == [one]
    assert found(tmp_path / '*' / '*.mcap') == [one]
    assert one.name == 'run_1'


def test_a_folder_is_searched_through_in_the_order_of_names(tmp_path: Path) -> None:
    for name in ('run_10', 'run_2', 'deep/er/run_1', '.part-run_3', '.hidden'):
        case(tmp_path / name)
    rosbag2(tmp_path / 'bag', ITEMS)
    (tmp_path / 'notes.txt').write_text('x')
    assert [source.name for source in found(tmp_path)] == ['bag', 'run_1', 'run_2', 'run_10']


@pytest.mark.parametrize('plugin', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_a_split_bag_is_one_source_with_its_metadata_or_without(
    plugin: StoragePlugin, tmp_path: Path
) -> None:
    bag = split(tmp_path / 'bag', ITEMS, plugin=plugin)
    assert found(bag) == found(tmp_path) == found(bag / 'metadata.yaml') == [BagSource(bag)]
    (bag / 'metadata.yaml').unlink()
    assert found(bag) == [BagSource(bag)]


def test_files_that_lie_together_are_bags_of_their_own(tmp_path: Path) -> None:
    paths = [
        mcap(tmp_path / 'monday.mcap', ITEMS),
        mcap(tmp_path / 'tuesday.mcap', ITEMS),
        ros1(tmp_path / 'wednesday.bag', ITEMS),
    ]
    assert found(tmp_path) == [BagSource(path) for path in paths]
    assert found(paths[2]) == [BagSource(paths[2])]


def test_a_bag_is_known_by_how_it_begins_whatever_its_name(tmp_path: Path) -> None:
    path = mcap(tmp_path / 'recording', ITEMS)
    assert found(path) == [BagSource(path)]


def test_a_glob_crosses_folders_and_means_no_file_that_is_no_bag(tmp_path: Path) -> None:
    (tmp_path / 'week').mkdir()
    one = mcap(tmp_path / 'week' / 'a[1].mcap', ITEMS)
    (tmp_path / 'week' / 'notes.txt').write_text('x')
    assert found(tmp_path / '**' / '*') == [BagSource(one)]
    # A name that exists is meant as it stands.
    assert found(one) == [BagSource(one)]


def test_what_is_meant_twice_comes_once_at_its_first_place(tmp_path: Path) -> None:
    one, other = case(tmp_path / 'b'), case(tmp_path / 'a')
    link = tmp_path / 'link'
    link.symlink_to(one)
    assert [s.name for s in found(one, tmp_path, link)] == ['b', 'a']
    assert found(other, other) == [CaseSource(other)]


def test_sources_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for folder in ('monday/arm/bag', 'friday/arm/bag', 'friday/base/bag', 'other'):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / 'metadata.yaml').touch()
    sources, _ = find_sources([str(tmp_path)])
    assert [one.name for one in sources] == [
        'friday/arm/bag',
        'friday/base/bag',
        'monday/arm/bag',
        'other',
    ]
    backwards, _ = find_sources([str(one.path) for one in reversed(sources)])
    assert [one.name for one in backwards] == [one.name for one in reversed(sources)]
    assert [one.name for one in found(tmp_path / 'monday')] == ['bag']


def test_names_do_not_depend_on_the_folder_that_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ('monday/bag', 'friday/bag'):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / 'metadata.yaml').touch()
    monkeypatch.chdir(tmp_path / 'friday' / 'bag')
    sources, _ = find_sources(['.', '../../monday/bag'])
    assert [one.name for one in sources] == ['friday/bag', 'monday/bag']


@given(st.lists(st.lists(st.sampled_from('ab'), min_size=1, max_size=4), min_size=1, max_size=6))
def test_names_are_unique_whatever_lies_where(paths: list[list[str]]) -> None:
    sources = [BagSource(Path('/nowhere', *one)) for one in paths]
    names = {one.path: one.name for one in told_apart(sources)}
    assert len(set(names.values())) == len(names) == len({tuple(one) for one in paths})
    assert told_apart(told_apart(sources)) == told_apart(sources)


def test_a_pipe_is_no_bag_and_nobody_waits_for_it(tmp_path: Path) -> None:
    pipe = tmp_path / 'pipe.mcap'
    os.mkfifo(pipe)
    assert find_sources([str(pipe)])[1][0].kind == 'no_source'
    bag = mcap(tmp_path / 'bag.mcap', ITEMS)
    assert found(tmp_path) == [BagSource(bag)]
    with pytest.raises(SourceError, match='not_a_bag'):
        open_bag(pipe)


def test_a_link_that_leads_back_up_ends(tmp_path: Path) -> None:
    one = case(tmp_path / 'cases' / 'one')
    (tmp_path / 'cases' / 'again').symlink_to(tmp_path / 'cases')
    assert found(tmp_path) == [CaseSource(one)]


@pytest.mark.parametrize('pattern', ['nothing', 'nothing/*.mcap', 'empty', 'empty/**'])
def test_a_pattern_that_means_nothing_says_what_was_looked_for(
    pattern: str, tmp_path: Path
) -> None:
    (tmp_path / 'empty').mkdir()
    sources, (note,) = find_sources([str(tmp_path / pattern)])
    assert sources == []
    assert note.kind == 'no_source'
    assert 'case.json' in note.message
    assert str(tmp_path) not in note.message


def test_a_file_that_is_no_bag_is_named_and_the_rest_is_found(tmp_path: Path) -> None:
    notes = tmp_path / 'notes.txt'
    notes.write_text('x')
    one = case(tmp_path / 'one')
    sources, (note,) = find_sources([str(notes), str(one)])
    assert sources == [CaseSource(one)]
    assert (note.source, note.kind) == ('notes.txt', 'not_a_bag')


def test_a_folder_that_may_not_be_read_is_named_and_the_rest_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = case(tmp_path / 'one')
    (tmp_path / 'secret').mkdir()
    real = Path.iterdir

    def refuse(self: Path) -> object:
        if self.name == 'secret':
            raise PermissionError(13, 'Permission denied', str(self))
        return real(self)

    monkeypatch.setattr(Path, 'iterdir', refuse)
    sources, (note,) = find_sources([str(tmp_path)])
    assert sources == [CaseSource(one)]
    assert (note.source, note.kind) == ('secret', 'unreadable')
    assert str(tmp_path) not in note.message


def test_the_folder_that_one_is_in_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(case(tmp_path / 'one'))
    assert [source.name for source in found('.', os.curdir)] == ['one']
