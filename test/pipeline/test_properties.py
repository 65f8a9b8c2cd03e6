"""Whatever happens in whatever order: exactly the recorded successes release their updates."""

from __future__ import annotations

from pathlib import Path
import tempfile
from typing import Any

from hypothesis import given, settings
import hypothesis.strategies as st
from pipeline_world import FAILURE, SUCCESS, World

from harness_eval.cases import Case, CaseError
from harness_eval.contract import Abstention, EvaluatorError
from harness_eval.runs import OutcomeKind, PENDING, Run, SegmentState

RUNS = ('r0', 'r1', 'r2', 'r3')
ANSWERS = (SUCCESS, SUCCESS, FAILURE, EvaluatorError('judge_down', ''), Abstention('unsure', ''))
EFFECT = 'harness_eval:on_success:0'

runs = st.sampled_from(RUNS)
index = st.integers(0, 9)
events = st.one_of(
    st.tuples(st.just('end'), runs),
    st.tuples(st.just('end'), runs),
    st.tuples(st.just('propose'), runs, st.sampled_from('uv')),
    st.tuples(st.just('see')),
    st.tuples(st.just('see')),
    st.tuples(st.just('spawned'), index),
    st.tuples(st.just('posted')),
    st.tuples(st.just('drain')),
    st.tuples(st.just('drain')),
    st.tuples(st.just('judge'), index, st.sampled_from(ANSWERS)),
    st.tuples(st.just('judge'), index, st.just(SUCCESS)),
    st.tuples(st.just('interrupt'), runs),
    st.tuples(st.just('again'), runs),
    st.tuples(st.just('wait'), st.sampled_from([0.5, 1.1, 5.0, 61.0])),
    st.tuples(st.just('deaf'), st.booleans()),
    st.tuples(st.just('crash')),
    st.tuples(st.just('fault'), st.sampled_from(['before', 'after']), index, index),
)


class CasesInMemory:
    """Stands in for the evidence on a disk: it survives a crash."""

    def __init__(self) -> None:
        self._cases: dict[str, Case] = {}

    def write(self, segment: Any, captured: Any) -> str:
        name = f'{segment.completion.run_id}-{segment.receipt}'
        self._cases[name] = Case(segment.completion, segment.receipt, captured)
        return name

    def read(self, name: str) -> Case:
        if name not in self._cases:
            raise CaseError('evidence_lost', name)
        return self._cases[name]

    def remove(self, name: str) -> bool:
        return self._cases.pop(name, None) is not None

    def enforce_bound(self, keep: Any = ()) -> list[str]:
        return []

    def hold(self, name: str) -> None: ...

    def finish(self, name: str, outcome: Any) -> None: ...

    def clear_leftovers(self) -> None: ...


def happen(world: World, event: tuple[Any, ...]) -> None:
    what, *details = event
    if what == 'end':
        world.end(details[0], stamp=world.ros)
    elif what == 'propose':
        world.propose(*details)
    elif what == 'see':
        world.see()
    elif what == 'spawned' and world.spawned:
        place = details[0] % len(world.spawned)
        work = world.spawned[place]
        del world.spawned[place]
        work()
    elif what == 'posted' and world.posted:
        world.posted.popleft()()
    elif what == 'drain':
        world.drain()
    elif what == 'judge' and world.judge.calls:
        call = world.judge.calls.pop(details[0] % len(world.judge.calls))
        call.on_done(details[1])
    elif what == 'interrupt':
        world.pipeline.interrupt(details[0], 'stop')
    elif what == 'again':
        world.pipeline.judge_again(details[0], 0)
    elif what == 'wait':
        world.wait(details[0])
    elif what == 'deaf':
        world.audible = not details[0]
    elif what == 'crash':
        world.crash()
    elif what == 'fault':
        mode, after, length = details
        first = world.ledger.transactions + after
        world.ledger.fault = lambda n: mode if first < n <= first + length else ''


def check_always(world: World, records: dict[str, Run | None]) -> None:
    released = world.released()
    assert [revision for revision, _, _ in released] == list(range(1, len(released) + 1))
    assert len({(run, name) for _, run, name in released}) == len(released)
    for _, run, _ in released:
        record = records[run]
        assert record is not None
        assert record.state is SegmentState.SUCCESS
    passed = list(dict.fromkeys(world.passed()))
    assert set(passed) <= set(released)
    for run in RUNS:
        attempts = world.reader().attempts(run)
        verdicts = [o for o in attempts if o.kind is OutcomeKind.VERDICT]
        assert len(verdicts) <= 1, 'decided once'
        for outcome in world.outcomes:
            if outcome.run_id == run and outcome.kind is OutcomeKind.VERDICT:
                assert outcome in verdicts, 'a verdict is on record before anybody hears it'


def check_at_the_end(world: World, records: dict[str, Run | None]) -> None:
    released = world.released()
    revisions = {(run, name): revision for revision, run, name in released}
    assert list(dict.fromkeys(world.passed())) == released, 'published once each, in order'
    erred = {o.run_id for o in world.outcomes if o.kind is OutcomeKind.ERROR}
    smooth = []
    for run, record in records.items():
        if record is None or record.last is None:
            assert (run, EFFECT) not in revisions
            continue
        last = record.last
        assert last.state not in PENDING, 'nothing is lost'
        assert last.outcome is not None
        assert last.outcome in world.outcomes
        superseded = any(
            (of, name) == (run, EFFECT) and reason == 'superseded'
            for of, name, reason in world.refused()
        )
        assert last.attempt > 1 or not superseded
        freed = (run, EFFECT) in revisions
        assert (freed or superseded) == (record.state is SegmentState.SUCCESS)
        assert not (freed and superseded)
        for name in 'uv':
            if (run, name) in revisions:
                assert revisions[run, EFFECT] < revisions[run, name]
        if freed and run not in erred and last.attempt == 1:
            smooth.append((last.order, revisions[run, EFFECT]))
    smooth.sort()
    assert [revision for _, revision in smooth] == sorted(revision for _, revision in smooth)


@settings(max_examples=60)
@given(st.lists(events, max_size=45))
def test_whatever_happens_exactly_the_recorded_successes_are_released(
    sequence: list[tuple[Any, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), cases=CasesInMemory())
        try:
            for event in sequence:
                happen(world, event)
                check_always(world, {run: world.on_record(run) for run in RUNS})
            world.ledger.fault = lambda number: ''
            world.audible = True
            for _ in range(3):
                world.wait(31.0)
                world.drain()
                while world.judge.calls:
                    world.judged(FAILURE)
            world.wait(61.0)
            world.pipeline.publish_pending()
            records = {run: world.on_record(run) for run in RUNS}
            check_always(world, records)
            check_at_the_end(world, records)
            assert world.pipeline.ledger_fault == ''
        finally:
            world.close()
