"""What the pipeline does to the world, in a node.

Threading: called on the pipeline's thread; calls are posted from any, and pictures are drawn on
spawned ones. Entrances are opened and closed on the executor's thread meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
import logging
import time
from typing import TYPE_CHECKING

from rclpy.clock import Clock

from harness_eval.capture import TopicFacts
from harness_eval.contract import Observation
from harness_eval.ledger import UpdateRecord
from harness_eval.ros.log_lines import outcome_line
from harness_eval.ros.publications import Publications
from harness_eval.ros.taps import Taps
from harness_eval.runs import Outcome
from harness_eval.stages import Event
from harness_eval.threads import Threads

if TYPE_CHECKING:
    from harness_eval.ros.entrances import Entrances
    from harness_eval.ros.readiness import ReadinessPublisher

log = logging.getLogger('harness_eval.node')

REST = 0.002
"""Seconds that whoever hears an outcome is ahead of what the node still has to do for it. On a
machine with few processors the notes and the case would otherwise keep them from hearing it."""
WORKERS = 8
"""Threads that write, decode and draw: a burst of a hundred runs must not starve the executor."""


class NodeEffects:
    """The :class:`~harness_eval.pipeline.Effects` of a node.

    Args:
        clock: The clock of the node.
        post: Has a call run on the pipeline's thread.
        let_go: Keeps the executor from giving way any longer.
        taps: Listens to what runs wait for.
        publications: The publishers.
        on_fault: Told of each exception of spawned work, on its thread.

    Attributes:
        entrances: Where goals wait for steps, while the node is active.
        readiness: Learns from outcomes, if readiness is published.
    """

    def __init__(
        self,
        clock: Clock,
        post: Callable[[Callable[[], None]], None],
        let_go: Callable[[], None],
        taps: Taps,
        publications: Publications,
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self._clock = clock
        self._post = post
        self._let_go = let_go
        self._taps = taps
        self._publications = publications
        self._on_fault = on_fault
        self._threads = Threads('evidence', most=WORKERS)
        self.entrances: Entrances | None = None
        self.readiness: ReadinessPublisher | None = None

    def ros_now(self) -> int:
        """Nanoseconds on the ROS clock."""
        return int(self._clock.now().nanoseconds)

    def steady_now(self) -> float:
        """Seconds on a clock that never jumps."""
        return time.monotonic()

    def post(self, call: Callable[[], None]) -> None:
        """Have ``call`` run on the pipeline's thread."""
        self._post(call)

    def spawn(self, work: Callable[[], None]) -> None:
        """Run ``work`` on a daemon thread that does nothing else meanwhile."""

        def guarded() -> None:
            try:
                work()
            except Exception as error:
                log.exception('a fault inside harness_eval; the node goes on')
                self._on_fault(error)

        self._threads.run(guarded)

    def spare(self, work: Callable[[], None]) -> None:
        """Run ``work``, which nobody waits for, on a daemon thread, after :data:`REST`."""

        def rested() -> None:
            time.sleep(REST)
            work()

        self.spawn(rested)

    def facts(self, topic: str) -> TopicFacts:
        """What the graph says about a topic now."""
        return self._taps.facts(topic)

    def tap(self, topics: frozenset[str]) -> None:
        """Listen to these topics."""
        if self._taps.want(topics):
            self._let_go()

    def event(self, event: Event) -> None:
        """Publish a step, and send it to the goals that wait."""
        self._publications.event(event)
        entrances = self.entrances
        if entrances is not None:
            entrances.event(event)

    def outcome(self, outcome: Outcome) -> bool:
        """Publish an outcome, and its verdict if it has one."""
        if self.readiness is not None:
            self.readiness.outcome(outcome)
        published = self._publications.outcome(outcome)
        if published:
            self.spare(lambda: log.info('%s', outcome_line(outcome)))
        return published

    def update(self, record: UpdateRecord) -> bool:
        """Publish a released update or a rejection."""
        return self._publications.update(record, self.ros_now())

    def picture(self, outcome: Outcome, observation: Observation | None) -> None:
        """Publish the evidence as a picture, when somebody looks."""
        self._publications.picture(outcome, observation)
