"""A process ends at any moment, and the next one goes on with what is on record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pipeline_world import FAILURE, SUCCESS, World
import pytest

from harness_eval.contract import EvaluatorError
from harness_eval.runs import OutcomeKind, SegmentState
from harness_eval.stages import Stage


class Killed(BaseException):
    """The process is gone."""


def kill_at(world: World, number: int, when: str) -> None:
    """Have the process end before or after its n-th transaction from now."""
    real = world.ledger.transaction
    seen = 0

    @contextmanager
    def transaction(*, durable: bool = False) -> Iterator[Any]:
        nonlocal seen
        seen += 1
        if seen == number and when == 'before':
            raise Killed
        with real(durable=durable) as connection:
            yield connection
        if seen == number:
            raise Killed

    world.ledger.transaction = transaction  # type: ignore[method-assign]


def play(world: World) -> None:
    """What the cell does: an earlier run that waits for its judge, a run that succeeds."""
    world.propose('b', 'held')
    world.end('b', wait=False)
    world.see()
    world.drain()
    if world.judge.calls:
        world.judged(SUCCESS)


def finish(world: World) -> None:
    """The judge answers what is still asked, and what is still posted is done."""
    world.drain()
    while world.judge.calls:
        world.judged(SUCCESS)


@pytest.mark.parametrize('when', ['before', 'after'])
@pytest.mark.parametrize('number', range(1, 16))
def test_killed_at_every_transaction_nothing_is_lost_or_done_twice(
    world: World, number: int, when: str
) -> None:
    kill_at(world, number, when)
    with suppress(Killed):
        play(world)
    before = list(world.outcomes)
    world.crash()
    finish(world)
    run = world.on_record('b')
    if run is None:
        # It was never accepted; whoever reports over the action sees that.
        assert before == []
        play(world)
        run = world.on_record('b')
    assert run is not None
    assert run.last is not None
    outcome = run.last.outcome
    assert outcome is not None, 'no segment stays without an outcome'
    world.wait(61)
    if run.state is SegmentState.SUCCESS:
        assert world.released()[0] == (1, 'b', 'harness_eval:on_success:0')
        assert [r for r, _, _ in world.released()] == list(range(1, len(world.released()) + 1))
    else:
        assert outcome.error_kind == 'evidence_lost'
        assert world.released() == []
    assert list(dict.fromkeys(world.passed())) == world.released()
    assert world.outcomes[-1] == outcome, 'what is decided is published'
    if before:
        assert before[-1] == outcome, 'and nothing else was'
    world.crash()
    finish(world)
    count = len(world.outcomes)
    world.wait(1)
    assert len(world.outcomes) == count


def test_the_loop_above_reaches_the_last_transaction(world: World) -> None:
    first = world.ledger.transactions
    play(world)
    assert world.ledger.transactions - first <= 15
    assert world.state('b') is SegmentState.SUCCESS


def test_a_run_that_was_not_captured_is_lost_and_says_so(world: World) -> None:
    world.end('a')
    world.crash()
    assert world.labels() == [('a', 'error evidence_lost')]
    assert world.state('a') is SegmentState.ERROR
    assert 'new run id' in world.outcomes[0].message


@pytest.mark.parametrize('stage', ['captured', 'started'])
def test_a_captured_run_is_judged_from_its_stored_evidence(world: World, stage: str) -> None:
    world.propose('a')
    world.drain()
    world.end('a')
    world.see()
    if stage == 'captured':
        world.spawned.popleft()()
        world.posted.popleft()()
        assert world.state('a') is SegmentState.CAPTURED
    else:
        world.drain()
        assert world.state('a') is SegmentState.STARTED
    world.crash()
    world.drain()
    assert world.taps == frozenset()
    assert world.judge.calls[0].request.observation.states['gripper'].value == 0.02
    world.judged(SUCCESS)
    assert world.labels() == [('a', 'success')]
    assert [name for _, _, name in world.passed()] == ['harness_eval:on_success:0', 'u']


def test_what_was_decided_and_not_heard_is_published_after_the_restart(world: World) -> None:
    world.audible = False
    world.propose('a')
    world.end('a')
    world.see()
    world.drain()
    world.judged()
    world.audible = True
    world.crash()
    assert world.labels() == [('a', 'success')]
    assert [r for r, _, _ in world.passed()] == [1, 2]
    world.crash()
    assert len(world.outcomes) == 1


def test_a_held_proposal_waits_on_and_its_time_begins_anew(world: World) -> None:
    world.propose('a')
    world.wait(50)
    world.crash()
    world.wait(50)
    assert world.refused() == []
    world.run('a')
    assert [name for _, _, name in world.passed()] == ['harness_eval:on_success:0', 'u']


def test_updates_that_wait_for_an_earlier_run_survive_a_long_down_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.end('a')
    world.see()
    world.drain()
    world.propose('b')
    world.end('b')
    world.see()
    world.drain()
    call = world.judge.calls[1]
    call.on_done(SUCCESS)
    world.drain()
    assert world.state('b') is SegmentState.SUCCESS
    assert world.passed() == []
    import time

    now = time.time()
    monkeypatch.setattr(time, 'time', lambda: now + 3600.0)
    world.crash()
    world.drain()
    world.judged(FAILURE)
    assert [name for _, _, name in world.passed()] == ['harness_eval:on_success:0', 'u']


def test_after_a_restart_later_runs_wait_for_all_earlier_ones(world: World) -> None:
    world.end('lost')
    world.wait(4)  # it times out
    for name in ('a', 'b', 'c'):
        world.end(name)
    world.see()
    world.drain()
    world.judged(SUCCESS, 'c')
    world.end('d')  # never captured: it ends as soon as the next process begins
    assert world.passed() == []
    world.crash()
    assert world.labels()[-1] == ('d', 'error evidence_lost')
    assert world.passed() == []
    world.drain()
    world.judged(FAILURE, 'b')
    assert world.passed() == []
    world.judged(SUCCESS, 'a')
    assert [run for _, run, _ in world.passed()] == ['a', 'c']


def test_an_earlier_run_that_is_lost_frees_none_past_one_that_is_not(world: World) -> None:
    world.propose('c')
    world.end('a')  # it needs the gripper, which is silent
    world.end('b', 'bare')
    world.end('c', 'bare')
    world.wait(0.31)
    for _ in range(2):
        world.show(topics=('front',))
        world.wait(0.03)
    world.drain()
    world.judge.calls.pop().on_done(SUCCESS)
    world.drain()
    assert world.labels() == [('c', 'success')]
    world.crash()
    assert world.labels()[1:] == [('a', 'error evidence_lost')]
    assert world.passed() == []
    world.drain()
    world.judged(FAILURE)
    assert [run for _, run, _ in world.passed()] == ['c']


def test_a_run_that_was_interrupted_just_before_the_end_stays_so(world: World) -> None:
    world.propose('a')
    world.end('a')
    with world.ledger.transaction():
        world.ledger.interrupt('a', 'the operator')
    world.crash()
    assert world.labels() == [('a', 'interrupted')]
    assert world.refused() == [('a', 'u', 'run_interrupted')]


def test_a_tool_that_is_gone_from_the_configuration_ends_its_run_alone(world: World) -> None:
    for name in ('a', 'b'):
        world.end(name)
    world.see()
    world.drain()
    del world.config.evaluation.tools['pick']
    world.crash()
    world.drain()
    assert world.labels() == [('a', 'error unknown_tool'), ('b', 'error unknown_tool')]
    world.end('c', 'bare')
    world.see()
    world.drain()
    world.judged()
    assert world.labels()[-1] == ('c', 'success')


def test_evidence_that_lacks_a_view_that_is_needed_now_asks_nobody(world: World) -> None:
    world.run('a', EvaluatorError('judge_down', ''), 'bare')
    tool = world.config.evaluation.tools['bare']
    world.config.evaluation.tools['bare'] = tool.model_copy(update={'views': None})
    world.crash()
    assert world.pipeline.judge_again('a', 0)[0] == 2
    world.drain()
    assert world.outcomes[-1].error_kind == 'configuration_changed'
    assert "of 'bare' are others" in world.outcomes[-1].message
    assert world.judge.calls == []


@pytest.mark.parametrize('damage', ['gone', 'cut', 'changed', 'not json'])
def test_damaged_evidence_is_never_judged(world: World, damage: str) -> None:
    import shutil

    world.run('a', EvaluatorError('judge_down', ''))
    folder = next(world.evidence.iterdir())
    bag = next(p for p in folder.glob('*.mcap') if p.name != 'outcome.mcap')
    content = bag.read_bytes()
    if damage == 'gone':
        shutil.rmtree(folder)
    elif damage == 'cut':
        bag.write_bytes(content[: len(content) // 2])
    elif damage == 'changed':
        place = content.index(b'finger')
        bag.write_bytes(content[:place] + b'FINGER' + content[place + 6 :])
    else:
        (folder / 'case.json').write_text('{')
    world.crash()
    assert world.pipeline.judge_again('a', 0)[0] == 2
    world.drain()
    assert world.outcomes[-1].label == 'error evidence_lost'
    assert world.judge.calls == []


def test_a_ledger_that_cannot_be_read_at_the_start_is_read_later(world: World) -> None:
    world.propose('a')
    world.end('a')
    world.see()
    world.drain()
    world.crash(resume=False)
    world.ledger.fault = lambda number: 'before'
    world.pipeline.resume()
    assert world.pipeline.ledger_fault
    world.wait(1.1)
    assert world.judge.calls == []
    world.ledger.fault = lambda number: ''
    world.wait(1.1)
    assert world.pipeline.ledger_fault == ''
    world.drain()
    world.judged()
    assert world.labels() == [('a', 'success')]
    assert [name for _, _, name in world.passed()] == ['harness_eval:on_success:0', 'u']


def test_what_a_killed_process_left_half_written_is_cleared(world: World) -> None:
    (world.evidence / '.part-x').mkdir(parents=True)
    world.crash()
    assert list(world.evidence.iterdir()) == []


def test_after_a_restart_the_same_completion_is_answered_and_another_refused(
    world: World,
) -> None:
    completion = world.end('a')
    world.see()
    world.drain()
    world.judged()
    world.crash()
    world.report(completion)
    assert world.told[-1].label == 'success'
    world.end('a', place='elsewhere', target='x')
    assert world.told[-1].error_kind == 'conflicting_completion'
    assert world.stages('a')[-1] is Stage.REJECTED
    assert world.told[-1].kind is OutcomeKind.ERROR
