"""What the pipeline does to the world around it; handed in, so that a replay can do otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from harness_eval.capture import TopicFacts
from harness_eval.contract import Observation
from harness_eval.ledger import UpdateRecord
from harness_eval.runs import Outcome
from harness_eval.stages import Event

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
