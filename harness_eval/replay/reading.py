"""Reads as much of a bag as its runs need, and lets time pass for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
import math

from harness_eval.replay.bags import Bag
from harness_eval.replay.stage import Stage
from harness_eval.runs import Completion, completion_problem, Outcome
from harness_eval.times import SECOND

TICK = 20_000_000
"""Nanoseconds between two looks at the clock while a run waits for frames, as in the live node."""


_JUMP = 250_000_000
"""Nanoseconds by which receipts of one topic must go back, as written, to show that the clock went
back: several threads that pack messages may overtake each other."""
_BEFORE = SECOND
"""Nanoseconds before a run's end that show it too: what was recorded first may end in its window.
"""


@dataclass(frozen=True)
class Ended:
    """What a completion came to.

    Attributes:
        number: Its place among the completions.
        told: The outcome, once it is there.
        refusal: Why it was not taken; empty if it was.
    """

    number: int
    told: list[Outcome]
    refusal: str

    @property
    def outcome(self) -> Outcome:
        """The outcome."""
        return self.told[0]


class Reading:
    """Hands the messages of a bag to a pipeline, in order and no more than it waits for.

    Deadlines end waits at the nanosecond after them, and whatever came until then counts. Where a
    bag was recorded twice over one time, no wait for frames of that time comes to a verdict.

    Args:
        stage: The pipeline and the world around it.
        bag: The bag.
    """

    def __init__(self, stage: Stage, bag: Bag) -> None:
        self._world = stage.world
        self._pipeline = stage.pipeline
        self._settle = stage.settle
        self._required = stage.required
        self._bag = bag
        self._ticked = 0

    def play(self, completions: Sequence[tuple[Completion, int]]) -> Iterator[Ended]:
        """What becomes of each completion, in order, as soon as no earlier one is open."""
        waiting: deque[Ended] = deque()
        seen: set[tuple[str, int, str]] = set()
        ordered = [
            (number, completion, receipt)
            for number, (completion, receipt) in enumerate(completions)
            if completion.tool in self._required
        ]
        following = [receipt for _, _, receipt in ordered[1:]]
        for (number, completion, receipt), until in zip_longest(ordered, following):
            told = self._take(completion, receipt)
            identity = completion.run_id, completion.segment, completion.fingerprint
            if identity not in seen or completion_problem(completion) is not None:
                waiting.append(Ended(number, told, self._world.rejection))
            seen.add(identity)
            self._read(receipt, until)
            while waiting and waiting[0].told:
                yield waiting.popleft()
        if waiting:  # every wait has a deadline, so this is a fault of ours and no result
            raise RuntimeError(f'{len(waiting)} completions came to nothing')

    def _take(self, completion: Completion, receipt: int) -> list[Outcome]:
        told: list[Outcome] = []
        self._world.rejection = ''
        self._world.advance(receipt)
        self._pipeline.completion(completion, receipt, told.append)
        self._settle()
        return told

    def _read(self, start: int, until: int | None) -> None:
        """Hand in messages until nothing waits, or until the next completion comes."""
        if self._pipeline.capturing:
            last = self._last_deadline() + 1
            back = self._bag.goes_back(self._world.topics, start - _BEFORE, last)
            if back > _JUMP:
                # Whose frames these are cannot be told: a later loop may have shown others.
                self._tick(start - back)
                return
            stop = last if until is None else min(last, until)
            for message in self._bag.messages(self._world.topics, start, stop):
                self._pass(message.receipt)
                if not self._pipeline.capturing:
                    return
                self._pipeline.frame(message.topic, message.type, message.data, message.receipt)
                self._settle()
                if not self._pipeline.capturing:
                    return
        if self._pipeline.capturing:
            self._pass(self._last_deadline() + 1 if until is None else until)

    def _pass(self, now: int) -> None:
        """Let time go on, and look at each deadline that it goes past, in order."""
        while self._pipeline.capturing and (due := self._first_deadline()) < now:
            self._tick(max(due, self._world.ros_now()) + 1)
        if now > self._world.ros_now():
            self._world.advance(now)
        if self._pipeline.capturing and now >= self._ticked + TICK:
            self._tick(now)

    def _tick(self, now: int) -> None:
        self._ticked = now
        self._world.advance(now)
        self._pipeline.tick()
        self._settle()

    def _first_deadline(self) -> int:
        return min(self._deadlines())

    def _last_deadline(self) -> int:
        return max(self._deadlines())

    def _deadlines(self) -> list[int]:
        """When waits for frames end, in nanoseconds of the bag's time."""
        now, steady = self._world.ros_now(), self._world.steady_now()
        return [
            min(ros, now + math.ceil((wall - steady) * SECOND))
            for ros, wall in self._pipeline.capture_deadlines
        ]
