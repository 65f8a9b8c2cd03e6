"""Which scene-graph updates may pass, and in which order. Pure.

A proposal waits for its run. :func:`rulings` looks at everything that waits and says what passes
now, what never will, and in which order; the caller puts that on record before it takes effect.
Times are seconds on a steady clock, so that a jump of any other clock neither frees nor drops
an update.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from harness_eval.config.models import SceneGraphSettings
from harness_eval.scene_graph import Update

EFFECT_ID_PREFIX = 'harness_eval:'
"""Update ids that begin with this are the package's own; a proposal may not use them."""


class RunStanding(str, Enum):
    """What the gate needs to know of a run."""

    OPEN = 'open'
    SUCCEEDED = 'succeeded'
    FAILED = 'failed'
    INTERRUPTED = 'interrupted'
    RETIRED = 'retired'
    SUPERSEDED = 'superseded'


@dataclass(frozen=True)
class RunFacts:
    """A run as the gate sees it.

    Attributes:
        standing: Open (pending, process, error, abstained), succeeded, failed, interrupted, or
            retired (ended so long ago that nobody knows how) or superseded (succeeded when judged
            again, after runs that completed later had changed the graph).
        last_event: Steady seconds of the run's last event.
        order: Place of its last completion among all accepted ones; 0 before the first.
    """

    standing: RunStanding
    last_event: float
    order: int


@dataclass(frozen=True)
class Held:
    """A proposal that waits.

    Attributes:
        update: What is proposed.
        number: Place in order of receipt.
        received: Steady seconds of the receipt; of the restart, for what waited before it.
        effect: It is the ``on_success`` of the tool, which goes before the run's proposals.
    """

    update: Update
    number: int
    received: float
    effect: bool = False


@dataclass(frozen=True)
class GateRuling:
    """What becomes of one held proposal.

    Attributes:
        held: The proposal.
        released: It passes now; otherwise it is rejected.
        reason: Why it was rejected: a machine-readable name, a colon, and more for a person.
    """

    held: Held
    released: bool
    reason: str = ''


def rulings(
    held: Iterable[Held],
    facts: Callable[[str], RunFacts | None],
    pending_orders: Sequence[int],
    now: float,
    settings: SceneGraphSettings,
) -> list[GateRuling]:
    """What becomes of the held proposals now; those not named go on waiting.

    Args:
        held: Everything that waits.
        facts: A run's facts by its id; None for a run that nobody has heard of.
        pending_orders: ``order`` of every segment that was accepted and has no outcome yet.
        now: Steady seconds.
        settings: Hold time-out, order and mode.

    Returns:
        Rulings in the order in which they take effect.
    """
    earliest_pending = min(pending_orders, default=None)
    passing: list[tuple[int, bool, int, GateRuling]] = []
    dropped: list[tuple[int, GateRuling]] = []
    for one in held:
        run = facts(one.update.run_id)
        verdict = _ruling(one, run, now, settings)
        if verdict is None:
            continue
        if not verdict.released:
            dropped.append((one.number, verdict))
            continue
        order = run.order if run is not None else 0
        waits = (
            settings.mode == 'gate'
            and settings.order == 'completion'
            and earliest_pending is not None
            and earliest_pending < order
        )
        if not waits:
            passing.append((order, not one.effect, one.number, verdict))
    passing.sort(key=lambda entry: entry[:3])
    dropped.sort(key=lambda entry: entry[0])
    return [entry[-1] for entry in passing] + [entry[-1] for entry in dropped]


def _ruling(
    one: Held, run: RunFacts | None, now: float, settings: SceneGraphSettings
) -> GateRuling | None:
    if settings.mode == 'observe':
        return GateRuling(one, released=True)
    if run is None:
        if now - one.received > settings.hold_timeout:
            return GateRuling(
                one,
                False,
                f'hold_timeout: no completion of run {one.update.run_id!r} came within '
                f'{settings.hold_timeout:g} s',
            )
        return None
    if run.standing is RunStanding.SUCCEEDED:
        if one.received - run.last_event > settings.hold_timeout:
            return GateRuling(
                one,
                False,
                f'run_closed: run {one.update.run_id!r} succeeded more than '
                f'{settings.hold_timeout:g} s before this was proposed',
            )
        return GateRuling(one, released=True)
    if run.standing is RunStanding.SUPERSEDED:
        return GateRuling(
            one,
            False,
            f'superseded: run {one.update.run_id!r} succeeded only when it was judged again, and '
            'runs that completed later have changed the graph meanwhile; look at the world anew',
        )
    if run.standing is RunStanding.RETIRED:
        return GateRuling(one, False, f'run_closed: run {one.update.run_id!r} ended long ago')
    if run.standing is RunStanding.FAILED:
        return GateRuling(one, False, f'run_failed: run {one.update.run_id!r} ended in failure')
    if run.standing is RunStanding.INTERRUPTED:
        return GateRuling(
            one, False, f'run_interrupted: run {one.update.run_id!r} was interrupted'
        )
    if now - max(run.last_event, one.received) > settings.hold_timeout:
        return GateRuling(
            one,
            False,
            f'hold_timeout: run {one.update.run_id!r} has had no verdict for '
            f'{settings.hold_timeout:g} s',
        )
    return None


def next_deadline(
    held: Iterable[Held],
    facts: Callable[[str], RunFacts | None],
    settings: SceneGraphSettings,
) -> float | None:
    """Steady seconds at which the next hold time-out may fall due, or None."""
    deadlines = []
    for one in held:
        run = facts(one.update.run_id)
        if run is not None and run.standing is RunStanding.SUCCEEDED:
            continue  # it waits for earlier runs, whose own deadlines end them
        since = one.received if run is None else max(run.last_event, one.received)
        deadlines.append(since + settings.hold_timeout)
    return min(deadlines, default=None)
