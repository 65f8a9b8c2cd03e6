"""Whoever waits for an outcome is told something before the node stops serving."""

from __future__ import annotations

from pathlib import Path
import threading
from typing import Any

from action_msgs.msg import GoalStatus
from evaluation_world import EvaluationWorld
from fake_cell import cell_yaml
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
import pytest

from harness_eval_msgs.action import Evaluate
from harness_eval_msgs.msg import EvaluationEvent, RunOutcome
from harness_eval_msgs.msg import Verdict as VerdictMessage

RUN = 'run-1'


def deactivate(ros: Any, world: EvaluationWorld) -> None:
    """Over the service, as a lifecycle manager does."""
    client = world.node.create_client(ChangeState, 'harness_eval/change_state')
    request = ChangeState.Request()
    request.transition.id = Transition.TRANSITION_DEACTIVATE
    assert ros.call(client, request).success


def wait_for_result(ros: Any, world: EvaluationWorld, tool: str, stage: int) -> Any:
    """Send a goal, and wait until its run has come so far; what its result will be."""
    handle = ros.send_goal(world.evaluate, Evaluate.Goal(run_id=RUN, tool=tool))
    assert handle.accepted
    result = handle.get_result_async()
    ros.wait(lambda: stage in world.stages(RUN), what='the run')
    return result


def test_a_goal_whose_judge_still_works_is_aborted_and_its_outcome_comes_later(
    ros: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = threading.Event()
    monkeypatch.setattr('fake_judge.behave', lambda request: decided.wait(10))
    world = EvaluationWorld(ros, tmp_path)
    result = wait_for_result(ros, world, 'plug', EvaluationEvent.STARTED)
    deactivate(ros, world)
    ros.wait(result.done, what='the result')
    assert result.result().status == GoalStatus.STATUS_ABORTED
    outcome = result.result().result.outcome
    assert (outcome.run_id, outcome.kind) == (RUN, RunOutcome.ERROR)
    assert outcome.error_kind == 'deactivated'
    decided.set()
    assert world.evaluator.trigger_activate().name == 'SUCCESS'
    assert world.outcome(RUN).verdict.status == VerdictMessage.SUCCESS


def test_a_goal_that_waits_for_frames_gets_the_outcome_that_is_on_record(
    ros: Any, tmp_path: Path
) -> None:
    world = EvaluationWorld(ros, tmp_path, cell_yaml())
    world.cell.cameras['front'].alive = False
    result = wait_for_result(ros, world, 'plug', EvaluationEvent.RECEIVED)
    deactivate(ros, world)
    ros.wait(result.done, what='the result')
    assert result.result().result.outcome.error_kind == 'deactivated'
    assert world.outcome(RUN).error_kind == 'deactivated'
