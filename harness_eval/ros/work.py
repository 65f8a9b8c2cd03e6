"""Everything that an evaluator node has between ``configure`` and ``cleanup``.

Threading: :class:`Work` is made and closed on the executor's thread. As the pipeline's
:class:`~harness_eval.pipeline.Effects` it is called on the pipeline's thread and, for pictures,
on spawned daemon threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
import logging
import os
from pathlib import Path
import threading
import time
from typing import Any, TYPE_CHECKING

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration

from harness_eval.calls import JudgeCalls
from harness_eval.capture import TopicFacts
from harness_eval.cases import CaseStore
from harness_eval.config import Config
from harness_eval.contract import HarnessEvalError, Observation
from harness_eval.decode import Decoder
from harness_eval.evaluators import Judges
from harness_eval.judge_cache import cache_beside, JudgeCache
from harness_eval.judging import Thresholds
from harness_eval.ledger import Ledger, ledger_path, LedgerReader, UpdateRecord
from harness_eval.lines import clean_line, describe
from harness_eval.oracle import build_oracle, OracleCalls
from harness_eval.pipeline import Pipeline
from harness_eval.ros.diagnostics import Condition, diagnostic_array
from harness_eval.ros.entrances import Entrances
from harness_eval.ros.judge_service import JudgeServices
from harness_eval.ros.loop import Loop
from harness_eval.ros.publications import Publications
from harness_eval.ros.taps import message_class, Taps, UnknownTypeError
from harness_eval.runs import Outcome
from harness_eval.stages import Event
from harness_eval.threads import Threads

if TYPE_CHECKING:
    from harness_eval.ros.readiness import ReadinessPublisher

log = logging.getLogger('harness_eval.node')

DIAGNOSTICS_PERIOD = 1.0
"""Seconds between two messages on ``/diagnostics``."""
FAULT_SHOWN = 60.0
"""Seconds that a fault inside the node is shown as a warning; it stays counted."""
WORKERS = 8
"""Threads that write, decode and draw: a burst of a hundred runs must not starve the executor."""
GIVE_WAY = 0.002
"""Seconds that the executor waits for the pipeline at most before it looks for more to do."""
DEACTIVATION_TIMEOUT = 2.0
"""Seconds that the pipeline may take to end the captures that wait."""


class Work:
    """Pipeline, ledger, taps, entrances and publications of a configured node.

    Args:
        node: The lifecycle node.
        group: A reentrant callback group.
        config: The whole configuration.
        ledger_url: Where the record is kept.
        evidence_dir: Where cases are kept.
        active: Whether the node is active.

    Raises:
        HarnessEvalError: The ledger cannot be opened, or an evaluator cannot be made.
    """

    def __init__(
        self,
        node: Any,
        group: Any,
        config: Config,
        ledger_url: str,
        evidence_dir: Path,
        active: Callable[[], bool],
    ) -> None:
        self._node = node
        self._group = group
        self._config = config
        self._active = active
        self._clock = node.get_clock()
        self._fault = ''
        self._faults = 0
        self._faulted_at = 0.0
        self._threads = Threads('evidence', most=WORKERS)
        self._entrances: Entrances | None = None
        self._decoder = Decoder.from_environment(os.environ)
        _require_types(config)
        topics = _topics(config, node.resolve_topic_name)
        self._services = JudgeServices(node, group)
        with ExitStack() as undo:
            undo.callback(self._services.close)
            oracles = _oracles(config)
            self._ledger = Ledger(ledger_url)
            undo.callback(self._ledger.close)
            # After the ledger, whose lock says that this process alone writes here.
            self._cache = cache_beside(ledger_path(ledger_url), config.evaluation.evaluators)
            if self._cache is not None:
                undo.callback(self._cache.close)
            made = _judges(config, self._services, self._cache)
            self._judges = made.all()
            self._reader = LedgerReader(ledger_url)
            self._pipeline = Pipeline(
                config,
                self._ledger,
                CaseStore(
                    evidence_dir,
                    config.evidence.max_bytes,
                    self._decoder,
                    Thresholds.of(config.evaluation),
                ),
                self._judges,
                self._decoder,
                self,
                topics,
                oracles,
            )
            undo.pop_all()
        self._publications = Publications(node)
        self._diagnostics = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self._taps = Taps(
            node, _types(config, topics), _always_on(config, topics), self._frame, group
        )
        self._readiness = self._begin_readiness(topics, made)
        self._loop = Loop(
            self._pipeline.tick,
            self.ros_now,
            self._pipeline.wakeup,
            lambda: self._pipeline.capturing,
            self.note_fault,
        )
        self._timer = node.create_timer(DIAGNOSTICS_PERIOD, self._diagnose, callback_group=group)
        self._jumps = self._clock.create_jump_callback(
            JumpThreshold(
                min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False
            ),
            post_callback=lambda jump: self._loop.post(self._pipeline.clock_jumped),
        )
        self._loop.start()
        self._loop.post(self._pipeline.resume)

    def activate(self) -> None:
        """Open the entrances and publish what waits to be published."""
        self._entrances = Entrances(
            self._node,
            self._group,
            self._config.completions,
            self._decoder,
            self._reader,
            self._pipeline,
            self._loop.post,
            self._active,
            self.note_fault,
        )
        self._publications.open()
        self._taps.want(frozenset())
        if self._readiness is not None:
            self._readiness.look()
        self._loop.post(self._pipeline.publish_pending)
        threading.Thread(target=self._warm_up, name='warm-up', daemon=True).start()

    def deactivate(self) -> None:
        """Close the entrances; runs that wait for frames end in an error, which is published."""
        if self._entrances is None:
            self._publications.shut()
            return
        self._entrances.stop_listening()
        done = threading.Event()

        def end() -> None:
            self._pipeline.end_captures(
                'deactivated', 'the node was deactivated while the run waited for frames'
            )
            done.set()

        self._loop.post(end)
        done.wait(DEACTIVATION_TIMEOUT)
        self._entrances.close()
        self._entrances = None
        self._publications.shut()

    def close(self) -> None:
        """Stop the pipeline and give up the ledger."""
        self.deactivate()
        self._node.destroy_timer(self._timer)
        self._jumps.unregister()
        if not self._loop.stop():
            log.error('the pipeline did not stop in time')
        self._taps.close()
        if self._readiness is not None:
            self._readiness.close()
        for judge in self._judges.values():
            judge.close()
        if self._cache is not None:
            self._cache.close()
        self._services.close()
        self._reader.close()
        self._ledger.close()
        self._publications.close()
        self._node.destroy_publisher(self._diagnostics)

    def give_way(self) -> None:
        """Let the pipeline finish what it is at, for a moment."""
        self._loop.give_way(GIVE_WAY)

    def note_fault(self, error: BaseException) -> None:
        """Show in diagnostics, for a while, that something inside failed; from any thread."""
        self._faults += 1
        self._faulted_at = time.monotonic()
        self._fault = clean_line(describe(error), 200)

    def _frame(self, topic: str, kind: str, data: bytes, receipt: int) -> None:
        self._loop.post_message(
            topic, len(data), lambda: self._pipeline.frame(topic, kind, data, receipt)
        )

    def _begin_readiness(
        self, topics: dict[str, str], judges: Judges
    ) -> ReadinessPublisher | None:
        """Readiness is advice: runs are judged all the same where it cannot be given."""
        try:
            from harness_eval.ros.readiness import ReadinessPublisher

            return ReadinessPublisher(
                self._node,
                self._group,
                self._config,
                topics,
                self._decoder,
                self._judges,
                judges.evaluator,
                self._active,
                lambda: self._pipeline.ledger_fault,
            )
        except Exception:
            log.exception('no readiness is published; is harness_eval_msgs as new as this?')
            return None

    def _diagnose(self) -> None:
        try:
            counts = {
                **self._pipeline.counts,
                'internal faults': self._faults,
                'frames dropped': self._loop.dropped,
            }
            lately = time.monotonic() - self._faulted_at < FAULT_SHOWN
            condition = Condition(
                active=self._active(),
                ledger_fault=self._pipeline.ledger_fault,
                quarantined=tuple(n for n, judge in self._judges.items() if judge.quarantined),
                fault=self._fault if lately else '',
                unreadable='' if self._entrances is None else self._entrances.unreadable,
                counts=counts,
                constant=_constant_scores(self._judges),
                unready=() if self._readiness is None else self._readiness.unready,
            )
            name = self._node.get_fully_qualified_name()
            stamp = self._clock.now().to_msg()
            self._diagnostics.publish(diagnostic_array(name, condition, stamp))
        except Exception:
            log.exception('no diagnostics could be published')

    def _warm_up(self) -> None:
        """Import what the first judgement needs, so that it is as quick as the others."""
        try:
            import cv2  # noqa: F401

            types = {source.type for source in self._config.completions if source.action is None}
            types.update(view.message_type for view in self._config.capture.views.values())
            for name in types:
                self._decoder.typestore_for(name)
        except Exception as error:  # the first judgement will say it better
            log.debug('warm-up: %s', describe(error))

    # --- effects of the pipeline --------------------------------------------------------------

    def ros_now(self) -> int:
        """Nanoseconds on the ROS clock."""
        return int(self._clock.now().nanoseconds)

    def steady_now(self) -> float:
        """Seconds on a clock that never jumps."""
        return time.monotonic()

    def post(self, call: Callable[[], None]) -> None:
        """Have ``call`` run on the pipeline's thread."""
        self._loop.post(call)

    def spawn(self, work: Callable[[], None]) -> None:
        """Run ``work`` on a daemon thread that does nothing else meanwhile."""

        def guarded() -> None:
            try:
                work()
            except Exception as error:
                log.exception('a fault inside harness_eval; the node goes on')
                self.note_fault(error)

        self._threads.run(guarded)

    def facts(self, topic: str) -> TopicFacts:
        """What the graph says about a topic now."""
        return self._taps.facts(topic)

    def tap(self, topics: frozenset[str]) -> None:
        """Listen to these topics."""
        self._taps.want(topics)

    def event(self, event: Event) -> None:
        """Publish a step, and send it to the goals that wait."""
        self._publications.event(event)
        entrances = self._entrances
        if entrances is not None:
            entrances.event(event)

    def outcome(self, outcome: Outcome) -> bool:
        """Publish an outcome, and its verdict if it has one."""
        if self._readiness is not None:
            self._readiness.outcome(outcome)
        return self._publications.outcome(outcome)

    def update(self, record: UpdateRecord) -> bool:
        """Publish a released update or a rejection."""
        return self._publications.update(record, self.ros_now())

    def picture(self, outcome: Outcome, observation: Observation | None) -> None:
        """Publish the evidence as a picture, when somebody looks."""
        self._publications.picture(outcome, observation)


def _judges(config: Config, services: JudgeServices, cache: JudgeCache | None) -> Judges:
    return Judges(config.evaluation.evaluators, Thresholds.of(config.evaluation), services, cache)


def _constant_scores(judges: Mapping[str, JudgeCalls]) -> dict[str, float]:
    scores = {name: judge.constant_score for name, judge in judges.items()}
    return {name: score for name, score in scores.items() if score is not None}


def _oracles(config: Config) -> dict[str, OracleCalls]:
    return {
        tool: OracleCalls(
            build_oracle(settings.oracle),
            settings.oracle.timeout,
            decides=settings.oracle.decides,
        )
        for tool, settings in config.evaluation.tools.items()
        if settings.oracle is not None
    }


def _require_types(config: Config) -> None:
    """Make sure that completions can be heard.

    Raises:
        HarnessEvalError: A message type of ``completions`` is not installed.
    """
    for source in config.completions:
        if source.action is None:
            try:
                message_class(source.type)
            except UnknownTypeError as error:
                raise HarnessEvalError(f'completions: {source.topic}: {error}') from error


def _topics(config: Config, resolve: Callable[[str], str]) -> dict[str, str]:
    names = [view.topic for view in config.capture.views.values()]
    names += [v.camera_info for v in config.capture.views.values() if v.camera_info is not None]
    names += [state.topic for state in config.capture.states.values()]
    return {name: resolve(name) for name in names}


def _types(config: Config, topics: dict[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for view in config.capture.views.values():
        found[topics[view.topic]] = view.message_type
        if view.camera_info is not None:
            found[topics[view.camera_info]] = 'sensor_msgs/msg/CameraInfo'
    for state in config.capture.states.values():
        if state.type is not None:
            found.setdefault(topics[state.topic], state.type)
    return found


def _always_on(config: Config, topics: dict[str, str]) -> set[str]:
    views = {topics[v.topic] for v in config.capture.views.values() if v.always_on}
    return views | {topics[s.topic] for s in config.capture.states.values() if s.always_on}
