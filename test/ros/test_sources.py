"""Where completions come from: the action, the end of any action goal, mapped messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluation_world import EvaluationWorld
from fake_cell import cell_yaml
import pytest
from rclpy.action import ActionClient, ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from sensor_msgs.msg import JointState
from test_msgs.action import Fibonacci

from harness_eval_msgs.action import Evaluate
from harness_eval_msgs.msg import EvaluationEvent, RunOutcome
from harness_eval_msgs.msg import Verdict as VerdictMessage

SUCCESS = VerdictMessage.SUCCESS


def goal_of(world: EvaluationWorld, run_id: str, tool: str = 'pick') -> Evaluate.Goal:
    completion = world.completion(run_id, tool)
    return Evaluate.Goal(
        header=completion.header, run_id=run_id, tool=tool, arguments=completion.arguments
    )


def test_a_goal_of_the_evaluate_action_gets_its_outcome_and_the_steps(
    ros: Any, tmp_path: Path
) -> None:
    world = EvaluationWorld(ros, tmp_path)
    stages: list[int] = []
    handle = ros.send_goal(
        world.evaluate,
        goal_of(world, 'run-1'),
        feedback_callback=lambda message: stages.append(message.feedback.event.stage),
    )
    answer = ros.result(handle.get_result_async())
    assert (answer.status, answer.result.outcome.verdict.status) == (4, SUCCESS)
    assert EvaluationEvent.CAPTURED in stages


def test_a_cancelled_goal_is_an_interrupted_run(
    ros: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    release = threading.Event()
    monkeypatch.setattr('fake_judge.behave', lambda request: release.wait(10))
    world = EvaluationWorld(ros, tmp_path)
    handle = ros.send_goal(world.evaluate, goal_of(world, 'run-1', 'plug'))
    ros.wait(lambda: EvaluationEvent.STARTED in world.stages('run-1'), what='the judge')
    ros.result(handle.cancel_goal_async())
    answer = ros.result(handle.get_result_async())
    release.set()
    assert (answer.status, answer.result.outcome.kind) == (5, RunOutcome.INTERRUPTED)


def test_two_goals_for_one_run_get_the_same_outcome(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path)
    goal = goal_of(world, 'run-1')
    first, second = (ros.send_goal(world.evaluate, goal) for _ in range(2))
    outcomes = [ros.result(h.get_result_async()).result.outcome for h in (first, second)]
    assert [o.verdict.status for o in outcomes] == [SUCCESS, SUCCESS]
    assert [o.attempt for o in outcomes] == [1, 1]
    assert outcomes[0].header == outcomes[1].header


class Skills:
    """An action server as a robot has it; the test says how its next goal ends."""

    def __init__(self, ros: Any) -> None:
        node = ros.node('skills')
        self.how = 'succeed'
        ActionServer(
            node,
            Fibonacci,
            'navigate',
            self._execute,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
            callback_group=ReentrantCallbackGroup(),
        )
        ros.spin(node, threads=2)

    def _execute(self, goal: Any) -> Any:
        if self.how == 'cancel':
            while not goal.is_cancel_requested:
                pass
            goal.canceled()
        else:
            getattr(goal, self.how)()
        return Fibonacci.Result()


@pytest.mark.parametrize('how', ['succeed', 'abort', 'cancel'])
def test_any_end_of_an_action_goal_is_a_completion_and_no_evidence(
    ros: Any, tmp_path: Path, how: str
) -> None:
    world = EvaluationWorld(
        ros,
        tmp_path,
        cell_yaml(
            completions='completions:\n  - {topic: tool_completions}\n'
            '  - {action: navigate, tool: insert}'
        ),
    )
    skills = Skills(ros)
    skills.how = how
    client = ActionClient(world.node, Fibonacci, 'navigate')
    ros.wait(
        lambda: world.node.count_subscribers('/navigate/_action/status') > 1,
        what='the node to listen to the status',
    )
    handle = ros.send_goal(client, Fibonacci.Goal(order=1))
    if how == 'cancel':
        ros.result(handle.cancel_goal_async())
    ros.result(handle.get_result_async())
    run_id = bytes(handle.goal_id.uuid).hex()
    outcome = world.outcome(run_id)
    assert (outcome.tool, outcome.verdict.status) == ('insert', SUCCESS)
    assert len(world.outcomes) == 1


def test_a_message_of_any_type_is_a_completion_by_its_field_mapping(
    ros: Any, tmp_path: Path
) -> None:
    completions = """
completions:
  - topic: tool_completions
  - topic: skills/done
    type: sensor_msgs/msg/JointState
    run_id: header.frame_id
    tool: "name[0]"
    stamp: header.stamp
    arguments: {target: "name[1]"}
"""
    world = EvaluationWorld(ros, tmp_path, cell_yaml(completions=completions))
    publisher = world.node.create_publisher(JointState, 'skills/done', 10)
    ros.wait(publisher.get_subscription_count, what='the node to listen')
    message = JointState(name=['pick', 'cup'])
    message.header.frame_id = 'run-7'
    message.header.stamp = world.node.get_clock().now().to_msg()
    publisher.publish(JointState())  # a message without the fields is no completion
    publisher.publish(message)
    outcome = world.outcome('run-7')
    assert (outcome.tool, outcome.verdict.status) == ('pick', SUCCESS)
    update = ros.wait(lambda: world.updates and world.updates[0], what='the update')
    assert [op.subject for op in update.ops] == ['cup', 'cup']
