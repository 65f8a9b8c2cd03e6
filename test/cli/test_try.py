"""``harness-eval try``: still pictures, any evaluator, no robot, no record."""

from __future__ import annotations

import json
import os
from pathlib import Path
import sys

import cv2
import fake_judge
from http_world import reply, saying, serving
import numpy as np
import pytest
from shell import Ended, in_a_process, Shell

from harness_eval.contract import EvaluationRequest, Status, Verdict

YAML = """
evaluation:
  required_tools: [pick, insert]
  segment_tools: [insert]
  post_conditions:
    pick: "The {target} is held."
    insert: "The peg is in."
  evaluator: plugin
  evaluators:
    plugin: {kind: plugin, ref: "fake_judge:judge", timeout: 10.0}
    cell_checks: {kind: checks}
    broken: {kind: plugin, ref: "nowhere:nothing"}
    remote: {kind: endpoint, url: "http://127.0.0.1:9/judge"}
    service: {kind: service, service: judge}
    both: {kind: vote, members: [plugin, cell_checks], needed: 2}
  tools:
    pick:
      arguments: [target, place]
      views: [front, wrist, gripper, scan]
      references: {goal: goal.png}
      failure_kinds: [dropped]
      checks:
        - {color: {view: front, lower: [50, 80, 80], upper: [70, 255, 255], coverage: [0.9, 1.0]}}
    insert: {views: [depth]}
capture:
  views:
    front: {topic: cell/front}
    wrist: {topic: cell/wrist/compressed}
    depth: {topic: cell/depth}
  states:
    gripper: {topic: joints, field: "position[name=finger]"}
    scan: {topic: scan, field: "ranges[0:2]"}
"""
GREEN, GREY = (40, 200, 40), (90, 90, 90)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A configuration and pictures."""
    (tmp_path / 'evaluation.yaml').write_text(YAML)
    picture(tmp_path / 'a.png', GREEN)
    picture(tmp_path / 'b.jpg', GREY)
    picture(tmp_path / 'goal.png', GREY)
    cv2.imwrite(str(tmp_path / 'depth.png'), np.full((12, 16), 1234, np.uint16))
    return tmp_path


def picture(path: Path, color: tuple[int, int, int]) -> None:
    cv2.imwrite(str(path), np.full((48, 64, 3), color, np.uint8))


def pick(folder: Path, **changes: str | None) -> list[str]:
    """A command line that is complete, with options changed or left out."""
    options = {
        'front': f'--image=front={folder}/a.png',
        'wrist': f'--image=wrist={folder}/b.jpg',
        'gripper': '--state=gripper=0.03',
        'scan': '--state=scan=0.5,inf',
        'target': '--arg=target=bottle',
        **changes,
    }
    return [
        'try', f'{folder}/evaluation.yaml', '--tool', 'pick', *(o for o in options.values() if o)
    ]  # fmt: skip


def test_an_evaluator_is_given_what_the_node_would_give_it(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[EvaluationRequest] = []

    def judge(request: EvaluationRequest) -> bool:
        asked.append(request)
        return True

    monkeypatch.setattr(fake_judge, 'behave', judge)
    ended = shell(*pick(folder))
    assert (ended.code, ended.err) == (0, '')
    (request,) = asked
    assert request.post_condition.text == 'The bottle is held.'
    assert len(request.post_condition.checks) == 1
    assert request.post_condition.failure_kinds == ('dropped',)
    assert request.post_condition.references['goal'].shape == (48, 64, 3)
    assert not request.post_condition.process_allowed
    views, states = request.observation.views, request.observation.states
    assert list(views) == ['front', 'wrist']
    assert views['front'].image[0, 0].tolist() == list(GREEN)
    assert views['wrist'].type == 'sensor_msgs/msg/CompressedImage'
    assert views['front'].age == 0.3
    assert views['front'].stamp - request.observation.t_end == 300_000_000
    assert {name: state.value for name, state in states.items()} == {
        'gripper': 0.03,
        'scan': (0.5, float('inf')),
    }


def test_it_prints_the_verdict_and_what_was_sent(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = Verdict(
        Status.FAILURE, ('the gripper is \x1b[2Jempty',), 'nothing is held', 'dropped', 0.1
    )
    monkeypatch.setattr(fake_judge, 'behave', lambda request: verdict)
    ended = shell(*pick(folder))
    assert ended.code == 1
    for words in (
        'text       The bottle is held.',
        'view       front: 64x48 colour, uint8, from a.png',
        'wrist: 64x48 colour, uint8, from b.jpg',
        'state      gripper: 0.03',
        'scan: 0.5, inf',
        'reference  goal: 64x48',
        'state      FAILURE',
        'reason     nothing is held',
        'kind       dropped',
        'evaluator  plugin:fake_judge:judge',
    ):
        assert words in ended.out
    assert '\x1b' not in ended.out
    assert str(folder) not in ended.out


def test_it_gives_the_same_to_a_program(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_judge, 'behave', lambda request: 0.95)
    told = shell(*pick(folder), '--json').json
    assert (told['state'], told['exit_code'], told['score']) == ('SUCCESS', 0, 0.95)
    assert told['sent'] == {
        'post_condition': 'The bottle is held.',
        'checks': 1,
        'rubric': None,
        'report': [],
        'failure_kinds': ['dropped'],
        'process_allowed': False,
        'views': {
            'front': {'width': 64, 'height': 48, 'file': 'a.png'},
            'wrist': {'width': 64, 'height': 48, 'file': 'b.jpg'},
        },
        'states': {'gripper': 0.03, 'scan': [0.5, 'inf']},
        'references': ['goal'],
    }


def test_a_success_without_the_report_of_the_tool_is_an_error(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    yaml = (folder / 'evaluation.yaml').read_text()
    report = 'report: [{key: held, title: Is it held, type: boolean, equals: true}]'
    (folder / 'evaluation.yaml').write_text(
        yaml.replace('arguments: [target, place]', f'arguments: [target, place]\n      {report}')
    )
    for filled, code in (({'held': True}, 0), ({'held': False}, 4), (None, 4)):
        verdict = Verdict(Status.SUCCESS, report=filled)
        monkeypatch.setattr(fake_judge, 'behave', lambda request, found=verdict: found)
        ended = shell(*pick(folder))
        assert ended.code == code, ended.out
        assert 'report     held (boolean): Is it held' in ended.out


@pytest.mark.parametrize(
    ('answer', 'code'),
    [(True, 0), (False, 1), (0.95, 0), (0.7, 5), (None, 5), ('yes', 4), (float('nan'), 4)],
)
def test_it_ends_with_the_code_of_the_outcome(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, answer: object, code: int
) -> None:
    monkeypatch.setattr(fake_judge, 'behave', lambda request: answer)
    assert shell(*pick(folder)).code == code


def test_a_tool_in_segments_may_be_answered_process(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[EvaluationRequest] = []

    def judge(request: EvaluationRequest) -> Verdict:
        asked.append(request)
        return Verdict(Status.PROCESS)

    monkeypatch.setattr(fake_judge, 'behave', judge)
    command = [f'{folder}/evaluation.yaml', '--tool', 'insert']
    ended = shell('try', *command, '--image', f'depth={folder}/depth.png')
    assert ended.code == 3, ended
    depth = asked[0].observation.views['depth'].image
    assert depth.dtype == np.uint16
    assert int(depth[0, 0]) == 1234


@pytest.mark.parametrize(('color', 'code'), [(GREEN, 0), (GREY, 1)])
def test_any_evaluator_of_the_file_can_be_chosen(
    folder: Path, shell: Shell, color: tuple[int, int, int], code: int
) -> None:
    picture(folder / 'a.png', color)
    ended = shell(*pick(folder), '--evaluator', 'cell_checks')
    assert ended.code == code
    assert 'wanted within [0.9, 1]' in ' '.join(ended.out.split())


def test_one_that_asks_others_is_judged_by_all_of_them(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_judge, 'behave', lambda request: True)
    assert shell(*pick(folder), '--evaluator', 'both').code == 0
    monkeypatch.setattr(fake_judge, 'behave', lambda request: False)
    assert shell(*pick(folder), '--evaluator', 'both').code == 5


def test_a_fault_of_the_judge_is_no_failure(folder: Path, shell: Shell) -> None:
    ended = shell(*pick(folder), '--evaluator', 'broken')
    assert ended.code == 4
    assert 'plugin_import' in ended.out


def test_an_endpoint_is_asked_for_real(folder: Path, shell: Shell) -> None:
    with serving(saying(reply('{"reward": 0.97}'))) as world:
        yaml = (folder / 'evaluation.yaml').read_text()
        (folder / 'evaluation.yaml').write_text(
            yaml.replace('http://127.0.0.1:9/judge', world.url)
        )
        ended = shell(*pick(folder), '--evaluator', 'remote', '--json')
    assert (ended.code, ended.json['score']) == (0, 0.97)
    assert world.requests[0].json['task']['prompt'] == 'The bottle is held.'


def test_a_view_that_is_not_usable_is_an_abstention_and_nobody_is_asked(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(fake_judge, 'behave', asked.append)
    usable = '{marker: {dictionary: DICT_4X4_50, id: 0}}'
    yaml = (folder / 'evaluation.yaml').read_text()
    (folder / 'evaluation.yaml').write_text(
        yaml.replace('{topic: cell/front}', f'{{topic: cell/front, usable: {usable}}}')
    )
    ended = shell(*pick(folder))
    assert (ended.code, asked) == (5, [])
    assert 'view_unusable' in ended.out


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'wrist': None}, 'judged by the view wrist too; add --image wrist=FILE'),
        ({'wrist': None, 'front': None}, 'the views front, wrist too; add --image front=FILE'),
        ({'gripper': None}, 'judged by the state gripper too; add --state gripper=NUMBER'),
        ({'target': None}, "the argument 'target'"),
        ({'target': '--arg=target='}, "the argument 'target'"),
        ({'target': '--arg=target=' + 'x' * 201}, 'at most 200 characters'),
        ({'more': '--image=depth=a.png'}, "by a view 'depth'; it needs front, wrist"),
        ({'more': '--state=arm=1'}, "by a state 'arm'; it needs gripper, scan"),
        ({'more': '--arg=color=red'}, "no argument 'color'; it has target, place"),
        ({'more': '--image=front=b.jpg'}, 'front is given twice'),
        ({'more': '--image=b.jpg'}, 'expected --image NAME=VALUE'),
        ({'more': '--arg==x'}, 'expected --arg NAME=VALUE'),
        ({'gripper': '--state=gripper=open'}, 'gripper: expected a number, or several'),
        ({'gripper': '--state=gripper=nan'}, 'expected a number'),
        ({'gripper': '--state=gripper='}, 'expected a number'),
        ({'front': '--image=front=missing.png'}, 'cannot read missing.png: No such file'),
        ({'more': '--evaluator=vlm'}, "'vlm' is none of plugin, cell_checks, broken"),
        ({'more': '--tool=place'}, "'place' is not one of required_tools: pick, insert"),
    ],
)
def test_what_is_missing_or_unknown_is_bad_usage_and_is_named(
    folder: Path, shell: Shell, changes: dict[str, str | None], words: str
) -> None:
    ended = shell(*pick(folder, **changes))
    assert (ended.code, ended.out) == (2, '')
    assert words in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_file_that_is_no_picture_is_bad_usage(folder: Path, shell: Shell) -> None:
    (folder / 'a.png').write_text('no picture')
    ended = shell(*pick(folder))
    assert (ended.code, 'a.png is not a picture' in ended.err) == (2, True)


def test_a_picture_of_a_kind_that_no_camera_sends_is_bad_usage(folder: Path, shell: Shell) -> None:
    cv2.imwrite(str(folder / 'a.png'), np.zeros((8, 8, 3), np.uint16))
    ended = shell(*pick(folder))
    assert (ended.code, 'expected colour of 8 bits' in ended.err) == (2, True)


def test_a_wrong_configuration_is_bad_usage_with_every_problem(folder: Path, shell: Shell) -> None:
    (folder / 'evaluation.yaml').write_text('evaluation: {required_tools: [pick]}\n')
    ended = shell(*pick(folder))
    assert (ended.code, ended.out) == (2, '')
    assert 'evaluation.yaml' in ended.err


def without_ros(folder: Path, *command: str) -> Ended:
    """Run the command in a process in which rclpy cannot be imported."""
    hidden = folder / 'hidden'
    hidden.mkdir()
    (hidden / 'rclpy.py').write_text('raise ImportError("there is no ROS")\n')
    support = Path(__file__).parents[1] / 'support'
    paths = os.pathsep.join([str(hidden), str(support), *sys.path])
    return in_a_process(*command, PYTHONPATH=paths, ROS_HOME=str(folder / 'home'))


def test_it_needs_no_ros_and_puts_nothing_on_record(folder: Path) -> None:
    ended = without_ros(folder, *pick(folder))
    assert ended.code == 0, ended.err
    assert not (folder / 'home').exists()


def test_a_service_needs_ros_and_without_it_that_is_bad_usage(folder: Path) -> None:
    ended = without_ros(folder, *pick(folder), '--evaluator', 'service')
    assert (ended.code, ended.out) == (2, '')
    assert 'this needs ROS 2' in ended.err


def test_the_json_is_ascii_whatever_the_names_are(
    folder: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_judge, 'behave', lambda request: True)
    ended = shell(*pick(folder, target='--arg=target=Fläschchen'), '--json')
    assert ended.out.isascii()
    assert json.loads(ended.out)['sent']['post_condition'] == 'The Fläschchen is held.'
