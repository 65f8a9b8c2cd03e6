"""A live pipeline whose streams are recorded, so that a replay of them can be compared with it.

The live side is the world of the pipeline's tests with evaluators that answer on the spot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cdr_messages import IMAGE, image_of, JOINT_STATE, joint_state
import numpy as np
from pipeline_world import DECODER, World

from harness_eval.cases import CaseStore, completion_message, COMPLETION_TOPIC, COMPLETION_TYPE
from harness_eval.config import Config, load_config
from harness_eval.contract import EvaluationError, EvaluationRequest
from harness_eval.evaluators import Judges
from harness_eval.evaluators.running import judge_here, Stop
from harness_eval.judging import doubted, Thresholds
from harness_eval.pipeline import Pipeline
from harness_eval.replay.answers import asks_others
from harness_eval.runs import Completion

FRONT, JOINTS = '/cell/front', '/joints'

Message = tuple[str, str, int, bytes]
"""Topic, type, receipt and data."""

CONFIG = """
evaluation:
  required_tools: [pick, insert, bare]
  segment_tools: [insert]
  max_segments: 3
  evaluator: {evaluator}
  evaluators:
    graded: {{kind: plugin, ref: "replay_judge:grade"}}
    fatal: {{kind: plugin, ref: "replay_judge:fatal"}}
    stuck: {{kind: plugin, ref: "replay_judge:stuck", timeout: 0.2}}
    checked: {{kind: checks}}
    remote: {{kind: endpoint, url: "http://127.0.0.1:9/judge"{remote}}}
    eyes:
      kind: model
      model: "some-model"
      base_url: "http://127.0.0.1:9/v1"
      api_key_env: SOME_KEY
    criteria: {{kind: rubric, model: eyes}}
    both: {{kind: cascade, members: [remote, graded]}}
  outcome_threshold: {outcome}
  failure_threshold: {failure}
  post_conditions:
    pick: "The {{target}} is held."
    insert: "The peg is in."
    bare: "All is well."
  tools:
    pick: {{arguments: [target, place]{pick}}}
    insert: {{evaluator: graded}}
    bare: {{views: [front]}}
capture:
  views: {{front: {{topic: cell/front}}}}
  states: {{gripper: {{topic: joints, field: "position[name=finger]"}}}}
  settle: 0.3
  slop: {slop}
  timeout: {timeout}
  {capture}
completions: [{{topic: tool_completions}}]
evidence: {evidence}
"""


def write_config(path: Path, **more: Any) -> Path:
    """Write a configuration, which differs from the usual one in what is given."""
    usual = {
        'evaluator': 'graded',
        'outcome': 0.9,
        'failure': 0.5,
        'pick': '',
        'remote': '',
        'slop': 0.05,
        'timeout': 3.0,
        'capture': '',
        'evidence': '{}',
    }
    path.write_text(CONFIG.format(**{**usual, **more}))
    return path


class Judge:
    """An evaluator that answers on the spot; what asks a service answers as a plugin would."""

    def __init__(self, name: str, judges: Judges, config: Config) -> None:
        real = judges.evaluator(name)
        settings = config.evaluation.evaluators
        self._judge = judges.evaluator('graded') if asks_others(name, settings) else real
        self._thresholds = Thresholds.of(config.evaluation)
        self._unsure = settings[name].unsure
        self.evaluator = real.ref

    def call(self, request: EvaluationRequest, on_done: Callable[[Any], None]) -> Any:
        try:
            answer = judge_here(self._judge, request, self._thresholds, clamp=False, stop=Stop())
            on_done(doubted(answer, self._unsure, self.evaluator))
        except EvaluationError as error:
            error.evaluator = self.evaluator
            on_done(error)
        return self

    def cancel(self) -> bool:
        return False


class RecordedCell(World):
    """A live pipeline, and a recorder beside it.

    Attributes:
        recorded: What came, in order.
        path: The configuration.
    """

    def __init__(self, folder: Path, **more: Any) -> None:
        self.path = write_config(folder / 'cell.yaml', **more)
        self.recorded: list[Message] = []
        self._begun = False
        super().__init__(folder)
        self.ledger.close()
        self.config = load_config(self.path)
        self._begun = True
        self.start()

    def start(self, *, resume: bool = True) -> None:
        super().start(resume=resume)
        topics = {'cell/front': FRONT, 'joints': JOINTS}
        if self._begun:
            self.cases = CaseStore(
                self.evidence, 10**9, DECODER, Thresholds.of(self.config.evaluation)
            )
            self.pipeline = Pipeline(
                self.config, self.ledger, self.cases, self.judges(), DECODER, self, topics
            )

    def judges(self) -> dict[str, Any]:
        evaluators = self.config.evaluation.evaluators
        judges = Judges(evaluators, Thresholds.of(self.config.evaluation))
        return {name: Judge(name, judges, self.config) for name in evaluators}

    def report(self, completion: Completion, *, wait: bool = True) -> None:
        message = completion_message(completion, DECODER)
        self.recorded.append((COMPLETION_TOPIC, COMPLETION_TYPE, self.ros, message))
        super().report(completion, wait=wait)

    def message(self, topic: str, kind: str, data: bytes) -> None:
        """A message comes now."""
        self.recorded.append((topic, kind, self.ros, data))
        self.pipeline.frame(topic, kind, data, self.ros)

    def picture_now(self, *, delay: float = 0.0) -> None:
        """The camera publishes a picture that was taken some seconds ago."""
        self._picture += 1
        pixels = np.full((6, 8, 3), self._picture % 251, np.uint8)
        pixels[0, 0] = (self._picture // 251) % 251
        stamp = self.ros - round(delay * 1e9)
        self.message(FRONT, IMAGE, image_of(pixels, 'bgr8', stamp=stamp))

    def joints_now(self, finger: float = 0.95, *, delay: float = 0.0) -> None:
        """The joints publish what they were some seconds ago."""
        stamp = self.ros - round(delay * 1e9)
        self.message(JOINTS, JOINT_STATE, joint_state({'finger': finger}, stamp=stamp))

    def pass_time(self, seconds: float) -> None:
        """Time passes, as the live loop lets it: with a look at the clock every 20 ms."""
        until = self.ros + round(seconds * 1e9)
        while self.ros + 20_000_000 < until:
            self.wait(0.02)
        self.wait((until - self.ros) / 1e9)
        self.drain()

    def look(self, finger: float = 0.95, pictures: int = 4) -> None:
        """Some pictures and readings, at 30 Hz."""
        for _ in range(pictures):
            self.picture_now()
            self.joints_now(finger)
            self.drain()
            self.pass_time(0.033)

    def whole_run(self, run_id: str, finger: float = 0.95, **more: Any) -> None:
        """A run ends, and what is seen after it."""
        self.end(run_id, **more)
        self.pass_time(0.31)
        self.look(finger)
        self.pass_time(1.0)


def write_bag(folder: Path, messages: Sequence[Message]) -> Path:
    """Write messages as a rosbag2 folder (MCAP)."""
    from rosbags.rosbag2 import StoragePlugin, Writer

    with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        connections: dict[tuple[str, str], Any] = {}
        for topic, kind, receipt, data in messages:
            if (topic, kind) not in connections:
                connections[topic, kind] = bag.add_connection(
                    topic, kind, typestore=DECODER.typestore_for(kind)
                )
            bag.write(connections[topic, kind], receipt, data)
    return folder
