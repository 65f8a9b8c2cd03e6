"""The choice of frames by stamps, against a search through every set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import itertools
import random
from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st
import pytest

from harness_eval.capture import least_valid_set, OnlineChooser, smallest_spread

Streams = dict[str, list[int]]

STREAMS = st.dictionaries(
    st.sampled_from(['a', 'b', 'c', 'd']),
    st.lists(st.integers(-30, 30), max_size=7, unique=True).map(sorted),
    min_size=1,
)
SLOP = st.integers(0, 12)


def spread(streams: Mapping[str, Sequence[int]], index: Sequence[int]) -> int:
    stamps = [stream[i] for stream, i in zip(streams.values(), index, strict=True)]
    return max(stamps) - min(stamps)


def every_set(streams: Mapping[str, Sequence[int]]) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(len(stream)) for stream in streams.values())))


def by_brute_force(streams: Streams, slop: int) -> dict[str, int] | None:
    valid = [index for index in every_set(streams) if spread(streams, index) <= slop]
    if not valid:
        return None
    least = tuple(min(column) for column in zip(*valid, strict=True))
    assert least in valid, 'valid sets are closed under the elementwise minimum'
    return dict(zip(streams, least, strict=True))


def arrivals(streams: Streams, order: random.Random) -> list[tuple[str, int]]:
    names = [name for name, stream in streams.items() for _ in stream]
    order.shuffle(names)
    position = dict.fromkeys(streams, 0)
    result = []
    for name in names:
        result.append((name, position[name]))
        position[name] += 1
    return result


def choose_online(streams: Streams, slop: int, order: random.Random) -> dict[str, int] | None:
    chooser: OnlineChooser[int] = OnlineChooser(streams, slop)
    for name, index in arrivals(streams, order):
        chooser.add(name, streams[name][index], index)
    return chooser.chosen


@given(STREAMS, SLOP)
def test_the_choice_is_the_componentwise_least_valid_set_or_none_if_there_is_none(
    streams: Streams, slop: int
) -> None:
    assert least_valid_set(streams, slop=slop) == by_brute_force(streams, slop)


@given(STREAMS, SLOP, st.randoms(use_true_random=False))
def test_choosing_online_equals_choosing_afterwards_in_any_order_of_arrival(
    streams: Streams, slop: int, order: random.Random
) -> None:
    assert choose_online(streams, slop, order) == least_valid_set(streams, slop=slop)


@given(STREAMS, SLOP, st.randoms(use_true_random=False))
def test_the_answer_comes_with_the_frame_that_completes_the_least_set(
    streams: Streams, slop: int, order: random.Random
) -> None:
    chooser: OnlineChooser[int] = OnlineChooser(streams, slop)
    so_far: Streams = {name: [] for name in streams}
    for name, index in arrivals(streams, order):
        so_far[name].append(streams[name][index])
        answer = chooser.add(name, streams[name][index], index)
        known = least_valid_set(so_far, slop=slop)
        if known is not None:
            assert answer == known
            return
        assert answer is None


@given(STREAMS, SLOP, st.randoms(use_true_random=False), st.data())
def test_letting_go_of_what_nothing_to_come_can_match_changes_no_choice(
    streams: Streams, slop: int, order: random.Random, data: st.DataObject
) -> None:
    coming = arrivals(streams, order)
    chooser: OnlineChooser[int] = OnlineChooser(streams, slop)
    for number, (name, index) in enumerate(coming):
        oldest = min(streams[other][i] for other, i in coming[number:])
        chooser.advance(oldest - data.draw(st.integers(0, 10)))
        chooser.add(name, streams[name][index], index)
    assert chooser.chosen == least_valid_set(streams, slop=slop)


@given(STREAMS)
def test_the_smallest_spread_is_that_of_the_narrowest_of_all_sets(streams: Streams) -> None:
    expected = min((spread(streams, index) for index in every_set(streams)), default=None)
    assert smallest_spread(streams) == expected


@given(STREAMS, SLOP)
def test_there_is_a_valid_set_exactly_if_the_smallest_spread_is_within_slop(
    streams: Streams, slop: int
) -> None:
    narrowest = smallest_spread(streams)
    within = narrowest is not None and narrowest <= slop
    assert (least_valid_set(streams, slop=slop) is not None) == within


def test_a_spread_of_exactly_slop_is_valid_and_one_nanosecond_more_is_not() -> None:
    start = 1_700_000_000_000_000_000
    streams = {'a': [start], 'b': [start + 50_000_000]}
    assert least_valid_set(streams, slop=50_000_000) == {'a': 0, 'b': 0}
    assert least_valid_set(streams, slop=49_999_999) is None


def test_cameras_at_30_and_20_hz_give_the_first_pair_within_slop() -> None:
    fast = [33 * n for n in range(30)]
    slow = [20 + 50 * n for n in range(20)]
    assert least_valid_set({'fast': fast, 'slow': slow}, slop=4) == {'fast': 2, 'slow': 1}


def test_a_frame_that_is_not_newer_than_the_last_of_its_stream_is_ignored() -> None:
    chooser: OnlineChooser[str] = OnlineChooser(['a', 'b'], 5)
    chooser.add('a', 100, 'first')
    chooser.add('a', 100, 'same')
    chooser.add('a', 90, 'older')
    assert chooser.pending == 1
    assert chooser.add('b', 90, 'other') is None
    assert chooser.add('b', 101, 'match') == {'a': 'first', 'b': 'match'}


def test_after_the_choice_nothing_changes_it_and_nothing_more_is_kept() -> None:
    chooser: OnlineChooser[str] = OnlineChooser(['a'], 0)
    assert chooser.add('a', 1, 'first') == {'a': 'first'}
    assert chooser.add('a', 2, 'second') == {'a': 'first'}
    chooser.advance(10)
    assert chooser.chosen == {'a': 'first'}
    assert chooser.pending == 0


def test_frames_that_no_set_can_hold_any_more_are_let_go_at_once() -> None:
    chooser: OnlineChooser[int] = OnlineChooser(['a', 'b', 'c'], 2)
    for stamp in range(0, 1000, 10):
        chooser.add('a', stamp, stamp)
        chooser.add('b', stamp + 7, stamp)
        assert chooser.pending <= 2


def test_what_waits_for_a_silent_stream_is_bounded_by_the_floor() -> None:
    chooser: OnlineChooser[int] = OnlineChooser(['talks', 'silent'], 5)
    for stamp in range(10_000):
        chooser.add('talks', stamp, stamp)
        chooser.advance(stamp - 20)
        assert chooser.pending <= 26
    assert chooser.add('silent', 9_980, 0) == {'talks': 9_975, 'silent': 0}


class Counted(int):
    """A stamp that counts how often it is looked at."""

    looks: ClassVar[int] = 0


def _counting(operation: str) -> None:
    original = getattr(int, operation)

    def counted(self: int, other: int) -> object:
        Counted.looks += 1
        return original(self, other)

    setattr(Counted, operation, counted)


for _operation in ('__lt__', '__le__', '__gt__', '__ge__', '__sub__', '__rsub__', '__add__'):
    _counting(_operation)


def looks_per_frame(frames: int, streams: int, *, online: bool) -> float:
    """Count on streams that never match and rule each other out one frame at a time."""
    step, shift = 100, 100 // streams
    stamps = {
        str(number): [Counted(number * shift + step * n) for n in range(frames)]
        for number in range(streams)
    }
    Counted.looks = 0
    if online:
        chooser: OnlineChooser[int] = OnlineChooser(stamps, 1)
        for index in range(frames):
            for name, stream in stamps.items():
                assert chooser.add(name, stream[index], index) is None
    else:
        assert least_valid_set(stamps, slop=1) is None
    return Counted.looks / (frames * streams)


@pytest.mark.parametrize('online', [False, True])
@pytest.mark.parametrize('streams', [2, 4, 8])
def test_the_cost_is_linear_in_the_number_of_frames(streams: int, online: bool) -> None:
    few = looks_per_frame(100, streams, online=online)
    many = looks_per_frame(3200, streams, online=online)
    assert many <= 1.1 * few
    assert many <= 6 + 4 * streams


def test_a_backlog_in_front_of_a_late_stream_costs_no_more_than_its_frames() -> None:
    backlog = [Counted(n) for n in range(5000)]
    chooser: OnlineChooser[int] = OnlineChooser(['early', 'late'], 0)
    Counted.looks = 0
    for stamp in backlog:
        chooser.add('early', stamp, int(stamp))
    assert chooser.add('late', Counted(4999), 0) == {'early': 4999, 'late': 0}
    assert Counted.looks <= 8 * len(backlog)


@pytest.mark.parametrize('streams', [{}, {'a': []}, {'a': [1], 'b': []}])
def test_streams_without_frames_have_no_valid_set_and_no_streams_are_refused(
    streams: Streams,
) -> None:
    if streams:
        assert least_valid_set(streams, slop=1) is None
        assert smallest_spread(streams) is None
    else:
        with pytest.raises(ValueError, match='at least one stream'):
            least_valid_set(streams, slop=1)
        with pytest.raises(ValueError, match='at least one stream'):
            OnlineChooser(streams, 1)


@pytest.mark.parametrize('stamps', [[2, 1], [1, 1], [1, 3, 2]])
def test_recorded_stamps_that_do_not_increase_are_refused(stamps: list[int]) -> None:
    with pytest.raises(ValueError, match="'a' do not increase"):
        least_valid_set({'a': stamps}, slop=1)


def test_a_negative_slop_and_a_stream_named_twice_are_refused() -> None:
    with pytest.raises(ValueError, match='slop'):
        least_valid_set({'a': [1]}, slop=-1)
    with pytest.raises(ValueError, match='slop'):
        OnlineChooser(['a'], -1)
    with pytest.raises(ValueError, match='unique'):
        OnlineChooser(['a', 'a'], 1)
