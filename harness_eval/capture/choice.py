"""Which frames form the observation: the componentwise least valid set, by stamps alone.

A set takes one stamp of every stream; it is valid when its latest stamp lies at most ``slop``
after its earliest. Valid sets are closed under the elementwise minimum, so that there is one
least valid set, whose every stamp is the earliest that any valid set has in that stream.

Both searches below rest on one observation: a valid set takes from every stream its front (the
first stamp not yet ruled out) or something later, hence its latest stamp is at least the latest
front, and a front that lies more than ``slop`` before that can be in no valid set. Ruling out
such fronts until none is left either exhausts a stream (there is no valid set) or leaves fronts
that are valid themselves, and nothing that was ruled out belonged to a valid set, so that they
are the least one. The order of ruling out does not matter; hence choosing online, in whatever
order the streams' frames interleave, gives the same set as choosing afterwards.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
import heapq
from itertools import pairwise
from typing import Generic, TypeVar

T = TypeVar('T')


def least_valid_set(stamps: Mapping[str, Sequence[int]], *, slop: int) -> dict[str, int] | None:
    """Find the componentwise least valid set of recorded streams.

    The cost is linear in the number of frames (times the number of streams at worst).

    Args:
        stamps: Nanoseconds of every stream's frames, strictly increasing.
        slop: Widest spread of a valid set in nanoseconds; the bound itself is allowed.

    Returns:
        The index of the chosen frame of every stream, or None when no valid set exists.

    Raises:
        ValueError: No streams, a negative slop, or stamps that do not increase.
    """
    _check(stamps, slop)
    for name, stream in stamps.items():
        if any(later <= earlier for earlier, later in pairwise(stream)):
            raise ValueError(f"stamps of stream '{name}' do not increase strictly")
        if not stream:
            return None
    index = dict.fromkeys(stamps, 0)
    latest = max(stream[0] for stream in stamps.values())
    moved = True
    while moved:
        moved = False
        for name, stream in stamps.items():
            if stream[index[name]] >= latest - slop:
                continue
            while stream[index[name]] < latest - slop:
                index[name] += 1
                if index[name] == len(stream):
                    return None
            latest = max(latest, stream[index[name]])
            moved = True
    return index


def smallest_spread(stamps: Mapping[str, Sequence[int]]) -> int | None:
    """Find the smallest spread that any set of recorded streams has.

    Args:
        stamps: Nanoseconds of every stream's frames, increasing.

    Returns:
        Nanoseconds between the earliest and the latest stamp of the narrowest set, or None when
        a stream is empty.

    Raises:
        ValueError: No streams.
    """
    _check(stamps, 0)
    streams = list(stamps.values())
    if not all(streams):
        return None
    fronts = [(stream[0], number, 0) for number, stream in enumerate(streams)]
    heapq.heapify(fronts)
    latest = max(stamp for stamp, _, _ in fronts)
    smallest = latest - fronts[0][0]
    while True:
        # Only a later stamp in the stream of the earliest one can make the set narrower.
        _, number, position = fronts[0]
        if position + 1 == len(streams[number]):
            return smallest
        stamp = streams[number][position + 1]
        latest = max(latest, stamp)
        heapq.heapreplace(fronts, (stamp, number, position + 1))
        smallest = min(smallest, latest - fronts[0][0])


class OnlineChooser(Generic[T]):
    """Finds the least valid set while frames come in.

    A frame that can be in no valid set any more is let go at once; what is kept are the frames
    that a stream without any could still match (see :meth:`advance`). A frame costs one pass
    over the streams at most, amortised, whatever came before it.

    Args:
        names: The streams; every set takes one frame of each.
        slop: Widest spread of a valid set in nanoseconds; the bound itself is allowed.

    Raises:
        ValueError: No streams, a name given twice, or a negative slop.
    """

    def __init__(self, names: Iterable[str], slop: int) -> None:
        streams = list(names)
        if len(set(streams)) != len(streams):
            raise ValueError(f'stream names must be unique, not {streams}')
        _check(streams, slop)
        self._slop = slop
        self._pending: dict[str, deque[tuple[int, T]]] = {name: deque() for name in streams}
        self._newest: dict[str, int | None] = dict.fromkeys(streams)
        self._empty = len(streams)
        self._bound: int | None = None  # the latest stamp of every valid set is at least this
        self._chosen: dict[str, T] | None = None

    @property
    def chosen(self) -> dict[str, T] | None:
        """The payload of every chosen frame by stream, or None as long as there is no set."""
        return self._chosen

    @property
    def pending(self) -> int:
        """How many frames are kept."""
        return sum(len(queue) for queue in self._pending.values())

    def add(self, name: str, stamp: int, payload: T) -> dict[str, T] | None:
        """Take one more frame; one that is not newer than the last of its stream is ignored.

        Args:
            name: The stream.
            stamp: Nanoseconds.
            payload: What to give back if the frame is chosen.

        Returns:
            The payloads of the least valid set by stream once it is known, None before.

        Raises:
            KeyError: The stream is not one of ``names``.
        """
        queue = self._pending[name]
        newest = self._newest[name]
        if self._chosen is not None or (newest is not None and stamp <= newest):
            return self._chosen
        self._newest[name] = stamp
        if queue:  # the fronts stay as they are, and with them everything that follows from them
            queue.append((stamp, payload))
            return None
        if self._bound is not None and stamp < self._bound - self._slop:
            return None
        queue.append((stamp, payload))
        self._empty -= 1
        self._raise_bound(stamp)
        if not self._empty:
            self._chosen = {key: frames[0][1] for key, frames in self._pending.items()}
            self._pending = {key: deque() for key in self._pending}
        return self._chosen

    def advance(self, floor: int) -> None:
        """Let go of what only a stamp before ``floor`` could still match.

        Args:
            floor: Nanoseconds; the caller promises that no frame before it will be added.
        """
        if self._empty and self._chosen is None:
            self._raise_bound(floor)

    def _raise_bound(self, bound: int) -> None:
        """Rule out fronts that lie too far before the bound, until none is left."""
        while self._bound is None or bound > self._bound:
            self._bound = bound
            for queue in self._pending.values():
                if not queue or queue[0][0] >= self._bound - self._slop:
                    continue
                while queue and queue[0][0] < self._bound - self._slop:
                    queue.popleft()
                if queue:
                    bound = max(bound, queue[0][0])
                else:
                    self._empty += 1


def _check(streams: Iterable[str], slop: int) -> None:
    if not any(True for _ in streams):
        raise ValueError('an observation needs at least one stream')
    if slop < 0:
        raise ValueError(f'slop must not be negative, not {slop}')
