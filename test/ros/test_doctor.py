"""``harness-eval doctor`` on a real cell: what it measures, proposes, and says will fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import time
from typing import Any

from fake_cell import cell_yaml, FakeCell
from model_server import as_json, completion, LoopbackServer, refused
import pytest
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from shell import Ended, Shell

from harness_eval_msgs.srv import Judge

MODELS = as_json({'data': [{'id': 'judge-1'}]})


def sees(status: str) -> Any:
    """Answer the tiny question."""
    return completion(
        {
            'observations': [{'source': 'plain', 'seen': 'one colour'}],
            'reasons': 'that is what it shows',
            'status': status,
            'score': 0.99 if status == 'success' else 0.01,
        }
    )


Doctor = Callable[..., Ended]


@pytest.fixture
def cell(ros: Any) -> FakeCell:
    made: FakeCell = ros.adopt(FakeCell(context=ros.context))
    ros.spin(made)
    return made


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str], tmp_path: Path, ros: Any) -> Doctor:
    shell = Shell(capsys)

    def examine(yaml: str, *options: str, seconds: float = 1.0) -> Ended:
        path = tmp_path / 'evaluation.yaml'
        path.write_text(yaml)
        return shell('doctor', path, '--seconds', seconds, *options)

    return examine


def judged_by(evaluator: str) -> str:
    return cell_yaml(evaluators=f'remote: {{{evaluator}}}').replace(
        'plug: {evaluator: plugin}', 'plug: {evaluator: remote}'
    )


def failing(ended: Ended) -> list[tuple[str, str]]:
    return [(r['kind'], r['subject']) for r in ended.json['remarks'] if r['level'] == 'FAIL']


def test_a_cell_that_is_well_is_measured_and_ends_with_0(cell: FakeCell, doctor: Doctor) -> None:
    ended = doctor(cell_yaml(), '--json', seconds=2.0)
    found = ended.json
    assert (ended.code, found['well'], found['simulated_time']) == (0, True, False)
    front = found['streams']['front']
    assert 15.0 < front['rate'] < 60.0  # of 30 on a machine that may be busy
    assert (front['width'], front['height'], front['encoding']) == (160, 120, 'rgb8')
    assert (front['topic'], front['offered']) == ('/cell/front/image_raw', 'best effort')
    assert front['offset']['largest'] <= 0.0
    assert front['offset']['median'] > -0.3
    assert found['streams']['gripper']['offered'] == 'reliable'
    assert {one['tool'] for one in found['spreads']} == {'pick', 'insert', 'plug'}
    assert all(one['smallest'] == 0.0 for one in found['spreads'])
    proposals = {key: one['value'] for key, one in found['proposals'].items()}
    assert proposals['max_ahead'] == pytest.approx(0.02)
    assert proposals['max_ahead'] < proposals['settle'] <= 0.3
    assert 0.005 <= proposals['slop'] <= 0.05
    assert all(one['well'] for one in found['evaluators'].values())


@pytest.mark.parametrize(
    ('fault', 'kind'),
    [
        ({'frozen': True}, 'frozen'),
        ({'alive': False}, 'no_frames'),
        ({'stamp_offset': None}, 'unstamped'),
        ({'stamp_offset': 2.0}, 'clock_skew'),
        ({'stamp_offset': -2.0}, 'clock_skew'),
    ],
)
def test_a_camera_that_is_not_well_ends_with_1_and_is_named(
    cell: FakeCell, doctor: Doctor, fault: dict[str, Any], kind: str
) -> None:
    for name, value in fault.items():
        setattr(cell.cameras['wrist'], name, value)
    ended = doctor(cell_yaml(), '--json')
    assert ended.code == 1
    assert failing(ended) == [(kind, "view 'wrist'")]
    assert ended.json['streams']['front']['frames'] > 0


def test_cameras_that_are_never_together_are_told_with_their_spread(
    ros: Any, doctor: Doctor
) -> None:
    slow = ros.adopt(FakeCell(context=ros.context, rate=4.0))
    slow.cameras['wrist'].stamp_offset = -0.12
    ros.spin(slow)
    ended = doctor(cell_yaml(capture='slop: 0.02'), '--json', seconds=3.0)
    assert failing(ended) == [('unsynchronised', 'front, wrist, gripper')]
    (spread,) = {one['smallest'] for one in ended.json['spreads']}
    assert 0.05 < spread < 0.2
    assert ended.json['proposals']['slop']['value'] > spread


def test_nobody_and_another_type_are_told(cell: FakeCell, doctor: Doctor) -> None:
    yaml = cell_yaml().replace('cell/front/image_raw', 'nowhere')
    yaml = yaml.replace('cell/wrist/image_raw', 'parameter_events')
    ended = doctor(yaml, '--json')
    assert failing(ended) == [('no_publisher', "view 'front'"), ('wrong_type', "view 'wrist'")]


def test_relative_names_are_resolved_in_the_namespace(cell: FakeCell, doctor: Doctor) -> None:
    ended = doctor(cell_yaml(), '--namespace', '/robot', '--json')
    assert ended.code == 1
    assert ended.json['streams']['front']['topic'] == '/robot/cell/front/image_raw'
    assert doctor(cell_yaml(), '--namespace', '7!').code == 2


def test_a_key_that_is_not_accepted_ends_with_1_and_what_to_do(
    cell: FakeCell, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('JUDGE_KEY', 'sk-do-not-show-me-0123456789')
    with LoopbackServer(refused(401, 'no')) as server:
        given = f'kind: model, model: judge-1, base_url: "{server.url}/v1", api_key_env: JUDGE_KEY'
        ended = doctor(judged_by(given), '--json')
        assert ended.code == 1
        assert failing(ended) == [('unauthorized', "evaluator 'remote'")]
        assert 'JUDGE_KEY' in str(ended.json['remarks'])
        assert 'do-not-show-me' not in ended.out + ended.err
        # Where no tool is judged by it, nothing fails.
        assert doctor(cell_yaml(evaluators=f'remote: {{{given}}}')).code == 0


def test_a_model_is_asked_only_with_live(
    cell: FakeCell, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('JUDGE_KEY', 'any')
    with LoopbackServer(MODELS) as server:
        given = f'kind: model, model: judge-1, base_url: "{server.url}/v1", api_key_env: JUDGE_KEY'
        ended = doctor(judged_by(given), '--json')
        assert (ended.code, [r.method for r in server.requests]) == (0, ['GET'])
        server.answer_with(MODELS, sees('success'))
        ended = doctor(judged_by(given), '--live', '--json')
        assert ended.code == 0
        assert 'answered success' in ended.json['evaluators']['remote']['found']
        server.answer_with(MODELS, sees('failure'))
        ended = doctor(judged_by(given), '--live', '--json')
        assert failing(ended) == [('blind', "evaluator 'remote'")]
        server.answer_with(MODELS, refused(400, 'this model takes no images'))
        ended = doctor(judged_by(given), '--live', '--json')
        assert ended.code == 1
        assert failing(ended) == [('request_refused', "evaluator 'remote'")]
        assert server.requests[-1].method == 'POST'
        assert b'data:image/' in server.requests[-1].body
        assert len(server.requests[-1].body) < 20_000


def test_a_service_is_checked_in_the_graph_and_asked_with_live(
    cell: FakeCell, doctor: Doctor, ros: Any
) -> None:
    yaml = judged_by('kind: service, service: judge_it, timeout: 5.0')
    assert failing(doctor(yaml, '--json')) == [('service_absent', "evaluator 'remote'")]
    judge = ros.node('judge_server', spin=True)

    def answer(request: Any, response: Any) -> Any:
        response.status = Judge.Response.SUCCESS
        response.score = response.cost = float('nan')
        return response

    judge.create_service(Judge, 'judge_it', answer)
    ended = doctor(yaml, '--live', '--json')
    assert ended.code == 0
    assert ended.json['evaluators']['remote']['found'].endswith('answered success')


def test_a_simulation_is_measured_on_its_own_clock(ros: Any, doctor: Doctor) -> None:
    simulator = ros.node('simulator')
    clock = simulator.create_publisher(Clock, '/clock', 10)
    began = time.monotonic()

    def tick() -> None:
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(
            round((100.0 + time.monotonic() - began) * 1e9), 10**9
        )
        clock.publish(message)

    simulator.create_timer(0.005, tick)
    simulated = [Parameter('use_sim_time', value=True)]
    ros.spin(simulator)
    ros.spin(ros.adopt(FakeCell(context=ros.context, parameter_overrides=simulated)))
    ended = doctor(cell_yaml(), '--json')
    assert (ended.code, ended.json['simulated_time']) == (0, True)
    ended = doctor(cell_yaml(), '--no-sim-time', '--json')
    assert ended.code == 1
    assert {kind for kind, _ in failing(ended)} == {'clock_skew'}


def test_every_problem_of_a_configuration_is_told_with_code_2(doctor: Doctor) -> None:
    yaml = cell_yaml(capture='slop: -1').replace('evaluator: cell_checks', 'evaluator: nobody')
    ended = doctor(yaml)
    assert ended.code == 2
    assert 'slop' in ended.err
    assert ended.out == ''


def test_it_is_read_at_80_columns_without_colour(
    cell: FakeCell, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('COLUMNS', '80')
    monkeypatch.setenv('NO_COLOR', '1')
    cell.cameras['wrist'].frozen = True
    ended = doctor(cell_yaml())
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert '\x1b' not in ended.out
    row = next(line.split() for line in lines if ' wrist ' in line)
    assert row[0] == 'FAIL'
    assert '160x120' in row
    text = ' '.join(ended.out.split())
    assert "frozen: view 'wrist'" in text
    assert 'may_repeat: true' in text
    assert text.endswith('FAIL 1 thing will fail')
