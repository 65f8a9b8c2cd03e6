"""What the pipeline does to the world around it; handed in, so that a replay can do otherwise."""

from __future__ import annotations

from collections.abc import Callable
import logging
from typing import Protocol

from harness_eval.capture import TopicFacts
from harness_eval.contract import Observation
from harness_eval.ledger import UpdateRecord
from harness_eval.runs import Outcome
from harness_eval.stages import Event

log = logging.getLogger('harness_eval.pipeline')

Waiter = Callable[[Outcome], None]
"""Gets the outcome of the segment that somebody waits for."""


class Effects(Protocol):
    """The world around the pipeline."""

    def ros_now(self) -> int:
        """Nanoseconds on the ROS clock; 0 before the first ``/clock`` of a simulation."""
        ...

    def steady_now(self) -> float:
        """Seconds on a clock that never jumps."""
        ...

    def post(self, call: Callable[[], None]) -> None:
        """Have ``call`` run on the pipeline's thread; may be called from any thread."""
        ...

    def spawn(self, work: Callable[[], None]) -> None:
        """Run ``work``, which may block, on a thread of its own."""
        ...

    def spare(self, work: Callable[[], None]) -> None:
        """Run ``work``, which nobody waits for, on a thread of its own, a moment later."""
        ...

    def facts(self, topic: str) -> TopicFacts:
        """What the graph says about a topic now."""
        ...

    def tap(self, topics: frozenset[str]) -> None:
        """Listen to these topics, and to no others that are not always on."""
        ...

    def event(self, event: Event) -> None:
        """Publish a step."""
        ...

    def outcome(self, outcome: Outcome) -> bool:
        """Publish an outcome; False if nobody can hear it now."""
        ...

    def update(self, record: UpdateRecord) -> bool:
        """Publish a released update or a rejection; False if nobody can hear it now."""
        ...

    def picture(self, outcome: Outcome, observation: Observation | None) -> None:
        """Show the outcome as a picture; called on a spawned thread."""
        ...


class Guarded:
    """Effects of which publishing cannot stop an evaluation half way.

    What is published is on record already: a publisher that raises is one that nobody can hear,
    and it must not keep the next step from being taken.

    Args:
        effects: The world around.
        on_fault: Told of each exception, on the pipeline's thread.
    """

    def __init__(self, effects: Effects, on_fault: Callable[[], None]) -> None:
        self._on_fault = on_fault
        self._effects = effects
        self.ros_now = effects.ros_now
        self.steady_now = effects.steady_now
        self.post = effects.post
        self.spawn = effects.spawn
        self.facts = effects.facts
        self.picture = effects.picture

    def tap(self, topics: frozenset[str]) -> None:
        """Listen to these topics; if that cannot be done, the wait for them ends in an error."""
        self._guard(lambda: self._effects.tap(topics))

    def spawn_spare(self, work: Callable[[], None]) -> None:
        """Run ``work`` a moment later on a thread of its own, if the system gives one."""
        self._guard(lambda: self._effects.spare(work))

    def event(self, event: Event) -> None:
        """Publish a step."""
        self._guard(lambda: self._effects.event(event))

    def outcome(self, outcome: Outcome) -> bool:
        """Publish an outcome; False if nobody can hear it now."""
        return bool(self._guard(lambda: self._effects.outcome(outcome)))

    def update(self, record: UpdateRecord) -> bool:
        """Publish a released update or a rejection; False if nobody can hear it now."""
        return bool(self._guard(lambda: self._effects.update(record)))

    def tell(self, waiter: Waiter | None, outcome: Outcome) -> None:
        """Hand an outcome to whoever waits for it."""
        if waiter is not None:
            self._guard(lambda: waiter(outcome))

    def _guard(self, call: Callable[[], object]) -> object:
        try:
            return call()
        except Exception:
            log.exception('a fault in showing what is on record; the node goes on')
            self._on_fault()
            return None
