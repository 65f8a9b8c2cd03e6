"""What is listened to while the record says whether a completion is taken."""

from __future__ import annotations

from typing import Any

from pipeline_world import SUCCESS, World
import pytest

from harness_eval.stages import Stage

NEEDED = frozenset({'cell/front', 'joints'})
NOTHING: frozenset[str] = frozenset()


@pytest.fixture
def log(world: World, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Everything that is tapped and shown, in order."""
    found: list[Any] = []
    tap, event = world.tap, world.event

    def tapped(topics: frozenset[str]) -> None:
        found.append(topics)
        tap(topics)

    def shown(step: Any) -> None:
        found.append(step.stage)
        event(step)

    monkeypatch.setattr(world, 'tap', tapped)
    monkeypatch.setattr(world, 'event', shown)
    return found


def test_a_new_run_is_listened_for_before_it_is_on_record(world: World, log: list[Any]) -> None:
    world.end('a')
    assert log == [NEEDED, Stage.RECEIVED]


def test_a_completion_that_comes_again_is_not_listened_for(world: World, log: list[Any]) -> None:
    completion = world.end('a')
    world.see()
    world.drain()
    world.judged(SUCCESS)
    del log[:]
    world.report(completion)
    assert NEEDED not in log
    assert world.told[-1].label == 'success'


def test_one_that_comes_again_after_a_restart_leaves_nothing_behind(
    world: World, log: list[Any]
) -> None:
    world.run('a')
    run = world.on_record('a')
    assert run is not None
    world.crash()
    world.report(run.segments[0].completion)
    assert world.told[-1].label == 'success'
    assert world.taps == NOTHING
    world.show()
    world.wait(5.0)
    assert world.told[-1].label == 'success'


def test_a_completion_that_is_rejected_leaves_nothing_behind(world: World, log: list[Any]) -> None:
    world.run('a')
    del log[:]
    world.end('a', segment=1)  # the run has ended
    assert log[-1] == NOTHING
    assert world.stages('a')[-1] is Stage.REJECTED


def test_a_completion_that_cannot_be_recorded_leaves_nothing_behind(
    world: World, log: list[Any]
) -> None:
    first = world.ledger.transactions
    world.ledger.fault = lambda number: 'before' if number > first else ''
    world.end('a')
    assert log[-1] == NOTHING
    assert world.told[-1].error_kind == 'ledger_unavailable'


def test_another_run_goes_on_to_be_listened_for(world: World, log: list[Any]) -> None:
    world.run('b', tool='bare')
    world.end('a')
    world.end('b', tool='bare', segment=1)  # rejected
    assert world.taps == NEEDED
    world.see()
    world.drain()
    world.judged(SUCCESS, 'a')
    assert world.labels()[-1] == ('a', 'success')
