"""Proposed scene-graph updates on their way through the gate: the ledger's rows and their memory.

One thread calls everything here. Rulings come from :mod:`harness_eval.gate`; this module holds
what they are made from, and puts each on record inside the caller's transaction, so that an
outcome and the updates that it frees are one commit. What was committed is handed back to be
published; memory follows the file, never the other way round: a transaction that is reported as
failed may have come through, so after a fault the next transaction reads the file again.

Facts of every run for which something is held are in memory, so that asking for the next deadline
never touches the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
import dataclasses

from harness_eval.config.models import SceneGraphSettings
from harness_eval.contract import LedgerError
from harness_eval.gate import (
    EFFECT_ID_PREFIX,
    GateRuling,
    Held,
    next_deadline,
    rulings,
    RunFacts,
    RunStanding,
)
from harness_eval.ledger import HELD, Ledger, UpdateRecord
from harness_eval.runs import id_problem, printable, SegmentState
from harness_eval.scene_graph import Op, Update

MAX_HELD = 10_000
"""Most proposals that wait at a time; more are a flood, and would make each decision slow."""
MAX_OPS = 1000
"""Most operations of a proposal: each is written, published and kept for good."""
MAX_FACTS = 1000
"""How many runs' facts are kept in memory besides those that something is held for."""

_STANDINGS = {
    SegmentState.SUCCESS: RunStanding.SUCCEEDED,
    SegmentState.FAILURE: RunStanding.FAILED,
    SegmentState.INTERRUPTED: RunStanding.INTERRUPTED,
}


def standing_of(state: SegmentState) -> RunStanding:
    """How the gate sees a run in that state."""
    return _STANDINGS.get(state, RunStanding.OPEN)


class Proposals:
    """Held proposals, and what becomes of them.

    Args:
        ledger: Where everything is put on record.
        settings: Hold time-out, order and mode.
        steady: Seconds on a clock that never jumps.
    """

    def __init__(
        self, ledger: Ledger, settings: SceneGraphSettings, steady: Callable[[], float]
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._steady = steady
        self._held: dict[int, Held] = {}
        self._runs: dict[str, RunFacts | None] = {}
        self._doubtful = False
        self._deadline: float | None = None
        self._deadline_valid = False

    def __len__(self) -> int:
        """Count what waits."""
        return len(self._held)

    def doubt(self) -> None:
        """Note that a transaction failed, so that memory may not be what the file says."""
        self._doubtful = True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A transaction of the ledger in which updates are held and ruled on.

        It is durable: what it decides is flushed to the disk soon after.

        Raises:
            LedgerError: Nothing of it is on record.
        """
        with self._ledger.transaction(durable=True):
            if self._doubtful:
                self.resume()
            yield

    def resume(self) -> None:
        """Take what waits from the file, after a restart or a transaction that failed.

        The hold time-out of what is not in memory begins anew.

        Raises:
            LedgerError: The file cannot be read; memory stays as it is.
        """
        now = self._steady()
        records = self._ledger.held()
        runs = {r.update.run_id: self._facts_on_record(r.update.run_id) for r in records}
        self._runs = dict(runs)
        self._held = {
            record.number: self._held.get(record.number)
            or _held_before(record, runs[record.update.run_id], now)
            for record in records
        }
        self._doubtful = False
        self._deadline_valid = False

    def refusal(self, update: Update) -> str:
        """What is wrong with the names of a proposal; empty if nothing is."""
        for what, name in (('run id', update.run_id), ('update id', update.update_id)):
            problem = id_problem(name) if name else 'that is empty'
            if problem:
                return f'invalid_update: the proposal has a {what} {problem}'
        if update.update_id.startswith(EFFECT_ID_PREFIX):
            return f'invalid_update: update ids that begin with {EFFECT_ID_PREFIX!r} are reserved'
        if len(update.ops) > MAX_OPS:
            return (
                f'invalid_update: the proposal has {len(update.ops)} operations, and {MAX_OPS} '
                'are allowed; split it into several updates'
            )
        return ''

    def crowded(self) -> str:
        """Why no further proposal can be held now; empty if one can."""
        if len(self._held) >= MAX_HELD:
            return f'gate_full: {MAX_HELD} proposals wait for their runs already'
        return ''

    def known(self, update: Update) -> UpdateRecord | None:
        """The record of an update of the same run and name, if there is one."""
        return self._ledger.find_update(update.run_id, update.update_id)

    def hold(
        self, update: Update, pending_orders: Iterable[int], stamp: int
    ) -> list[UpdateRecord]:
        """Put a proposal on record and rule on it; in one transaction of its own.

        Raises:
            LedgerError: It could not be put on record; it is not held.
        """
        now = self._steady()
        with self.transaction():
            record = self._ledger.hold(update)
            held = Held(update, record.number, now)
            made, done = self.settle_inside(pending_orders, stamp, extra=[held])
        self._held[held.number] = held
        self.committed(made)
        return done

    def hold_effect_inside(self, run_id: str, segment: int, ops: tuple[Op, ...]) -> Held:
        """Put a tool's ``on_success`` on record, inside the caller's transaction."""
        update = Update(
            run_id=run_id, update_id=f'{EFFECT_ID_PREFIX}on_success:{segment}', ops=ops
        )
        record = self._ledger.hold(update, effect=True)
        return Held(update, record.number, self._steady(), effect=True)

    def settle_inside(
        self,
        pending_orders: Iterable[int],
        stamp: int,
        *,
        extra: Iterable[Held] = (),
        changed: Mapping[str, RunFacts] | None = None,
    ) -> tuple[list[GateRuling], list[UpdateRecord]]:
        """Rule on everything that waits, inside the caller's transaction.

        Args:
            pending_orders: Order of every segment that has no outcome yet.
            stamp: Nanoseconds for the header of what is released.
            extra: Proposals that this transaction adds.
            changed: Facts of runs that this transaction changes.

        Returns:
            The rulings, to hand to :meth:`committed` afterwards, and the records to publish.
        """
        facts = dict(changed or {})
        made = rulings(
            [*self._held.values(), *extra],
            lambda run_id: facts[run_id] if run_id in facts else self._facts(run_id),
            list(pending_orders),
            self._steady(),
            self._settings,
        )
        done = []
        for ruling in made:
            held = _record_of(ruling.held)
            if ruling.released:
                done.append(self._ledger.release(held, stamp))
            else:
                done.append(self._ledger.reject(held, ruling.reason))
        return made, done

    def committed(
        self,
        made: Iterable[GateRuling],
        *,
        extra: Iterable[Held] = (),
        changed: Mapping[str, RunFacts] | None = None,
    ) -> None:
        """Follow in memory what a transaction put on record."""
        self._runs.update(changed or {})
        for held in extra:
            self._held[held.number] = held
        for ruling in made:
            self._held.pop(ruling.held.number, None)
        self._deadline_valid = False
        self._forget()

    def note(self, run_id: str, state: SegmentState, order: int) -> None:
        """Note an event of a run, once it is on record."""
        self._runs[run_id] = self.facts_after(state, order)
        self._deadline_valid = False
        self._forget()

    def facts_after(self, state: SegmentState, order: int, attempt: int = 1) -> RunFacts:
        """Facts of a run whose last event is now."""
        return RunFacts(self._standing(state, order, attempt), self._steady(), order)

    def expire(self, pending_orders: Iterable[int], stamp: int) -> list[UpdateRecord]:
        """Rule again because time has passed.

        Raises:
            LedgerError: The rulings could not be put on record; all goes on waiting.
        """
        if not self._held:
            return []
        with self.transaction():
            made, done = self.settle_inside(pending_orders, stamp)
        self.committed(made)
        return done

    def deadline(self) -> float | None:
        """Steady seconds at which :meth:`expire` has something to do, or None."""
        if not self._deadline_valid:
            self._deadline = next_deadline(self._held.values(), self._runs.get, self._settings)
            self._deadline_valid = True
        return self._deadline

    def _facts(self, run_id: str) -> RunFacts | None:
        """Facts of a run; the file is asked once, since whatever changes it is noted here."""
        if run_id not in self._runs:
            self._runs[run_id] = self._facts_on_record(run_id)
            self._deadline_valid = False
        return self._runs[run_id]

    def _facts_on_record(self, run_id: str) -> RunFacts | None:
        run = self._ledger.run(run_id)
        if run is None:
            return None
        order = max((s.order for s in run.segments), default=0)
        attempt = 1 if run.last is None else run.last.attempt
        return RunFacts(
            RunStanding.RETIRED if run.retired else self._standing(run.state, order, attempt),
            self._steady() - self._ledger.seconds_since_event(run_id),
            order,
        )

    def _standing(self, state: SegmentState, order: int, attempt: int) -> RunStanding:
        """How the gate sees a run: what it came to, unless that came too late to be put in order.

        A run that ended as an error does not hold up later ones. If it is judged again and
        succeeds, what it says of the world may be out of date by then.
        """
        standing = standing_of(state)
        late = (
            standing is RunStanding.SUCCEEDED
            and attempt > 1
            and self._settings.order == 'completion'
            and self._ledger.newest_released_order() > order
        )
        return RunStanding.SUPERSEDED if late else standing

    def _forget(self) -> None:
        """Keep no more facts than may be asked for; the rest is in the file."""
        if len(self._runs) <= MAX_FACTS + len(self._held):
            return
        waiting = {held.update.run_id for held in self._held.values()}
        for run_id in list(self._runs)[: -MAX_FACTS // 2]:
            if run_id not in waiting:
                del self._runs[run_id]


def _record_of(held: Held) -> UpdateRecord:
    return UpdateRecord(held.update, held.number, held.effect, HELD, '', 0.0)


def _held_before(record: UpdateRecord, run: RunFacts | None, now: float) -> Held:
    """What was held before this process, or this fault, as if it had come now.

    What is still held of a run that succeeded waits only for earlier runs: it came in time, and
    the time that the node was down must not make it late.
    """
    succeeded = run is not None and run.standing is RunStanding.SUCCEEDED
    received = min(now, run.last_event) if run is not None and succeeded else now
    return Held(record.update, record.number, received, record.effect)


def unrecorded_rejection(update: Update, reason: str) -> UpdateRecord:
    """A rejection that is only published: the proposal itself could not be put on record."""
    cut = dataclasses.replace(
        update,
        run_id=printable(update.run_id, 256),
        update_id=printable(update.update_id, 256),
        ops=(),
    )
    return UpdateRecord(cut, number=0, effect=False, state='rejected', reason=reason, wall=0.0)


def ledger_rejection(update: Update, error: LedgerError) -> UpdateRecord:
    """The rejection of a proposal that could not be put on record."""
    return unrecorded_rejection(update, f'{error.kind}: {error.message}; propose it again')
