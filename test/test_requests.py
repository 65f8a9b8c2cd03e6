"""What an evaluator is asked, and what makes no question."""

from __future__ import annotations

from pathlib import Path

from capture_streams import T_END
from cdr_messages import IMAGE, image_of, JOINT_STATE, joint_state
import cv2
import numpy as np
from pipeline_world import DECODER, YAML
import pytest

from harness_eval.capture import Captured, Frame
from harness_eval.config import load_config
from harness_eval.contract import EvaluationError, Image
from harness_eval.requests import Requests
from harness_eval.runs import Completion


@pytest.fixture
def requests(tmp_path: Path) -> Requests:
    path = tmp_path / 'evaluation.yaml'
    path.write_text(YAML.format(scene_graph='{}', evidence='{}', stamp='header'))
    return Requests(load_config(path), DECODER, {'cell/front': '/robot/cell/front'})


def captured(*streams: str) -> Captured:
    picture = image_of(np.zeros((6, 8, 3), np.uint8), 'bgr8', stamp=T_END + 5)
    frames = {
        'front': Frame('front', '/robot/cell/front', IMAGE, T_END + 5, T_END + 6, picture),
        'gripper': Frame(
            'gripper', 'joints', JOINT_STATE, T_END + 4, T_END + 6, joint_state({'finger': 0.5})
        ),
    }
    return Captured({name: frames[name] for name in streams}, T_END, 0.0, {})


def completion(tool: str = 'pick', **arguments: str) -> Completion:
    return Completion('secret run', tool, 0, T_END, tuple(arguments.items()))


def test_the_question_holds_the_sentence_and_the_observation_and_no_more(
    requests: Requests,
) -> None:
    one = completion(target='cup', place='SECRET', success='TRUE')
    prepared = requests.prepare(one, captured('front', 'gripper'))
    assert prepared.request.post_condition.text == 'The cup is held.'
    assert prepared.observed == (T_END + 4, T_END + 5)
    assert len(prepared.digest) == 64
    for secret in ('secret run', 'SECRET', 'TRUE'):
        assert secret not in repr(prepared.request)


def test_the_digest_is_that_of_the_question_and_not_of_the_run(requests: Requests) -> None:
    seen = captured('front', 'gripper')
    one = requests.prepare(completion(target='cup'), seen)
    other = requests.prepare(completion(target='cup', place='elsewhere'), seen)
    third = requests.prepare(completion(target='can'), seen)
    assert one.digest == other.digest != third.digest


def test_topics_are_those_that_were_resolved(requests: Requests) -> None:
    assert [s.topic for s in requests.streams_of('pick')] == ['/robot/cell/front', 'joints']
    assert [s.name for s in requests.streams_of('bare')] == ['front']


def test_evidence_without_a_view_that_is_needed_makes_no_question(requests: Requests) -> None:
    with pytest.raises(EvaluationError, match='gripper') as raised:
        requests.prepare(completion(target='cup'), captured('front'))
    assert raised.value.kind == 'evidence_incomplete'
    assert requests.prepare(completion('bare'), captured('front'))


@pytest.mark.parametrize(
    ('arguments', 'kind'),
    [
        ({}, 'missing_argument'),
        ({'target': 'x' * 201}, 'argument_too_long'),
        ({'target': '\x00\u202e'}, 'missing_argument'),
    ],
)
def test_arguments_that_fill_no_sentence_are_errors(
    requests: Requests, arguments: dict[str, str], kind: str
) -> None:
    for ask in (requests.effects, requests.post_condition_text):
        with pytest.raises(EvaluationError) as raised:
            ask(completion(**arguments))
        assert raised.value.kind == kind


def test_arguments_that_make_no_name_of_a_node_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / 'evaluation.yaml'
    text = YAML.format(scene_graph='{}', evidence='{}', stamp='header')
    path.write_text(text.replace('["{target}", "held_by"', '["{target}{place}", "held_by"'))
    requests = Requests(load_config(path), DECODER)
    with pytest.raises(EvaluationError, match='400 characters') as raised:
        requests.effects(completion(target='x' * 200, place='y' * 200))
    assert raised.value.kind == 'invalid_argument'


def test_a_tool_that_the_configuration_lost_is_an_error(requests: Requests) -> None:
    for ask in (requests.effects, requests.post_condition_text):
        with pytest.raises(EvaluationError) as raised:
            ask(completion('wave'))
        assert raised.value.kind == 'unknown_tool'
    with pytest.raises(EvaluationError):
        requests.streams_of('wave')


def test_no_judge_can_spoil_a_reference_picture_for_the_next_run(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / 'held.png'), np.full((6, 8, 3), 7, np.uint8))
    path = tmp_path / 'evaluation.yaml'
    text = YAML.format(scene_graph='{}', evidence='{}', stamp='header')
    path.write_text(text.replace('bare: {', 'bare: {references: {goal: held.png}, '))
    requests = Requests(load_config(path), DECODER, {'cell/front': '/robot/cell/front'})

    def goal() -> Image:
        prepared = requests.prepare(completion('bare'), captured('front'))
        return prepared.request.post_condition.references['goal']

    with pytest.raises(ValueError, match='WRITEABLE'):
        goal().setflags(write=True)
    assert (goal() == 7).all()
