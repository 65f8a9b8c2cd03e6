"""The evaluator node of a test, with ears on all it publishes and hands on all it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fake_cell import cell_yaml, FakeCell
from rclpy.action import ActionClient
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile

from harness_eval.client.held_back import HeldBack
from harness_eval.ros.evaluator_node import EvaluatorNode
from harness_eval_msgs.action import Evaluate
from harness_eval_msgs.msg import (
    EvaluationEvent,
    RunOutcome,
    SceneGraphRejection,
    SceneGraphUpdate,
    ToolCompletion,
    Verdict,
)
from harness_eval_msgs.srv import GetRun, GetUpdates, InterruptRun, JudgeRun

RELIABLE = QoSProfile(depth=1000)
LATCHED = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Ears:
    """Hears everything that an evaluator node publishes, and can report ends to it."""

    def __init__(self, ros: Any) -> None:
        self._ros = ros
        node = ros.node('agent', spin=True)
        self.node = node
        self.outcomes: list[Any] = ros.collect(node, RunOutcome, 'harness_eval/outcomes', LATCHED)
        self.verdicts: list[Any] = ros.collect(node, Verdict, 'harness_eval/verdicts', LATCHED)
        self.events: list[Any] = ros.collect(
            node, EvaluationEvent, 'harness_eval/events', RELIABLE
        )
        self.updates: list[Any] = ros.collect(
            node, SceneGraphUpdate, 'scene_graph/updates', LATCHED
        )
        self.rejections: list[Any] = ros.collect(
            node, SceneGraphRejection, 'scene_graph/rejected', LATCHED
        )
        self.completions = node.create_publisher(ToolCompletion, 'tool_completions', RELIABLE)
        self.proposals = node.create_publisher(SceneGraphUpdate, 'scene_graph/proposed', RELIABLE)
        whole = HeldBack()
        self.evaluate = ActionClient(node, Evaluate, 'harness_eval/evaluate', callback_group=whole)
        whole.open(node)
        self.get_run = node.create_client(GetRun, 'harness_eval/get_run')
        self.get_updates = node.create_client(GetUpdates, 'scene_graph/get_updates')
        self.interrupt = node.create_client(InterruptRun, 'harness_eval/interrupt_run')
        self.judge = node.create_client(JudgeRun, 'harness_eval/judge_run')

    def wait_for_node(self) -> None:
        """Wait until the evaluator node hears what is reported and proposed."""
        self._ros.wait(
            lambda: (
                self.completions.get_subscription_count()
                and self.proposals.get_subscription_count()
                and self.node.count_publishers('harness_eval/outcomes')
                and self.node.count_publishers('harness_eval/events')
                and self.evaluate.server_is_ready()
            ),
            what='the evaluator node',
        )

    def end(self, run_id: str, tool: str = 'pick', segment: int = 0, **arguments: str) -> None:
        """Report over the topic that a run ended now."""
        self.completions.publish(self.completion(run_id, tool, segment, **arguments))

    def completion(
        self, run_id: str, tool: str = 'pick', segment: int = 0, **arguments: str
    ) -> ToolCompletion:
        """A completion that is stamped now; the target is a bottle unless something else is."""
        message = ToolCompletion(run_id=run_id, tool=tool, segment=segment)
        fill(message, arguments or {'target': 'bottle'}, self.node.get_clock().now().to_msg())
        return message

    def outcome(self, run_id: str, segment: int = 0, attempt: int | None = None) -> RunOutcome:
        """Wait for the outcome of a segment."""

        def found() -> Any:
            return next(
                (
                    o
                    for o in self.outcomes
                    if (o.run_id, o.segment) == (run_id, segment) and attempt in (None, o.attempt)
                ),
                None,
            )

        return self._ros.wait(found, what=f'the outcome of {run_id!r} segment {segment}')

    def stages(self, run_id: str, segment: int = 0) -> list[int]:
        """The stages of a segment that were heard so far."""
        return [e.stage for e in self.events if (e.run_id, e.segment) == (run_id, segment)]


def fill(message: Any, arguments: dict[str, str], stamp: Any) -> None:
    """Give a completion or a goal its arguments and its stamp."""
    from diagnostic_msgs.msg import KeyValue

    message.header.stamp = stamp
    message.arguments = [KeyValue(key=key, value=value) for key, value in arguments.items()]


class EvaluationWorld(Ears):
    """A fake cell, an evaluator node in this process, and ears."""

    def __init__(
        self, ros: Any, tmp_path: Path, yaml: str = '', *, simulated: bool = False, **cell: Any
    ) -> None:
        super().__init__(ros)
        self._overrides = [Parameter('use_sim_time', value=simulated)]
        self.cell = ros.adopt(
            FakeCell(context=ros.context, parameter_overrides=self._overrides, **cell)
        )
        ros.spin(self.cell)
        self.config = tmp_path / 'evaluation.yaml'
        self.config.write_text(yaml or cell_yaml())
        self.ledger_url = f'sqlite:///{tmp_path}/ledger.sqlite3'
        self.evidence = tmp_path / 'evidence'
        self.evaluator = self._make(ros)
        self.executor = ros.spin(self.evaluator)
        self.wait_for_node()

    def _make(self, ros: Any) -> EvaluatorNode:
        node = ros.adopt(
            EvaluatorNode(
                context=ros.context,
                parameter_overrides=[
                    *self._overrides,
                    Parameter('config', value=str(self.config)),
                    Parameter('ledger_url', value=self.ledger_url),
                    Parameter('evidence_dir', value=str(self.evidence)),
                ],
            )
        )
        assert node.trigger_configure().name == 'SUCCESS', node.configuration_fault
        assert node.trigger_activate().name == 'SUCCESS', node.configuration_fault
        return node
