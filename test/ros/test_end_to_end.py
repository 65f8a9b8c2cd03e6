"""The whole way of the data on real rclpy: an end, the cameras, a verdict, the gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluation_world import EvaluationWorld
from fake_cell import GREY
import pytest

from harness_eval_msgs.msg import EvaluationEvent, RunOutcome, SceneGraphOp, SceneGraphUpdate
from harness_eval_msgs.msg import Verdict as VerdictMessage


@pytest.fixture
def world(ros: Any, tmp_path: Path) -> EvaluationWorld:
    return EvaluationWorld(ros, tmp_path)


def test_a_held_bottle_is_a_success_and_changes_the_scene_graph(
    ros: Any, world: EvaluationWorld
) -> None:
    world.end('run-1')
    outcome = world.outcome('run-1')
    assert (outcome.kind, outcome.message) == (RunOutcome.VERDICT, '')
    assert outcome.verdict.status == VerdictMessage.SUCCESS
    update = ros.wait(lambda: world.updates and world.updates[0], what='the released update')
    assert (update.run_id, update.revision) == ('run-1', 1)
    assert [(op.op, op.subject, op.predicate, op.object) for op in update.ops] == [
        (SceneGraphOp.REMOVE_EDGE, 'bottle', 'on', 'table'),
        (SceneGraphOp.ADD_EDGE, 'bottle', 'held_by', 'gripper'),
    ]
    ros.wait(lambda: len(world.stages('run-1')) == 4, what='four events')
    assert world.stages('run-1') == [
        EvaluationEvent.RECEIVED,
        EvaluationEvent.CAPTURED,
        EvaluationEvent.STARTED,
        EvaluationEvent.COMPLETED,
    ]


def test_a_failed_pick_changes_nothing_and_says_why(ros: Any, world: EvaluationWorld) -> None:
    world.cell.cameras['front'].color = GREY
    world.proposals.publish(
        SceneGraphUpdate(
            run_id='run-1',
            update_id='held',
            ops=[SceneGraphOp(op=SceneGraphOp.ADD_NODE, subject='bottle')],
        )
    )
    world.end('run-1')
    outcome = world.outcome('run-1')
    assert outcome.verdict.status == VerdictMessage.FAILURE
    assert 'front' in outcome.verdict.failure_reason
    rejection = ros.wait(lambda: world.rejections and world.rejections[0], what='a rejection')
    assert (rejection.run_id, rejection.update_id) == ('run-1', 'held')
    assert rejection.reason.startswith('run_failed:')
    assert not world.updates
