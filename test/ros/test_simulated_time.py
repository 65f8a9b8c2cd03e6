"""Under ``use_sim_time``: no clock yet, a clock that stands still, a clock that jumps back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation_world import EvaluationWorld
from fake_cell import cell_yaml, set_stamp
import pytest
from rclpy.clock import Clock, ClockType
from rosgraph_msgs.msg import Clock as ClockMessage

from harness_eval_msgs.msg import EvaluationEvent, RunOutcome, ToolCompletion
from harness_eval_msgs.msg import Verdict as VerdictMessage

TICK = 10_000_000
"""Nanoseconds of simulated time that pass in each step of a running clock."""


class Simulation:
    """Publishes ``/clock``; the test says whether it runs and what it shows."""

    def __init__(self, ros: Any) -> None:
        node = ros.node('simulation', spin=True)
        self.now = 100 * 10**9
        self.running = False
        self._publisher = node.create_publisher(ClockMessage, '/clock', 10)
        node.create_timer(0.01, self._tick, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _tick(self) -> None:
        if self.running:
            self.now += TICK
            message = ClockMessage()
            message.clock.sec, message.clock.nanosec = divmod(self.now, 10**9)
            self._publisher.publish(message)


@pytest.fixture
def simulation(ros: Any) -> Iterator[Simulation]:
    simulation = Simulation(ros)
    yield simulation
    simulation.running = False


def world_of(ros: Any, tmp_path: Path, **capture: str) -> EvaluationWorld:
    yaml = cell_yaml(capture='wall_timeout: 2.0')
    return EvaluationWorld(ros, tmp_path, yaml, simulated=True)


def end(world: EvaluationWorld, simulation: Simulation, run_id: str) -> None:
    message = world.completion(run_id)
    set_stamp(message, simulation.now)
    world.completions.publish(message)


def wait_for_clock(ros: Any, world: EvaluationWorld) -> None:
    ros.wait(lambda: world.evaluator.get_clock().now().nanoseconds > 0, what='/clock')


def test_a_completion_before_the_first_clock_is_an_error(
    ros: Any, tmp_path: Path, simulation: Simulation
) -> None:
    world = world_of(ros, tmp_path)
    world.completions.publish(ToolCompletion(run_id='run-1', tool='pick'))
    outcome = world.outcome('run-1')
    assert (outcome.kind, outcome.error_kind) == (RunOutcome.ERROR, 'clock_not_started')
    simulation.running = True
    wait_for_clock(ros, world)
    end(world, simulation, 'run-2')
    assert world.outcome('run-2').verdict.status == VerdictMessage.SUCCESS


def test_a_clock_that_jumps_back_ends_waiting_captures_and_keeps_what_was_decided(
    ros: Any, tmp_path: Path, simulation: Simulation
) -> None:
    world = world_of(ros, tmp_path)
    simulation.running = True
    wait_for_clock(ros, world)
    end(world, simulation, 'before')
    decided = world.outcome('before')
    assert decided.verdict.status == VerdictMessage.SUCCESS
    world.cell.cameras['wrist'].alive = False
    end(world, simulation, 'waiting')
    ros.wait(lambda: EvaluationEvent.RECEIVED in world.stages('waiting'), what='RECEIVED')
    simulation.now = 10 * 10**9
    outcome = world.outcome('waiting')
    assert (outcome.kind, outcome.error_kind) == (RunOutcome.ERROR, 'clock_jumped')
    world.cell.cameras['wrist'].alive = True
    end(world, simulation, 'after')
    assert world.outcome('after').verdict.status == VerdictMessage.SUCCESS
    assert [o.run_id for o in world.outcomes] == ['before', 'waiting', 'after']


def test_the_same_episode_after_a_reset_that_an_idle_node_saw_gets_no_old_success(
    ros: Any, tmp_path: Path, simulation: Simulation
) -> None:
    world = world_of(ros, tmp_path)
    simulation.running = True
    wait_for_clock(ros, world)
    message = world.completion('episode')
    set_stamp(message, simulation.now)
    world.completions.publish(message)
    assert world.outcome('episode').verdict.status == VerdictMessage.SUCCESS
    then = simulation.now
    for now in (then // 2, then + 10**9):  # back to the beginning, and on to the same moment
        simulation.now = now
        ros.wait(
            lambda now=now: 0 <= world.evaluator.get_clock().now().nanoseconds - now < 10**9,
            what='the new time',
        )
    world.completions.publish(message)
    ros.wait(lambda: EvaluationEvent.REJECTED in world.stages('episode'), what='REJECTED')
    assert len(world.outcomes) == 1


def test_a_paused_simulation_only_waits_and_goes_on_when_it_does(
    ros: Any, tmp_path: Path, simulation: Simulation
) -> None:
    world = world_of(ros, tmp_path)
    simulation.running = True
    wait_for_clock(ros, world)
    world.cell.cameras['wrist'].alive = False
    end(world, simulation, 'run-1')
    ros.wait(lambda: EvaluationEvent.RECEIVED in world.stages('run-1'), what='RECEIVED')
    simulation.running = False
    frames = world.cell.cameras['front'].published
    ros.wait(lambda: world.cell.cameras['front'].published > frames + 10, what='ten frames')
    assert not world.outcomes
    world.cell.cameras['wrist'].alive = True
    simulation.running = True
    assert world.outcome('run-1').verdict.status == VerdictMessage.SUCCESS


def test_a_clock_that_never_goes_on_ends_at_the_wall_limit(
    ros: Any, tmp_path: Path, simulation: Simulation
) -> None:
    world = world_of(ros, tmp_path)
    simulation.running = True
    wait_for_clock(ros, world)
    simulation.running = False
    end(world, simulation, 'run-1')
    outcome = world.outcome('run-1')
    assert (outcome.kind, outcome.error_kind) == (RunOutcome.ERROR, 'clock_stopped')
