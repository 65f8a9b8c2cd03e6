"""Only what was captured for a run is judged in its name, and only as it was to be judged."""

from __future__ import annotations

from collections.abc import Callable
import json
from pathlib import Path
import shutil
from typing import Any

from pipeline_world import World
import pytest

from harness_eval.contract import Abstention, EvaluatorError
from harness_eval.runs import SegmentState

UNSURE = Abstention('unsure', 'nobody can tell')


def folder_of(world: World, run_id: str) -> Path:
    return next(p for p in world.evidence.iterdir() if p.name.startswith(run_id))


def put_in_the_place_of(world: World, other: str, run_id: str) -> None:
    """Restore the folder of a run from the wrong backup."""
    target = folder_of(world, run_id)
    shutil.rmtree(target)
    shutil.copytree(folder_of(world, other), target)


def description(world: World, run_id: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads((folder_of(world, run_id) / 'case.json').read_text())
    return made


def edit(world: World, run_id: str, change: Callable[[dict[str, Any]], None]) -> None:
    data = description(world, run_id)
    change(data)
    (folder_of(world, run_id) / 'case.json').write_text(json.dumps(data))


def start_with_a_judge(world: World, run_id: str) -> None:
    world.end(run_id)
    world.see()
    world.drain()
    assert world.state(run_id) is SegmentState.STARTED


def refused_as(world: World, kind: str) -> None:
    """The judgement that is under way asks nobody and frees nothing."""
    asked = len(world.judge.calls)
    freed = world.released()
    world.drain()
    assert world.outcomes[-1].error_kind == kind
    assert len(world.judge.calls) == asked
    assert world.released() == freed


def test_evidence_of_another_run_in_the_place_of_an_abstained_runs_is_not_judged(
    world: World,
) -> None:
    world.run('good')
    world.run('bad', UNSURE)
    put_in_the_place_of(world, 'good', 'bad')
    assert world.pipeline.judge_again('bad', 0) == (2, '')
    refused_as(world, 'evidence_altered')
    assert 'bad-' in world.outcomes[-1].message


def test_evidence_of_another_run_is_not_judged_after_a_restart(world: World) -> None:
    world.run('good')
    start_with_a_judge(world, 'bad')
    put_in_the_place_of(world, 'good', 'bad')
    world.crash()
    refused_as(world, 'evidence_altered')


@pytest.mark.parametrize('disguise', ['completion', 'completion and end', 'all of it'])
def test_frames_of_another_run_are_not_judged_under_the_right_name(
    world: World, disguise: str
) -> None:
    world.run('good')
    world.run('bad', UNSURE)
    mine = description(world, 'bad')
    put_in_the_place_of(world, 'good', 'bad')

    def change(data: dict[str, Any]) -> None:
        data['completion'], data['receipt'] = mine['completion'], mine['receipt']
        if disguise != 'completion':
            data['t_end'] = mine['t_end']
        if disguise == 'all of it':
            for name, stream in data['streams'].items():
                stream['stamp'] = mine['streams'][name]['stamp']

    edit(world, 'bad', change)
    world.pipeline.judge_again('bad', 0)
    refused_as(world, 'evidence_altered')


@pytest.mark.parametrize('key', ['stamp', 'topic', 'stamp_source', 'payload_offset'])
def test_a_frame_that_is_described_otherwise_than_it_was_captured_is_not_judged(
    world: World, key: str
) -> None:
    world.run('bad', UNSURE)

    def change(data: dict[str, Any]) -> None:
        front = data['streams']['front']
        front[key] = {
            'stamp': front['stamp'] + 1,
            'topic': '/cell/front',  # the bag knows it by that name too
            'stamp_source': 'receipt',
            'payload_offset': 0,
        }[key]

    edit(world, 'bad', change)
    world.pipeline.judge_again('bad', 0)
    refused_as(world, 'evidence_altered')


def test_a_stream_that_was_taken_out_of_the_evidence_is_missed(world: World) -> None:
    world.run('bad', UNSURE)
    edit(world, 'bad', lambda data: data['streams'].pop('gripper'))
    world.pipeline.judge_again('bad', 0)
    refused_as(world, 'evidence_altered')


@pytest.mark.parametrize(
    ('limit', 'now'), [('settle', 0.9), ('timeout', 0.01), ('max_clock_skew', -0.1)]
)
def test_frames_that_are_no_evidence_by_the_limits_of_now_are_not_judged(
    world: World, limit: str, now: float
) -> None:
    world.run('a', UNSURE)
    world.config = world.config.model_copy(
        update={'capture': world.config.capture.model_copy(update={limit: now})}
    )
    world.crash()
    assert world.pipeline.judge_again('a', 0) == (2, '')
    refused_as(world, 'configuration_changed')


def test_evidence_that_is_what_was_captured_is_judged_again(world: World) -> None:
    world.run('good')
    world.run('bad', UNSURE)
    folder = folder_of(world, 'bad')
    backup = shutil.copytree(folder, world.folder / 'backup')
    shutil.rmtree(folder)
    shutil.copytree(backup, folder)
    world.crash()
    world.pipeline.judge_again('bad', 0)
    world.drain()
    world.judged()
    assert world.labels()[-1] == ('bad', 'success')


# --- another configuration ------------------------------------------------------------------


def configure(world: World, *, tool: str = 'pick', **changes: Any) -> None:
    tools = world.config.evaluation.tools
    tools[tool] = tools[tool].model_copy(update=changes)


def move_the_camera(world: World) -> None:
    views = world.config.capture.views
    views['front'] = views['front'].model_copy(update={'topic': 'cell/other'})


@pytest.mark.parametrize('what', ['post-condition', 'thresholds', 'topic', 'state', 'evaluator'])
def test_a_run_that_waits_is_not_judged_by_rules_that_it_was_not_accepted_under(
    world: World, what: str
) -> None:
    start_with_a_judge(world, 'a')
    if what == 'post-condition':
        configure(world, post_condition='The {target} is on the table.')
    elif what == 'thresholds':
        evaluation = world.config.evaluation.model_copy(update={'outcome_threshold': 0.6})
        world.config = world.config.model_copy(update={'evaluation': evaluation})
    elif what == 'topic':
        move_the_camera(world)
    elif what == 'state':
        states = world.config.capture.states
        states['gripper'] = states['gripper'].model_copy(update={'reduce': 'max'})
    else:
        judges = world.config.evaluation.evaluators
        judges['judge'] = judges['judge'].model_copy(update={'clamp': True})
    world.crash()
    refused_as(world, 'configuration_changed')


def test_a_run_that_waits_is_judged_although_another_tool_was_configured_anew(
    world: World,
) -> None:
    start_with_a_judge(world, 'a')
    configure(world, tool='bare', post_condition='All is better.')
    world.crash()
    world.drain()
    world.judged()
    assert world.labels() == [('a', 'success')]


def test_an_operator_may_change_the_rules_and_judge_again(world: World) -> None:
    world.run('a', UNSURE)
    configure(world, post_condition='The {target} is at least touched.')
    world.crash()
    assert world.pipeline.judge_again('a', 0) == (2, '')
    world.crash()  # which is no change of the rules that it was asked to be judged by
    world.drain()
    assert 'at least touched' in world.judge.calls[0].request.post_condition.text
    world.judged()
    assert world.labels()[-1] == ('a', 'success')


def test_evidence_of_a_topic_that_is_another_view_now_is_not_judged_again(world: World) -> None:
    world.run('a', UNSURE)
    move_the_camera(world)
    world.crash()
    assert world.pipeline.judge_again('a', 0) == (2, '')
    refused_as(world, 'configuration_changed')


# --- a judge that ends the process -----------------------------------------------------------


def test_a_judge_that_ends_the_process_is_asked_twice_and_then_no_more(world: World) -> None:
    start_with_a_judge(world, 'p')
    world.crash()
    world.drain()
    assert len(world.judge.calls) == 1
    assert world.labels() == []
    world.crash()
    world.drain()
    assert world.judge.calls == []
    assert world.labels() == [('p', 'error evaluator_crashed')]
    assert world.outcomes[0].evaluator == 'judge of the test'
    assert not world.outcomes[0].retryable
    world.crash()
    assert len(world.outcomes) == 1
    assert world.run('q').label == 'success'


def test_an_operator_may_have_a_judge_asked_again_that_ended_the_process(world: World) -> None:
    start_with_a_judge(world, 'p')
    for _ in range(2):
        world.crash()
        world.drain()
    assert world.pipeline.judge_again('p', 0) == (2, '')
    world.drain()
    world.crash()
    world.drain()
    world.judged()
    assert world.labels()[-1] == ('p', 'success')


def test_a_run_that_waited_for_its_question_is_not_counted_as_asked(world: World) -> None:
    world.end('a')
    world.see()
    world.spawned.popleft()()
    world.posted.popleft()()
    for _ in range(3):
        assert world.state('a') is SegmentState.CAPTURED
        world.crash()
    world.drain()
    world.judged()
    assert world.labels() == [('a', 'success')]


def test_an_error_of_the_judge_counts_for_its_attempt_alone(world: World) -> None:
    world.run('a', EvaluatorError('judge_down', ''))
    for attempt in (2, 3, 4):
        assert world.pipeline.judge_again('a', 0)[0] == attempt
        world.drain()
        world.judged(EvaluatorError('judge_down', ''))
    run = world.on_record('a')
    assert run is not None
    assert run.last is not None
    assert run.last.starts == 1
