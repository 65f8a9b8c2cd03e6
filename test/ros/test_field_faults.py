"""What goes wrong in the field with cameras, clocks and completions, on real rclpy.

Each test is a kind of fault that people who run cameras, bags and judges have reported.
"""

from __future__ import annotations

import array
from pathlib import Path
import re
from typing import Any

from evaluation_world import EvaluationWorld
from fake_cell import Camera, cell_yaml, GREEN, GREY
import pytest
from sensor_msgs.msg import Image

from harness_eval.outcome_messages import outcome_of_message
from harness_eval_msgs.action import Evaluate
from harness_eval_msgs.msg import (
    EvaluationEvent,
    RunOutcome,
    SceneGraphOp,
    SceneGraphUpdate,
    ToolCompletion,
)
from harness_eval_msgs.msg import Verdict as VerdictMessage
from harness_eval_msgs.srv import GetRun, InterruptRun


@pytest.fixture
def world(ros: Any, tmp_path: Path) -> EvaluationWorld:
    return EvaluationWorld(ros, tmp_path)


def failed(outcome: Any, kind: str, *words: str) -> None:
    """Assert an error of a kind whose message names these things."""
    assert outcome.kind == RunOutcome.ERROR, outcome
    assert outcome.error_kind == kind, (outcome.error_kind, outcome.message)
    missing = [word for word in words if word not in outcome.message]
    assert not missing, (missing, outcome.message)
    assert outcome.verdict.status == VerdictMessage.UNSET


# --- cameras and their clocks ---------------------------------------------------------------


def test_a_driver_that_leaves_the_stamp_at_zero_is_an_error_naming_the_view(
    world: EvaluationWorld,
) -> None:
    world.cell.cameras['wrist'].stamp_offset = None
    world.end('run-1')
    failed(world.outcome('run-1'), 'unstamped_view', "'wrist'")


@pytest.mark.parametrize('offset', [3600.0, -3600.0, 0.12])
def test_a_camera_clock_off_the_host_clock_is_an_error_with_the_offset(
    world: EvaluationWorld, offset: float
) -> None:
    world.cell.cameras['front'].stamp_offset = offset
    world.end('run-1')
    outcome = world.outcome('run-1')
    failed(outcome, 'clock_skew', "'front'")
    measured = re.search(r'offset ([+-][0-9.]+) s', outcome.message)
    assert measured is not None, outcome.message
    assert float(measured[1]) == pytest.approx(offset, abs=0.1 if abs(offset) < 1 else 2.0)


@pytest.mark.parametrize('reliable', [True, False])
def test_the_subscription_adapts_to_the_reliability_that_is_offered(
    ros: Any, tmp_path: Path, reliable: bool
) -> None:
    world = EvaluationWorld(ros, tmp_path, reliable=reliable)
    world.end('run-1')
    assert world.outcome('run-1').verdict.status == VerdictMessage.SUCCESS


def test_a_camera_that_was_never_started_is_named_with_its_topic(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path, cameras=('front',))
    world.end('run-1')
    failed(world.outcome('run-1'), 'no_publisher', "'wrist'", '/cell/wrist/image_raw')


def test_a_camera_that_went_silent_is_named_with_its_publishers(world: EvaluationWorld) -> None:
    world.cell.cameras['wrist'].alive = False
    world.end('run-1')
    failed(world.outcome('run-1'), 'no_frames', "'wrist'", '1 publisher')


def test_a_camera_that_repeats_one_picture_under_new_stamps_is_frozen(
    world: EvaluationWorld,
) -> None:
    world.cell.cameras['front'].frozen = True
    world.end('run-1')
    failed(world.outcome('run-1'), 'frozen', "'front'", 'may_repeat')


def test_a_topic_of_another_type_is_an_error_that_names_both(ros: Any, tmp_path: Path) -> None:
    yaml = cell_yaml(tools='').replace(
        'wrist: {topic: cell/wrist/image_raw}', 'wrist: {topic: joint_states}'
    )
    world = EvaluationWorld(ros, tmp_path, yaml)
    world.end('run-1')
    failed(world.outcome('run-1'), 'wrong_type', "'wrist'", 'sensor_msgs/msg/Image', 'JointState')


def test_a_reading_that_is_not_in_the_message_is_an_error(ros: Any, tmp_path: Path) -> None:
    yaml = cell_yaml().replace('name=finger_joint', 'name=thumb_joint')
    world = EvaluationWorld(ros, tmp_path, yaml)
    world.end('run-1')
    failed(world.outcome('run-1'), 'field_absent', 'gripper', 'thumb_joint', 'finger_joint')


def test_cameras_that_never_agree_within_the_slop_are_an_error_with_the_smallest_spread(
    ros: Any, tmp_path: Path
) -> None:
    world = EvaluationWorld(ros, tmp_path, cell_yaml(capture='slop: 0.05'))
    world.cell.cameras['front'].stamp_offset = -0.517
    world.end('run-1')
    outcome = world.outcome('run-1')
    assert outcome.kind in (RunOutcome.VERDICT, RunOutcome.ERROR)
    if outcome.kind == RunOutcome.VERDICT:
        spread = nanoseconds(outcome.verdict.observed_to) - nanoseconds(
            outcome.verdict.observed_from
        )
        assert 0 <= spread <= 0.05e9


def test_frames_from_before_the_end_are_never_evidence_even_if_the_host_is_slow(
    world: EvaluationWorld,
) -> None:
    message = world.completion('run-1')
    late = nanoseconds(message.header.stamp) - int(0.8e9)
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(late, 10**9)
    before = world.node.get_clock().now().nanoseconds
    world.completions.publish(message)
    verdict = world.outcome('run-1').verdict
    assert verdict.status == VerdictMessage.SUCCESS
    assert nanoseconds(verdict.completed_at) >= before
    assert nanoseconds(verdict.observed_from) >= before + int(0.15e9)


def test_a_completion_stamped_in_the_future_is_an_error(world: EvaluationWorld) -> None:
    message = world.completion('run-1')
    message.header.stamp.sec += 100
    world.completions.publish(message)
    outcome = world.outcome('run-1')
    failed(outcome, 'clock_skew', 'completion')
    measured = re.search(r'stamped ([0-9.]+) s after', outcome.message)
    assert measured is not None, outcome.message
    assert float(measured[1]) == pytest.approx(100, abs=2.0)


def nanoseconds(time: Any) -> int:
    return int(time.sec) * 10**9 + int(time.nanosec)


# --- damaged messages -----------------------------------------------------------------------


def cut(message: Image) -> Image:
    return Image(
        header=message.header,
        height=message.height,
        width=message.width,
        encoding=message.encoding,
        step=message.step,
        data=message.data[: len(message.data) // 2],
    )


def huge(message: Image) -> Image:
    return Image(
        header=message.header,
        height=2**31,
        width=message.width,
        encoding=message.encoding,
        step=message.step,
        data=message.data,
    )


def empty(message: Image) -> Image:
    return Image(header=message.header, encoding='rgb8')


def odd(message: Image) -> Image:
    return Image(
        header=message.header,
        height=message.height,
        width=message.width,
        encoding='jpeg2000',
        step=message.step,
        data=message.data,
    )


@pytest.mark.parametrize(
    ('mangle', 'kind'),
    [
        (cut, 'malformed_image'),
        (huge, 'malformed_image'),
        (empty, 'malformed_image'),
        (odd, 'unsupported_encoding'),
    ],
)
def test_a_picture_that_cannot_be_trusted_is_an_error_and_the_next_run_works(
    world: EvaluationWorld, mangle: Any, kind: str
) -> None:
    world.cell.cameras['front'].mangle = mangle
    if mangle is empty:  # a picture without pixels always repeats itself
        world.cell.cameras['front'].mangle = lambda m: Image(
            header=m.header, encoding='rgb8', data=array.array('B', m.data[:3].tobytes())
        )
    world.end('run-1')
    failed(world.outcome('run-1'), kind, 'front')
    world.cell.cameras['front'] = Camera(color=GREEN)
    world.end('run-2')
    assert world.outcome('run-2').verdict.status == VerdictMessage.SUCCESS


# --- completions ----------------------------------------------------------------------------


def test_the_same_completion_again_gets_the_recorded_answer(
    ros: Any, world: EvaluationWorld
) -> None:
    message = world.completion('run-1')
    world.completions.publish(message)
    first = world.outcome('run-1')
    world.cell.cameras['front'].color = GREY
    world.completions.publish(message)
    ros.wait(lambda: len(world.outcomes) == 2, what='the recorded answer')
    assert outcome_of_message(world.outcomes[1]) == outcome_of_message(first)
    assert world.stages('run-1').count(EvaluationEvent.STARTED) == 1


def test_another_run_under_an_old_name_is_rejected_and_never_answered_with_the_old_verdict(
    ros: Any, world: EvaluationWorld
) -> None:
    world.end('run_1')
    world.outcome('run_1')
    world.end('run_1')
    event = ros.wait(
        lambda: next((e for e in world.events if e.stage == EvaluationEvent.REJECTED), None),
        what='the rejection',
    )
    assert event.detail.startswith('conflicting_completion:')
    goal = Evaluate.Goal(run_id='run_1', tool='pick')
    goal.header.stamp = world.node.get_clock().now().to_msg()
    handle = ros.send_goal(world.evaluate, goal)
    result = ros.result(handle.get_result_async()).result
    failed(result.outcome, 'conflicting_completion', 'run_1')
    assert len(world.outcomes) == 1


@pytest.mark.parametrize(
    ('run_id', 'arguments', 'kind'),
    [
        ('', {}, 'empty_run_id'),
        ('x' * 100_000, {}, 'invalid_run_id'),
        ('run\x1b[2J\n', {}, 'invalid_run_id'),
        ('run-1', {f'a{i}': 'x' for i in range(1000)}, 'invalid_completion'),
        ('run-1', {'target': 'x' * 1_000_000}, 'invalid_completion'),
        ('run-1', {'target': 'x' * 201}, 'argument_too_long'),
        ('run-1', {'other': 'bottle'}, 'missing_argument'),
    ],
)
def test_a_completion_that_cannot_be_taken_ends_as_an_error_and_the_next_run_works(
    ros: Any, world: EvaluationWorld, run_id: str, arguments: dict[str, str], kind: str
) -> None:
    world.end(run_id, **(arguments or {'target': 'bottle'}))
    outcome = ros.wait(lambda: world.outcomes and world.outcomes[0], what='an outcome')
    failed(outcome, kind)
    assert len(outcome.run_id) <= 256
    assert outcome.run_id.isprintable()
    world.end('run-2')
    assert world.outcome('run-2').verdict.status == VerdictMessage.SUCCESS


def test_a_run_id_is_never_a_path(world: EvaluationWorld, tmp_path: Path) -> None:
    world.end('../../etc/passwd')
    assert world.outcome('../../etc/passwd').verdict.status == VerdictMessage.SUCCESS
    names = [path.name for path in world.evidence.iterdir()]
    assert len(names) == 1
    assert names[0].startswith('etc-passwd-')
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {'evidence'}


def test_the_completion_and_the_goal_have_no_field_for_a_claim_of_success() -> None:
    expected = {'header', 'run_id', 'tool', 'segment', 'arguments'}
    assert set(ToolCompletion.get_fields_and_field_types()) == expected
    assert set(Evaluate.Goal.get_fields_and_field_types()) == expected


def test_a_tool_that_is_not_required_is_ignored(ros: Any, world: EvaluationWorld) -> None:
    world.end('run-1', tool='wave')
    world.end('run-2')
    world.outcome('run-2')
    assert [o.run_id for o in world.outcomes] == ['run-2']
    assert not world.stages('run-1')


def test_a_burst_of_completions_loses_none(ros: Any, world: EvaluationWorld) -> None:
    for number in range(100):
        world.end(f'run-{number}')
    ros.wait(lambda: len(world.outcomes) == 100, timeout=60.0, what='100 outcomes')
    assert {o.run_id for o in world.outcomes} == {f'run-{n}' for n in range(100)}
    assert not [o.message for o in world.outcomes if o.kind == RunOutcome.ERROR]
    assert all(o.verdict.status == VerdictMessage.SUCCESS for o in world.outcomes)
    ros.wait(lambda: len(world.updates) == 100, what='100 updates')
    assert [u.revision for u in world.updates] == list(range(1, 101))


# --- judges that misbehave --------------------------------------------------------------------


@pytest.mark.parametrize(
    ('behave', 'kind', 'words'),
    [
        (lambda r: 1 / 0, 'evaluator_raised', ('ZeroDivisionError',)),
        (lambda r: float('nan'), 'score_out_of_range', ('nan',)),
        (lambda r: 3.7, 'score_out_of_range', ('3.7',)),
        (lambda r: 'success', 'malformed_answer', ('str',)),
    ],
)
def test_a_plugin_that_misbehaves_is_an_error_that_names_it(
    world: EvaluationWorld, monkeypatch: pytest.MonkeyPatch, behave: Any, kind: str, words: Any
) -> None:
    monkeypatch.setattr('fake_judge.behave', behave)
    world.end('run-1', 'plug')
    outcome = world.outcome('run-1')
    failed(outcome, kind, *words)
    assert outcome.evaluator == 'plugin:fake_judge:judge'


def test_hanging_plugins_end_in_quarantine_and_hold_up_nobody(
    ros: Any, world: EvaluationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    release = threading.Event()
    monkeypatch.setattr('fake_judge.behave', lambda request: release.wait(60) and None)
    try:
        for number in range(5):
            world.end(f'hang-{number}', 'plug')
        world.end('run-1')
        assert world.outcome('run-1').verdict.status == VerdictMessage.SUCCESS
        kinds = [world.outcome(f'hang-{number}').error_kind for number in range(5)]
        assert kinds == ['judge_timeout'] * 5
        world.end('hang-5', 'plug')
        failed(world.outcome('hang-5'), 'quarantined')
    finally:
        release.set()


# --- order, occlusion, interruption, late joiners ---------------------------------------------


def test_a_covered_view_is_an_abstention_and_no_judge_is_called(
    ros: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usable = 'usable: {color: {lower: [50, 80, 80], upper: [70, 255, 255], coverage: [0.5, 1]}}'
    yaml = cell_yaml().replace(
        'front: {topic: cell/front/image_raw}', f'front: {{topic: cell/front/image_raw, {usable}}}'
    )
    called: list[Any] = []
    monkeypatch.setattr('fake_judge.behave', called.append)
    world = EvaluationWorld(ros, tmp_path, yaml)
    world.cell.cameras['front'].color = (0, 0, 0)
    world.end('run-1', 'plug')
    outcome = world.outcome('run-1')
    assert (outcome.kind, outcome.error_kind) == (RunOutcome.ABSTAINED, 'view_unusable')
    assert 'front' in outcome.message
    assert not called


def test_the_update_of_an_earlier_run_with_a_slow_judge_comes_first(
    ros: Any, world: EvaluationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    decided = threading.Event()
    monkeypatch.setattr('fake_judge.behave', lambda request: decided.wait(10))
    node = SceneGraphOp(op=SceneGraphOp.ADD_NODE, subject='peg')
    world.proposals.publish(SceneGraphUpdate(run_id='slow', update_id='u', ops=[node]))
    world.end('slow', 'plug')
    ros.wait(lambda: EvaluationEvent.STARTED in world.stages('slow'), what='the slow judge')
    world.end('quick')
    assert world.outcome('quick').verdict.status == VerdictMessage.SUCCESS
    assert not world.updates
    decided.set()
    ros.wait(lambda: len(world.updates) == 2, what='both updates')
    assert [u.run_id for u in world.updates] == ['slow', 'quick']


def test_captured_says_when_the_robot_may_move_before_the_judge_has_answered(
    ros: Any, world: EvaluationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    decided = threading.Event()
    monkeypatch.setattr('fake_judge.behave', lambda request: decided.wait(10))
    world.end('run-1', 'plug')
    ros.wait(lambda: EvaluationEvent.CAPTURED in world.stages('run-1'), what='CAPTURED')
    assert not world.outcomes
    world.cell.cameras['front'].color = GREY  # the robot moves on
    decided.set()
    assert world.outcome('run-1').verdict.status == VerdictMessage.SUCCESS


def test_an_interrupted_run_drops_the_late_answer_of_its_judge(
    ros: Any, world: EvaluationWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    decided = threading.Event()
    monkeypatch.setattr('fake_judge.behave', lambda request: decided.wait(10))
    world.end('run-1', 'plug')
    ros.wait(lambda: EvaluationEvent.STARTED in world.stages('run-1'), what='the judge')
    answer = ros.call(world.interrupt, InterruptRun.Request(run_id='run-1', reason='stop'))
    assert answer.interrupted
    assert world.outcome('run-1').kind == RunOutcome.INTERRUPTED
    decided.set()
    world.end('run-2')
    world.outcome('run-2')
    assert [o.run_id for o in world.outcomes] == ['run-1', 'run-2']
    assert ros.call(world.get_run, GetRun.Request(run_id='run-1')).state == 'INTERRUPTED'


def test_who_joins_late_gets_the_verdict_from_the_topic_and_from_the_service(
    ros: Any, world: EvaluationWorld
) -> None:
    from evaluation_world import LATCHED

    world.end('run-1')
    first = world.outcome('run-1')
    late = ros.node('late', spin=True)
    heard = ros.collect(late, RunOutcome, 'harness_eval/outcomes', LATCHED)
    ros.wait(lambda: heard, what='the verdict from before')
    client = late.create_client(GetRun, 'harness_eval/get_run')
    answer = ros.call(client, GetRun.Request(run_id='run-1'))
    assert (answer.known, answer.state) == (True, 'SUCCESS')
    for outcomes in (answer.outcomes, heard):
        assert [outcome_of_message(o) for o in outcomes] == [outcome_of_message(first)]
    assert not ros.call(client, GetRun.Request(run_id='run-2')).known
