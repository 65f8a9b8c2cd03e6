"""A ledger that fails at any transaction: nothing is released, an error is told, it heals."""

from __future__ import annotations

from pipeline_world import FAILURE, SUCCESS, World
import pytest

from harness_eval.contract import EvaluatorError
from harness_eval.runs import OutcomeKind, SegmentState

TRANSACTIONS = 13
"""How many transactions the run below takes; the last test says whether that is still so."""


def play(world: World) -> None:
    """A run with a proposal, from its end to its outcome."""
    world.propose('a', 'held')
    world.end('a')
    world.see()
    world.drain()
    if world.judge.calls:
        world.judged(SUCCESS)


def heal(world: World) -> None:
    """The disk has room again; the ledger is tried again a second later."""
    world.ledger.fault = lambda number: ''
    world.wait(1.1)
    world.wait(1.1)
    world.see()
    world.drain()
    while world.judge.calls:
        world.judged(SUCCESS)


@pytest.mark.parametrize('mode', ['before', 'after'])
@pytest.mark.parametrize('number', range(1, TRANSACTIONS + 1))
@pytest.mark.parametrize('lasting', [False, True])
def test_a_fault_at_every_transaction_releases_nothing_without_success_and_heals(
    world: World, number: int, mode: str, lasting: bool
) -> None:
    first = world.ledger.transactions
    world.ledger.fault = lambda n: (
        mode if n == first + number or (lasting and n > first + number) else ''
    )
    play(world)
    success = world.state('a') is SegmentState.SUCCESS
    assert success or world.passed() == []
    assert len(world.told) == 1, 'whoever waits is told once, whatever happens'
    world.end('b', 'bare')  # another run at the same time is not held up
    heal(world)
    assert world.pipeline.ledger_fault == ''
    run = world.on_record('a')
    if run is not None and run.last is not None:
        outcome = run.last.outcome
        assert outcome is not None, 'no segment stays without an outcome'
        assert world.outcomes[-1] is not None
        assert outcome in world.outcomes
        if outcome.kind is OutcomeKind.ERROR:
            assert world.released() == []
    assert list(dict.fromkeys(world.passed())) == world.released()
    if world.released():
        assert world.state('a') is SegmentState.SUCCESS
    assert world.run('c').label == 'success', 'the next run is judged as ever'
    assert world.passed()[-1][1] == 'c'
    revisions = [r for r, _, _ in world.released()]
    assert revisions == list(range(1, len(revisions) + 1))
    world.crash()
    world.drain()
    assert world.judge.calls == []
    assert list(dict.fromkeys(world.passed())) == world.released()


def test_the_loop_above_reaches_the_last_transaction(world: World) -> None:
    first = world.ledger.transactions
    play(world)
    assert world.labels() == [('a', 'success')]
    assert world.ledger.transactions - first <= TRANSACTIONS


def test_a_decision_that_cannot_be_recorded_is_an_error_and_put_on_record_later(
    world: World,
) -> None:
    world.propose('a')
    completion = world.end('a')
    world.see()
    world.drain()
    world.ledger.fault = lambda number: 'before'
    world.judged(SUCCESS)
    assert world.labels() == [('a', 'error ledger_unavailable')]
    assert world.told == world.outcomes
    assert world.state('a') is SegmentState.STARTED
    assert world.pipeline.wakeup() == pytest.approx(world.steady + 1.0)
    world.wait(1.1)
    assert world.pipeline.ledger_fault
    world.ledger.fault = lambda number: ''
    world.report(completion)
    assert world.told[-1].label == 'error ledger_unavailable'
    world.wait(1.1)
    assert world.pipeline.ledger_fault == ''
    assert world.state('a') is SegmentState.ERROR
    assert world.passed() == []
    assert world.pipeline.judge_again('a', 0) == (2, '')
    world.drain()
    world.judged(SUCCESS)
    assert [name for _, _, name in world.passed()] == ['harness_eval:on_success:0', 'u']


def test_a_success_that_came_through_although_its_commit_failed_holds(world: World) -> None:
    world.propose('a')
    world.end('a')
    world.see()
    world.drain()
    number = world.ledger.transactions + 1
    world.ledger.fault = lambda n: 'after' if n == number else ''
    world.judged(SUCCESS)
    assert world.labels() == [('a', 'error ledger_unavailable')]
    assert world.passed() == []
    world.wait(1.1)
    assert world.labels()[-1] == ('a', 'success')
    assert world.passed() == world.released() != []
    world.wait(61)
    assert world.pipeline.ledger_fault == ''
    assert world.run('b').label == 'success'


def test_evidence_that_is_stored_is_kept_although_the_ledger_failed(world: World) -> None:
    world.end('a')
    world.see()
    number = world.ledger.transactions + 1
    world.ledger.fault = lambda n: 'before' if n == number else ''
    world.drain()
    assert world.labels() == [('a', 'error ledger_unavailable')]
    world.wait(1.1)
    assert world.pipeline.judge_again('a', 0) == (2, '')
    world.drain()
    world.judged(SUCCESS)
    assert world.labels()[-1] == ('a', 'success')


def test_an_interruption_that_cannot_be_recorded_is_no_interruption(world: World) -> None:
    world.propose('a')
    world.end('a')
    number = world.ledger.transactions + 2
    world.ledger.fault = lambda n: 'before' if n == number else ''
    done, message = world.pipeline.interrupt('a', 'stop')
    assert not done
    assert 'error' in message
    assert world.labels() == [('a', 'error ledger_unavailable')]
    world.wait(1.1)
    assert world.state('a') is SegmentState.ERROR


def test_an_interruption_that_came_through_although_it_failed_holds(world: World) -> None:
    world.propose('a')
    world.end('a')
    number = world.ledger.transactions + 2
    world.ledger.fault = lambda n: 'after' if n == number else ''
    world.pipeline.interrupt('a', 'stop')
    world.wait(1.1)
    assert world.state('a') is SegmentState.INTERRUPTED
    assert world.labels()[-1] == ('a', 'interrupted')
    assert world.refused() == [('a', 'u', 'run_interrupted')]
    assert world.pipeline.ledger_fault == ''


def test_a_proposal_that_cannot_be_held_is_rejected_and_may_come_again(world: World) -> None:
    world.ledger.fault = lambda number: 'before'
    world.propose('a')
    assert world.refused() == [('a', 'u', 'ledger_unavailable')]
    world.ledger.fault = lambda number: ''
    world.wait(1.1)
    world.propose('a')
    world.run('a')
    assert [name for _, _, name in world.passed()] == ['harness_eval:on_success:0', 'u']


def test_a_proposal_that_was_held_although_it_failed_is_ruled_on(world: World) -> None:
    number = world.ledger.transactions + 2
    world.ledger.fault = lambda n: 'after' if n == number else ''
    world.propose('a')
    assert world.refused() == [('a', 'u', 'ledger_unavailable')]
    world.wait(1.1)
    world.run('a', FAILURE)
    assert world.refused()[1:] == [('a', 'u', 'run_failed')]


def test_while_the_ledger_fails_deadlines_touch_it_once_a_second(world: World) -> None:
    world.propose('nobody')
    world.ledger.fault = lambda number: 'before'
    world.wait(61)
    before = world.ledger.transactions
    for _ in range(20):
        world.wait(0.02)
        world.pipeline.wakeup()
    assert world.ledger.transactions == before
    world.ledger.fault = lambda number: ''
    world.wait(1.1)
    assert world.refused() == [('nobody', 'u', 'hold_timeout')]


def test_while_the_ledger_fails_all_that_would_be_written_is_refused_without_trying(
    world: World,
) -> None:
    world.run('closed')
    world.end('waits')
    world.ledger.fault = lambda number: 'locked'
    world.propose('a')
    before = world.ledger.writes
    world.wait(0.5)
    for number in range(50):
        world.propose('a', f'u{number}')
        world.end(f'r{number}')
        assert not world.pipeline.interrupt(f'r{number}', 'stop')[0]
        assert world.pipeline.interrupt('closed', 'stop') == (False, 'it has ended as SUCCESS')
    assert world.ledger.writes == before
    assert {o.label for o in world.outcomes[1:]} == {'error ledger_unavailable'}
    assert len(world.refused()) == 51
    world.ledger.fault = lambda number: ''
    world.wait(0.7)
    assert world.pipeline.ledger_fault == '', 'refusals did not put the next try off'
    assert world.run('b').label == 'success'


def test_asking_for_the_next_deadline_never_touches_the_ledger(world: World) -> None:
    world.propose('nobody')
    world.run('a', EvaluatorError('judge_down', ''))
    world.propose('a', 'waits')
    before = world.ledger.transactions
    assert world.pipeline.wakeup() is not None
    world.wait(0.1)
    assert world.ledger.transactions == before


def test_a_completion_whose_commit_came_through_although_it_failed_gets_an_outcome(
    world: World,
) -> None:
    number = world.ledger.transactions + 2
    world.ledger.fault = lambda n: 'after' if n == number else ''
    completion = world.end('a')
    assert world.told[-1].error_kind == 'ledger_unavailable'
    assert world.state('a') is SegmentState.RECEIVED
    world.report(completion)
    assert len(world.told) == 1
    world.wait(1.1)
    assert world.state('a') is SegmentState.ERROR
    assert world.told[-1].error_kind == 'evidence_lost'
    assert len(world.told) == 2
