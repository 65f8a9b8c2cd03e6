"""Merging what is in order by itself, beginning each part only when its time has come. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
import heapq
import math
from typing import TypeVar

T = TypeVar('T')

_NEVER = math.inf


def merged(
    parts: Iterable[tuple[int, Callable[[], Iterator[T]]]], key: Callable[[T], int]
) -> Iterator[T]:
    """Merge parts, with no more of them under way than cover one time.

    Args:
        parts: For each its least key and what begins it; each gives its items by rising key.
        key: The key of an item.

    Yields:
        All items by rising key; of equal ones, those of the part that was named first.
    """
    waiting = sorted(
        ((start, number, begin) for number, (start, begin) in enumerate(parts)),
        key=lambda part: part[:2],
        reverse=True,
    )
    active: list[tuple[int, int, T, Iterator[T]]] = []
    while waiting or active:
        while waiting and (not active or waiting[-1][0] <= active[0][0]):
            _, number, begin = waiting.pop()
            items = begin()
            for item in items:
                heapq.heappush(active, (key(item), number, item, items))
                break
        if not active:
            continue
        _, number, item, items = heapq.heappop(active)
        yield item
        # As long as nobody else's turn can have come, without asking the heap.
        turn = min(active[0][0] if active else _NEVER, waiting[-1][0] if waiting else _NEVER)
        for item in items:
            if (at := key(item)) >= turn:
                heapq.heappush(active, (at, number, item, items))
                break
            yield item
