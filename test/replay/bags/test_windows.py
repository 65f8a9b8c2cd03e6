"""A window of a bag is what a full read of it, filtered, gives; in every format."""

from __future__ import annotations

from pathlib import Path
import tempfile
import tracemalloc
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
import pytest
from recordings import FORMATS, Item, mcap, MEMORY, text_of

from harness_eval.replay.bags import open_bag
from harness_eval.replay.bags.bag import Bag

TOPICS = ('/a', '/b', '/c')
SECOND = 10**9

times = st.integers(min_value=0, max_value=40)
items = st.lists(st.tuples(st.sampled_from(TOPICS), times), max_size=20).map(
    lambda found: [(topic, SECOND + t, f'text {n}') for n, (topic, t) in enumerate(found)]
)
edge = st.none() | st.integers(min_value=SECOND - 2, max_value=SECOND + 42)


def expected(
    recorded: list[Item], topics: set[str], start: int | None, stop: int | None
) -> list[Item]:
    chosen = [
        item
        for item in recorded
        if item[0] in topics
        and (start is None or item[1] >= start)
        and (stop is None or item[1] < stop)
    ]
    return sorted(chosen, key=lambda item: item[1])  # stable: as they were recorded


def read(bag: Bag, topics: set[str], start: int | None, stop: int | None) -> list[Item]:
    return [(m.topic, m.receipt, text_of(m.data)) for m in bag.messages(topics, start, stop)]


@pytest.mark.parametrize('name', FORMATS)
@settings(max_examples=12)
@given(
    recorded=items,
    windows=st.lists(st.tuples(st.sets(st.sampled_from((*TOPICS, '/d'))), edge, edge), max_size=6),
)
def test_a_window_is_a_filtered_full_read(
    name: str, recorded: list[Item], windows: list[tuple[set[str], int | None, int | None]]
) -> None:
    with (
        tempfile.TemporaryDirectory(dir=MEMORY) as folder,
        open_bag(FORMATS[name](Path(folder), recorded)) as bag,
    ):
        for topics, start, stop in [(set(TOPICS), None, None), *windows]:
            assert read(bag, topics, start, stop) == expected(recorded, topics, start, stop)
        receipts = [receipt for _, receipt, _ in recorded]
        if 'killed' not in name or recorded:
            assert (bag.start, bag.end) == (min(receipts, default=0), max(receipts, default=0))
        if 'killed' not in name:
            assert bag.skipped == ()
        for topic in {item[0] for item in recorded}:
            count = sum(item[0] == topic for item in recorded)
            assert bag.topics[topic].count in (None, count)
            assert bag.topics[topic].type == 'std_msgs/msg/String'


@pytest.mark.parametrize('name', FORMATS)
def test_several_iterations_of_one_bag_do_not_disturb_each_other(
    name: str, tmp_path: Path
) -> None:
    recorded = [(TOPICS[n % 3], SECOND + n, f'{n}') for n in range(30)]
    with open_bag(FORMATS[name](tmp_path, recorded)) as bag:
        pairs = zip(bag.messages(TOPICS), bag.messages(TOPICS, SECOND + 10), strict=False)
        found = [(text_of(one.data), text_of(other.data)) for one, other in pairs]
    assert found == [(str(n), str(n + 10)) for n in range(20)]


@pytest.mark.parametrize('name', FORMATS)
def test_a_loop_is_read_in_the_order_of_receipt(name: str, tmp_path: Path) -> None:
    once = [(TOPICS[n % 3], SECOND + n, f'{n}') for n in range(12)]
    with open_bag(FORMATS[name](tmp_path, once + once)) as bag:
        receipts = [message.receipt for message in bag.messages(TOPICS)]
    assert receipts == sorted(2 * [SECOND + n for n in range(12)])


@pytest.mark.parametrize('name', FORMATS)
@settings(max_examples=8)
@given(
    recorded=items,
    topics=st.sets(st.sampled_from((*TOPICS, '/d'))),
    start=st.integers(min_value=SECOND - 2, max_value=SECOND + 42),
    length=st.integers(min_value=0, max_value=42),
)
def test_it_is_known_by_how_much_time_went_back_in_a_window(
    name: str, recorded: list[Item], topics: set[str], start: int, length: int
) -> None:
    newest: dict[str, int] = {}
    most = 0
    for topic, receipt, _ in recorded:
        if topic in topics and start <= receipt < start + length:
            newest[topic] = max(newest.get(topic, 0), receipt)
            most = max(most, newest[topic] - receipt)
    with (
        tempfile.TemporaryDirectory(dir=MEMORY) as folder,
        open_bag(FORMATS[name](Path(folder), recorded)) as bag,
    ):
        assert bag.goes_back(topics, start, start + length) == most


@pytest.mark.parametrize('name', ['mcap, split, files packed', 'sqlite3, file packed'])
def test_a_packed_file_is_unpacked_only_for_a_window_that_reaches_into_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = [('/a', 100 * n * SECOND, f'{n}') for n in range(30)]
    path = FORMATS[name](tmp_path, recorded)
    temporary = tmp_path / 'temporary'
    temporary.mkdir()
    monkeypatch.setattr(tempfile, 'tempdir', str(temporary))
    last = 2900 * SECOND
    with open_bag(path) as bag:
        assert (bag.start, bag.end) == (0, last)
        assert list(bag.messages(('/a',), last + 2 * SECOND)) == []
        assert list(temporary.iterdir()) == []
        assert [text_of(m.data) for m in bag.messages(('/a',), last)] == ['29']
        (unpacked,) = temporary.glob('*/*')
        assert unpacked.name in ('bag_2.mcap', 'bag.db3')
        # However many files a bag has, no more than two are there at once.
        assert len(list(bag.messages(('/a',)))) == 30
        assert len(list(temporary.iterdir())) <= 2
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize('name', ['mcap', 'mcap, chunks packed', 'mcap, lz4', 'sqlite3', 'ros1'])
def test_memory_is_bounded_by_chunks_and_not_by_the_bag(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('harness_eval.replay.bags.mcap_contents.KEPT_BYTES', 1 << 20)
    # Twice over the same time, so that chunks overlap.
    recorded = [('/a', SECOND + n % 60, chr(n) * 200_000) for n in range(120)]
    path = FORMATS[name](tmp_path, recorded)
    with open_bag(path) as bag:
        list(bag.messages(('/a',), stop=SECOND + 1))  # what is made once
        tracemalloc.start()
        count = sum(1 for _ in bag.messages(('/a',)))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert count == 120
    assert peak < 6_000_000


def test_little_is_read_for_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of an MCAP file: the chunks that reach into the window, and of those the channel wanted.
    recorded = [(TOPICS[n % 3], SECOND + n, 'x' * 100_000) for n in range(300)]
    path = mcap(tmp_path / 'bag.mcap', recorded)
    with open_bag(path) as bag:
        read_bytes = _count_reads(monkeypatch)
        found = list(bag.messages(('/b',), SECOND + 100, SECOND + 110))
    assert [m.receipt - SECOND for m in found] == [100, 103, 106, 109]
    assert sum(read_bytes) < 5 * 100_000


class _Counting:
    """A file that notes how much is read of it."""

    def __init__(self, file: Any, counted: list[int]) -> None:
        self._file = file
        self._counted = counted

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)
        self._counted.append(len(data))
        return data

    def fileno(self) -> int:
        return int(self._file.fileno())

    def seek(self, *where: int) -> int:
        return int(self._file.seek(*where))

    def __enter__(self) -> _Counting:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()


def _count_reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    counted: list[int] = []
    real = Path.open

    def opened(path: Path, *how: Any) -> _Counting:
        return _Counting(real(path, *how), counted)

    monkeypatch.setattr(Path, 'open', opened)
    return counted
