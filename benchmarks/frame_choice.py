"""Cost of choosing frames, in microseconds per frame, from two views to eight.

Streams at 30 Hz with phases of their own, jitter of the stamps and lost frames, in the order in
which they arrive; after each set the next one is looked for. The default ``slop`` is used. The
compared side is the search of ``message_filters.ApproximateTimeSynchronizer``: that class itself
where it is installed, else its search written anew here (see :class:`PairwiseSearch`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
import importlib
import itertools
import random
import time
from types import SimpleNamespace
from typing import Any

from benchmarks.effort import Effort
from benchmarks.rows import Row, row
from harness_eval.capture.choice import OnlineChooser

PERIOD = 33_333_333
JITTER = 2_000_000
"""Nanoseconds of the stamps, either way."""
LOST = 0.05
"""Share of the frames."""
SLOP = 50_000_000
QUEUE = 10
"""Frames that the compared side keeps of each view, as examples of it do."""

Frame = tuple[int, int]
"""Number of the view and stamp in nanoseconds."""


def measure(effort: Effort) -> list[Row]:
    """Measure both sides in turns, for each number of views."""
    compared, name = _compared()
    rows = []
    for views in effort.choice_views:
        ours: list[float] = []
        theirs: list[float] = []
        for repetition in range(effort.repetitions):
            frames = arrivals(views, effort.choice_frames, random.Random(repetition))
            ours.append(_microseconds(choose_online, views, frames))
            theirs.append(_microseconds(compared, views, frames))
        rows.append(
            row(
                f'frame choice, {views} views',
                'us per frame',
                ours,
                repetitions=effort.repetitions,
                reference=theirs,
                reference_name=name,
            )
        )
    return rows


def arrivals(views: int, frames: int, chance: random.Random) -> list[Frame]:
    """Frames of so many views in the order of their stamps, some of them lost."""
    found = []
    for view in range(views):
        phase = chance.randrange(PERIOD)
        for number in range(frames):
            stamp = phase + number * PERIOD + chance.randint(-JITTER, JITTER)
            if chance.random() >= LOST:
                found.append((stamp + PERIOD, view))
    return [(view, stamp) for stamp, view in sorted(found)]


def choose_online(views: int, frames: Sequence[Frame]) -> int:
    """Choose as a capture does, again and again; return how many sets there were."""
    names = [f'view_{view}' for view in range(views)]
    sets = 0
    chooser: OnlineChooser[int] = OnlineChooser(names, SLOP)
    for view, stamp in frames:
        if chooser.add(names[view], stamp, stamp) is not None:
            sets += 1
            chooser = OnlineChooser(names, SLOP)
    return sets


class PairwiseSearch:
    """The search of ``ApproximateTimeSynchronizer``: the product of all frames near the newest.

    For a new frame it takes from every other view the kept frames within ``slop`` of it, nearest
    first, and tries every combination until one is narrow enough, which is then removed.
    """

    def __init__(self, views: int) -> None:
        self._queues: list[dict[int, int]] = [{} for _ in range(views)]

    def add(self, view: int, stamp: int) -> bool:
        """Take a frame; say whether it completed a set."""
        own = self._queues[view]
        own[stamp] = stamp
        while len(own) > QUEUE:
            del own[min(own)]
        near = []
        for number, queue in enumerate(self._queues):
            if number == view:
                near.append([stamp])
                continue
            close = sorted(
                (s for s in queue if abs(s - stamp) <= SLOP), key=lambda s: abs(s - stamp)
            )
            if not close:
                return False
            near.append(close)
        for stamps in itertools.product(*near):
            if max(stamps) - min(stamps) <= SLOP:
                for queue, chosen in zip(self._queues, stamps, strict=True):
                    del queue[chosen]
                return True
        return False


def choose_pairwise(views: int, frames: Sequence[Frame]) -> int:
    """Choose with :class:`PairwiseSearch`; return how many sets there were."""
    search = PairwiseSearch(views)
    return sum(search.add(view, stamp) for view, stamp in frames)


def _compared() -> tuple[Callable[[int, Sequence[Frame]], int], str]:
    try:
        filters: Any = importlib.import_module('message_filters')
    except ImportError:
        return choose_pairwise, 'search of message_filters, written anew'

    def choose(views: int, frames: Sequence[Frame]) -> int:
        inputs = [filters.SimpleFilter() for _ in range(views)]
        synchronizer = filters.ApproximateTimeSynchronizer(inputs, QUEUE, SLOP / 1e9)
        sets = 0

        def complete(*_messages: Any) -> None:
            nonlocal sets
            sets += 1

        synchronizer.registerCallback(complete)
        for view, stamp in frames:
            synchronizer.add(_message(stamp), synchronizer.queues[view], view)
        return sets

    return choose, 'message_filters.ApproximateTimeSynchronizer'


def _message(stamp: int) -> Any:
    from rclpy.time import Time

    return SimpleNamespace(header=SimpleNamespace(stamp=Time(nanoseconds=stamp)))


def _microseconds(
    choose: Callable[[int, Sequence[Frame]], int], views: int, frames: Sequence[Frame]
) -> float:
    began = time.perf_counter()
    sets = choose(views, frames)
    taken = time.perf_counter() - began
    if not sets:
        raise RuntimeError(f'no set among {len(frames)} frames of {views} views')
    return taken / len(frames) * 1e6
