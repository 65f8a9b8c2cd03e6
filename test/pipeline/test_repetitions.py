"""A completion that comes again gets its answer; a new run that looks like it gets no old one."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
import hypothesis.strategies as st
from pipeline_world import SECOND, START, World
import pytest

from harness_eval.pipeline.eras import BACK_ACROSS_NS, BACK_NS, Eras
from harness_eval.runs import Completion, Outcome, Segment
from harness_eval.stages import Stage


def told_of_a_repetition(world: World, completion: Completion) -> Outcome:
    """What its sender is told when a completion comes again."""
    before = len(world.told)
    world.report(completion)
    assert len(world.told) == before + 1
    return world.told[-1]


def reset(world: World, *, by: float = 30.0) -> None:
    """The simulation begins anew, without the node having anything to do meanwhile."""
    world.ros -= round(by * SECOND)


def the_same_episode(world: World) -> Completion:
    """An agent that ends its run at the same moment of every episode."""
    return Completion('episode_1', 'bare', 0, START + 20 * SECOND)


def end_at(world: World, completion: Completion) -> None:
    world.ros = completion.stamp
    world.report(completion)


def first_episode(world: World) -> Completion:
    completion = the_same_episode(world)
    end_at(world, completion)
    world.see()
    world.drain()
    world.judged()
    assert world.told[-1].label == 'success'
    return completion


@pytest.mark.parametrize('seen', ['nothing', 'frames', 'another run', 'a tick'])
def test_the_same_episode_after_a_reset_gets_no_old_success(world: World, seen: str) -> None:
    completion = first_episode(world)
    reset(world)
    if seen == 'frames':
        world.show()
    elif seen == 'another run':
        world.end('other', 'bare')
    elif seen == 'a tick':
        world.wait(0.1)
    end_at(world, completion)
    assert world.told[-1].error_kind == 'conflicting_completion'
    assert 'clock went back' in world.told[-1].message
    assert world.stages('episode_1')[-1] is Stage.REJECTED


def test_a_reset_that_whoever_keeps_the_clock_tells_of_is_believed(world: World) -> None:
    completion = first_episode(world)
    world.pipeline.clock_jumped()
    assert told_of_a_repetition(world, completion).error_kind == 'conflicting_completion'


@pytest.mark.parametrize('down', [False, True])
def test_the_same_episode_after_a_reset_and_a_restart_gets_no_old_success(
    world: World, down: bool
) -> None:
    completion = first_episode(world)
    if down:  # the reset came while no node was there to see it
        world.crash()
        world.ros = START
        world.wait(0.1)
    else:
        world.ros = START
        world.wait(0.1)
        world.end('other', 'bare')
        world.crash()
    end_at(world, completion)
    assert world.told[-1].error_kind == 'conflicting_completion'


def test_a_run_of_the_new_episode_is_repeated_as_ever(world: World) -> None:
    first_episode(world)
    reset(world)
    again = world.end('episode_2', 'bare')
    world.see()
    world.drain()
    world.judged()
    world.crash()
    assert told_of_a_repetition(world, again).label == 'success'


def test_before_the_first_clock_of_a_simulation_no_time_has_gone_back(world: World) -> None:
    completion = first_episode(world)
    then = world.ros
    world.crash()
    world.ros = 0
    world.pipeline.tick()
    world.ros = then + SECOND
    assert told_of_a_repetition(world, completion).label == 'success'


def test_an_agent_that_counts_from_run_1_again_gets_no_old_success(world: World) -> None:
    world.run('run_1', stamp=0)
    completion = Completion('run_1', 'pick', 0, 0, (('target', 'object of run_1'),))
    assert told_of_a_repetition(world, completion).label == 'success'
    world.wait(3.0)
    assert told_of_a_repetition(world, completion).error_kind == 'conflicting_completion'
    world.crash()
    assert told_of_a_repetition(world, completion).error_kind == 'conflicting_completion'


def test_a_slow_simulation_makes_no_old_run_a_new_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    world.run('run_1', stamp=0)
    now = time.time()
    monkeypatch.setattr(time, 'time', lambda: now + 3.0)
    completion = Completion('run_1', 'pick', 0, 0, (('target', 'object of run_1'),))
    assert told_of_a_repetition(world, completion).error_kind == 'conflicting_completion'


def test_an_unstamped_completion_that_waits_for_its_judge_is_answered_with_it(
    world: World,
) -> None:
    completion = world.end('run_1', stamp=0)
    world.see()
    world.drain()
    world.wait(20.0)
    world.report(completion)
    world.judged()
    assert [o.label for o in world.told] == ['success', 'success']


def test_the_era_of_a_run_is_on_record(make_world: Callable[..., World]) -> None:
    world = make_world()

    def era(run_id: str) -> int:
        run = world.on_record(run_id)
        assert run is not None
        last: Segment | None = run.last
        assert last is not None
        return last.era

    for number in range(3):
        world.end(f'r{number}', 'bare')
        assert era(f'r{number}') == number
        world.crash()
        reset(world)


times = st.lists(st.tuples(st.sampled_from('ab'), st.integers(0, 10**10)), max_size=30)


@given(times)
def test_a_clock_that_only_goes_on_is_never_seen_to_go_back(seen: list[tuple[str, int]]) -> None:
    eras = Eras()
    for source, now in sorted(seen, key=lambda one: one[1]):
        eras.see(source, now)
    assert eras.count == 0


@given(times, st.integers(BACK_NS, 10**9), st.sampled_from('ab'))
def test_a_source_that_goes_back_is_seen_whatever_came_before(
    seen: list[tuple[str, int]], back: int, source: str
) -> None:
    eras = Eras(4)
    now = 2 * 10**10
    for one, time in sorted(seen, key=lambda pair: pair[1]):
        eras.see(one, time)
    eras.see(source, now)
    eras.see(source, now - back)
    assert eras.count == 5
    eras.see(source, now)
    assert eras.count == 5


@pytest.mark.parametrize(('back', 'jumps'), [(BACK_ACROSS_NS - 1, 0), (BACK_ACROSS_NS, 1)])
def test_sources_may_overtake_each_other_a_little(back: int, jumps: int) -> None:
    eras = Eras(0, START)
    eras.see('a', START + SECOND)
    eras.see('b', START + SECOND - back)
    assert eras.count == jumps
