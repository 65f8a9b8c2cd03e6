"""Segments under evaluation: wait for frames, keep them, ask the judge, finish."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
import dataclasses
import logging

from harness_eval.capture import Captured
from harness_eval.cases import CaseStore
from harness_eval.config import Config
from harness_eval.contract import (
    CaptureError,
    EvaluationError,
    EvaluationRequest,
    EvaluatorError,
    LedgerError,
    Observation,
    State,
    Verdict,
    View,
)
from harness_eval.decode import Decoder
from harness_eval.lines import clean_evidence, MAX_EVIDENCE_LINES
from harness_eval.oracle import decided_by, OracleAnswer
from harness_eval.pipeline.active import Active, PREPARING, READING, Steps, WRITING
from harness_eval.pipeline.basis import Bases, Basis
from harness_eval.pipeline.captures import Captures
from harness_eval.pipeline.effects import Guarded, Waiter
from harness_eval.pipeline.oracles import Oracles
from harness_eval.pipeline.recorder import Recorder
from harness_eval.pipeline.stored import check_evidence, evidence_digest
from harness_eval.reported_calls import Judge, ReportedCalls
from harness_eval.requests import Prepared, Requests
from harness_eval.runs import (
    Completion,
    internal_error,
    interruption,
    Key,
    OPEN_AGAIN,
    Outcome,
    Segment,
    SegmentState,
)
from harness_eval.stages import Stage

log = logging.getLogger('harness_eval.pipeline')

MAX_STARTS = 2
"""How often an evaluator is asked in one attempt: once more after a process ended meanwhile. One
that ends the process itself would otherwise keep the node from ever running again."""
MAX_SEEN = 1000
"""Of how many segments it is remembered that their completion came."""


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
        self._active: dict[Key, Active] = {}
        self._seen: dict[Key, None] = {}  # the newest of them, oldest first
        self._waiters: dict[Key, list[Waiter]] = {}
        self._steps = Steps(effects)
        self._captures = Captures(
            config, decoder, effects, self._active, self._step, self._captured
        )

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
        return bool(self._captures.waiting())

    @property
    def judging(self) -> bool:
        """Whether any segment waits for something other than frames: its judge, for example."""
        return any(active.capture is None for active in self._active.values())

    @property
    def capture_deadlines(self) -> list[tuple[int, float]]:
        """When each wait for frames ends: nanoseconds of the ROS clock and steady seconds."""
        return [(wait.ros_deadline, wait.wall_deadline) for wait in self._captures.waiting()]

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
            self._captures.check_clocks(segment)
            active.effects = self._requests.effects(segment.completion)
            self._requests.post_condition_text(segment.completion)
            self._captures.begin(active, self._requests.streams_of(segment.completion.tool))

    def expecting(self, completion: Completion, receipt: int) -> AbstractContextManager[None]:
        """Listen to what a completion needs while it is looked up and put on record.

        That takes some tenths of a millisecond, in which frames might come; a completion that was
        seen lately is not expected to be taken.
        """
        streams = self._requests.streams_of(completion.tool)
        if completion.key in self._seen or self._recorder.fault or not streams:
            return nullcontext()
        self._note(completion.key)  # taken or not, it is not expected again
        return self._captures.expecting(completion, receipt, streams)

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
            active.step = self._steps.spawn(READING, lambda: self._restore(active, segment))

    def interrupt(self, segment: Segment, reason: str) -> Outcome:
        """End a segment that has no outcome because somebody wants it.

        Returns:
            Its outcome: an interruption, or an error if that could not be put on record.
        """
        active = self._active.get(segment.completion.key) or self._enter(segment, None)
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
        self._captures.frame(topic, kind, data, receipt)

    def tick(self, ros_now: int) -> None:
        """Time has passed: look at every deadline; see :meth:`Pipeline.tick`."""
        for active in list(self._active.values()):
            self._captures.poll(active, ros_now)
        now = self._effects.steady_now()
        for active in list(self._active.values()):
            if active.step is not None and now > self._steps.deadline(active.step):
                self._finish(active, active.step.error)
        self._oracles.tick(now)

    def wakeup(self) -> float | None:
        """Steady seconds at which :meth:`tick` has something to do; None: nothing is due."""
        times = [self._steps.deadline(a.step) for a in self._active.values() if a.step is not None]
        oracle = self._oracles.wakeup()
        return min(times if oracle is None else [*times, oracle], default=None)

    # --- on the way ---------------------------------------------------------------------------

    def _enter(self, segment: Segment, waiter: Waiter | None) -> Active:
        new = Active(segment)
        self._note(new.key)
        active = self._active.setdefault(new.key, new)
        self.wait(active.key, waiter)
        return active

    def _note(self, key: Key) -> None:
        self._seen[key] = None
        if len(self._seen) > MAX_SEEN:
            del self._seen[next(iter(self._seen))]

    @contextmanager
    def _step(self, active: Active) -> Iterator[None]:
        """End the segment as an error whatever a step raises, so that none is left hanging."""
        try:
            yield
        except EvaluationError as error:
            self._finish(active, error)
        except Exception as error:
            log.exception('a fault in the evaluation of run %r; others go on', active.key[0])
            self._finish(active, internal_error(error))

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

    def _captured(self, active: Active, captured: Captured) -> None:
        """The frames of a segment are there: keep them, and make the question meanwhile."""
        segment = active.segment
        # Asked now: the world is still the one that the frames show.
        active.oracle = self._oracles.ask(segment.completion)
        active.step = self._steps.spawn(WRITING, lambda: self._store(active, segment, captured))
        active.preparing = self._steps.spawn(
            PREPARING, lambda: self._question(active, segment.completion, captured)
        )

    # --- evidence and question: on spawned threads, which only post back ------------------------

    def _store(self, active: Active, segment: Segment, captured: Captured) -> None:
        with self._spawned(active):
            name = self._cases.write(segment, captured)
            digest = evidence_digest(captured)  # of data that were digested to be written
            self._effects.post(lambda: self._stored(active, name, digest))

    def _question(self, active: Active, completion: Completion, captured: Captured) -> None:
        """Make the question while the evidence is being written."""
        with self._spawned(active, self._finish_when_stored):
            self._prepare(active, completion, captured)

    def _restore(self, active: Active, segment: Segment) -> None:
        with self._spawned(active):
            case = self._cases.read(segment.evidence)
            check_evidence(case, segment, self._config.capture)
            self._effects.post(lambda: self._recall(active, case.oracle))
            self._prepare(active, segment.completion, case.captured)

    def _recall(self, active: Active, answer: OracleAnswer | None) -> None:
        active.oracle = self._oracles.recall(active.segment.completion.tool, answer)

    def _prepare(self, active: Active, completion: Completion, captured: Captured) -> None:
        prepared = self._requests.prepare(completion, captured)
        self._effects.post(lambda: self._prepared(active, prepared))
        self._requests.check_usable(prepared.request.observation)
        self._effects.post(lambda: self._may_be_asked(active, prepared.request))

    @contextmanager
    def _spawned(
        self, active: Active, finish: Callable[[Active, EvaluationError], None] | None = None
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

    def _post_judged(self, active: Active, answer: Verdict | EvaluationError) -> None:
        self._effects.post(lambda: self._judged(active, answer))

    # --- back on the pipeline's thread ----------------------------------------------------------

    def _is_current(self, active: Active) -> bool:
        return self._active.get(active.key) is active

    def _stored(self, active: Active, name: str, digest: str) -> None:
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

    def _may_be_asked(self, active: Active, request: EvaluationRequest) -> None:
        """Ask the judge now, or when the evidence is written."""
        if active.is_being_written:
            active.question = request
        else:
            self._ask(active, request)

    def _finish_when_stored(self, active: Active, error: EvaluationError) -> None:
        """End a segment as an error that can be judged again, from the evidence."""
        if active.is_being_written:
            active.ending = error
        else:
            self._finish(active, error)

    def _prepared(self, active: Active, prepared: Prepared) -> None:
        """Note what an outcome will rest on, be it a verdict or that nobody can tell."""
        active.digest = prepared.digest
        active.observed = prepared.observed
        active.observation = prepared.request.observation

    def _ask(self, active: Active, request: EvaluationRequest) -> None:
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
                # An answer comes back by the queue, so that it is never shown before the steps.
                active.call = self._reports.call(
                    tool, judge, request, lambda answer: self._post_judged(active, answer)
                )
                if captured:
                    self._recorder.show(active.segment, Stage.CAPTURED)
                self._recorder.show(active.segment, Stage.STARTED, judge.evaluator)

    def _judged(self, active: Active, answer: Verdict | EvaluationError) -> None:
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

    def _advance(self, active: Active, state: SegmentState) -> bool:
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

    def _finish(self, active: Active, answer: Verdict | EvaluationError) -> None:
        """The evaluation of a segment has come to its end; a late end is dropped."""
        if not self._is_current(active):
            log.info('a late answer for run %r segment %d was dropped', *active.key)
            return
        self._decide(
            active,
            self._recorder.outcome(
                active.segment,
                _with_stamps(answer, active.observation),
                evaluator=active.evaluator,
                input_digest=active.digest,
                observed=active.observed,
            ),
        )

    def _decide(self, active: Active, outcome: Outcome) -> Outcome:
        del self._active[active.key]
        # A call knows whom it answers: in a circle, the pictures would outlive the segment.
        active.capture = active.step = active.call = None
        self._captures.tap()
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


def _with_stamps(
    answer: Verdict | EvaluationError, observation: Observation | None
) -> Verdict | EvaluationError:
    """Say in the evidence whose stamps are no more than the time of receipt."""
    if observation is None or not isinstance(answer, Verdict):
        return answer
    parts: list[View | State] = [*observation.views.values(), *observation.states.values()]
    names = [part.name for part in parts if part.stamp_source == 'receipt']
    if not names:
        return answer
    line = f'stamped on receipt, not by the source: {", ".join(names)}'
    kept = answer.evidence[: MAX_EVIDENCE_LINES - 1]
    return dataclasses.replace(answer, evidence=clean_evidence((*kept, line)))
