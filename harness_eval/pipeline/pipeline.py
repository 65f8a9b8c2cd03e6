"""The pipeline's face: what comes in, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
import dataclasses
import logging

from harness_eval.cases import CaseStore
from harness_eval.config import Config
from harness_eval.contract import EvaluationError, LedgerError
from harness_eval.decode import Decoder
from harness_eval.ledger import Ledger
from harness_eval.oracle import OracleCalls
from harness_eval.pipeline.effects import Effects, Guarded, Waiter
from harness_eval.pipeline.eras import Eras
from harness_eval.pipeline.evaluations import Evaluations
from harness_eval.pipeline.oracles import Oracles
from harness_eval.pipeline.recorder import Recorder
from harness_eval.reported_calls import Judge
from harness_eval.requests import Requests
from harness_eval.runs import (
    Admission,
    admit,
    Arrival,
    CLOSED,
    Completion,
    id_problem,
    internal_error,
    OPEN_AGAIN,
    Outcome,
    OutcomeKind,
    PENDING,
    printable,
    Ruling,
    Run,
    screen,
    Segment,
    SegmentState,
)
from harness_eval.scene_graph import Update

log = logging.getLogger('harness_eval.pipeline')

_RECEIPTS = 'receipts'
_TICKS = 'ticks'


class Pipeline:
    """Evaluates runs; see the package for its threading.

    Args:
        config: The whole configuration.
        ledger: The durable record.
        cases: Where evidence is kept.
        judges: The evaluators by name, each behind its calls.
        decoder: Reads messages.
        effects: The world around.
        topics: Names of the topics as resolved, by their names in the configuration.
        oracles: Who knows the truth about a tool, by tool.
    """

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        cases: CaseStore,
        judges: Mapping[str, Judge],
        decoder: Decoder,
        effects: Effects,
        topics: Mapping[str, str] | None = None,
        oracles: Mapping[str, OracleCalls] | None = None,
    ) -> None:
        self._config = config
        self._cases = cases
        self._effects = Guarded(effects, lambda: self._recorder.count('publishing faults'))
        self._recorder = Recorder(
            config,
            ledger,
            self._effects,
            lambda: self._evaluations.orders(),
            lambda: self._take_up(),
        )
        self._evaluations = Evaluations(
            config,
            cases,
            judges,
            decoder,
            self._effects,
            Requests(config, decoder, topics),
            self._recorder,
            Oracles(oracles or {}, cases, self._effects, self._recorder.count),
        )
        self._eras = Eras(*ledger.last_clock)

    @property
    def capturing(self) -> bool:
        """Whether any run waits for frames; :meth:`tick` is due all the time while it does."""
        return self._evaluations.capturing

    @property
    def judging(self) -> bool:
        """Whether any run waits for something other than frames."""
        return self._evaluations.judging

    @property
    def capture_deadlines(self) -> list[tuple[int, float]]:
        """When each wait for frames ends: nanoseconds of the ROS clock and steady seconds.

        It ends in the first :meth:`tick` after either of the two.
        """
        return self._evaluations.capture_deadlines

    @property
    def ledger_fault(self) -> str:
        """Why the ledger cannot be written now; empty if it can."""
        return self._recorder.fault

    @property
    def counts(self) -> Mapping[str, int]:
        """How often what happened, for diagnostics."""
        return self._recorder.counts

    def resume(self) -> None:
        """Go on where a process before this one stopped."""
        self._cases.clear_leftovers()
        try:
            self._recorder.resume()
        except LedgerError as error:
            self._recorder.failed(error)
            return  # all of this is done when the ledger answers
        self._recorder.publish_pending()
        self._take_up()
        self.tick()

    def _take_up(self) -> None:
        """Take up segments on record that have no outcome and that nobody evaluates.

        A process before this one left them, or a commit that was reported as failed.
        """
        try:
            left = [
                s for s in self._recorder.pending() if s.completion.key not in self._evaluations
            ]
            runs = {s.completion.key: self._recorder.run(s.completion.run_id) for s in left}
        except LedgerError as error:
            self._recorder.failed(error)
            return
        self._evaluations.adopt(left)  # all of them, so that none is released past an earlier one
        for segment in left:
            run = runs[segment.completion.key]
            if run is not None and run.interrupted:
                self._evaluations.interrupt(segment, 'interrupted before a restart')
            elif segment.state is SegmentState.RECEIVED or not segment.evidence:
                self._evaluations.fail(
                    segment,
                    EvaluationError(
                        'evidence_lost',
                        'the node was stopped, or could not write its ledger, before the views '
                        'were stored, and what they showed then cannot be seen any more; run the '
                        'tool again under a new run id',
                    ),
                )
            else:
                self._evaluations.restore(segment)

    def completion(
        self, completion: Completion, receipt: int, waiter: Waiter | None = None
    ) -> None:
        """A run or a segment has ended.

        Args:
            completion: What was reported.
            receipt: Nanoseconds of its receipt on the node's clock.
            waiter: Gets the outcome, once and whatever it is.
        """
        self._eras.see(_RECEIPTS, receipt)
        try:
            self._admit(completion, receipt, waiter)
        except LedgerError as error:
            self._recorder.failed(error)
            self._effects.tell(waiter, self._recorder.refuse(completion, error, receipt))
        except Exception as error:
            log.exception('a fault in taking a completion; others are taken')
            answer = self._recorder.refuse(completion, internal_error(error), receipt)
            self._effects.tell(waiter, answer)

    def frame(self, topic: str, kind: str, data: bytes, receipt: int) -> None:
        """A message came on a topic that somebody waits for.

        Args:
            topic: The topic as resolved.
            kind: Message type.
            data: The CDR bytes as received.
            receipt: Nanoseconds of the receipt on the node's clock.
        """
        self._eras.see(_RECEIPTS, receipt)
        self._evaluations.frame(topic, kind, data, receipt)

    def propose(self, update: Update) -> None:
        """Somebody proposes an update of the scene graph."""
        self._recorder.propose(update)

    def refuse_proposal(self, update: Update, reason: str) -> None:
        """Reject a proposal that could not even be read."""
        self._recorder.refuse_proposal(update, f'invalid_update: {reason}')

    def interrupt(self, run_id: str, reason: str) -> tuple[bool, str]:
        """Stop the evaluation of a run; before its completion this leaves a tombstone.

        Returns:
            Whether the run is (or will be) interrupted, and a message.
        """
        problem = id_problem(run_id) if run_id else 'that is empty'
        if problem:
            return False, f'a run id {problem}'
        try:
            return self._interrupt(run_id, self._recorder.run(run_id), printable(reason, 500))
        except LedgerError as error:
            self._recorder.failed(error)
            return False, error.message

    def judge_again(self, run_id: str, number: int) -> tuple[int, str]:
        """Judge an open segment again, from its stored evidence alone.

        Returns:
            Number of the new attempt and an empty message; or 0 and why it was refused.
        """
        try:
            segment, refusal = _to_judge_again(run_id, number, self._recorder.run(run_id))
            if segment is None:
                return 0, refusal
            # By the rules of now: that is what an operator asks for who has changed them.
            again = dataclasses.replace(
                segment,
                state=SegmentState.CAPTURED,
                attempt=segment.attempt + 1,
                rules=self._evaluations.basis(segment.completion.tool).rules,
                starts=0,
            )
            self._recorder.advance(again)
        except LedgerError as error:
            self._recorder.failed(error)
            return 0, error.message
        self._evaluations.restore(again)
        return again.attempt, ''

    def judge_stored(
        self,
        completion: Completion,
        receipt: int,
        evidence: tuple[str, str],
        waiter: Waiter | None = None,
    ) -> None:
        """Judge a segment by the rules of now, from evidence that another process has stored.

        Args:
            completion: What was reported then.
            receipt: Nanoseconds of its receipt then.
            evidence: Name of its case, and the digest of the frames in it.
            waiter: Gets the outcome, once and whatever it is.

        Raises:
            LedgerError: It could not be put on record.
        """
        name, digest = evidence
        segment = dataclasses.replace(
            self._accept(completion, receipt),
            state=SegmentState.CAPTURED,
            evidence=name,
            evidence_digest=digest,
        )
        self._recorder.advance(segment)
        self._evaluations.restore(segment, waiter)

    def tick(self, ros_now: int | None = None) -> None:
        """Time has passed: look at every deadline.

        Args:
            ros_now: Nanoseconds of the ROS clock at a moment before which everything that came has
                been handed in; default: now.
        """
        now = self._effects.ros_now() if ros_now is None else ros_now
        self._eras.see(_TICKS, now)
        self._evaluations.tick(now)
        self._recorder.tick()

    def clock_jumped(self) -> None:
        """The node's clock has gone back, as whoever keeps it says.

        Times that come in show it too, but only those that come while the node has work.
        """
        self._eras.jumped()

    def wakeup(self) -> float | None:
        """Steady seconds at which :meth:`tick` has something to do; None: nothing is due."""
        times = [self._evaluations.wakeup(), self._recorder.wakeup()]
        return min((time for time in times if time is not None), default=None)

    def end_captures(self, kind: str, message: str) -> None:
        """End every wait for frames as an error, for example because the node is stopped."""
        self._evaluations.end_captures(kind, message)

    def publish_pending(self) -> None:
        """Publish what is decided and was not published yet."""
        self._recorder.publish_pending()

    def _admit(self, completion: Completion, receipt: int, waiter: Waiter | None) -> None:
        # What the record cannot hold, or need not, is ruled on without it.
        admission = screen(completion, self._config.evaluation)
        if admission is not None:
            self._follow(admission, completion, receipt, None, waiter)
            return
        with self._evaluations.expecting(completion, receipt):
            run = self._recorder.run(completion.run_id)
            arrival = Arrival(receipt, self._recorder.wall_now(), self._eras.count)
            admission = admit(completion, run, self._config.evaluation, arrival)
            self._follow(admission, completion, receipt, run, waiter)

    def _follow(
        self,
        admission: Admission,
        completion: Completion,
        receipt: int,
        run: Run | None,
        waiter: Waiter | None,
    ) -> None:
        error = EvaluationError(admission.reason, admission.detail)
        if admission.ruling is Ruling.TAKE:
            self._evaluations.begin(self._accept(completion, receipt), waiter)
        elif admission.ruling is Ruling.ANSWER:
            self._answer(completion, run, waiter)
        elif admission.ruling is Ruling.REJECT:
            self._recorder.reject(completion, f'{admission.reason}: {admission.detail}')
            self._effects.tell(waiter, self._rejection(completion, admission, receipt))
        elif admission.ruling is Ruling.IGNORE:
            self._effects.tell(
                waiter, self._recorder.unrecorded_answer(completion, error, receipt)
            )
        elif admission.recorded:
            segment = self._accept(completion, receipt)
            self._evaluations.fail(segment, error, waiter)
        else:
            self._effects.tell(waiter, self._recorder.refuse(completion, error, receipt))

    def _accept(self, completion: Completion, receipt: int) -> Segment:
        return self._recorder.accept(
            completion, receipt, self._evaluations.basis(completion.tool), self._eras.count
        )

    def _answer(self, completion: Completion, run: Run | None, waiter: Waiter | None) -> None:
        """Give the recorded answer again, or have it given when it is there."""
        self._recorder.count('repeated')
        key = completion.key
        segments = () if run is None else run.segments
        known = next((s for s in segments if s.completion.segment == completion.segment), None)
        outcome = self._recorder.unrecorded(*key)
        if outcome is None and known is not None and known.state not in PENDING:
            outcome = known.outcome
        if outcome is None:  # it is under way, or will be taken up when the ledger answers
            self._evaluations.wait(key, waiter)
        else:
            self._effects.tell(waiter, outcome)
            self._effects.outcome(outcome)

    def _rejection(self, completion: Completion, admission: Admission, receipt: int) -> Outcome:
        error = EvaluationError(admission.reason, admission.detail)
        outcome = self._recorder.unrecorded_answer(completion, error, receipt)
        if admission.reason == 'run_interrupted':
            return dataclasses.replace(outcome, kind=OutcomeKind.INTERRUPTED)
        return outcome

    def _interrupt(self, run_id: str, run: Run | None, reason: str) -> tuple[bool, str]:
        last = None if run is None else run.last
        if run is not None and run.interrupted:
            return True, 'it was interrupted before'
        if last is not None and last.state in CLOSED:
            return False, f'it has ended as {last.state.value}'
        if last is None or last.completion.key not in self._evaluations:
            self._recorder.interrupt(run_id, last, reason)
        else:
            outcome = self._evaluations.interrupt(last, reason)
            if outcome.kind is not OutcomeKind.INTERRUPTED:
                return False, f'it ended in an error: {outcome.message}'
        return True, 'interrupted'


def _to_judge_again(run_id: str, number: int, run: Run | None) -> tuple[Segment | None, str]:
    """The segment to judge again, or why it is not judged again."""
    name = repr(printable(run_id, 80))
    if run is None or run.last is None:
        return None, f'there is no run {name} on record'
    segment = next((s for s in run.segments if s.completion.segment == number), None)
    if segment is None:
        return None, f'run {name} has no segment {number}'
    if run.interrupted:
        return None, f'run {name} was interrupted'
    if segment.state not in OPEN_AGAIN:
        return None, (
            f'segment {number} of run {name} is {segment.state.value}; only errors and '
            'abstentions can be judged again'
        )
    if segment is not run.last:
        return None, f'run {name} went on with segment {run.last.completion.segment}'
    if not segment.evidence:
        return None, (
            f'no evidence of run {name} segment {number} is stored, so there is nothing to judge; '
            'run the tool again under a new run id'
        )
    return segment, ''
