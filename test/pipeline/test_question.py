"""The question is made while the evidence is written, and leads to nothing before that is done."""

from __future__ import annotations

from pipeline_world import World
import pytest

from harness_eval.contract import Abstention, DecodeError, EvaluationError
from harness_eval.requests import Requests
from harness_eval.runs import SegmentState
from harness_eval.stages import Stage


def make_the_question_first(world: World) -> None:
    """Let the thread that makes the question be done before the one that writes the evidence."""
    world.end('a')
    world.see()
    question = world.spawned[1]
    del world.spawned[1]
    question()
    while world.posted:
        world.posted.popleft()()


def test_no_judge_is_asked_before_the_evidence_is_on_record(world: World) -> None:
    make_the_question_first(world)
    assert world.judge.calls == []
    assert world.state('a') is SegmentState.RECEIVED
    world.drain()
    assert world.state('a') is SegmentState.STARTED
    assert world.stages('a') == [Stage.RECEIVED, Stage.CAPTURED, Stage.STARTED]
    world.judged()
    assert world.labels() == [('a', 'success')]


@pytest.mark.parametrize('kind', [DecodeError, Abstention])
def test_a_question_that_cannot_be_made_ends_the_run_with_evidence_to_judge_again(
    world: World, monkeypatch: pytest.MonkeyPatch, kind: type[EvaluationError]
) -> None:
    def refuse(*_arguments: object) -> None:
        raise kind('not_readable', 'no picture')

    with monkeypatch.context() as patch:
        patch.setattr(Requests, 'prepare', refuse)
        make_the_question_first(world)
        assert world.labels() == []
        world.drain()
    assert [outcome.error_kind for outcome in world.outcomes] == ['not_readable']
    assert world.pipeline.judge_again('a', 0) == (2, '')
    world.drain()
    world.judged()
    assert world.labels()[-1] == ('a', 'success')


def test_evidence_that_cannot_be_written_ends_the_run_although_the_question_is_ready(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> None:
        raise EvaluationError('evidence_not_stored', 'the disk is full')

    make_the_question_first(world)
    monkeypatch.setattr(type(world.cases), 'write', refuse)
    world.drain()
    assert [outcome.error_kind for outcome in world.outcomes] == ['evidence_not_stored']
    assert world.judge.calls == []
