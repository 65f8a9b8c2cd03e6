"""The world around a pipeline that is driven by the times of a bag, and not by any clock.

Threading: everything of the pipeline happens on the thread that calls here. What the pipeline
spawns runs on that thread too, one after the other; only judges have threads of their own, as
live, and post their answers to a queue that :meth:`BagWorld.settle` waits on. Nothing here reads
a clock of the machine but to measure how long judging took.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import contextmanager
import queue
import time
from typing import Any, TYPE_CHECKING

from harness_eval.capture import TopicFacts
from harness_eval.contract import Observation
from harness_eval.ledger import Ledger, UpdateRecord
from harness_eval.runs import Outcome
from harness_eval.stages import Event, Stage
from harness_eval.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

JUDGE_SILENT = 24 * 3600.0
"""Seconds without any answer after which a judge counts as lost. Each call has its own deadline,
of an hour at most, so this bounds a fault of ours and no judge."""


class BagWorld:
    """Effects for a pipeline that lives in the time of a bag.

    Args:
        facts: What a bag says about each topic that it holds, by name.

    Attributes:
        topics: Topics that runs wait for now.
        rejection: Why the last completion was not taken; empty if it was.
    """

    def __init__(self, facts: Mapping[str, TopicFacts] | None = None) -> None:
        self._facts = dict(facts or {})
        self._now = 0
        self._steady = 0.0
        self._posted: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._spawned: deque[Callable[[], None]] = deque()
        self._started: dict[tuple[str, int], float] = {}
        self._seconds: dict[tuple[str, int], float] = {}
        self.topics: frozenset[str] = frozenset()
        self.rejection = ''

    # --- time, which whoever drives the replay sets ---------------------------------------------

    def advance(self, now: int) -> None:
        """Let it be a time.

        Args:
            now: Nanoseconds of the bag's receive times. When they go back, the steady clock
                stands still.
        """
        if self._now and now > self._now:
            self._steady += (now - self._now) / SECOND
        self._now = now

    def settle(self, judging: Callable[[], bool]) -> None:
        """Run all that was posted and spawned, and wait for judges.

        Args:
            judging: Whether the pipeline waits for something other than frames.
        """
        while True:
            try:
                self._posted.get_nowait()()
            except queue.Empty:
                if self._spawned:
                    self._spawned.popleft()()
                elif judging():
                    self._posted.get(timeout=JUDGE_SILENT)()
                else:
                    return

    def take_seconds(self, run_id: str, segment: int) -> float:
        """Wall-clock seconds that the judge of a segment took; NaN if none was asked."""
        return self._seconds.pop((run_id, segment), float('nan'))

    # --- effects of the pipeline ----------------------------------------------------------------

    def ros_now(self) -> int:
        """Nanoseconds of the bag's time."""
        return self._now

    def steady_now(self) -> float:
        """Seconds of the bag's time since the beginning, without jumps."""
        return self._steady

    def post(self, call: Callable[[], None]) -> None:
        """Have ``call`` run on the thread of the replay; may be called from any thread."""
        self._posted.put(call)

    def spawn(self, work: Callable[[], None]) -> None:
        """Have ``work`` run on the thread of the replay too."""
        self._spawned.append(work)

    def spare(self, work: Callable[[], None]) -> None:
        """Have ``work`` run on the thread of the replay too."""
        self.spawn(work)

    def facts(self, topic: str) -> TopicFacts:
        """What the bag says about a topic."""
        return self._facts.get(topic, TopicFacts())

    def tap(self, topics: frozenset[str]) -> None:
        """Note which topics have to be read."""
        self.topics = topics

    def event(self, event: Event) -> None:
        """Note why a completion is not taken, and measure the judge."""
        key = event.run_id, event.segment
        if event.stage is Stage.REJECTED:
            self.rejection = event.detail
        elif event.stage is Stage.STARTED:
            self._started[key] = time.perf_counter()
        elif event.stage is Stage.COMPLETED and key in self._started:
            self._seconds[key] = time.perf_counter() - self._started.pop(key)

    def outcome(self, outcome: Outcome) -> bool:
        """Whoever waits is told, so that nothing has to be published."""
        return True

    def update(self, record: UpdateRecord) -> bool:
        """No graph is kept in a replay."""
        return True

    def picture(self, outcome: Outcome, observation: Observation | None) -> None:
        """Nobody looks."""


class BagLedger(Ledger):
    """A record whose wall clock is the time of the bag, so that no rule depends on the machine's.

    Args:
        url: SQLAlchemy URL of a file.
        world: Says what time it is.
    """

    def __init__(self, url: str, world: BagWorld) -> None:
        self._world = world
        super().__init__(url)

    def wall_now(self) -> float:
        """Seconds of the bag's time."""
        return self._world.ros_now() / SECOND

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[Any]:
        """A transaction; none has to outlive a power cut here."""
        with super().transaction(durable=False) as connection:
            yield connection
