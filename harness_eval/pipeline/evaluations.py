"""Segments under evaluation: wait for frames, keep them, ask the judge, finish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
import dataclasses
from dataclasses import dataclass
import logging

from harness_eval.capture import Capture, Captured, Frame, StreamSpec, TopicFacts
from harness_eval.cases import CaseStore
from harness_eval.config import Config
from harness_eval.contract import (
    CaptureError,
    DecodeError,
    EvaluationError,
    EvaluationRequest,
    EvaluatorError,
    LedgerError,
    Observation,
    Verdict,
)
from harness_eval.decode import Decoder, HeaderFacts
from harness_eval.oracle import decided_by, OracleAnswer
from harness_eval.pipeline.basis import Bases, Basis
from harness_eval.pipeline.effects import Guarded, Waiter
from harness_eval.pipeline.oracles import Oracles, Question
from harness_eval.pipeline.recorder import Recorder
from harness_eval.pipeline.stored import check_evidence, evidence_digest
from harness_eval.reported_calls import Cancellable, Judge, ReportedCalls
from harness_eval.requests import Prepared, Requests
from harness_eval.runs import (
    Completion,
    internal_error,
    interruption,
    OPEN_AGAIN,
    Outcome,
    Segment,
    SegmentState,
)
from harness_eval.scene_graph import Op
from harness_eval.stages import Stage

log = logging.getLogger('harness_eval.pipeline')

STEP_TIMEOUT = 30.0
"""Seconds until a step on a spawned thread counts as hanging (a disk that does not answer)."""

MAX_STARTS = 2
"""How often an evaluator is asked in one attempt: once more after a process ended meanwhile. One
that ends the process itself would otherwise keep the node from ever running again."""

CLOCK_JUMP_NS = 1_000_000
"""How far receipts of frames, which come from one thread, must go back to show a clock jump."""

Key = tuple[str, int]
"""A run id and the number of a segment."""


def _hanging(kind: str, what: str) -> EvaluationError:
    return EvaluationError(
        kind,
        f'{what} has taken more than {STEP_TIMEOUT:g} s; is the disk of evidence_dir alive?',
        retryable=True,
    )


_WRITING = _hanging('evidence_not_stored', 'writing the evidence')
_READING = _hanging('evidence_not_read', 'reading the stored evidence')
_PREPARING = _hanging('question_not_made', 'making the question from the evidence')


@dataclass(eq=False)
class _Step:
    """Work for a segment on a spawned thread. Times are steady seconds.

    Attributes:
        error: What the segment ends in if the thread does not come back.
        asked: When it was asked for.
        begun: When a thread began with it; None: it waits for one.
    """

    error: EvaluationError
    asked: float
    begun: float | None = None


@dataclass(eq=False)
class _Active:
    """A segment under evaluation. Its identity tells late answers from current ones.

    ``step`` is what it waits for on a spawned thread, and ``preparing`` the making of the question
    meanwhile. ``question`` is what the judge is to be asked, and ``ending`` what its making led to
    instead; both wait until the evidence is written, since without that no judge is asked.
    """

    segment: Segment
    effects: tuple[Op, ...] = ()
    capture: Capture | None = None
    streams: tuple[StreamSpec, ...] = ()
    step: _Step | None = None
    preparing: _Step | None = None
    question: EvaluationRequest | None = None
    ending: EvaluationError | None = None
    call: Cancellable | None = None
    evaluator: str = ''
    digest: str = ''
    observed: tuple[int, int] = (0, 0)
    observation: Observation | None = None
    oracle: Question | None = None

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
        oracles: Who knows the truth about a tool.
    """

    def __init__(
        self,
        config: Config,
        cases: CaseStore,
        judges: Mapping[str, Judge],
        decoder: Decoder,
        effects: Guarded,
        requests: Requests,
        recorder: Recorder,
        oracles: Oracles,
    ) -> None:
        self._config = config
        self._oracles = oracles
        self._cases = cases
        self._judges = judges
        self._decoder = decoder
        self._effects = effects
        self._requests = requests
        self._recorder = recorder
        self._bases = Bases(config, requests)
        self._reports = ReportedCalls(
            {
                name: tool.report
                for name, tool in config.evaluation.tools.items()
                if tool.report is not None
            }
        )
        self._active: dict[Key, _Active] = {}
        self._waiters: dict[Key, list[Waiter]] = {}
        self._undecodable: dict[str, str] = {}
        self._last_receipt = 0
        self._moved = 0.0  # steady seconds when a thread last began or ended a step

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

    @property
    def judging(self) -> bool:
        """Whether any segment waits for something other than frames: its judge, for example."""
        return any(active.capture is None for active in self._active.values())

    @property
    def capture_deadlines(self) -> list[tuple[int, float]]:
        """When each wait for frames ends: nanoseconds of the ROS clock and steady seconds."""
        waits = [active.capture for active in self._active.values() if active.capture is not None]
        return [(wait.ros_deadline, wait.wall_deadline) for wait in waits]

    def basis(self, tool: str) -> Basis:
        """What the judgement of a segment of a tool rests on now."""
        return self._bases.of(tool)

    def wait(self, key: Key, waiter: Waiter | None) -> None:
        """Have the outcome of a segment under evaluation handed to a waiter."""
        if waiter is not None:
            self._waiters.setdefault(key, []).append(waiter)

    def adopt(self, segments: Iterable[Segment]) -> None:
        """Count segments of a process before this one as pending, until each is taken up."""
        for segment in segments:
            self._enter(segment, None)

    def begin(self, segment: Segment, waiter: Waiter | None) -> None:
        """Begin to wait for the frames that show what a segment came to."""
        active = self._enter(segment, waiter)
        with self._step(active):
            self._check_clocks(segment)
            active.effects = self._requests.effects(segment.completion)
            self._requests.post_condition_text(segment.completion)
            active.streams = self._requests.streams_of(segment.completion.tool)
            for spec in active.streams:
                self._undecodable.pop(spec.topic, None)
            active.capture = Capture(
                active.streams,
                segment.t_end,
                self._config.capture,
                ros_start=segment.receipt,
                wall_start=self._effects.steady_now(),
            )
            self._tap()

    def fail(self, segment: Segment, error: EvaluationError, waiter: Waiter | None = None) -> None:
        """End a segment as an error without looking at anything."""
        self._finish(self._enter(segment, waiter), error)

    def restore(self, segment: Segment, waiter: Waiter | None = None) -> None:
        """Judge a segment from its stored evidence."""
        active = self._enter(segment, waiter)
        with self._step(active):
            active.effects = self._requests.effects(segment.completion)
            self._require_unchanged(segment)
            self._cases.hold(segment.evidence)
            self._recorder.show(segment, Stage.CAPTURED, 'from stored evidence')
            active.step = self._spawn(_READING, lambda: self._restore(active, segment))

    def interrupt(self, segment: Segment, reason: str) -> Outcome:
        """End a segment that has no outcome because somebody wants it.

        Returns:
            Its outcome: an interruption, or an error if that could not be put on record.
        """
        key = (segment.completion.run_id, segment.completion.segment)
        active = self._active.get(key) or self._enter(segment, None)
        if active.call is not None:
            active.call.cancel()
        return self._decide(active, interruption(active.segment, reason, self._effects.ros_now()))

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
            with self._step(active):
                if header is None and spec.stamp_source == 'header':
                    raise _without_header(spec, kind)
                active.capture.add(_frame(spec, kind, data, receipt, header))
        jumped = receipt <= self._last_receipt - CLOCK_JUMP_NS
        self._last_receipt = receipt
        for active in dict.fromkeys(active for active, _ in waiting):
            self._poll(active, receipt if jumped else None)

    def tick(self, ros_now: int) -> None:
        """Time has passed: look at every deadline; see :meth:`Pipeline.tick`."""
        for active in list(self._active.values()):
            self._poll(active, ros_now)
        now = self._effects.steady_now()
        for active in list(self._active.values()):
            if active.step is not None and now > self._deadline(active.step):
                self._finish(active, active.step.error)
        self._oracles.tick(now)

    def wakeup(self) -> float | None:
        """Steady seconds at which :meth:`tick` has something to do; None: nothing is due."""
        times = [self._deadline(a.step) for a in self._active.values() if a.step is not None]
        oracle = self._oracles.wakeup()
        return min(times if oracle is None else [*times, oracle], default=None)

    # --- capture ----------------------------------------------------------------------------

    def _enter(self, segment: Segment, waiter: Waiter | None) -> _Active:
        new = _Active(segment)
        active = self._active.setdefault(new.key, new)
        self.wait(active.key, waiter)
        return active

    @contextmanager
    def _step(self, active: _Active) -> Iterator[None]:
        """End the segment as an error whatever a step raises, so that none is left hanging."""
        try:
            yield
        except EvaluationError as error:
            self._finish(active, error)
        except Exception as error:
            log.exception('a fault in the evaluation of run %r; others go on', active.key[0])
            self._finish(active, internal_error(error))

    def _spawn(self, error: EvaluationError, work: Callable[[], None]) -> _Step:
        """Have a thread do a step, which is given up if it hangs."""
        step = _Step(error, self._effects.steady_now())

        def run() -> None:
            step.begun = self._moved = self._effects.steady_now()
            try:
                work()
            finally:
                self._moved = self._effects.steady_now()

        self._effects.spawn(run)
        return step

    def _deadline(self, step: _Step) -> float:
        """Steady seconds when a step counts as hanging.

        One that waits for a thread does not, as long as other steps go on: after a burst of runs
        the last of them wait for longer than each takes.
        """
        since = max(step.asked, self._moved) if step.begun is None else step.begun
        return since + STEP_TIMEOUT

    def _check_clocks(self, segment: Segment) -> None:
        """Make sure that stamps can be compared with the end of this segment.

        Raises:
            CaptureError: They cannot.
        """
        if segment.receipt == 0:
            raise CaptureError(
                'clock_not_started',
                'the completion came before the ROS clock began: the node runs with use_sim_time '
                'and no /clock has come; start the simulation first',
            )
        ahead = (segment.completion.stamp - segment.receipt) / 1e9
        if ahead > self._config.capture.max_clock_skew:
            raise CaptureError(
                'clock_skew',
                f'the completion is stamped {ahead:.3f} s after it was received; capture.'
                f'max_clock_skew allows {self._config.capture.max_clock_skew:g} s. Synchronise '
                'the clock of the host that reported it (chrony, NTP), or leave its stamp zero',
            )

    def _require_unchanged(self, segment: Segment) -> None:
        """Make sure that a segment may be judged from its evidence.

        Raises:
            EvaluationError: It rests on another configuration, or its evaluator ends the process.
        """
        tool = segment.completion.tool
        self._bases.require(tool, Basis(segment.streams, segment.rules))
        if segment.state is SegmentState.STARTED and segment.starts >= MAX_STARTS:
            raise EvaluatorError(
                'evaluator_crashed',
                f'the process of the node ended {segment.starts} times while this evaluator was '
                'asked; it is not asked again by itself. If it takes the process down, give it '
                "'isolation: process'; then 'harness-eval judge' asks it again",
                evaluator=self._judges[self._config.evaluator_of(tool)].evaluator,
            )

    def _tap(self) -> None:
        self._effects.tap(
            frozenset(
                spec.topic
                for active in self._active.values()
                if active.capture is not None
                for spec in active.streams
            )
        )

    def _poll(self, active: _Active, ros_now: int | None) -> None:
        """See whether a capture has ended; without a time, whether its frames have ended it.

        Deadlines are looked at in ticks alone: frames that came in time may still be in the queue
        behind the one that is handled now.
        """
        if active.capture is None:
            return
        with self._step(active):
            if ros_now is None:
                captured = active.capture.found()
            else:
                captured = active.capture.poll(
                    ros_now, self._effects.steady_now(), self._facts_of(active)
                )
            if captured is not None:
                active.capture = None
                self._tap()
                segment = active.segment
                # Asked now: the world is still the one that the frames show.
                active.oracle = self._oracles.ask(segment.completion)
                active.step = self._spawn(_WRITING, lambda: self._store(active, segment, captured))
                active.preparing = self._spawn(
                    _PREPARING, lambda: self._question(active, segment.completion, captured)
                )

    def _facts_of(self, active: _Active) -> Callable[[str], TopicFacts]:
        topics = {spec.name: spec.topic for spec in active.streams}

        def facts(stream: str) -> TopicFacts:
            topic = topics[stream]
            found = self._effects.facts(topic)
            problem = self._undecodable.get(topic, '')
            return dataclasses.replace(found, undecodable=problem) if problem else found

        return facts

    # --- evidence and question: on spawned threads, which only post back ------------------------

    def _store(self, active: _Active, segment: Segment, captured: Captured) -> None:
        with self._spawned(active):
            name = self._cases.write(segment, captured)
            digest = evidence_digest(captured)  # of data that were digested to be written
            self._effects.post(lambda: self._stored(active, name, digest))

    def _question(self, active: _Active, completion: Completion, captured: Captured) -> None:
        """Make the question while the evidence is being written."""
        with self._spawned(active, self._finish_when_stored):
            self._prepare(active, completion, captured)

    def _restore(self, active: _Active, segment: Segment) -> None:
        with self._spawned(active):
            case = self._cases.read(segment.evidence)
            check_evidence(case, segment, self._config.capture)
            self._effects.post(lambda: self._recall(active, case.oracle))
            self._prepare(active, segment.completion, case.captured)

    def _recall(self, active: _Active, answer: OracleAnswer | None) -> None:
        active.oracle = self._oracles.recall(active.segment.completion.tool, answer)

    def _prepare(self, active: _Active, completion: Completion, captured: Captured) -> None:
        prepared = self._requests.prepare(completion, captured)
        self._effects.post(lambda: self._prepared(active, prepared))
        self._requests.check_usable(prepared.request.observation)
        self._effects.post(lambda: self._may_be_asked(active, prepared.request))

    @contextmanager
    def _spawned(
        self, active: _Active, finish: Callable[[_Active, EvaluationError], None] | None = None
    ) -> Iterator[None]:
        """Post whatever the work on a spawned thread raises as the end of the segment."""
        end = finish or self._finish
        try:
            yield
        except EvaluationError as error:
            raised = error
            self._effects.post(lambda: end(active, raised))
        except Exception as error:
            log.exception('a fault in the evaluation of run %r; others go on', active.key[0])
            fault = internal_error(error)
            self._effects.post(lambda: end(active, fault))

    def _post_judged(self, active: _Active, answer: Verdict | EvaluationError) -> None:
        self._effects.post(lambda: self._judged(active, answer))

    # --- back on the pipeline's thread ----------------------------------------------------------

    def _is_current(self, active: _Active) -> bool:
        return self._active.get(active.key) is active

    def _stored(self, active: _Active, name: str, digest: str) -> None:
        if not self._is_current(active):
            self._effects.spawn_spare(lambda: self._discard(name))
            return
        active.step = active.preparing
        self._oracles.stored(active.oracle, name)
        # From now on the case belongs to the segment, even if the next line fails.
        active.segment = dataclasses.replace(active.segment, evidence=name, evidence_digest=digest)
        if active.question is not None:
            self._ask(active, active.question)
        elif self._advance(active, SegmentState.CAPTURED):
            self._recorder.show(active.segment, Stage.CAPTURED)
            if active.ending is not None:
                self._finish(active, active.ending)

    def _may_be_asked(self, active: _Active, request: EvaluationRequest) -> None:
        """Ask the judge now, or when the evidence is written."""
        if _is_being_written(active):
            active.question = request
        else:
            self._ask(active, request)

    def _finish_when_stored(self, active: _Active, error: EvaluationError) -> None:
        """End a segment as an error that can be judged again, from the evidence."""
        if _is_being_written(active):
            active.ending = error
        else:
            self._finish(active, error)

    def _prepared(self, active: _Active, prepared: Prepared) -> None:
        """Note what an outcome will rest on, be it a verdict or that nobody can tell."""
        active.digest = prepared.digest
        active.observed = prepared.observed
        active.observation = prepared.request.observation

    def _ask(self, active: _Active, request: EvaluationRequest) -> None:
        if not self._is_current(active):
            return
        active.step = None
        with self._step(active):
            tool = active.segment.completion.tool
            judge = self._judges[self._config.evaluator_of(tool)]
            active.evaluator = judge.evaluator
            captured = active.segment.state is SegmentState.RECEIVED
            # One commit for both where the question was ready before the evidence was.
            if self._advance(active, SegmentState.STARTED):
                if captured:
                    self._recorder.show(active.segment, Stage.CAPTURED)
                # An answer comes back by the queue, so that it is never shown before this.
                active.call = self._reports.call(
                    tool, judge, request, lambda answer: self._post_judged(active, answer)
                )
                self._recorder.show(active.segment, Stage.STARTED, judge.evaluator)

    def _judged(self, active: _Active, answer: Verdict | EvaluationError) -> None:
        """The judge has answered; only an oracle that decides is waited for."""
        oracle = active.oracle
        if oracle is None or not oracle.decides or not self._is_current(active):
            self._finish(active, answer)
            return

        def finish(truth: OracleAnswer) -> None:
            if truth.outcome_correct is not None:
                active.evaluator = truth.ref
            self._finish(active, decided_by(truth, answer))

        self._oracles.when_answered(oracle, finish)

    def _advance(self, active: _Active, state: SegmentState) -> bool:
        asked = state is SegmentState.STARTED
        segment = dataclasses.replace(
            active.segment, state=state, starts=active.segment.starts + asked
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

    def _decide(self, active: _Active, outcome: Outcome) -> Outcome:
        del self._active[active.key]
        active.capture = active.step = None
        self._tap()
        segment = dataclasses.replace(
            active.segment, state=outcome.state, attempt=outcome.attempt, outcome=outcome
        )
        published = self._recorder.decide(segment, outcome, active.effects)
        for waiter in self._waiters.pop(active.key, ()):
            self._effects.tell(waiter, published)
        observation = active.observation
        self._effects.spawn_spare(lambda: self._keep(segment.evidence, published, observation))
        return published

    def _discard(self, name: str) -> None:
        self._cases.remove(name)

    def _keep(self, name: str, outcome: Outcome, observation: Observation | None) -> None:
        """Show the outcome, and keep or delete its evidence; on a spawned thread."""
        try:
            self._effects.picture(outcome, observation)
        except Exception as error:  # the picture shows what the verdict rests on, no more
            log.warning('no picture of run %r: %s', outcome.run_id, error)
        if not name:
            return
        try:
            self._cases.finish(name, outcome)
        except EvaluationError as error:
            log.warning('%s', error)
        removed = self._cases.enforce_bound(keep={name})
        if not self._is_kept(outcome) and self._cases.remove(name):
            removed.append(name)
        if removed:
            self._effects.post(lambda: self._recorder.forget_evidence(removed))

    def _is_kept(self, outcome: Outcome) -> bool:
        keep = self._config.evidence.keep
        if keep == 'all' or outcome.state in OPEN_AGAIN:
            return True
        return keep == 'failures' and outcome.state is not SegmentState.SUCCESS


def _is_being_written(active: _Active) -> bool:
    return active.step is not None and active.step.error is _WRITING


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
