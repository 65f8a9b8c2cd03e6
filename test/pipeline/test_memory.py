"""What a run held is free when it is over, not when the garbage collector comes along.

Python looks for circles seldom; meanwhile the pictures of hundreds of runs would lie about.
"""

from __future__ import annotations

from collections.abc import Iterator
import gc
import weakref

from pipeline_world import FAILURE, SUCCESS, World
import pytest

from harness_eval.contract import Abstention, EvaluationError, EvaluatorError, Verdict


@pytest.fixture(autouse=True)
def nobody_collects() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def asked(world: World) -> weakref.ref[object]:
    """A run whose judge has been asked; what it is shown."""
    world.end('a')
    world.see()
    world.drain()
    return weakref.ref(world.judge.calls[0].request.observation)


@pytest.mark.parametrize(
    'answer',
    [SUCCESS, FAILURE, EvaluatorError('judge_down', ''), Abstention('unsure', '')],
    ids=['success', 'failure', 'error', 'abstained'],
)
def test_the_pictures_of_a_run_are_gone_once_it_is_judged(
    world: World, answer: Verdict | EvaluationError
) -> None:
    shown = asked(world)
    assert shown() is not None
    world.judged(answer)
    assert shown() is None


def test_the_pictures_of_a_run_are_gone_once_it_is_interrupted(world: World) -> None:
    shown = asked(world)
    world.pipeline.interrupt('a', 'enough')
    world.judge.calls.clear()
    world.drain()
    assert shown() is None
