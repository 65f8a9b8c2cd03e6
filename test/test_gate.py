"""The gate against a simple model, for random interleavings, and each of its rulings by itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis.stateful import initialize, invariant, rule, RuleBasedStateMachine
import hypothesis.strategies as st
import pytest

from harness_eval.config.models import SceneGraphSettings
from harness_eval.gate import GateRuling, Held, next_deadline, rulings, RunFacts, RunStanding
from harness_eval.scene_graph import Op, OpKind, Update

HOLD = 10.0
SETTINGS = SceneGraphSettings(hold_timeout=HOLD)
OPS = (Op(OpKind.ADD_NODE, 'node'),)


def held(run: str = 'a', number: int = 1, received: float = 0.0, effect: bool = False) -> Held:
    return Held(Update(run, f'u{number}', OPS), number, received, effect)


def rule_on(
    *waiting: Held,
    facts: dict[str, RunFacts] | None = None,
    pending: tuple[int, ...] = (),
    now: float = 0.0,
    settings: SceneGraphSettings = SETTINGS,
) -> list[tuple[int, str]]:
    made = rulings(waiting, (facts or {}).get, pending, now, settings)
    return [(r.held.number, 'released' if r.released else r.reason.split(':')[0]) for r in made]


def run(standing: RunStanding, last_event: float = 0.0, order: int = 1) -> RunFacts:
    return RunFacts(standing, last_event, order)


OPEN = run(RunStanding.OPEN)
SUCCEEDED = run(RunStanding.SUCCEEDED)


def test_a_proposal_of_an_unknown_run_waits_for_the_hold_time_from_its_receipt() -> None:
    assert rule_on(held(received=5.0), now=15.0) == []
    assert rule_on(held(received=5.0), now=15.1) == [(1, 'hold_timeout')]


def test_a_proposal_of_an_open_run_waits_from_the_last_event_of_the_run() -> None:
    facts = {'a': run(RunStanding.OPEN, last_event=8.0)}
    assert rule_on(held(received=5.0), facts=facts, now=18.0) == []
    assert rule_on(held(received=5.0), facts=facts, now=18.1) == [(1, 'hold_timeout')]
    assert rule_on(held(received=9.0), facts=facts, now=19.0) == []


@pytest.mark.parametrize(
    ('standing', 'reason'),
    [
        (RunStanding.FAILED, 'run_failed'),
        (RunStanding.INTERRUPTED, 'run_interrupted'),
        (RunStanding.RETIRED, 'run_closed'),
    ],
)
def test_what_is_no_success_rejects_at_once(standing: RunStanding, reason: str) -> None:
    assert rule_on(held(), facts={'a': run(standing)}) == [(1, reason)]


def test_success_releases_its_effects_first_and_then_in_order_of_receipt() -> None:
    waiting = [held(number=2), held(number=1), held(number=9, effect=True)]
    facts = {'a': SUCCEEDED}
    assert rule_on(*waiting, facts=facts) == [(9, 'released'), (1, 'released'), (2, 'released')]


def test_after_success_a_proposal_passes_for_the_hold_time() -> None:
    facts = {'a': SUCCEEDED}
    assert rule_on(held(received=10.0), facts=facts, now=10.0) == [(1, 'released')]
    assert rule_on(held(received=10.1), facts=facts, now=10.1) == [(1, 'run_closed')]


def test_a_success_waits_for_runs_completed_earlier_and_for_no_later_one() -> None:
    facts = {'a': run(RunStanding.SUCCEEDED, order=5)}
    assert rule_on(held(), facts=facts, pending=(4,), now=1e9) == []
    assert rule_on(held(), facts=facts, pending=(6,)) == [(1, 'released')]
    unordered = SceneGraphSettings(order='none')
    assert rule_on(held(), facts=facts, pending=(4,), settings=unordered) == [(1, 'released')]


def test_runs_are_released_in_order_of_their_completion() -> None:
    facts = {'a': run(RunStanding.SUCCEEDED, order=2), 'b': run(RunStanding.SUCCEEDED, order=1)}
    assert rule_on(held('a', 1), held('b', 2), facts=facts) == [(2, 'released'), (1, 'released')]


def test_observing_lets_everything_pass() -> None:
    observe = SceneGraphSettings(mode='observe')
    facts = {'a': run(RunStanding.FAILED, order=3)}
    waiting = [held('a', 1), held('nobody', 2)]
    found = rule_on(*waiting, facts=facts, pending=(1,), settings=observe)
    assert sorted(found) == [(1, 'released'), (2, 'released')]


def test_the_next_deadline_is_that_of_the_first_hold_time_to_run_out() -> None:
    facts = {'a': run(RunStanding.OPEN, last_event=3.0), 'c': SUCCEEDED}
    waiting = [held('a', 1, 1.0), held('b', 2, 2.0), held('c', 3, 0.0)]
    assert next_deadline(waiting, facts.get, SETTINGS) == 12.0
    assert next_deadline(waiting[2:], facts.get, SETTINGS) is None
    assert next_deadline([], facts.get, SETTINGS) is None


def test_at_the_deadline_there_is_something_to_rule() -> None:
    one = held(received=2.0)
    due = next_deadline([one], {}.get, SETTINGS)
    assert due is not None
    assert rule_on(one, now=due) == []
    assert rule_on(one, now=due + 1e-6) == [(1, 'hold_timeout')]


@dataclass
class ModelRun:
    """What the model knows of a run."""

    order: int = 0
    standing: RunStanding = RunStanding.OPEN
    pending: bool = False
    last_event: float = 0.0
    known: bool = False


@dataclass
class ModelHeld:
    """What the model knows of a proposal."""

    name: str
    received: float
    effect: bool = False
    fate: str = 'held'
    order: int = field(default=0)


RUNS = ('a', 'b', 'c')
ENDS = st.sampled_from(
    [RunStanding.SUCCEEDED, RunStanding.SUCCEEDED, RunStanding.FAILED, RunStanding.INTERRUPTED]
)


class Gate(RuleBasedStateMachine):
    """Proposals, completions, verdicts, errors and time in any order, beside a simple model."""

    @initialize()
    def begin(self) -> None:
        self.now = 0.0
        self.orders = 0
        self.runs = {name: ModelRun() for name in RUNS}
        self.proposals: dict[int, tuple[str, ModelHeld]] = {}
        self.waiting: dict[int, Held] = {}
        self.log: list[GateRuling] = []

    def facts(self, name: str) -> RunFacts | None:
        one = self.runs[name]
        return RunFacts(one.standing, one.last_event, one.order) if one.known else None

    def settle(self) -> None:
        pending = [r.order for r in self.runs.values() if r.pending]
        made = rulings(self.waiting.values(), self.facts, pending, self.now, SETTINGS)
        for ruling in made:
            number = ruling.held.number
            del self.waiting[number]
            name, proposal = self.proposals[number]
            proposal.fate = 'released' if ruling.released else ruling.reason.split(':')[0]
            proposal.order = len(self.log)
            self.log.append(ruling)
            standing = self.runs[name].standing
            if ruling.released:
                assert standing is RunStanding.SUCCEEDED, 'no release without success'
                assert all(order >= self.runs[name].order for order in pending)
        assert len({r.held.number for r in self.log}) == len(self.log), 'ruled on once'
        batch = [
            (self.runs[r.held.update.run_id].order, not r.held.effect, r.held.number)
            for r in made
            if r.released
        ]
        assert batch == sorted(batch), 'by completion, effects first, then by receipt'

    @rule(name=st.sampled_from(RUNS))
    def propose(self, name: str) -> None:
        number = len(self.proposals) + 1
        self.proposals[number] = (name, ModelHeld(name, self.now))
        self.waiting[number] = held(name, number, self.now)
        self.settle()

    @rule(name=st.sampled_from(RUNS))
    def complete(self, name: str) -> None:
        one = self.runs[name]
        if one.pending or one.standing is not RunStanding.OPEN:
            return
        self.orders += 1
        one.order, one.pending, one.known, one.last_event = self.orders, True, True, self.now
        self.settle()

    @rule(name=st.sampled_from(RUNS), standing=ENDS)
    def decide(self, name: str, standing: RunStanding) -> None:
        one = self.runs[name]
        if not one.pending:
            return
        one.pending, one.standing, one.last_event = False, standing, self.now
        if standing is RunStanding.SUCCEEDED:
            number = len(self.proposals) + 1
            self.proposals[number] = (name, ModelHeld(name, self.now, effect=True))
            self.waiting[number] = held(name, number, self.now, effect=True)
        self.settle()

    @rule(name=st.sampled_from(RUNS))
    def err(self, name: str) -> None:
        one = self.runs[name]
        if one.pending:
            one.pending, one.last_event = False, self.now
            self.settle()

    @rule(seconds=st.sampled_from([0.5, 4.0, HOLD + 0.5]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        due = next_deadline(self.waiting.values(), self.facts, SETTINGS)
        before = len(self.log)
        self.settle()
        if due is None or self.now <= due:
            assert len(self.log) == before, 'time does nothing before the deadline it names'

    @invariant()
    def nothing_waits_without_a_reason(self) -> None:
        for number, one in self.waiting.items():
            name, _ = self.proposals[number]
            of_run = self.runs[name]
            if of_run.standing is RunStanding.SUCCEEDED:
                earlier = [r for r in self.runs.values() if r.pending and r.order < of_run.order]
                assert earlier, 'a success waits only for earlier runs'
            else:
                assert of_run.standing is RunStanding.OPEN
                since = max(one.received, of_run.last_event) if of_run.known else one.received
                assert self.now - since <= HOLD

    def teardown(self) -> None:
        if not hasattr(self, 'runs'):
            return
        for one in self.runs.values():
            one.pending = False
        self.now += HOLD + 1
        self.settle()
        assert self.waiting == {}
        for name, proposal in self.proposals.values():
            if proposal.effect:
                assert proposal.fate == 'released', 'a success always has its effects'
            if proposal.fate == 'released':
                assert self.runs[name].standing is RunStanding.SUCCEEDED


Gate.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestGate = Gate.TestCase
