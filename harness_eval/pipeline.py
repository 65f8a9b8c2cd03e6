"""From a completion to its outcome: puts runs, capture, evaluators, ledger and gate together.

Free of ROS. A live node and a replay feed the same object with completions, frames and proposals
and get the same outcomes. Threading: every method is called from one thread, the pipeline's own.
What takes long (writing evidence, decoding, judging) is handed to ``effects.spawn`` or to a
judge's own thread and comes back through ``effects.post``; nothing here waits. Each transition
is committed to the ledger before :class:`Effects` shows it.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from harness_eval.calls import CallHandle, JudgeCalls
from harness_eval.capture import Capture, Captured, Frame, StreamSpec, TopicFacts
from harness_eval.cases import CaseStore
from harness_eval.config.models import Config
from harness_eval.contract import (
    CaptureError,
    DecodeError,
    EvaluationError,
    LedgerError,
    Observation,
    Verdict,
)
from harness_eval.decode import Decoder
from harness_eval.gate import Held, RunFacts
from harness_eval.ledger import REJECTED, Ledger, UpdateRecord
from harness_eval.proposals import Proposals, ledger_rejection, unrecorded_rejection
from harness_eval.requests import Prepared, Requests
from harness_eval.runs import (
    CLOSED,
    OPEN_AGAIN,
    PENDING,
    Admission,
    Completion,
    Outcome,
    OutcomeKind,
    Ruling,
    Segment,
    SegmentState,
    admit,
    id_problem,
    interruption,
    outcome_of,
    printable,
)
from harness_eval.scene_graph import Op, Update
from harness_eval.stages import Event, Stage

log = logging.getLogger('harness_eval.pipeline')

STORE_TIMEOUT = 30.0
"""Seconds until evidence that is still being written counts as not stored (a disk that hangs)."""
LEDGER_RETRY = 1.0
"""Seconds between two tries to put on record what a full or locked disk refused."""


Waiter = Callable[[Outcome], None]
"""Gets the outcome of the segment that somebody waits for."""


class Effects(Protocol):
    """What the pipeline does to the world around it."""

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


@dataclass(eq=False)
class _Active:
    """A segment that is being evaluated. Its identity tells late answers from current ones."""

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
    def key(self) -> tuple[str, int]:
        return self.segment.completion.run_id, self.segment.completion.segment


class Pipeline:
    """Evaluates runs.

    Args:
        config: The whole configuration.
        ledger: The durable record.
        cases: Where evidence is kept.
        judges: The evaluators by name, each behind its calls.
        decoder: Reads messages.
        effects: The world around.
        topics: Names of the topics as resolved, by their names in the configuration.
    """

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        cases: CaseStore,
        judges: Mapping[str, JudgeCalls],
        decoder: Decoder,
        effects: Effects,
        topics: Mapping[str, str] | None = None,
    ) -> None:
        self._config = config
        self._ledger = ledger
        self._cases = cases
        self._judges = judges
        self._decoder = decoder
        self._effects = effects
        self._requests = Requests(config, decoder, topics)
        self._proposals = Proposals(ledger, config.scene_graph, effects.steady_now)
        self._active: dict[tuple[str, int], _Active] = {}
        self._waiters: dict[tuple[str, int], list[Waiter]] = {}
        self._unrecorded: dict[tuple[str, int], tuple[Segment, Outcome, tuple[Op, ...]]] = {}
        self._unpublished = False
        self._undecodable: dict[str, str] = {}
        self._retry_at: float | None = None
        self.ledger_fault = ''
        self.counts: dict[str, int] = {}

    # --- what comes in ----------------------------------------------------------------------

    def resume(self) -> None:
        """Go on where a process before this one stopped."""
        self._cases.clear_leftovers()
        self._proposals.resume()
        for segment in self._ledger.pending():
            self._resume_segment(segment)
        self.publish_pending()
        self.tick()

    def completion(
        self, completion: Completion, receipt: int, waiter: Waiter | None = None
    ) -> None:
        """A run or a segment has ended.

        Args:
            completion: What was reported.
            receipt: Nanoseconds of its receipt on the node's clock.
            waiter: Gets the outcome, once and whatever it is.
        """
        try:
            run = self._ledger.run(completion.run_id)
        except LedgerError as error:
            self._ledger_failed(error)
            self._refuse(completion, error, receipt, waiter)
            return
        admission = admit(completion, run, self._config.evaluation, receipt)
        if admission.ruling is Ruling.TAKE:
            self._take(completion, receipt, waiter)
        elif admission.ruling is Ruling.ANSWER:
            self._answer(completion, waiter)
        elif admission.ruling is Ruling.FAIL:
            self._fail(completion, admission, receipt, waiter)
        elif admission.ruling is Ruling.REJECT:
            self._reject(completion, admission, receipt, waiter)
        elif waiter is not None:
            waiter(self._unrecorded_outcome(completion, receipt, _error_of(admission)))

    def frame(self, topic: str, kind: str, data: bytes, receipt: int) -> None:
        """A message came on a topic that somebody waits for.

        Args:
            topic: The topic as resolved.
            kind: Message type.
            data: The CDR bytes as received.
            receipt: Nanoseconds of the receipt on the node's clock.
        """
        waiting = [
            (active, spec)
            for active in self._active.values()
            if active.capture is not None
            for spec in active.streams
            if spec.topic == topic
        ]
        if not waiting:
            return
        try:
            header = self._decoder.stamp(kind, data)
        except DecodeError as error:
            self._undecodable[topic] = error.message
            return
        for active, spec in waiting:
            if active.capture is None:
                continue  # an earlier stream of this very message completed it
            if header is None and spec.stamp_source == 'header':
                self._finish(active, _without_header(spec, kind))
                continue
            from_receipt = header is None or spec.stamp_source == 'receipt'
            active.capture.add(
                Frame(
                    stream=spec.name,
                    topic=topic,
                    type=kind,
                    stamp=receipt if from_receipt or header is None else header.stamp,
                    receipt=receipt,
                    data=data,
                    frame_id='' if header is None else header.frame_id,
                    stamp_source='receipt' if from_receipt else 'header',
                    payload_offset=0 if header is None else header.payload_offset,
                )
            )
        for active in dict.fromkeys(active for active, _ in waiting):
            self._poll(active)

    def propose(self, update: Update) -> None:
        """Somebody proposes an update of the scene graph."""
        refusal = self._proposals.refusal(update)
        if refusal:
            self._effects.update(unrecorded_rejection(update, refusal))
            return
        try:
            known = self._proposals.known(update)
            if known is None:
                orders = self._pending_orders()
                self._publish_updates(
                    self._proposals.hold(update, orders, self._effects.ros_now())
                )
            elif known.update.ops != update.ops:
                self._effects.update(
                    unrecorded_rejection(
                        update,
                        'conflicting_update: an update of this run and name with other operations '
                        f'is on record as {known.state}; give each update a name of its own',
                    )
                )
        except LedgerError as error:
            self._ledger_failed(error)
            self._effects.update(ledger_rejection(update, error))

    def refuse_proposal(self, update: Update, reason: str) -> None:
        """Reject a proposal that could not even be read."""
        self._effects.update(unrecorded_rejection(update, f'invalid_update: {reason}'))

    def interrupt(self, run_id: str, reason: str) -> tuple[bool, str]:
        """Stop the evaluation of a run; before its completion this leaves a tombstone.

        Returns:
            Whether the run is (or will be) interrupted, and a message.
        """
        problem = id_problem(run_id) if run_id else 'that is empty'
        if problem:
            return False, f'a run id {problem}'
        try:
            run = self._ledger.run(run_id)
            last = None if run is None else run.last
            if run is not None and run.interrupted:
                return True, 'it was interrupted before'
            if last is not None and last.state in CLOSED:
                return False, f'it has ended as {last.state.value}'
            self._interrupt(run_id, last, printable(reason, 500))
        except LedgerError as error:
            self._ledger_failed(error)
            return False, error.message
        return True, 'interrupted'

    def judge_again(self, run_id: str, number: int) -> tuple[int, str]:
        """Judge an open segment again, from its stored evidence alone.

        Returns:
            Number of the new attempt and an empty message; or 0 and why it was refused.
        """
        try:
            run = self._ledger.run(run_id)
            if run is None or not run.segments:
                return 0, f'there is no run {printable(run_id, 80)!r} on record'
            segment = next((s for s in run.segments if s.completion.segment == number), None)
            refusal = _judge_again_refusal(run_id, number, run.interrupted, run.last, segment)
            if refusal or segment is None:
                return 0, refusal
            again = dataclasses.replace(
                segment, state=SegmentState.CAPTURED, attempt=segment.attempt + 1
            )
            effects = self._requests.effects(again.completion)
            self._commit_state(again)
        except LedgerError as error:
            self._ledger_failed(error)
            return 0, error.message
        except EvaluationError as error:
            return 0, error.message
        self._restore(_Active(again, effects))
        return again.attempt, ''

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
        if self._retry_at is not None and now >= self._retry_at:
            self._retry_ledger()
        deadline = self._proposals.deadline()
        if deadline is not None and now > deadline:
            self._expire_proposals()

    def wakeup(self) -> float | None:
        """Steady seconds at which :meth:`tick` has something to do; None: nothing is due.

        While a capture waits, :meth:`tick` is due all the time, since its deadlines lie on the
        ROS clock; see :attr:`capturing`.
        """
        times = [a.storing_until for a in self._active.values() if a.storing_until is not None]
        for due in (self._retry_at, self._proposals.deadline()):
            if due is not None:
                times.append(due)
        return min(times, default=None)

    @property
    def capturing(self) -> bool:
        """Whether any run waits for frames."""
        return any(active.capture is not None for active in self._active.values())

    def end_captures(self, kind: str, message: str) -> None:
        """End every wait for frames as an error, for example because the node is stopped."""
        for active in list(self._active.values()):
            if active.capture is not None:
                self._finish(active, CaptureError(kind, message))

    def publish_pending(self) -> None:
        """Publish what is decided and was not published yet."""
        try:
            outcomes = self._ledger.unpublished_outcomes()
            updates = self._ledger.unpublished_updates()
            self._unpublished = False
            self._publish(outcomes, updates)
        except LedgerError as error:
            self._ledger_failed(error)

    # --- completions ------------------------------------------------------------------------

    def _take(self, completion: Completion, receipt: int, waiter: Waiter | None) -> None:
        try:
            with self._ledger.transaction():
                segment = self._ledger.add_segment(completion, receipt)
        except LedgerError as error:
            self._ledger_failed(error)
            self._refuse(completion, error, receipt, waiter)
            return
        self._count('completions')
        active = _Active(segment)
        self._active[active.key] = active
        if waiter is not None:
            self._waiters.setdefault(active.key, []).append(waiter)
        self._proposals.note(completion.run_id, segment.state, segment.order)
        self._event(segment, Stage.RECEIVED)
        try:
            active.effects = self._requests.effects(completion)
            self._requests.post_condition_text(completion)
        except EvaluationError as error:
            self._finish(active, error)
            return
        active.streams = self._requests.streams_of(completion.tool)
        active.capture = Capture(
            active.streams,
            segment.t_end,
            self._config.capture,
            ros_start=self._effects.ros_now(),
            wall_start=self._effects.steady_now(),
        )
        self._tap()

    def _answer(self, completion: Completion, waiter: Waiter | None) -> None:
        key = (completion.run_id, completion.segment)
        self._count('repeated')
        if key in self._active:
            if waiter is not None:
                self._waiters.setdefault(key, []).append(waiter)
            return
        if key in self._unrecorded:
            outcome: Outcome | None = self._unrecorded[key][1]
        else:
            try:
                run = self._ledger.run(completion.run_id)
            except LedgerError as error:
                self._ledger_failed(error)
                self._refuse(completion, error, self._effects.ros_now(), waiter)
                return
            segments = () if run is None else run.segments
            outcome = next(
                (s.outcome for s in segments if s.completion.segment == completion.segment), None
            )
        if outcome is not None:
            if waiter is not None:
                waiter(outcome)
            self._effects.outcome(outcome)

    def _reject(
        self, completion: Completion, admission: Admission, receipt: int, waiter: Waiter | None
    ) -> None:
        self._count('rejected')
        self._effects.event(
            Event(
                printable(completion.run_id, 256),
                printable(completion.tool, 256),
                completion.segment,
                Stage.REJECTED,
                self._effects.ros_now(),
                f'{admission.reason}: {admission.detail}',
            )
        )
        if waiter is not None:
            outcome = self._unrecorded_outcome(completion, receipt, _error_of(admission))
            if admission.reason == 'run_interrupted':
                outcome = dataclasses.replace(outcome, kind=OutcomeKind.INTERRUPTED)
            waiter(outcome)

    def _fail(
        self, completion: Completion, admission: Admission, receipt: int, waiter: Waiter | None
    ) -> None:
        if not admission.recorded:
            self._refuse(completion, _error_of(admission), receipt, waiter)
            return
        try:
            with self._ledger.transaction():
                segment = self._ledger.add_segment(completion, receipt)
        except LedgerError as error:
            self._ledger_failed(error)
            self._refuse(completion, error, receipt, waiter)
            return
        active = _Active(segment)
        self._active[active.key] = active
        if waiter is not None:
            self._waiters.setdefault(active.key, []).append(waiter)
        self._event(segment, Stage.RECEIVED)
        self._finish(active, _error_of(admission))

    def _refuse(
        self,
        completion: Completion,
        error: EvaluationError,
        receipt: int,
        waiter: Waiter | None,
    ) -> None:
        """Answer a completion that cannot be put on record with an error."""
        self._count('refused')
        outcome = self._unrecorded_outcome(completion, receipt, error)
        log.warning('run %r: %s: %s', outcome.run_id, error.kind, error.message)
        self._effects.outcome(outcome)
        if waiter is not None:
            waiter(outcome)

    def _unrecorded_outcome(
        self, completion: Completion, receipt: int, error: EvaluationError
    ) -> Outcome:
        cut = Completion(
            printable(completion.run_id, 256),
            printable(completion.tool, 256),
            completion.segment,
            completion.stamp,
        )
        segment = Segment(cut, order=0, receipt=receipt, attempt=0)
        return self._outcome(segment, error)

    # --- evaluation -------------------------------------------------------------------------

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

    def _store(self, active: _Active, captured: Captured) -> None:
        """Write the evidence, then prepare the question; on a spawned thread."""
        try:
            name = self._cases.write(active.segment, captured)
        except EvaluationError as error:
            failure = error
            self._effects.post(lambda: self._finish(active, failure))
            return
        self._effects.post(lambda: self._stored(active, name))
        self._prepare(active, captured)

    def _stored(self, active: _Active, name: str) -> None:
        if self._active.get(active.key) is not active:
            self._effects.spawn(lambda: self._cases.remove(name))
            return
        active.storing_until = None
        if self._advance(active, SegmentState.CAPTURED, evidence=name):
            self._event(active.segment, Stage.CAPTURED)

    def _prepare(self, active: _Active, captured: Captured) -> None:
        """Make the question; on a spawned thread."""
        try:
            prepared = self._requests.prepare(active.segment.completion, captured)
        except EvaluationError as error:
            failure = error
            self._effects.post(lambda: self._finish(active, failure))
            return
        except Exception as error:
            log.exception('the question for run %r could not be made', active.key[0])
            broken = EvaluationError('internal_error', f'{type(error).__name__}: {error}'[:500])
            self._effects.post(lambda: self._finish(active, broken))
            return
        self._effects.post(lambda: self._prepared(active, prepared))

    def _prepared(self, active: _Active, prepared: Prepared) -> None:
        if self._active.get(active.key) is not active:
            return
        judge = self._judges[self._config.evaluator_of(active.segment.completion.tool)]
        active.evaluator = judge.evaluator
        active.digest = prepared.digest
        active.observed = prepared.observed
        active.observation = prepared.request.observation
        if not self._advance(active, SegmentState.STARTED):
            return
        self._event(active.segment, Stage.STARTED, judge.evaluator)
        active.call = judge.call(
            prepared.request,
            lambda answer: self._effects.post(lambda: self._finish(active, answer)),
        )

    def _advance(self, active: _Active, state: SegmentState, evidence: str = '') -> bool:
        segment = dataclasses.replace(
            active.segment, state=state, evidence=evidence or active.segment.evidence
        )
        try:
            self._commit_state(segment)
        except LedgerError as error:
            self._ledger_failed(error)
            self._finish(active, error)
            return False
        active.segment = segment
        return True

    def _commit_state(self, segment: Segment) -> None:
        with self._ledger.transaction():
            self._ledger.set_state(segment)
        self._proposals.note(segment.completion.run_id, segment.state, segment.order)

    def _restore(self, active: _Active) -> None:
        """Judge a segment from its stored evidence."""
        self._active[active.key] = active
        self._proposals.note(active.key[0], active.segment.state, active.segment.order)
        self._event(active.segment, Stage.CAPTURED, 'from stored evidence')

        def work() -> None:
            try:
                case = self._cases.read(active.segment.evidence)
            except EvaluationError as error:
                failure = error
                self._effects.post(lambda: self._finish(active, failure))
                return
            self._prepare(active, case.captured)

        self._effects.spawn(work)

    def _resume_segment(self, segment: Segment) -> None:
        active = _Active(segment)
        if segment.state is SegmentState.RECEIVED or not segment.evidence:
            self._active[active.key] = active
            self._finish(
                active,
                EvaluationError(
                    'evidence_lost',
                    'the node was stopped before the views were stored, and what they showed then '
                    'cannot be seen any more; run the tool again under a new run id',
                ),
            )
            return
        try:
            active.effects = self._requests.effects(segment.completion)
        except EvaluationError as error:
            self._active[active.key] = active
            self._finish(active, error)
            return
        self._restore(active)

    # --- outcomes ---------------------------------------------------------------------------

    def _finish(self, active: _Active, answer: Verdict | EvaluationError) -> None:
        """The evaluation of a segment has come to its end; a late end is dropped."""
        if self._active.get(active.key) is not active:
            log.info('a late answer for run %r segment %d was dropped', *active.key)
            return
        self._decide(
            active,
            self._outcome(
                active.segment,
                answer,
                evaluator=active.evaluator,
                input_digest=active.digest,
                observed=active.observed,
            ),
        )

    def _outcome(
        self,
        segment: Segment,
        answer: Verdict | EvaluationError,
        *,
        evaluator: str = '',
        input_digest: str = '',
        observed: tuple[int, int] = (0, 0),
    ) -> Outcome:
        return outcome_of(
            answer,
            segment,
            decided_at=self._effects.ros_now(),
            max_segments=self._config.evaluation.max_segments,
            evaluator=evaluator,
            input_digest=input_digest,
            observed=observed,
        )

    def _decide(self, active: _Active, outcome: Outcome) -> None:
        del self._active[active.key]
        active.capture = None
        self._tap()
        segment = dataclasses.replace(
            active.segment, state=outcome.state, attempt=outcome.attempt, outcome=outcome
        )
        try:
            updates = self._record(segment, outcome, active.effects)
        except LedgerError as error:
            self._ledger_failed(error)
            outcome = self._outcome(segment, error, evaluator=active.evaluator)
            self._unrecorded[active.key] = (segment, outcome, ())
            self._effects.outcome(outcome)
            self._wake_waiters(active.key, outcome)
            return
        self._announce(segment, outcome, updates)
        observation = active.observation
        self._effects.spawn(lambda: self._keep(segment, outcome, observation))

    def _record(
        self, segment: Segment, outcome: Outcome, effects: tuple[Op, ...]
    ) -> list[UpdateRecord]:
        """Put an outcome and the updates that it frees or ends on record, in one commit."""
        run_id = segment.completion.run_id
        changed: dict[str, RunFacts] = {
            run_id: self._proposals.facts_after(outcome.state, segment.order)
        }
        extra: list[Held] = []
        with self._ledger.transaction():
            self._ledger.decide(segment, outcome)
            if outcome.state is SegmentState.SUCCESS and effects:
                number = segment.completion.segment
                extra.append(self._proposals.hold_effect_inside(run_id, number, effects))
            made, updates = self._proposals.settle_inside(
                self._pending_orders(), outcome.decided_at, extra=extra, changed=changed
            )
        self._proposals.committed(made, extra=extra, changed=changed)
        return updates

    def _announce(
        self, segment: Segment, outcome: Outcome, updates: Iterable[UpdateRecord]
    ) -> None:
        self._count(outcome.label)
        self._publish([outcome], list(updates))
        self._event(segment, Stage.COMPLETED, outcome.label)
        self._wake_waiters((outcome.run_id, outcome.segment), outcome)

    def _keep(self, segment: Segment, outcome: Outcome, observation: Observation | None) -> None:
        """Keep or delete the evidence, and show the outcome; on a spawned thread."""
        try:
            self._effects.picture(outcome, observation)
            if not segment.evidence:
                return
            self._cases.finish(segment.evidence, outcome)
            keep = self._config.evidence.keep
            done = outcome.state not in OPEN_AGAIN
            success = outcome.state is SegmentState.SUCCESS
            if done and (keep == 'none' or (keep == 'failures' and success)):
                self._cases.remove(segment.evidence)
                removed = [segment.evidence]
            else:
                removed = self._cases.enforce_bound(keep=self._needed())
        except EvaluationError as error:
            log.warning('%s', error)
            return
        if removed:
            self._effects.post(lambda: self._forget(removed))

    def _needed(self) -> set[str]:
        return {active.segment.evidence for active in list(self._active.values())}

    def _forget(self, removed: list[str]) -> None:
        try:
            with self._ledger.transaction():
                self._ledger.forget_evidence(removed)
        except LedgerError as error:
            self._ledger_failed(error)

    def _interrupt(self, run_id: str, last: Segment | None, reason: str) -> None:
        key = (run_id, -1 if last is None else last.completion.segment)
        active = self._active.get(key)
        if last is None or last.state not in PENDING or active is None:
            order = 0 if last is None else last.order
            changed = {run_id: self._proposals.facts_after(SegmentState.INTERRUPTED, order)}
            stamp = self._effects.ros_now()
            with self._ledger.transaction():
                self._ledger.interrupt(run_id, reason)
                made, updates = self._proposals.settle_inside(
                    self._pending_orders(), stamp, changed=changed
                )
            self._proposals.committed(made, changed=changed)
            self._publish([], updates)
            return
        with self._ledger.transaction():
            self._ledger.interrupt(run_id, reason)
        if active.call is not None:
            active.call.cancel()
        self._decide(active, interruption(active.segment, reason, self._effects.ros_now()))

    # --- publishing, and the ledger's troubles ------------------------------------------------

    def _publish_updates(self, updates: list[UpdateRecord]) -> None:
        if updates:
            self._publish([], updates)

    def _publish(self, outcomes: list[Outcome], updates: list[UpdateRecord]) -> None:
        told = [outcome for outcome in outcomes if self._effects.outcome(outcome)]
        passed = [record for record in updates if self._effects.update(record)]
        for record in updates:
            self._count('updates rejected' if record.state == REJECTED else 'updates released')
        if len(told) < len(outcomes) or len(passed) < len(updates):
            self._unpublished = True
        if not told and not passed:
            return
        try:
            with self._ledger.transaction():
                self._ledger.mark_published(told, passed)
        except LedgerError as error:  # published again after a restart, which consumers stand
            self._ledger_failed(error)

    def _wake_waiters(self, key: tuple[str, int], outcome: Outcome) -> None:
        for waiter in self._waiters.pop(key, ()):
            waiter(outcome)

    def _event(self, segment: Segment, stage: Stage, detail: str = '') -> None:
        completion = segment.completion
        self._effects.event(
            Event(
                completion.run_id,
                completion.tool,
                completion.segment,
                stage,
                self._effects.ros_now(),
                detail,
            )
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

    def _pending_orders(self) -> list[int]:
        return [active.segment.order for active in self._active.values()]

    def _expire_proposals(self) -> None:
        try:
            updates = self._proposals.expire(self._pending_orders(), self._effects.ros_now())
            self._publish_updates(updates)
        except LedgerError as error:
            self._ledger_failed(error)

    def _ledger_failed(self, error: LedgerError) -> None:
        if not self.ledger_fault:
            log.error('%s: %s', error.kind, error.message)
        self.ledger_fault = error.message
        self._count('ledger faults')
        self._retry_at = self._effects.steady_now() + LEDGER_RETRY

    def _retry_ledger(self) -> None:
        """Put on record what could not be written before; try again later if that fails."""
        self._retry_at = None
        try:
            for key, (segment, outcome, effects) in list(self._unrecorded.items()):
                updates = self._record(segment, outcome, effects)
                del self._unrecorded[key]
                self._publish_updates(updates)
            with self._ledger.transaction():
                pass
        except LedgerError as error:
            self._ledger_failed(error)
            return
        if self.ledger_fault:
            log.warning('the ledger can be written again')
        self.ledger_fault = ''
        self._expire_proposals()

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1


def _error_of(admission: Admission) -> EvaluationError:
    return EvaluationError(admission.reason, admission.detail)


def _without_header(spec: StreamSpec, kind: str) -> CaptureError:
    return CaptureError(
        'no_header',
        f'{spec.name!r} comes as {kind}, which carries no stamp; set stamp: receipt for it if the '
        'time of its receipt is good enough',
    )


def _judge_again_refusal(
    run_id: str, number: int, interrupted: bool, last: Segment | None, segment: Segment | None
) -> str:
    if segment is None or last is None:
        return f'run {run_id!r} has no segment {number}'
    if interrupted:
        return f'run {run_id!r} was interrupted'
    if segment.state not in OPEN_AGAIN:
        return (
            f'segment {number} of run {run_id!r} is {segment.state.value}; only errors and '
            'abstentions can be judged again'
        )
    if segment.order != last.order:
        return f'run {run_id!r} went on with segment {last.completion.segment}'
    if not segment.evidence:
        return (
            f'no evidence of run {run_id!r} segment {number} is stored, so there is nothing to '
            'judge; run the tool again under a new run id'
        )
    return ''
