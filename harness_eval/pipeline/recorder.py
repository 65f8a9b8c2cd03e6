"""First on record, then visible: transitions, outcomes and updates, and a ledger that fails."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
import logging

from harness_eval.config import Config
from harness_eval.contract import LedgerError
from harness_eval.gate import Held, RunFacts
from harness_eval.ledger import Ledger, REJECTED, UpdateRecord
from harness_eval.pipeline.answers import Answers
from harness_eval.pipeline.basis import Basis
from harness_eval.pipeline.effects import Guarded
from harness_eval.proposals import ledger_rejection, Proposals, unrecorded_rejection
from harness_eval.runs import (
    Completion,
    INTERNAL_ERROR,
    internal_error,
    Outcome,
    Run,
    Segment,
    SegmentState,
)
from harness_eval.scene_graph import Op, Update
from harness_eval.stages import Stage

log = logging.getLogger('harness_eval.pipeline')

RETIRE_EVERY = 100
"""Accepted segments between two looks at what is so old that the ledger needs it no more."""
LEDGER_RETRY = 1.0
"""Seconds between two tries to put on record what a full or locked disk refused."""


class Recorder(Answers):
    """Puts transitions on record and then shows them.

    A transaction that fails decides nothing: its segment ends as an error that is published and
    put on record as soon as the ledger can be written again. A transaction may also be reported as
    failed and have come through: what the file says then holds.

    To find out that a disk is locked takes time, which everything else waits for. So after a fault
    the ledger is tried once a second, and what comes between is refused at once.

    Args:
        config: The whole configuration.
        ledger: The durable record.
        effects: The world around.
        pending_orders: Order of every segment that has no outcome yet.
        on_recovery: Called when the ledger can be written again after a fault.
    """

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        effects: Guarded,
        pending_orders: Callable[[], list[int]],
        on_recovery: Callable[[], None],
    ) -> None:
        super().__init__(config, effects)
        self._ledger = ledger
        self._pending_orders = pending_orders
        self._on_recovery = on_recovery
        self._proposals = Proposals(ledger, config.scene_graph, effects.steady_now)
        self._unrecorded: dict[tuple[str, int], tuple[Segment, Outcome]] = {}
        self._retry_at: float | None = None
        self._interruptions = 0
        self._backlog = False  # something on record was published to nobody
        self.fault = ''

    # --- reading ----------------------------------------------------------------------------

    def run(self, run_id: str) -> Run | None:
        """The run of that name on record.

        Raises:
            LedgerError: The ledger cannot be read.
        """
        return self._ledger.run(run_id)

    def wall_now(self) -> float:
        """Seconds of the wall clock, as on record."""
        return self._ledger.wall_now()

    def pending(self) -> list[Segment]:
        """Segments that have no outcome on record and none that waits to be put there, in order.

        Raises:
            LedgerError: The ledger cannot be read.
        """
        return [
            segment
            for segment in self._ledger.pending()
            if self.unrecorded(segment.completion.run_id, segment.completion.segment) is None
        ]

    def unrecorded(self, run_id: str, segment: int) -> Outcome | None:
        """The outcome of a segment that is published and waits to be put on record."""
        found = self._unrecorded.get((run_id, segment))
        return None if found is None else found[1]

    def resume(self) -> None:
        """Take what waited at the gate before a restart.

        Raises:
            LedgerError: The ledger cannot be read.
        """
        self._proposals.resume()

    # --- transitions ------------------------------------------------------------------------

    def accept(self, completion: Completion, receipt: int, basis: Basis, era: int) -> Segment:
        """Put a completion on record, and show that it was received.

        Args:
            completion: What was reported.
            receipt: Nanoseconds of its receipt on the node's clock.
            basis: What its judgement is to rest on.
            era: How often that clock had gone back.

        Raises:
            LedgerError: It could not be put on record; it is not accepted.
        """
        self._require_writable()
        with self._ledger.transaction():
            segment = self._ledger.add_segment(
                completion, receipt, streams=basis.streams, rules=basis.rules, era=era
            )
        self.count('completions')
        self._proposals.note(completion.run_id, segment.state, segment.order)
        self.show(segment, Stage.RECEIVED)
        if segment.order % RETIRE_EVERY == 0:
            self._retire()
        return segment

    def advance(self, segment: Segment) -> None:
        """Put state, attempt and evidence of a segment on record.

        Raises:
            LedgerError: They could not be put on record.
        """
        self._require_writable()
        with self._ledger.transaction():
            self._ledger.set_state(segment)
        self._proposals.note(segment.completion.run_id, segment.state, segment.order)

    def decide(self, segment: Segment, outcome: Outcome, effects: tuple[Op, ...]) -> Outcome:
        """Put an outcome on record with all updates that it frees or ends, and show it.

        Args:
            segment: The segment, in the state that the outcome brings.
            outcome: What its evaluation came to.
            effects: What its success does to the scene graph.

        Returns:
            The outcome that was published: the one given, or an error if the ledger failed.
        """
        try:
            updates = self._record(segment, outcome, effects)
        except LedgerError as error:
            self.failed(error)
            outcome = self.outcome(segment, error, evaluator=outcome.evaluator)
            self._unrecorded[outcome.run_id, outcome.segment] = (segment, outcome)
            self._effects.outcome(outcome)
            return outcome
        except Exception as error:
            if outcome.error_kind == INTERNAL_ERROR:
                raise
            log.exception('the outcome of run %r cannot be written down', outcome.run_id)
            return self.decide(segment, self.outcome(segment, internal_error(error)), ())
        self.count(outcome.label)
        self._publish([outcome], updates)
        self.show(segment, Stage.COMPLETED, outcome.label)
        if self._ledger.checkpoint_due:
            self._effects.spawn_spare(lambda: self._beside(self._ledger.checkpoint))
        return outcome

    def interrupt(self, run_id: str, last: Segment | None, reason: str) -> None:
        """Put the interruption of a run that is not being evaluated on record.

        Raises:
            LedgerError: It could not be put on record.
        """
        self._require_writable()
        order = 0 if last is None else last.order
        changed = {run_id: self._proposals.facts_after(SegmentState.INTERRUPTED, order)}
        stamp = self._effects.ros_now()
        with self._proposals.transaction():
            self._ledger.interrupt(run_id, reason)
            made, updates = self._proposals.settle_inside(
                self._pending_orders(), stamp, changed=changed
            )
        self._proposals.committed(made, changed=changed)
        self._publish([], updates)
        self._interruptions += 1
        if self._interruptions % RETIRE_EVERY == 0:
            self._retire()

    def forget_evidence(self, names: list[str]) -> None:
        """Note that cases were deleted to keep within bounds."""
        try:
            self._require_writable()
            with self._ledger.transaction():
                self._ledger.forget_evidence(names)
        except LedgerError as error:
            self.failed(error)

    # --- proposals --------------------------------------------------------------------------

    def propose(self, update: Update) -> None:
        """Hold a proposed update until its run allows or forbids it."""
        refusal = self._proposals.refusal(update)
        if refusal:
            self.refuse_proposal(update, refusal)
            return
        try:
            known = self._proposals.known(update)
            crowded = self._proposals.crowded()
            if known is None and crowded:
                self.refuse_proposal(update, crowded)
            elif known is None:
                self._require_writable()
                updates = self._proposals.hold(
                    update, self._pending_orders(), self._effects.ros_now()
                )
                self._publish([], updates)
            elif known.update.ops != update.ops:
                self.refuse_proposal(
                    update,
                    'conflicting_update: an update of this run and name with other operations is '
                    f'on record as {known.state}; give each update a name of its own',
                )
            elif known.state == REJECTED:
                self._effects.update(known)
        except LedgerError as error:
            self.failed(error)
            self._effects.update(ledger_rejection(update, error))

    def refuse_proposal(self, update: Update, reason: str) -> None:
        """Reject a proposal that is not put on record."""
        self.count('updates refused')
        self._effects.update(unrecorded_rejection(update, reason))

    # --- time, and a ledger that fails --------------------------------------------------------

    def tick(self) -> None:
        """Time has passed: expire proposals, or try again what could not be written."""
        now = self._effects.steady_now()
        if self._retry_at is not None:
            if now >= self._retry_at:
                self._retry()
            return
        deadline = self._proposals.deadline()
        if deadline is not None and now > deadline:
            self._expire()

    def wakeup(self) -> float | None:
        """Steady seconds at which :meth:`tick` has something to do; None: nothing is due."""
        return self._proposals.deadline() if self._retry_at is None else self._retry_at

    def failed(self, error: LedgerError) -> None:
        """Note that the ledger failed; what it refused is tried again."""
        if not self.fault:
            log.error('%s: %s', error.kind, error.message)
        self.fault = error.message
        self.count('ledger faults')
        self._proposals.doubt()
        if self._retry_at is None:  # a refusal must not put the next try off
            self._retry_at = self._effects.steady_now() + LEDGER_RETRY

    def _require_writable(self) -> None:
        """Refuse what would be written, without trying, until the next try is due.

        Raises:
            LedgerError: ``ledger_unavailable``.
        """
        if self._retry_at is not None:
            raise LedgerError('ledger_unavailable', self.fault, retryable=True)

    def publish_pending(self) -> None:
        """Publish what is decided and was not published yet."""
        self._backlog = True
        self._publish([], [])

    def _record(
        self, segment: Segment, outcome: Outcome, effects: tuple[Op, ...]
    ) -> list[UpdateRecord]:
        self._require_writable()
        run_id = segment.completion.run_id
        changed: dict[str, RunFacts] = {
            run_id: self._proposals.facts_after(outcome.state, segment.order, outcome.attempt)
        }
        extra: list[Held] = []
        with self._proposals.transaction():
            self._ledger.decide(segment, outcome)
            if outcome.state is SegmentState.INTERRUPTED:
                self._ledger.interrupt(run_id, outcome.message)
            if outcome.state is SegmentState.SUCCESS and effects:
                number = segment.completion.segment
                extra.append(self._proposals.hold_effect_inside(run_id, number, effects))
            made, updates = self._proposals.settle_inside(
                self._pending_orders(), outcome.decided_at, extra=extra, changed=changed
            )
        self._proposals.committed(made, extra=extra, changed=changed)
        return updates

    def _publish(self, outcomes: list[Outcome], updates: list[UpdateRecord]) -> None:
        """Publish what is on record, in order, and note that; what nobody can hear waits."""
        try:
            self._require_writable()  # it could not be noted that anything was published
            if self._backlog:
                outcomes = self._ledger.unpublished_outcomes()
                updates = self._ledger.unpublished_updates()
            # Updates first: whoever acts on an outcome should find the graph that it led to.
            passed = list(takewhile(self._effects.update, updates))
            told = list(takewhile(self._effects.outcome, outcomes))
            self._backlog = len(told) < len(outcomes) or len(passed) < len(updates)
            for record in passed:
                self.count('updates rejected' if record.state == REJECTED else 'updates released')
            if told or passed:
                with self._ledger.transaction():
                    self._ledger.mark_published(told, passed)
        except LedgerError as error:  # published again later, which consumers stand
            self._backlog = True
            self.failed(error)
        if self._ledger.flush_due:
            self._effects.spawn_spare(lambda: self._beside(self._ledger.flush))

    def _beside(self, work: Callable[[], None]) -> None:
        """Have the disk keep up with the record, so that no transaction waits; spawned."""
        try:
            work()
        except LedgerError as error:  # the next transaction says it better
            log.debug('%s', error.message)

    def _expire(self) -> None:
        try:
            stamp = self._effects.ros_now()
            self._publish([], self._proposals.expire(self._pending_orders(), stamp))
        except LedgerError as error:
            self.failed(error)

    def _retire(self) -> None:
        try:
            self._require_writable()
            with self._ledger.transaction():
                retired = self._ledger.retire()
            if retired:
                self._proposals.doubt()
        except LedgerError as error:
            self.failed(error)

    def _retry(self) -> None:
        """Put on record what could not be written before; try again later if that fails."""
        self._retry_at = None
        try:
            with self._proposals.transaction():
                pass
            for key, (segment, outcome) in list(self._unrecorded.items()):
                if not self._is_decided(segment):
                    self._publish([], self._record(segment, outcome, ()))
                    self._proposals.doubt()  # an interruption may have come meanwhile
                del self._unrecorded[key]
        except LedgerError as error:
            self.failed(error)
            return
        if self._retry_at is not None:
            return  # what was put on record could not be noted as published
        if self.fault:
            log.warning('the ledger can be written again')
        self.fault = ''
        self.publish_pending()
        self._expire()
        self._on_recovery()

    def _is_decided(self, segment: Segment) -> bool:
        """Whether the commit that was reported as failed had come through after all."""
        run = self._ledger.run(segment.completion.run_id)
        return run is not None and any(
            s.outcome is not None and s.outcome.attempt == segment.attempt
            for s in run.segments
            if s.completion.segment == segment.completion.segment
        )
