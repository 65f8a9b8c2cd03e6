"""Merging begins a part when its time has come, and gives what sorting all would give."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import itemgetter

from hypothesis import given
from hypothesis import strategies as st

from harness_eval.replay.bags.order import merged

Item = tuple[int, int]
"""Key, and number of the part."""

parts_of_keys = st.lists(
    st.tuples(st.integers(0, 20), st.lists(st.integers(0, 20))).map(
        lambda drawn: (drawn[0], sorted(drawn[0] + key for key in drawn[1]))
    ),
    max_size=8,
)


@given(parts_of_keys)
def test_parts_are_merged_as_sorting_would(parts: list[tuple[int, list[int]]]) -> None:
    items = [[(key, number) for key in keys] for number, (_, keys) in enumerate(parts)]
    begun = [(start, partial(iter, items[n])) for n, (start, _) in enumerate(parts)]
    expected = sorted((item for part in items for item in part), key=itemgetter(0))
    assert list(merged(begun, itemgetter(0))) == expected


def test_no_part_begins_before_its_time() -> None:
    begun: list[int] = []

    def part(start: int) -> Iterator[Item]:
        begun.append(start)
        yield from [(start, start), (start + 15, start)]

    starts = [(start, partial(part, start)) for start in (0, 10, 20, 30)]
    seen = [(key, tuple(begun)) for key, _ in merged(starts, itemgetter(0))]
    assert seen == [
        (0, (0,)),
        (10, (0, 10)),
        (15, (0, 10)),
        (20, (0, 10, 20)),
        (25, (0, 10, 20)),
        (30, (0, 10, 20, 30)),
        (35, (0, 10, 20, 30)),
        (45, (0, 10, 20, 30)),
    ]
