"""The examples run as they stand, as programs of their own."""

from __future__ import annotations

from collections.abc import Callable
import os
from pathlib import Path
import subprocess
import sys
from typing import Any

from evaluation_world import EvaluationWorld
from fake_cell import GREEN, GREY
import pytest
from std_srvs.srv import Trigger

ROOT = Path(__file__).parents[2]


@pytest.fixture
def world(ros: Any, tmp_path: Path) -> EvaluationWorld:
    return EvaluationWorld(ros, tmp_path)


def serve(world: EvaluationWorld, tool: str, effects: list[Callable[[], None]]) -> None:
    """A robot whose tool has one effect after another, and always claims success."""

    def run(request: Any, response: Any) -> Any:
        effects.pop(0)()
        response.success = True
        return response

    world.node.create_service(Trigger, f'skills/{tool}', run)


def agent(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the example."""
    return subprocess.run(
        [sys.executable, 'examples/agent.py', *arguments],
        cwd=ROOT,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=60.0,
        check=False,
    )


def test_the_agent_tries_again_under_a_new_run_id_until_the_tool_has_worked(
    world: EvaluationWorld,
) -> None:
    front = world.cell.cameras['front']
    effects = [lambda: setattr(front, 'color', GREY), lambda: setattr(front, 'color', GREEN)]
    serve(world, 'pick', effects)
    ended = agent('pick', 'target=bottle')
    assert ended.returncode == 0, ended.stderr
    assert 'post_condition: ' in ended.stderr
    assert 'pick has worked' in ended.stderr
    assert not effects
    assert len({outcome.run_id for outcome in world.outcomes}) == 2


def test_the_agent_does_not_repeat_what_nobody_could_judge(world: EvaluationWorld) -> None:
    world.cell.cameras['wrist'].alive = False
    calls: list[None] = []
    serve(world, 'pick', [lambda: calls.append(None)] * 3)
    ended = agent('pick', 'target=bottle')
    assert (ended.returncode, len(calls)) == (2, 1), ended.stderr
    assert 'not evaluated: no_frames' in ended.stderr
    assert 'wrist' in ended.stderr
