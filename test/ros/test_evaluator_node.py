"""The node itself: lifecycle, parameters, diagnostics, pictures, a ledger in trouble."""

from __future__ import annotations

from pathlib import Path
import sqlite3
from typing import Any

import cv2
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from evaluation_world import Ears, EvaluationWorld
from fake_cell import cell_yaml, GREY
import numpy as np
import pytest
from rcl_interfaces.srv import DescribeParameters
from rclpy.parameter import Parameter
from sensor_msgs.msg import CompressedImage

from harness_eval.ros.evaluator_node import EvaluatorNode
from harness_eval_msgs.action import Evaluate
from harness_eval_msgs.msg import RunOutcome, SceneGraphOp, SceneGraphUpdate
from harness_eval_msgs.msg import Verdict as VerdictMessage
from harness_eval_msgs.srv import GetRun, GetUpdates, JudgeRun


def diagnostics(ros: Any, world: Ears) -> list[Any]:
    return ros.collect(world.node, DiagnosticArray, '/diagnostics')


def newest(messages: list[Any]) -> Any:
    return messages[-1].status[0] if messages else DiagnosticStatus()


def test_no_camera_is_listened_to_while_no_run_waits(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path)

    def listeners() -> int:
        return world.node.count_subscribers('/cell/front/image_raw')

    ros.wait(lambda: not listeners(), what='the short look at the start to be over')
    world.cell.cameras['wrist'].alive = False
    world.end('run-1')
    ros.wait(listeners, what='a subscription while the run waits')
    world.outcome('run-1')
    ros.wait(lambda: not listeners(), what='the subscription to go')


def test_a_camera_that_is_always_on_is_listened_to_all_the_time(ros: Any, tmp_path: Path) -> None:
    yaml = cell_yaml().replace(
        'front: {topic: cell/front/image_raw}',
        'front: {topic: cell/front/image_raw, always_on: true}',
    )
    world = EvaluationWorld(ros, tmp_path, yaml)
    ros.wait(
        lambda: world.node.count_subscribers('/cell/front/image_raw') == 1, what='a subscription'
    )
    world.end('run-1')
    assert world.outcome('run-1').verdict.status == VerdictMessage.SUCCESS


def test_a_deactivated_node_takes_nothing_and_an_activated_one_goes_on(
    ros: Any, tmp_path: Path
) -> None:
    world = EvaluationWorld(ros, tmp_path)
    world.end('run-1')
    world.outcome('run-1')
    assert world.evaluator.trigger_deactivate().name == 'SUCCESS'
    ros.wait(lambda: not world.evaluate.server_is_ready(), what='the action to go')
    assert world.evaluator.trigger_activate().name == 'SUCCESS'
    world.wait_for_node()
    world.end('run-2')
    assert world.outcome('run-2').verdict.status == VerdictMessage.SUCCESS


def test_a_run_that_waits_for_frames_ends_as_an_error_when_the_node_is_deactivated(
    ros: Any, tmp_path: Path
) -> None:
    world = EvaluationWorld(ros, tmp_path)
    world.cell.cameras['wrist'].alive = False
    world.end('run-1')
    ros.wait(lambda: world.stages('run-1'), what='RECEIVED')
    world.evaluator.trigger_deactivate()
    outcome = world.outcome('run-1')
    assert (outcome.kind, outcome.error_kind) == (RunOutcome.ERROR, 'deactivated')


def test_cleaned_up_and_configured_again_it_still_has_its_record(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path)
    world.end('run-1')
    world.outcome('run-1')
    for transition in ('deactivate', 'cleanup', 'configure', 'activate'):
        assert getattr(world.evaluator, f'trigger_{transition}')().name == 'SUCCESS', transition
    world.wait_for_node()
    assert ros.call(world.get_run, GetRun.Request(run_id='run-1')).state == 'SUCCESS'


@pytest.mark.parametrize(
    ('yaml', 'words'),
    [
        ('evaluation: {tool: {}}', 'evaluation.yaml:1: evaluation.tool: expected'),
        (None, 'parameter config is empty'),
    ],
)
def test_a_configuration_that_is_wrong_ends_the_process_with_two_and_says_where(
    subprocess_node: Any, tmp_path: Path, yaml: str | None, words: str
) -> None:
    parameters = {'ledger_url': f'sqlite:///{tmp_path}/l.sqlite3'}
    if yaml is not None:
        path = tmp_path / 'evaluation.yaml'
        path.write_text(yaml)
        parameters['config'] = str(path)
    child = subprocess_node('harness_eval.ros.evaluator_node', parameters=parameters)
    assert child.wait_for_end() == 2
    assert child.log().count(words) == 1
    assert 'Traceback' not in child.log()


def test_a_second_node_on_one_ledger_is_refused(
    ros: Any, tmp_path: Path, subprocess_node: Any
) -> None:
    world = EvaluationWorld(ros, tmp_path)
    child = subprocess_node(
        'harness_eval.ros.evaluator_node',
        parameters={'config': str(world.config), 'ledger_url': world.ledger_url},
    )
    assert child.wait_for_end() == 2
    assert 'ledger_in_use' in child.log()
    world.end('run-1')
    assert world.outcome('run-1').verdict.status == VerdictMessage.SUCCESS


def test_every_parameter_says_what_it_is_for(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path)
    client = world.node.create_client(DescribeParameters, 'harness_eval/describe_parameters')
    names = ['config', 'autostart', 'ledger_url', 'evidence_dir', 'evaluator']
    answer = ros.call(client, DescribeParameters.Request(names=names))
    assert all(len(d.description) > 20 for d in answer.descriptors)


def test_a_locked_ledger_decides_nothing_shows_in_diagnostics_and_recovers(
    ros: Any, tmp_path: Path
) -> None:
    world = EvaluationWorld(ros, tmp_path)
    heard = diagnostics(ros, world)
    ros.wait(lambda: newest(heard).level == DiagnosticStatus.OK and heard, what='OK')
    lock = sqlite3.connect(tmp_path / 'ledger.sqlite3', isolation_level=None)
    lock.execute('BEGIN IMMEDIATE')
    world.end('run-1')
    outcome = world.outcome('run-1')
    assert (outcome.kind, outcome.error_kind) == (RunOutcome.ERROR, 'ledger_unavailable')
    assert outcome.retryable
    world.proposals.publish(
        SceneGraphUpdate(
            run_id='run-1',
            update_id='u',
            ops=[SceneGraphOp(op=SceneGraphOp.ADD_NODE, subject='bottle')],
        )
    )
    ros.wait(lambda: world.rejections, what='the rejection of a proposal that cannot be kept')
    status = ros.wait(
        lambda: newest(heard).level == DiagnosticStatus.ERROR and newest(heard), what='ERROR'
    )
    assert 'ledger' in status.message
    assert not world.updates
    lock.execute('ROLLBACK')
    lock.close()
    ros.wait(lambda: newest(heard).level == DiagnosticStatus.OK, what='OK again')
    world.end('run-2')
    assert world.outcome('run-2').verdict.status == VerdictMessage.SUCCESS
    ros.wait(lambda: [u.run_id for u in world.updates] == ['run-2'], what='the update of run-2')


def test_evidence_that_cannot_be_stored_is_an_error_and_releases_nothing(
    ros: Any, tmp_path: Path
) -> None:
    world = EvaluationWorld(ros, tmp_path)
    world.evidence.write_text('a file where the folder should be')
    world.end('run-1')
    outcome = world.outcome('run-1')
    assert (outcome.kind, outcome.error_kind) == (RunOutcome.ERROR, 'evidence_not_stored')
    assert str(tmp_path) not in outcome.message
    world.evidence.unlink()
    world.end('run-2')
    assert world.outcome('run-2').verdict.status == VerdictMessage.SUCCESS
    ros.wait(lambda: world.updates, what='the update of run-2')
    assert [u.run_id for u in world.updates] == ['run-2']


def test_the_picture_of_an_outcome_can_be_shown_as_it_stands(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path)
    pictures = ros.collect(world.node, CompressedImage, 'harness_eval/evidence/compressed', 10)
    ros.wait(
        lambda: world.node.count_publishers('/harness_eval/evidence/compressed'),
        what='the publisher',
    )
    ros.wait(lambda: world.evaluator._work._publications.pictures_wanted, what='a subscription')
    world.cell.cameras['front'].color = GREY
    world.end('run-1')
    world.outcome('run-1')
    message = ros.wait(lambda: pictures and pictures[0], what='the picture')
    assert (message.format, message.header.frame_id) == ('jpeg', 'run-1/0')
    picture = cv2.imdecode(np.frombuffer(message.data, np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    assert picture.shape[0] > 150
    assert picture.shape[1] > 320


def test_an_abstention_can_be_judged_again_from_its_stored_evidence(
    ros: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('fake_judge.behave', lambda request: None)
    world = EvaluationWorld(ros, tmp_path)
    world.end('run-1', 'plug')
    assert world.outcome('run-1').kind == RunOutcome.ABSTAINED
    for camera in world.cell.cameras.values():
        camera.alive = False
    seen: list[Any] = []
    monkeypatch.setattr('fake_judge.behave', lambda request: bool(seen.append(request)) or True)
    answer = ros.call(world.judge, JudgeRun.Request(run_id='run-1'))
    assert (answer.accepted, answer.attempt, answer.message) == (True, 2, '')
    again = world.outcome('run-1', attempt=2)
    assert again.verdict.status == VerdictMessage.SUCCESS
    assert seen[0].observation.views['front'].image[60, 80].tolist() == [40, 200, 40]
    refused = ros.call(world.judge, JudgeRun.Request(run_id='run-1'))
    assert not refused.accepted
    assert 'only errors and abstentions' in refused.message


def test_get_updates_pages_through_what_was_released(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path)
    for number in range(5):
        world.end(f'run-{number}')
    ros.wait(lambda: len(world.updates) == 5, what='five updates')
    first = ros.call(world.get_updates, GetUpdates.Request(after_revision=0, limit=2))
    assert ([u.revision for u in first.updates], first.last_revision) == ([1, 2], 5)
    rest = ros.call(
        world.get_updates, GetUpdates.Request(graph_id=first.graph_id, after_revision=2)
    )
    assert [u.revision for u in rest.updates] == [3, 4, 5]
    other = ros.call(world.get_updates, GetUpdates.Request(graph_id='other', after_revision=2))
    assert (other.graph_id, list(other.updates)) == (first.graph_id, [])


def test_an_inactive_node_rejects_goals(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path)
    world.evaluator._active = False
    handle = ros.send_goal(world.evaluate, Evaluate.Goal(run_id='run-1', tool='pick'))
    assert not handle.accepted


def test_a_completion_type_that_is_not_installed_is_refused_at_configuration(
    ros: Any, tmp_path: Path
) -> None:
    path = tmp_path / 'evaluation.yaml'
    path.write_text(
        cell_yaml(
            completions='completions:\n  - {topic: done, type: no_msgs/msg/Done, run_id: id, '
            'tool_name: insert}'
        )
    )
    node = ros.adopt(
        EvaluatorNode(
            context=ros.context,
            parameter_overrides=[
                Parameter('config', value=str(path)),
                Parameter('ledger_url', value=f'sqlite:///{tmp_path}/ledger.sqlite3'),
            ],
        )
    )
    assert node.trigger_configure().name == 'FAILURE'
    assert 'no_msgs/msg/Done is not installed' in node.configuration_fault


def test_a_fault_inside_is_counted_for_good_and_a_warning_for_a_while(
    ros: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('harness_eval.ros.faults.FAULT_SHOWN', 2.0)
    world = EvaluationWorld(ros, tmp_path)
    heard = diagnostics(ros, world)
    world.evaluator.note_fault(RuntimeError('odd'))
    status = ros.wait(
        lambda: newest(heard).level == DiagnosticStatus.WARN and newest(heard), what='WARN'
    )
    assert 'odd' in status.message
    ros.wait(lambda: heard and newest(heard).level == DiagnosticStatus.OK, what='OK')
    values = {value.key: value.value for value in newest(heard).values}
    assert values['internal faults'] == '1'
    assert values['frames dropped'] == '0'
