"""Proposed scene-graph updates on their way through the gate: the ledger's rows and their memory.

One thread calls everything here. Rulings come from :mod:`harness_eval.gate`; this module holds
what they are made from, and puts each on record inside the caller's transaction, so that an
outcome and the updates that it frees are one commit. What was committed is handed back to be
published; memory follows the file, never the other way round.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping

from harness_eval.config.models import SceneGraphSettings
from harness_eval.contract import LedgerError
from harness_eval.gate import (
    EFFECT_ID_PREFIX,
    GateRuling,
    Held,
    RunFacts,
    RunStanding,
    next_deadline,
    rulings,
)
from harness_eval.ledger import Ledger, UpdateRecord
from harness_eval.runs import Run, SegmentState, id_problem, printable
from harness_eval.scene_graph import Op, Update

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
        self._runs: dict[str, RunFacts] = {}

    def __len__(self) -> int:
        """Count what waits."""
        return len(self._held)

    def resume(self) -> None:
        """Take what waited before a restart; its hold time-out begins anew."""
        now = self._steady()
        for record in self._ledger.held():
            self._held[record.number] = Held(record.update, record.number, now, record.effect)
            self._facts(record.update.run_id)

    def refusal(self, update: Update) -> str:
        """Why a proposal cannot even be held; empty if it can, or is on record as it stands."""
        for what, name in (('run id', update.run_id), ('update id', update.update_id)):
            problem = id_problem(name) if name else 'that is empty'
            if problem:
                return f'invalid_update: the proposal has a {what} {problem}'
        if update.update_id.startswith(EFFECT_ID_PREFIX):
            return f'invalid_update: update ids that begin with {EFFECT_ID_PREFIX!r} are reserved'
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
        with self._ledger.transaction():
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
            number = ruling.held.number
            if ruling.released:
                done.append(self._ledger.release(number, stamp))
            else:
                done.append(self._ledger.reject(number, ruling.reason))
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

    def note(self, run_id: str, state: SegmentState, order: int) -> None:
        """Note an event of a run, once it is on record."""
        self._runs[run_id] = self.facts_after(state, order)

    def facts_after(self, state: SegmentState, order: int) -> RunFacts:
        """Facts of a run whose last event is now."""
        return RunFacts(standing_of(state), self._steady(), order)

    def expire(self, pending_orders: Iterable[int], stamp: int) -> list[UpdateRecord]:
        """Rule again because time has passed; forget runs that matter to nobody any more.

        Raises:
            LedgerError: The rulings could not be put on record; all goes on waiting.
        """
        done: list[UpdateRecord] = []
        if self._held:
            with self._ledger.transaction():
                made, done = self.settle_inside(pending_orders, stamp)
            self.committed(made)
        waiting = {held.update.run_id for held in self._held.values()}
        horizon = self._steady() - self._settings.hold_timeout
        for run_id in [r for r, f in self._runs.items() if f.last_event < horizon]:
            if run_id not in waiting:
                del self._runs[run_id]
        return done

    def deadline(self) -> float | None:
        """Steady seconds at which :meth:`expire` has something to do, or None."""
        return next_deadline(self._held.values(), self._facts, self._settings)

    def _facts(self, run_id: str) -> RunFacts | None:
        known = self._runs.get(run_id)
        if known is not None:
            return known
        run = self._ledger.run(run_id)
        if run is None:
            return None
        elapsed = self._ledger.seconds_since_event(run_id)
        facts = RunFacts(
            standing_of(run.state),
            self._steady() - elapsed,
            max((s.order for s in run.segments), default=0),
        )
        self._runs[run_id] = facts
        return facts


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
