"""``~/readiness``: which tools could be judged if they ended now, latched, on every change.

Threading: timers and messages come on the executor's thread, which alone touches what is known.
Outcomes come on the pipeline's thread and probes on daemon threads; both are put into a queue that
the timer empties. While nothing is listened to, the timer costs a look at the graph a second.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
import logging
import queue
import time
from typing import Any

from rclpy.clock import Clock, ClockType

from harness_eval.calls import JudgeCalls
from harness_eval.config import Config
from harness_eval.config.evaluators import ServiceSettings
from harness_eval.decode import Decoder
from harness_eval.doctor import Remark, stream_remarks, StreamStatistics, tool_remarks
from harness_eval.doctor.remarks import graph_remarks, subject_of
from harness_eval.evaluators.probing import Probed, Prober
from harness_eval.readiness import CAPTURE_ERRORS, Readiness, ToolReadiness, unready
from harness_eval.ros.listening import Listening, servers_of, streams_of
from harness_eval.ros.qos import latched
from harness_eval.runs import Outcome, OutcomeKind
from harness_eval.threads import Threads
from harness_eval_msgs.msg import Readiness as ReadinessMessage
from harness_eval_msgs.msg import ToolReadiness as ToolMessage

log = logging.getLogger('harness_eval.readiness')

LOOK_PERIOD = 1.0
"""Seconds between two looks at the graph and the judges."""
HEAR_PERIOD = 0.1
"""Seconds between two looks at what is heard, while something is."""


class ReadinessPublisher:
    """Finds out and publishes which tools are ready. Made and closed on the executor's thread.

    Args:
        node: The node.
        group: A reentrant callback group.
        config: The configuration.
        topics: Names of the topics as resolved, by their names in the configuration.
        decoder: Reads messages.
        judges: The evaluators behind their calls, by name.
        evaluator: Gives the evaluator of a name.
        active: Whether the node takes completions.
        ledger_fault: Why the ledger cannot be written now; empty if it can.
    """

    def __init__(
        self,
        node: Any,
        group: Any,
        config: Config,
        topics: Mapping[str, str],
        decoder: Decoder,
        judges: Mapping[str, JudgeCalls],
        evaluator: Callable[[str], Any],
        active: Callable[[], bool],
        ledger_fault: Callable[[], str],
    ) -> None:
        self._node = node
        self._config = config
        self._judges = judges
        self._active = active
        self._ledger_fault = ledger_fault
        specs, tools = streams_of(config, decoder, topics)
        self._listening = Listening(node, group, config, specs, decoder)
        self._silent = {name: self._listening.silent(name) for name in specs}
        subjects = {name: subject_of(one) for name, one in self._silent.items()}
        self._known = Readiness(config, tools, subjects, time.monotonic())
        self._prober = Prober(config.evaluation.evaluators, evaluator, self._servers)
        self._glanced: set[str] = set()
        self._services = {
            name: one.service
            for name, one in config.evaluation.evaluators.items()
            if isinstance(one, ServiceSettings) and name in self._known.judges
        }
        self._offered: dict[str, int] = {}
        self._threads = Threads('probe')
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._hearing_since: float | None = None
        self._closed = False
        self.tools: tuple[ToolReadiness, ...] | None = None
        self._publisher = node.create_publisher(ReadinessMessage, '~/readiness', latched(1))
        # On the steady clock: whether a tool is ready is asked while a simulation is paused, too.
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._look_timer = node.create_timer(
            LOOK_PERIOD, self._guarded(self._look), callback_group=group, clock=steady
        )
        self._hear_timer = node.create_timer(
            HEAR_PERIOD, self._guarded(self._hear), callback_group=group, clock=steady
        )
        self._hear_timer.cancel()

    @property
    def unready(self) -> tuple[str, ...]:
        """Each tool that is not ready and why, in a few words."""
        return unready(self.tools or ())

    def outcome(self, outcome: Outcome) -> None:
        """Take what an outcome says about cameras and judges; from any thread."""
        self._inbox.put(lambda: self._take(outcome))

    def look(self) -> None:
        """Look at everything again, since the node was activated; on the executor's thread."""
        self._known.look_again(time.monotonic())
        self._guarded(self._look)()

    def close(self) -> None:
        """Publish no more."""
        self._closed = True
        self._node.destroy_timer(self._look_timer)
        self._node.destroy_timer(self._hear_timer)
        self._listening.close()
        self._node.destroy_publisher(self._publisher)

    def _guarded(self, work: Callable[[], None]) -> Callable[[], None]:
        def call() -> None:
            try:
                if not self._closed:
                    work()
            except Exception:
                log.exception('readiness could not be found out; runs are judged all the same')

        return call

    # --- looking ------------------------------------------------------------------------------

    def _look(self) -> None:
        now = time.monotonic()
        while not self._inbox.empty():
            self._inbox.get()()
        for name, stream in self._known.streams.items():
            facts = self._listening.facts(name)
            remarks = list(graph_remarks(self._silent[name], facts))
            stream.graph(now, (facts.publishers, facts.types), remarks)
        for name, service in self._services.items():
            count = self._node.count_services(self._node.resolve_service_name(service))
            if self._offered.get(name, count) != count:
                self._known.judges[name].retry.soon(now)
            self._offered[name] = count
        for name, judge in self._known.judges.items():
            health = self._judges[name].health()
            judge.counted(
                now,
                health.errors,
                health.verdicts + health.abstained,
                quarantined=health.quarantined,
            )
        if self._active():
            self._begin(now)
        self._publish()

    def _begin(self, now: float) -> None:
        """Hear and probe what is due."""
        if self._hearing_since is None:
            names = self._known.to_hear(now)
            if names:
                for name in names:
                    self._known.streams[name].retry.begun()
                self._hearing_since = now
                self._listening.begin(names)
                self._hear_timer.reset()
        for name in self._known.to_probe(now):
            self._known.judges[name].retry.begun()
            self._threads.run(lambda name=name: self._probe(name))  # type: ignore[misc]

    def _probe(self, name: str) -> None:
        """Probe an evaluator, on a thread of its own."""
        # Nothing of the user's is imported until it is asked, or has failed.
        thorough = name in self._glanced
        found = self._prober.probe(name) if thorough else self._prober.glance(name)
        self._inbox.put(lambda: self._probed(name, found))

    def _probed(self, name: str, found: Probed) -> None:
        self._glanced.add(name)
        self._known.judges[name].probed(time.monotonic(), found)

    def _hear(self) -> None:
        now = time.monotonic()
        if self._hearing_since is None:
            self._hear_timer.cancel()
            return
        active = self._active()
        if active and not self._listening.enough(now - self._hearing_since):
            return
        self._hearing_since = None
        self._hear_timer.cancel()
        self._listening.end()
        if not active:  # what was heard until then says little; activation looks again
            return
        measured = self._listening.statistics()
        capture = self._config.capture
        self._known.heard(
            now,
            {
                name: list(stream_remarks(one, self._listening.facts(name), capture))
                for name, one in measured.items()
            },
            lambda names: self._together([measured[name] for name in names]),
        )
        self._look()

    def _together(self, measured: Sequence[StreamStatistics]) -> Remark | None:
        return next(tool_remarks(measured, self._config.capture), None)

    def _servers(self, service: str) -> Mapping[str, int]:
        """How many servers of each type a service has; safe from any thread."""
        return servers_of(self._node, service)

    # --- what outcomes say --------------------------------------------------------------------

    def _take(self, outcome: Outcome) -> None:
        now = time.monotonic()
        if outcome.observed_from:
            self._known.captured(outcome.tool)
        elif outcome.kind is OutcomeKind.ERROR and outcome.error_kind in CAPTURE_ERRORS:
            self._known.capture_failed(now, outcome.tool, outcome.error_kind, outcome.message)
        if outcome.kind is OutcomeKind.ERROR and outcome.evaluator:
            for name, judge in self._known.judges.items():
                if self._judges[name].evaluator == outcome.evaluator:
                    judge.told(f'{outcome.error_kind}: {outcome.message}')

    # --- telling ------------------------------------------------------------------------------

    def _publish(self) -> None:
        tools = self._known.tools(active=self._active(), ledger_fault=self._ledger_fault())
        if tools == self.tools:
            return
        self.tools = tools
        self._publisher.publish(message_of(tools, self._node.get_clock().now().to_msg()))


def message_of(tools: Sequence[ToolReadiness], stamp: Any) -> Any:
    """The message.

    Args:
        tools: Every tool.
        stamp: Time message of now.
    """
    message = ReadinessMessage(ready=all(tool.ready for tool in tools))
    message.header.stamp = stamp
    message.tools = [
        ToolMessage(
            tool=one.tool,
            ready=one.ready,
            kinds=[reason.kind for reason in one.reasons],
            reasons=[reason.text for reason in one.reasons],
        )
        for one in tools
    ]
    return message
