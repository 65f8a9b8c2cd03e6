"""Everything that an evaluator node has between ``configure`` and ``cleanup``.

Threading: :class:`Work` is made, opened, shut and closed on the executor's thread. The pipeline in
it is called on its own thread alone (:mod:`harness_eval.ros.loop`), apart from what it says of
itself to diagnostics and readiness.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
import logging
import os
from pathlib import Path
import threading
from typing import Any, TYPE_CHECKING

from rclpy.clock import JumpThreshold
from rclpy.duration import Duration

from harness_eval.cases import CaseStore
from harness_eval.config import Config
from harness_eval.decode import Decoder
from harness_eval.evaluators import Judges
from harness_eval.judge_cache import cache_beside
from harness_eval.judging import Thresholds
from harness_eval.ledger import Ledger, ledger_path, LedgerReader
from harness_eval.lines import describe
from harness_eval.message_types import TOOL_COMPLETION
from harness_eval.oracle import build_oracle, OracleCalls
from harness_eval.outcome_messages import OUTCOME_TYPE
from harness_eval.pipeline import Pipeline
from harness_eval.requests import resolved_topics
from harness_eval.ros.diagnostics import Condition, Diagnostics
from harness_eval.ros.effects import NodeEffects
from harness_eval.ros.entrances import Entrances
from harness_eval.ros.faults import Faults
from harness_eval.ros.judge_service import JudgeServices
from harness_eval.ros.loop import Loop
from harness_eval.ros.publications import Publications
from harness_eval.ros.taps import Taps
from harness_eval.ros.topics import always_on, configured_types, require_types

if TYPE_CHECKING:
    from harness_eval.ros.readiness import ReadinessPublisher

log = logging.getLogger('harness_eval.node')

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
        self._faults = Faults()
        self._decoder = Decoder.from_environment(os.environ)
        require_types(config)
        topics = resolved_topics(config, node.resolve_topic_name)
        types = configured_types(config, topics)
        self._stream_types = frozenset(types.values())
        thresholds = Thresholds.of(config.evaluation)
        # What is made last is closed first, here too if something cannot be made.
        with ExitStack() as made:
            services = JudgeServices(node, group)
            made.callback(services.close)
            oracles = _oracles(config)
            ledger = Ledger(ledger_url)
            made.callback(ledger.close)
            # After the ledger, whose lock says that this process alone writes here.
            cache = cache_beside(ledger_path(ledger_url), config.evaluation.evaluators)
            if cache is not None:
                made.callback(cache.close)
            judges = Judges(config.evaluation.evaluators, thresholds, services, cache)
            self._judges = judges.all()
            for judge in self._judges.values():
                made.callback(judge.close)
            self._reader = LedgerReader(ledger_url)
            made.callback(self._reader.close)
            self._publications = Publications(node)
            made.callback(self._publications.close)
            self._taps = Taps(
                node,
                types,
                always_on(config, topics),
                self._frame,
                group,
            )
            made.callback(self._taps.close)
            self._effects = NodeEffects(
                node.get_clock(),
                lambda call: self._loop.post(call),  # which is made of the pipeline
                lambda: self._loop.let_go(),
                self._taps,
                self._publications,
                self._faults.note,
            )
            self._pipeline = Pipeline(
                config,
                ledger,
                CaseStore(evidence_dir, config.evidence.max_bytes, self._decoder, thresholds),
                self._judges,
                self._decoder,
                self._effects,
                topics,
                oracles,
            )
            self._loop = Loop(
                self._pipeline.tick,
                self._effects.ros_now,
                self._pipeline.wakeup,
                lambda: self._pipeline.capturing,
                self._faults.note,
            )
            readiness = self._begin_readiness(topics, judges)
            if readiness is not None:
                made.callback(readiness.close)
            self._effects.readiness = readiness
            made.callback(Diagnostics(node, group, self._condition).close)
            jumps = node.get_clock().create_jump_callback(
                JumpThreshold(
                    min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False
                ),
                post_callback=lambda jump: self._loop.post(self._pipeline.clock_jumped),
            )
            made.callback(jumps.unregister)
            self._loop.start()
            made.callback(self._stop_loop)
            self._made = made.pop_all()
        self._loop.post(self._pipeline.resume)

    def activate(self) -> None:
        """Open the entrances and publish what waits to be published."""
        self._effects.entrances = Entrances(
            self._node,
            self._group,
            self._config.completions,
            self._decoder,
            self._reader,
            self._pipeline,
            self._loop.post,
            self._active,
            self._faults.note,
        )
        self._publications.open()
        self._taps.want(frozenset())
        if self._effects.readiness is not None:
            self._effects.readiness.look()
        self._loop.post(self._pipeline.publish_pending)
        threading.Thread(target=self._warm_up, name='warm-up', daemon=True).start()

    def deactivate(self) -> None:
        """Close the entrances; runs that wait for frames end in an error, which is published."""
        entrances = self._effects.entrances
        if entrances is None:
            self._publications.shut()
            return
        entrances.stop_listening()
        done = threading.Event()

        def end() -> None:
            self._pipeline.end_captures(
                'deactivated', 'the node was deactivated while the run waited for frames'
            )
            done.set()

        self._loop.post(end)
        done.wait(DEACTIVATION_TIMEOUT)
        entrances.close()
        self._effects.entrances = None
        self._publications.shut()

    def close(self) -> None:
        """Stop the pipeline and give up the ledger."""
        try:
            self.deactivate()
        finally:
            self._made.close()

    def give_way(self) -> None:
        """Let the pipeline finish what it is at, for a moment."""
        self._loop.give_way(GIVE_WAY)

    def note_fault(self, error: BaseException) -> None:
        """Show in diagnostics, for a while, that something inside failed; from any thread."""
        self._faults.note(error)

    def _stop_loop(self) -> None:
        if not self._loop.stop():
            log.error('the pipeline did not stop in time')

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

    def _condition(self) -> Condition:
        entrances, readiness = self._effects.entrances, self._effects.readiness
        scores = {name: judge.constant_score for name, judge in self._judges.items()}
        return Condition(
            active=self._active(),
            ledger_fault=self._pipeline.ledger_fault,
            quarantined=tuple(n for n, judge in self._judges.items() if judge.quarantined),
            constant={name: score for name, score in scores.items() if score is not None},
            fault=self._faults.newest,
            unreadable='' if entrances is None else entrances.unreadable,
            counts={
                **self._pipeline.counts,
                'internal faults': self._faults.count,
                'frames dropped': self._loop.dropped,
            },
            unready=() if readiness is None else readiness.unready,
        )

    def _warm_up(self) -> None:
        """Import what the first judgement needs, so that it is as quick as the others."""
        try:
            import cv2  # noqa: F401
            import mcap.writer  # noqa: F401

            types = {source.type for source in self._config.completions if source.action is None}
            for name in types | self._stream_types | {TOOL_COMPLETION, OUTCOME_TYPE}:
                self._decoder.definition(name)
        except Exception as error:  # the first judgement will say it better
            log.debug('warm-up: %s', describe(error))


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
