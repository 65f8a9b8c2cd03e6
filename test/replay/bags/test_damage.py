"""What is wrong with a bag is said, and the rest of it is used."""

from __future__ import annotations

from collections.abc import Sequence
import os
from pathlib import Path
import shutil
import sqlite3
import tempfile

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest
from recordings import FORMATS, Item, mcap, MEMORY, ros1, rosbag2, split, STORE, TEXT, text_of
from rosbags.rosbag2 import CompressionMode, StoragePlugin, Writer
import yaml

from harness_eval.replay.bags import open_bag
from harness_eval.replay.bags.bag import Bag
from harness_eval.replay.sources import BagSource, SourceError

SECOND = 10**9
RECORDED = [('/b' if n % 2 else '/a', SECOND + n, f'text {n}') for n in range(30)]


def texts(bag: Bag) -> list[str]:
    return [text_of(message.data) for message in bag.messages(bag.topics)]


def kinds(bag: Bag) -> list[str]:
    return [one.kind for one in bag.skipped]


def refused(path: Path) -> SourceError:
    with pytest.raises(SourceError) as raised:
        open_bag(BagSource(path))
    assert str(path.parent) not in raised.value.message
    return raised.value


@pytest.mark.parametrize('chunked', [True, False])
@pytest.mark.parametrize('compression', ['', 'lz4'])
def test_a_cut_mcap_file_is_read_up_to_the_cut(
    chunked: bool, compression: str, tmp_path: Path
) -> None:
    path = mcap(tmp_path / 'bag.mcap', RECORDED, chunked=chunked, compression=compression)
    whole = path.read_bytes()
    seen = set()
    for length in range(len(whole) // 2, len(whole) - 1, 37):
        path.write_bytes(whole[:length])
        with open_bag(path) as bag:
            found = texts(bag)
            # Where only the index at the end is cut, nothing is lost.
            assert kinds(bag) == ['bag_cut'] or len(found) == len(RECORDED)
            assert all('bag.mcap' in note.message for note in bag.skipped)
        assert found == [text for _, _, text in RECORDED[: len(found)]]
        seen.add(len(found))
    assert max(seen) == len(RECORDED)
    assert len(seen) >= 4


def test_messages_of_a_cut_chunk_are_used_as_far_as_they_go(tmp_path: Path) -> None:
    path = mcap(tmp_path / 'bag.mcap', RECORDED[:3])
    data = path.read_bytes()
    third = data.index(b'text 2')
    path.write_bytes(data[:third])
    with open_bag(path) as bag:
        assert texts(bag) == ['text 0', 'text 1']
        assert (bag.start, bag.end) == (SECOND, SECOND + 1)


def test_a_cut_folder_of_a_killed_recorder_is_read(tmp_path: Path) -> None:
    folder = rosbag2(tmp_path / 'bag', RECORDED)
    (folder / 'metadata.yaml').unlink()
    file = folder / 'bag.mcap'
    file.write_bytes(file.read_bytes()[:1500])
    with open_bag(folder) as bag:
        found = texts(bag)
        assert found == [text for _, _, text in RECORDED[: len(found)]]
        assert 10 < len(found) < 30
        assert kinds(bag) == ['bad_metadata', 'bag_cut']


def test_a_cut_sqlite3_file_is_read_up_to_the_cut(tmp_path: Path) -> None:
    recorded = [('/a', SECOND + n, f'{n:04}' + 'x' * 3000) for n in range(300)]
    folder = rosbag2(tmp_path / 'bag', recorded, StoragePlugin.SQLITE3)
    file = folder / 'bag.db3'
    size = file.stat().st_size
    os.truncate(file, size * 2 // 3)
    with open_bag(folder) as bag:
        found = [(m.receipt, text_of(m.data)) for m in bag.messages(('/a',))]
        assert 'bag_cut' in kinds(bag)
        window = [m.receipt for m in bag.messages(('/a',), SECOND + 20, SECOND + 25)]
    assert found == [(receipt, text) for _, receipt, text in recorded[: len(found)]]
    assert len(found) > 100
    assert window == [SECOND + n for n in range(20, 25)]


def test_a_sqlite3_file_of_which_nothing_is_left_is_refused(tmp_path: Path) -> None:
    folder = rosbag2(tmp_path / 'bag', RECORDED, StoragePlugin.SQLITE3)
    os.truncate(folder / 'bag.db3', 3000)
    assert refused(folder).kind == 'bag_damaged'


def test_a_packed_file_that_is_cut_gives_what_is_before_the_cut(tmp_path: Path) -> None:
    recorded = [('/a', SECOND + n, os.urandom(2000).hex()) for n in range(300)]
    folder = rosbag2(tmp_path / 'bag', recorded, mode=CompressionMode.FILE)
    file = folder / 'bag.mcap.zstd'
    os.truncate(file, file.stat().st_size * 2 // 3)
    with open_bag(folder) as bag:
        found = texts(bag)
        assert kinds(bag) == ['bag_cut', 'bag_cut']
    assert found == [text for _, _, text in recorded[: len(found)]]
    assert 50 < len(found) < 300


def test_a_cut_bag_of_ros_1_says_how_to_mend_it(tmp_path: Path) -> None:
    path = ros1(tmp_path / 'bag.bag', RECORDED)
    os.truncate(path, path.stat().st_size - 100)
    error = refused(path)
    assert error.kind == 'bag_damaged'
    assert 'rosbag reindex' in error.message


@pytest.mark.parametrize('name', ['mcap', 'mcap, lz4', 'sqlite3', 'ros1', 'ros1, bz2'])
@settings(max_examples=30)
@given(data=st.data())
def test_altered_bytes_never_raise_but_a_source_error(name: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        _read_altered(FORMATS[name](Path(folder), RECORDED), data)


def _read_altered(opened: Path, data: st.DataObject) -> None:
    (file,) = [
        f for f in (opened.iterdir() if opened.is_dir() else [opened]) if f.suffix != '.yaml'
    ]
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    file.write_bytes(content)
    try:
        with open_bag(opened) as bag:
            list(bag.messages(bag.topics))
            list(bag.messages(bag.topics, SECOND + 5, SECOND + 9))
    except SourceError as error:
        assert str(opened.parent) not in error.message


@pytest.mark.parametrize(
    ('content', 'said'),
    [
        (b'a: \0', 'is no YAML'),
        (b'\xff\xfe', 'is not UTF-8'),
        (b'a: b: c', 'is no YAML at line 1'),
        (b'just text', 'lacks rosbag2_bagfile_information'),
        (b'rosbag2_bagfile_information: {version: 5}', 'lacks the list relative_file_paths'),
        (b'rosbag2_bagfile_information: {relative_file_paths: [1]}', 'lacks the list'),
        (b'rosbag2_bagfile_information: {relative_file_paths: [x.mcap]}', 'lists none'),
        (b'rosbag2_bagfile_information: {relative_file_paths: []}', 'lists none'),
        (None, 'is missing'),
    ],
)
def test_without_usable_metadata_the_files_are_read(
    content: bytes | None, said: str, tmp_path: Path
) -> None:
    folder = rosbag2(tmp_path / 'bag', RECORDED)
    (folder / 'metadata.yaml').unlink()
    if content is not None:
        (folder / 'metadata.yaml').write_bytes(content)
    with open_bag(folder) as bag:
        assert texts(bag) == [text for _, _, text in RECORDED]
        (note,) = bag.skipped
    assert (note.kind, note.source) == ('bad_metadata', 'bag')
    assert said in note.message


@pytest.mark.parametrize(
    'alter',
    [
        lambda body: body.update(topics_with_message_count='none'),
        lambda body: body.update(files=[{'path': 3}, 'x', {}]),
        lambda body: body.update(version=99, storage_identifier='other', duration='long'),
        lambda body: body.update(topics_with_message_count=[1, {}, {'topic_metadata': {}}]),
        lambda body: body.pop('starting_time'),
    ],
)
def test_odd_metadata_do_no_harm(alter: object, tmp_path: Path) -> None:
    folder = rosbag2(tmp_path / 'bag', RECORDED, mode=CompressionMode.FILE)
    data = yaml.safe_load((folder / 'metadata.yaml').read_text())
    alter(data['rosbag2_bagfile_information'])  # type: ignore[operator]
    (folder / 'metadata.yaml').write_text(yaml.safe_dump(data))
    with open_bag(folder) as bag:
        assert texts(bag) == [text for _, _, text in RECORDED]
        assert bag.skipped == ()


@pytest.mark.parametrize('plugin', [StoragePlugin.MCAP, StoragePlugin.SQLITE3])
def test_a_lost_or_broken_part_of_a_split_bag_is_named_and_the_others_are_read(
    plugin: StoragePlugin, tmp_path: Path
) -> None:
    folder = split(tmp_path / 'bag', RECORDED, plugin=plugin)
    suffix = '.mcap' if plugin is StoragePlugin.MCAP else '.db3'
    (folder / f'bag_0{suffix}').unlink()
    (folder / f'bag_1{suffix}').write_bytes(b'nothing')
    with open_bag(folder) as bag:
        assert texts(bag) == [text for _, _, text in RECORDED[22:]]
        assert kinds(bag) == ['bag_file_missing', 'not_a_bag']
        assert {topic.count for topic in bag.topics.values()} == {None}


def test_a_bag_without_its_files_is_refused(tmp_path: Path) -> None:
    folder = rosbag2(tmp_path / 'bag', RECORDED)
    (folder / 'bag.mcap').unlink()
    error = refused(folder)
    assert error.kind == 'bag_damaged'
    assert 'bag.mcap' in error.message


@pytest.mark.parametrize('content', [b'', b'%PDF-1.7 and so on', b'\x89MCAP0\r\n'[:5]])
@pytest.mark.parametrize('name', ['bag.mcap', 'bag.db3', 'bag.bag'])
def test_what_is_no_bag_is_refused(content: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert refused(path).kind == ('not_a_bag' if content else 'bag_damaged')


def test_a_folder_without_a_bag_and_a_path_of_nothing_are_refused(tmp_path: Path) -> None:
    assert refused(tmp_path).kind == 'not_a_bag'
    assert refused(tmp_path / 'nothing').kind == 'no_source'


def test_a_database_of_something_else_is_no_bag(tmp_path: Path) -> None:
    path = tmp_path / 'notes.db3'
    with sqlite3.connect(path) as database:
        database.execute('CREATE TABLE notes (text)')
    assert refused(path).kind == 'not_a_bag'


@pytest.mark.parametrize('name', ['mcap, lz4', 'sqlite3, single file', 'ros1', 'mcap'])
def test_a_file_that_may_not_be_read_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = FORMATS[name](tmp_path, RECORDED)

    def refuse(self: Path, *_how: object, **_more: object) -> None:
        raise PermissionError(13, 'Permission denied', str(self))

    monkeypatch.setattr(Path, 'open', refuse)
    error = refused(path)
    assert error.kind == 'unreadable'
    assert 'Permission denied' in error.message


@pytest.mark.parametrize('name', FORMATS)
def test_a_bag_without_messages_is_an_empty_bag(name: str, tmp_path: Path) -> None:
    with open_bag(FORMATS[name](tmp_path, [])) as bag:
        assert (bag.start, bag.end, texts(bag)) == (0, 0, [])
        if 'killed' not in name and name not in ('mcap, definitions in chunks alone', 'ros1'):
            assert set(bag.topics) <= {'/a'}


def test_a_wal_beside_a_sqlite3_file_is_read(tmp_path: Path) -> None:
    folder = rosbag2(tmp_path / 'bag', RECORDED[:10], StoragePlugin.SQLITE3)
    database = _written_to(folder / 'bag.db3', 'WAL')
    (folder / 'metadata.yaml').unlink()
    copied = tmp_path / 'copied'
    shutil.copytree(folder, copied)  # as a recorder that was killed leaves it
    database.close()
    with open_bag(copied) as bag:
        assert texts(bag)[-1] == 'late'
        assert kinds(bag) == ['bad_metadata']


def test_a_journal_that_cannot_be_rolled_back_is_said(tmp_path: Path) -> None:
    folder = rosbag2(tmp_path / 'bag', RECORDED[:10], StoragePlugin.SQLITE3)
    database = _written_to(folder / 'bag.db3', 'DELETE')
    database.execute('PRAGMA cache_size = 2')
    database.execute('BEGIN')
    for _ in range(20):
        database.execute(
            'INSERT INTO messages (topic_id, timestamp, data) VALUES (1, 1, zeroblob(9000))'
        )
    copied = tmp_path / 'copied'
    shutil.copytree(folder, copied)
    database.close()
    assert (copied / 'bag.db3-journal').stat().st_size
    with open_bag(copied) as bag:
        found = [m.receipt for m in bag.messages(('/a', '/b'), SECOND, SECOND + 10)]
        assert found == [SECOND + n for n in range(10)]
        assert kinds(bag) == ['bag_not_closed']


def test_a_locked_sqlite3_file_is_an_error_that_may_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('harness_eval.replay.bags.sqlite_file._WAIT', 0.01)
    folder = rosbag2(tmp_path / 'bag', RECORDED, StoragePlugin.SQLITE3)
    database = sqlite3.connect(folder / 'bag.db3', isolation_level=None)
    database.execute('BEGIN EXCLUSIVE')
    error = refused(folder)
    database.close()
    assert (error.kind, error.retryable) == ('bag_locked', True)


def test_rows_without_an_index_are_read_in_order(tmp_path: Path) -> None:
    recorded = list(reversed(RECORDED))
    folder = rosbag2(tmp_path / 'bag', recorded, StoragePlugin.SQLITE3)
    with sqlite3.connect(folder / 'bag.db3') as database:
        database.execute('DROP INDEX timestamp_idx')
    with open_bag(folder) as bag:
        assert texts(bag) == [text for _, _, text in RECORDED]
        assert bag.skipped == ()


def test_a_chunk_that_is_damaged_is_left_out_and_named(tmp_path: Path) -> None:
    path = mcap(tmp_path / 'bag.mcap', RECORDED, compression='lz4')
    data = bytearray(path.read_bytes())
    second = data.index(b'\x04\x22\x4d\x18', data.index(b'\x04\x22\x4d\x18') + 1)
    data[second + 4 : second + 30] = b'\xff' * 26
    path.write_bytes(data)
    with open_bag(path) as bag:
        found = texts(bag)
        assert found == [text for _, _, text in RECORDED[:3] + RECORDED[6:]]
        assert set(kinds(bag)) == {'bag_damaged'}
        assert '1.000 s' in bag.skipped[0].message


def test_messages_in_another_encoding_are_left_out_and_named(tmp_path: Path) -> None:
    with open_bag(mcap(tmp_path / 'bag.mcap', RECORDED, encoding='json')) as bag:
        assert bag.topics == {}
        assert set(kinds(bag)) == {'unsupported_encoding'}
        assert "'json'" in bag.skipped[0].message


def test_a_message_that_is_packed_and_damaged_is_named(tmp_path: Path) -> None:
    folder = tmp_path / 'bag'
    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topic = writer.add_connection('/a', TEXT, typestore=STORE)
        writer.write(topic, SECOND, b'\x28\xb5\x2f\xfd and no more')
    with open_bag(folder) as bag:
        assert list(bag.messages(('/a',))) == []
        (note,) = bag.skipped
    assert note.kind == 'bag_damaged'
    assert '/a at 1.000 s' in note.message


def test_notes_are_bounded(tmp_path: Path) -> None:
    recorded: Sequence[Item] = [('/a', SECOND * n, 'x') for n in range(1, 500)]
    path = mcap(tmp_path / 'bag.mcap', recorded, compression='lz4')
    data = path.read_bytes().replace(b'\x04\x22\x4d\x18', b'\x05\x22\x4d\x18')
    path.write_bytes(data)
    with open_bag(path) as bag:
        assert texts(bag) == []
        assert len(bag.skipped) == 100


def _written_to(path: Path, journal: str) -> sqlite3.Connection:
    """Add one more message, in a log beside the file, by a recorder that goes on."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(f'PRAGMA journal_mode = {journal}')
    database.execute('PRAGMA wal_autocheckpoint = 0')
    late = bytes(STORE.serialize_cdr(STORE.types[TEXT](data='late'), TEXT))
    database.execute(
        'INSERT INTO messages (topic_id, timestamp, data) VALUES (1, ?, ?)', (SECOND * 2, late)
    )
    return database
