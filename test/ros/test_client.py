"""The agent's side on real rclpy: outcomes come back as values and exceptions."""

from __future__ import annotations

from pathlib import Path
import subprocess
import sys
import time
from typing import Any

from evaluation_world import EvaluationWorld
from fake_cell import GREEN, GREY
import pytest

from harness_eval.client import (
    EvaluationClient,
    NoOutcome,
    RunAbstained,
    RunError,
    RunFailed,
    RunInterrupted,
)
from harness_eval.contract import Status
from harness_eval.stages import Stage


@pytest.fixture
def world(ros: Any, tmp_path: Path) -> EvaluationWorld:
    return EvaluationWorld(ros, tmp_path)


@pytest.fixture
def client(world: EvaluationWorld) -> EvaluationClient:
    return EvaluationClient(world.node)


BOTTLE = {'target': 'bottle'}

NOT_CLOSED = """
from harness_eval.client import EvaluationClient
client = EvaluationClient()
client.run('pick', {'target': 'bottle'}, lambda segment: None)
"""


def test_a_successful_run_returns_its_outcome(
    world: EvaluationWorld, client: EvaluationClient
) -> None:
    stages: list[Stage] = []
    outcome = client.run(
        'pick', BOTTLE, lambda segment: None, on_event=lambda e: stages.append(e.stage)
    )
    assert outcome.verdict is not None
    assert outcome.verdict.status is Status.SUCCESS
    assert stages[:3] == [Stage.RECEIVED, Stage.CAPTURED, Stage.STARTED]


def test_what_the_tool_claims_changes_nothing(
    world: EvaluationWorld, client: EvaluationClient
) -> None:
    world.cell.cameras['front'].color = GREY
    with pytest.raises(RunFailed) as failed:
        client.run('pick', BOTTLE, lambda segment: 'done, great success')
    assert failed.value.failure_kind == 'post_condition'
    assert any('front' in line for line in failed.value.evidence)


def test_a_segmented_tool_is_called_again_until_it_is_done(
    world: EvaluationWorld, client: EvaluationClient
) -> None:
    called: list[int] = []

    def push(segment: int) -> None:
        called.append(segment)
        world.cell.cameras['front'].color = GREEN if segment == 1 else GREY

    outcome = client.run('insert', {}, push)
    assert (called, outcome.segment) == ([0, 1], 1)


def test_the_segment_budget_ends_a_tool_that_never_gets_there(
    world: EvaluationWorld, client: EvaluationClient
) -> None:
    called: list[int] = []
    world.cell.cameras['front'].color = GREY
    with pytest.raises(RunFailed) as failed:
        client.run('insert', {}, called.append)
    assert (called, failed.value.failure_kind) == ([0, 1, 2], 'segment_budget')


def test_a_dead_camera_is_an_error_and_never_a_failure(
    world: EvaluationWorld, client: EvaluationClient
) -> None:
    world.cell.cameras['wrist'].alive = False
    with pytest.raises(RunError) as error:
        client.run('pick', BOTTLE, lambda segment: None)
    assert error.value.error_kind == 'no_frames'
    assert 'wrist' in error.value.reason


def test_a_judge_without_an_answer_is_an_abstention(
    world: EvaluationWorld, client: EvaluationClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('fake_judge.behave', lambda request: None)
    with pytest.raises(RunAbstained):
        client.run('plug', {}, lambda segment: None)


def test_a_tool_that_raises_interrupts_its_run(
    world: EvaluationWorld, client: EvaluationClient
) -> None:
    def broken(segment: int) -> None:
        raise OSError('arm lost')

    with pytest.raises(OSError, match='arm lost'):
        client.run('pick', BOTTLE, broken, run_id='run-1')
    with pytest.raises(RunInterrupted):
        client.run('pick', BOTTLE, lambda segment: None, run_id='run-1')


def test_nothing_moves_while_the_evaluator_node_is_missing(ros: Any) -> None:
    client = EvaluationClient(ros.node('agent', spin=True))
    moved: list[int] = []
    with pytest.raises(NoOutcome, match=r"no evaluator node 'harness_eval' within 0\.2 s"):
        client.run('pick', BOTTLE, moved.append, server_timeout=0.2)
    assert moved == []


def test_a_missing_node_is_no_outcome_of_a_reported_run(ros: Any) -> None:
    client = EvaluationClient(ros.node('agent', spin=True))
    with pytest.raises(NoOutcome, match='no evaluator node'):
        client.report('run-1', 'pick', BOTTLE, timeout=0.5)


def test_a_long_wait_names_the_node_that_is_waited_for(
    ros: Any, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr('harness_eval.client.evaluation_client.SILENT_WAIT', 0.1)
    client = EvaluationClient(ros.node('agent', spin=True), server='arm/judge')
    assert not client.wait_for_server(0.3)
    assert capfd.readouterr().err.count("waiting for the evaluator node 'arm/judge'") == 1


def test_a_client_that_nobody_closes_does_not_crash_the_end_of_the_interpreter(
    world: EvaluationWorld,
) -> None:
    ends = [  # on a busy machine one may say that it waits for the node
        subprocess.run(
            [sys.executable, '-c', NOT_CLOSED], capture_output=True, text=True, timeout=60.0
        )
        for _ in range(4)
    ]
    assert [end.returncode for end in ends] == [0] * 4
    told = [line for end in ends for line in end.stderr.splitlines()]
    assert [line for line in told if 'waiting for the evaluator node' not in line] == []


def test_a_client_is_made_on_a_node_that_spins_already(
    ros: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kilted's ActionClient joins its node and then asks for a logger before it is whole."""
    node = ros.node('agent', spin=True)
    logger = node.get_logger()

    def slowly() -> Any:
        node.executor.wake()
        time.sleep(0.2)
        return logger

    monkeypatch.setattr(node, 'get_logger', slowly)
    client = EvaluationClient(node)
    done = node.executor.create_task(lambda: None)
    ros.wait(done.done, what='the executor, which must live')
    client.close()
