"""A slow judge holds up its own runs and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import Empty, Queue
import threading
from typing import Any

from member_judges import FunctionJudge, PATIENCE
import pipeline_world
from pipeline_world import World
import pytest

from harness_eval.calls import JudgeCalls
from harness_eval.config.evaluators import PluginSettings
from harness_eval.contract import EvaluationRequest
from harness_eval.judging import Thresholds
from harness_eval.runs import SegmentState

EVALUATORS = 'evaluators: {{judge: {{kind: plugin, ref: "nowhere:nothing"}}}}'
TWO = EVALUATORS.replace('}}}}', '}}, quick: {{kind: plugin, ref: "nowhere:nothing"}}}}')


class SlowWorld(World):
    """``pick`` is judged by a judge that hangs, ``bare`` by a quick one, on real threads.

    Attributes:
        entered: Says each time that the slow judge was asked.
        release: Lets it answer.
    """

    def start(self, *, resume: bool = True) -> None:
        self.entered: Queue[str] = Queue()
        self.release = threading.Event()
        self.answers: Queue[Callable[[], None]] = Queue()
        super().start(resume=resume)

    def judges(self) -> dict[str, Any]:
        return {
            'judge': self._calls(self._slow, max_concurrency=1),
            'quick': self._calls(lambda request: True),
        }

    def _calls(self, function: Callable[[EvaluationRequest], Any], **given: Any) -> JudgeCalls:
        settings = PluginSettings(kind='plugin', ref='a:b', **given)
        return JudgeCalls(FunctionJudge('judge', function), settings, Thresholds())

    def _slow(self, request: EvaluationRequest) -> bool:
        self.entered.put(request.post_condition.text)
        return self.release.wait(PATIENCE)

    def post(self, call: Callable[[], None]) -> None:
        if threading.current_thread().name == 'judge':
            self.answers.put(call)
        else:
            super().post(call)

    def take_answer(self) -> None:
        """Wait for the next answer of a judge and have the pipeline take it."""
        self.post(self.answers.get(timeout=PATIENCE))
        self.drain()


@pytest.fixture
def world(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowWorld]:
    assert EVALUATORS in pipeline_world.YAML
    text = pipeline_world.YAML.replace(EVALUATORS, TWO)
    text = text.replace('bare: {{views: [front]}}', 'bare: {{views: [front], evaluator: quick}}')
    monkeypatch.setattr(pipeline_world, 'YAML', text)
    made = SlowWorld(tmp_path)
    yield made
    made.release.set()
    made.close()


def begin(world: SlowWorld, run_id: str, tool: str = 'pick') -> None:
    world.end(run_id, tool)
    world.see()
    world.drain()


def test_a_slow_judge_of_one_tool_does_not_delay_the_verdict_of_another(world: SlowWorld) -> None:
    begin(world, 'slow')
    world.entered.get(timeout=PATIENCE)
    begin(world, 'quick', 'bare')
    world.take_answer()
    assert world.labels() == [('quick', 'success')]
    assert world.state('slow') is SegmentState.STARTED
    world.release.set()
    world.take_answer()
    assert world.labels() == [('quick', 'success'), ('slow', 'success')]


def test_runs_that_wait_for_their_turn_do_not_delay_another_tool_either(world: SlowWorld) -> None:
    for run in ('a', 'b', 'c'):
        begin(world, run)
    world.entered.get(timeout=PATIENCE)
    begin(world, 'quick', 'bare')
    world.take_answer()
    assert world.labels() == [('quick', 'success')]


def test_a_run_that_is_interrupted_while_it_waits_for_its_turn_is_never_judged(
    world: SlowWorld,
) -> None:
    begin(world, 'first')
    world.entered.get(timeout=PATIENCE)
    begin(world, 'second')
    world.pipeline.interrupt('second', 'not wanted')
    world.drain()
    assert world.labels() == [('second', 'interrupted')]
    world.release.set()
    world.take_answer()
    assert world.labels()[-1] == ('first', 'success')
    with pytest.raises(Empty):
        world.entered.get(timeout=0.05)
