"""Segments under evaluation: wait for frames, keep them, ask the judge, finish."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness_eval.calls import CallHandle, JudgeCalls
from harness_eval.capture import Capture, Captured, Frame, StreamSpec, TopicFacts
from harness_eval.cases import CaseStore
from harness_eval.config import Config
from harness_eval.contract import (
    CaptureError,
    DecodeError,
    EvaluationError,
    LedgerError,
    Observation,
    Verdict,
)
from harness_eval.decode import Decoder, HeaderFacts
from harness_eval.pipeline.effects import Effects, Waiter
from harness_eval.pipeline.recorder import Recorder
from harness_eval.requests import Prepared, Requests
from harness_eval.runs import OPEN_AGAIN, Outcome, Segment, SegmentState, interruption
from harness_eval.scene_graph import Op
from harness_eval.stages import Stage

log = logging.getLogger('harness_eval.pipeline')

STORE_TIMEOUT = 30.0
"""Seconds until evidence that is still being written counts as not stored (a disk that hangs)."""

Key = tuple[str, int]
"""A run id and the number of a segment."""


@dataclass(eq=False)
class _Active:
    """A segment under evaluation. Its identity tells late answers from current ones."""

    segment: Segment
    effects: tuple[Op, ...] = ()
    capture: Capture | None = None
    streams: tuple[StreamSpec, ...] = ()
    storing_until: float | None = None
    call: CallHandle | None = None
    evaluator: str = ''
    digest: str = ''
    observed: tuple[int, int] = (0, 0)
    observation: Observation | None = None

    @property
    def key(self) -> Key:
        return self.segment.completion.run_id, self.segment.completion.segment


class Evaluations:
    """All segments that have no outcome yet, each on its way to one.

    Args:
        config: The whole configuration.
        cases: Where evidence is kept.
        judges: The evaluators by name, each behind its calls.
        decoder: Reads messages.
        effects: The world around.
        requests: Makes the questions.
        recorder: Puts transitions on record.
    """

    def __init__(
        self,
        config: Config,
        cases: CaseStore,
        judges: Mapping[str, JudgeCalls],
        decoder: Decoder,
        effects: Effects,
        requests: Requests,
        recorder: Recorder,
    ) -> None:
        self._config = config
        self._cases = cases
        self._judges = judges
        self._decoder = decoder
        self._effects = effects
        self._requests = requests
        self._recorder = recorder
        self._active: dict[Key, _Active] = {}
        self._waiters: dict[Key, list[Waiter]] = {}
        self._undecodable: dict[str, str] = {}

    # --- entrances --------------------------------------------------------------------------

    def __contains__(self, key: Key) -> bool:
        """Whether a segment is under evaluation."""
        return key in self._active

    def orders(self) -> list[int]:
        """Order of every segment under evaluation."""
        return [active.segment.order for active in self._active.values()]

    @property
    def capturing(self) -> bool:
        """Whether any segment waits for frames."""
        return any(active.capture is not None for active in self._active.values())

    def wait(self, key: Key, waiter: Waiter | None) -> None:
        """Have the outcome of a segment under evaluation handed to a waiter."""
        if waiter is not None:
            self._waiters.setdefault(key, []).append(waiter)

    def begin(self, segment: Segment, waiter: Waiter | None) -> None:
        """Begin to wait for the frames that show what a segment came to."""
        active = self._enter(segment, waiter)
        problem = self._clock_problem(segment)
        if problem is not None:
            self._finish(active, problem)
            return
        try:
            active.effects = self._requests.effects(segment.completion)
            self._requests.post_condition_text(segment.completion)
        except EvaluationError as error:
            self._finish(active, error)
            return
        active.streams = self._requests.streams_of(segment.completion.tool)
        for spec in active.streams:
            self._undecodable.pop(spec.topic, None)
        active.capture = Capture(
            active.streams,
            segment.t_end,
            self._config.capture,
            ros_start=self._effects.ros_now(),
            wall_start=self._effects.steady_now(),
        )
        self._tap()

    def fail(self, segment: Segment, error: EvaluationError, waiter: Waiter | None = None) -> None:
        """End a segment as an error without looking at anything."""
        self._finish(self._enter(segment, waiter), error)

    def restore(self, segment: Segment) -> None:
        """Judge a segment from its stored evidence."""
        active = self._enter(segment, None)
        try:
            active.effects = self._requests.effects(segment.completion)
        except EvaluationError as error:
            self._finish(active, error)
            return
        self._recorder.show(segment, Stage.CAPTURED, 'from stored evidence')

        def work() -> None:
            try:
                case = self._cases.read(segment.evidence)
            except EvaluationError as error:
                self._post_finish(active, error)
                return
            self._prepare(active, case.captured)

        self._effects.spawn(work)

    def interrupt(self, segment: Segment, reason: str) -> None:
        """End a segment that has no outcome because somebody wants it."""
        key = (segment.completion.run_id, segment.completion.segment)
        active = self._active.get(key) or self._enter(segment, None)
        if active.call is not None:
            active.call.cancel()
        self._decide(active, interruption(active.segment, reason, self._effects.ros_now()))

    def end_captures(self, kind: str, message: str) -> None:
        """End every wait for frames as an error, for example because the node is stopped."""
        for active in list(self._active.values()):
            if active.capture is not None:
                self._finish(active, CaptureError(kind, message))

    def frame(self, topic: str, kind: str, data: bytes, receipt: int) -> None:
        """A message came on a topic; see :meth:`Pipeline.frame`."""
        waiting = [
            (active, spec)
            for active in self._active.values()
            if active.capture is not None
            for spec in active.streams
            if spec.topic == topic and spec.type in ('', kind)
        ]
        if not waiting:
            return
        try:
            header = self._decoder.stamp(kind, data)
        except DecodeError as error:
            self._undecodable[topic] = error.message
            return
        self._undecodable.pop(topic, None)
        for active, spec in waiting:
            if active.capture is None:
                continue  # an error ended it a moment ago
            if header is None and spec.stamp_source == 'header':
                self._finish(active, _without_header(spec, kind))
            else:
                active.capture.add(_frame(spec, kind, data, receipt, header))
        for active in dict.fromkeys(active for active, _ in waiting):
            self._poll(active)

    def tick(self) -> None:
        """Time has passed: look at every deadline."""
        for active in list(self._active.values()):
            self._poll(active)
        now = self._effects.steady_now()
        for active in list(self._active.values()):
            if active.storing_until is not None and now > active.storing_until:
                self._finish(
                    active,
                    EvaluationError(
                        'evidence_not_stored',
                        f'writing the evidence has taken more than {STORE_TIMEOUT:g} s; is the '
                        'disk of evidence_dir alive?',
                    ),
                )

    def wakeup(self) -> float | None:
        """Steady seconds at which :meth:`tick` has something to do; None: nothing is due."""
        times = [a.storing_until for a in self._active.values() if a.storing_until is not None]
        return min(times, default=None)

    # --- capture ----------------------------------------------------------------------------

    def _enter(self, segment: Segment, waiter: Waiter | None) -> _Active:
        active = _Active(segment)
        self._active[active.key] = active
        self.wait(active.key, waiter)
        return active

    def _clock_problem(self, segment: Segment) -> EvaluationError | None:
        """Why no stamp can be compared with the end of this segment."""
        if segment.receipt == 0:
            return CaptureError(
                'clock_not_started',
                'the completion came before the ROS clock began: the node runs with use_sim_time '
                'and no /clock has come; start the simulation first',
            )
        ahead = (segment.completion.stamp - segment.receipt) / 1e9
        if ahead > self._config.capture.max_clock_skew:
            return CaptureError(
                'clock_skew',
                f'the completion is stamped {ahead:.3f} s after it was received; capture.'
                f'max_clock_skew allows {self._config.capture.max_clock_skew:g} s. Synchronise '
                'the clock of the host that reported it (chrony, NTP), or leave its stamp zero',
            )
        return None

    def _tap(self) -> None:
        self._effects.tap(
            frozenset(
                spec.topic
                for active in self._active.values()
                if active.capture is not None
                for spec in active.streams
            )
        )

    def _poll(self, active: _Active) -> None:
        if active.capture is None:
            return
        try:
            captured = active.capture.poll(
                self._effects.ros_now(), self._effects.steady_now(), self._facts_of(active)
            )
        except CaptureError as error:
            self._finish(active, error)
            return
        if captured is not None:
            active.capture = None
            active.storing_until = self._effects.steady_now() + STORE_TIMEOUT
            self._tap()
            self._effects.spawn(lambda: self._store(active, captured))

    def _facts_of(self, active: _Active) -> Callable[[str], TopicFacts]:
        topics = {spec.name: spec.topic for spec in active.streams}

        def facts(stream: str) -> TopicFacts:
            topic = topics[stream]
            found = self._effects.facts(topic)
            problem = self._undecodable.get(topic, '')
            return dataclasses.replace(found, undecodable=problem) if problem else found

        return facts

    # --- evidence and question: on spawned threads, which only post back ------------------------

    def _store(self, active: _Active, captured: Captured) -> None:
        try:
            name = self._cases.write(active.segment, captured)
        except EvaluationError as error:
            self._post_finish(active, error)
            return
        self._effects.post(lambda: self._stored(active, name))
        self._prepare(active, captured)

    def _prepare(self, active: _Active, captured: Captured) -> None:
        try:
            prepared = self._requests.prepare(active.segment.completion, captured)
        except EvaluationError as error:
            self._post_finish(active, error)
            return
        except Exception as error:
            log.exception('the question for run %r could not be made', active.key[0])
            self._post_finish(
                active,
                EvaluationError('internal_error', f'{type(error).__name__}: {error}'[:500]),
            )
            return
        self._effects.post(lambda: self._prepared(active, prepared))

    def _post_finish(self, active: _Active, answer: Verdict | EvaluationError) -> None:
        self._effects.post(lambda: self._finish(active, answer))

    # --- back on the pipeline's thread ----------------------------------------------------------

    def _is_current(self, active: _Active) -> bool:
        return self._active.get(active.key) is active

    def _stored(self, active: _Active, name: str) -> None:
        if not self._is_current(active):
            self._effects.spawn(lambda: self._cases.remove(name))
            return
        active.storing_until = None
        if self._advance(active, SegmentState.CAPTURED, evidence=name):
            self._recorder.show(active.segment, Stage.CAPTURED)

    def _prepared(self, active: _Active, prepared: Prepared) -> None:
        if not self._is_current(active):
            return
        judge = self._judges[self._config.evaluator_of(active.segment.completion.tool)]
        active.evaluator = judge.evaluator
        active.digest = prepared.digest
        active.observed = prepared.observed
        active.observation = prepared.request.observation
        if self._advance(active, SegmentState.STARTED):
            self._recorder.show(active.segment, Stage.STARTED, judge.evaluator)
            active.call = judge.call(
                prepared.request, lambda answer: self._post_finish(active, answer)
            )

    def _advance(self, active: _Active, state: SegmentState, evidence: str = '') -> bool:
        segment = dataclasses.replace(
            active.segment, state=state, evidence=evidence or active.segment.evidence
        )
        try:
            self._recorder.advance(segment)
        except LedgerError as error:
            self._recorder.failed(error)
            self._finish(active, error)
            return False
        active.segment = segment
        return True

    def _finish(self, active: _Active, answer: Verdict | EvaluationError) -> None:
        """The evaluation of a segment has come to its end; a late end is dropped."""
        if not self._is_current(active):
            log.info('a late answer for run %r segment %d was dropped', *active.key)
            return
        self._decide(
            active,
            self._recorder.outcome(
                active.segment,
                answer,
                evaluator=active.evaluator,
                input_digest=active.digest,
                observed=active.observed,
            ),
        )

    def _decide(self, active: _Active, outcome: Outcome) -> None:
        del self._active[active.key]
        active.capture = None
        self._tap()
        segment = dataclasses.replace(
            active.segment, state=outcome.state, attempt=outcome.attempt, outcome=outcome
        )
        published = self._recorder.decide(segment, outcome, active.effects)
        for waiter in self._waiters.pop(active.key, ()):
            waiter(published)
        observation = active.observation
        self._effects.spawn(lambda: self._keep(segment, published, observation))

    def _keep(self, segment: Segment, outcome: Outcome, observation: Observation | None) -> None:
        """Show the outcome, and keep or delete its evidence; on a spawned thread."""
        try:
            self._effects.picture(outcome, observation)
        except EvaluationError as error:  # the picture shows what the verdict rests on, no more
            log.warning('no picture of run %r: %s', outcome.run_id, error)
        if not segment.evidence:
            return
        try:
            self._cases.finish(segment.evidence, outcome)
            removed = self._cases.enforce_bound(keep=self._needed(segment, outcome))
        except EvaluationError as error:
            log.warning('%s', error)
            return
        if not self._is_kept(outcome):
            self._cases.remove(segment.evidence)
            removed.append(segment.evidence)
        if removed:
            self._effects.post(lambda: self._recorder.forget_evidence(removed))

    def _is_kept(self, outcome: Outcome) -> bool:
        keep = self._config.evidence.keep
        if keep == 'all' or outcome.state in OPEN_AGAIN:
            return True
        return keep == 'failures' and outcome.state is not SegmentState.SUCCESS

    def _needed(self, segment: Segment, outcome: Outcome) -> set[str]:
        """Cases that no bound may delete: those being judged, and the newest one."""
        needed = {active.segment.evidence for active in list(self._active.values())}
        return needed | {segment.evidence}


def _frame(
    spec: StreamSpec, kind: str, data: bytes, receipt: int, header: HeaderFacts | None
) -> Frame:
    if header is None or spec.stamp_source == 'receipt':
        stamp, source = receipt, 'receipt'
    else:
        stamp, source = header.stamp, 'header'
    return Frame(
        stream=spec.name,
        topic=spec.topic,
        type=kind,
        stamp=stamp,
        receipt=receipt,
        data=data,
        frame_id='' if header is None else header.frame_id,
        stamp_source=source,
        payload_offset=0 if header is None else header.payload_offset,
    )


def _without_header(spec: StreamSpec, kind: str) -> CaptureError:
    return CaptureError(
        'no_header',
        f'{spec.name!r} comes as {kind}, which carries no stamp; set stamp: receipt for it if the '
        'time of its receipt is good enough',
    )
