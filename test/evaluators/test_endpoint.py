"""A judge behind HTTP: what is sent to it, and what its answers, good and bad, come to."""

from __future__ import annotations

import base64
import dataclasses
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
import inspect
import json
from pathlib import Path
import socket
import sys
import threading
from typing import Any

import cv2
from http_world import Handler, HttpWorld, own_certificate, reply, Request, saying, serving
from hypothesis import given
from hypothesis import strategies as st
from judged_world import make_request, make_state, make_view, noise
import numpy as np
import pytest

from harness_eval.calls import JudgeCalls
from harness_eval.config.evaluators import EndpointSettings
from harness_eval.contract import (
    Abstention,
    CameraInfo,
    Criterion,
    DecodeError,
    EvaluationError,
    EvaluationRequest,
    EvaluatorError,
    ReportOutput,
    Rubric,
    Status,
    Verdict,
)
from harness_eval.evaluators import build_evaluator
from harness_eval.evaluators.endpoint import read_answer
from harness_eval.evaluators.endpoint_forms import Question, RewardAnswer, VerdictAnswer
from harness_eval.evaluators.running import judge_here, Stop
from harness_eval.judging import interpret, Thresholds

PAGE = Path(__file__).parents[2] / 'docs' / 'endpoint.md'
GOOD = reply('{"reward": 0.97}')
TOKEN = 'sk-a/very+secret-token'


def ask(
    world: HttpWorld,
    request: EvaluationRequest | None = None,
    *,
    timeout: float = 5.0,
    **settings: Any,
) -> Verdict:
    """Judge through an endpoint evaluator, on this thread."""
    settings = {'url': world.url, **settings}
    made = EndpointSettings(kind='endpoint', timeout=timeout, **settings)
    judge = build_evaluator('remote', made)
    return judge_here(
        judge, request or make_request(), Thresholds(), clamp=made.clamp, stop=Stop()
    )


def fault(world: HttpWorld, **settings: Any) -> EvaluatorError:
    """The error that judging comes to."""
    with pytest.raises(EvaluatorError) as caught:
        ask(world, **settings)
    error = caught.value
    assert error.evaluator == f'endpoint:{world.url.partition("?")[0]}'
    return error


def fault_of(handler: Handler | bytes, **settings: Any) -> tuple[str, bool, str]:
    """Kind, whether it may be tried again, and message of the error of one answer."""
    with serving(saying(handler) if isinstance(handler, bytes) else handler) as world:
        error = fault(world, **settings)
        return error.kind, error.retryable, error.message


# --- what is sent -----------------------------------------------------------------------------


def decoded(picture: dict[str, Any]) -> Any:
    data = np.frombuffer(base64.b64decode(picture['data'], validate=True), np.uint8)
    return cv2.imdecode(data, cv2.IMREAD_UNCHANGED)


def test_the_question_is_all_that_an_evaluator_is_given_and_nothing_else() -> None:
    info = CameraInfo(64, 48, np.eye(3), np.zeros(5), 'plumb_bob')
    request = make_request(
        make_view('front', noise(1), camera_info=info),
        make_state('gripper', 0.03),
        make_state('scan', (1.0, float('inf'), float('nan'))),
        checks=({'state': {'name': 'gripper', 'between': [0.0, 0.06]}},),
        references={'goal': noise(2)},
        failure_kinds=('dropped',),
        process_allowed=True,
    )
    with serving(saying(GOOD)) as world:
        ask(world, request)
    (sent,) = world.requests
    question = sent.json
    Question.model_validate(question)
    picture = question['observation']['views']['front'].pop('image')
    reference = question['task']['reference'].pop('goal')
    assert np.array_equal(decoded(picture), noise(1))
    assert np.array_equal(decoded(reference), noise(2))
    del picture['data']
    assert picture == {
        'format': 'png', 'width': 64, 'height': 48, 'channels': 3, 'bits': 8, 'unit': ''
    }  # fmt: skip
    (check,) = question['task'].pop('checks')
    assert check['state'] == {'name': 'gripper', 'between': [0.0, 0.06]}
    assert question == {
        'task': {
            'prompt': 'The part is in its place.',
            'reference': {},
            'rubric': None,
            'report': [],
            'failure_kinds': ['dropped'],
            'process_allowed': True,
        },
        'observation': {
            'views': {
                'front': {
                    'age': 0.4,
                    'stamp_source': 'header',
                    'frame_id': 'camera',
                    'camera_info': {
                        'width': 64,
                        'height': 48,
                        'model': 'plumb_bob',
                        'matrix': [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
                        'distortion': [0, 0, 0, 0, 0],
                    },
                }
            },
            'states': {
                'gripper': {
                    'value': 0.03, 'age': 0.4, 'stamp_source': 'header', 'frame_id': ''
                },
                'scan': {
                    'value': [1.0, 'Infinity', 'NaN'],
                    'age': 0.4,
                    'stamp_source': 'header',
                    'frame_id': '',
                },
            },
            'spread': 0.0,
        },
    }  # fmt: skip
    assert sent.line == 'POST /judge HTTP/1.1'
    assert sent.headers['content-type'] == 'application/json'
    assert sent.headers['accept-encoding'] == 'identity'
    assert 'authorization' not in sent.headers


def test_rubric_and_report_of_the_tool_are_sent() -> None:
    request = make_request()
    rubric = Rubric(criteria=(Criterion('held', 'It is held.', 2.0, must=True),), version='3')
    asked = dataclasses.replace(
        request.post_condition,
        rubric=rubric,
        report=(ReportOutput('color', 'Its colour', 'string'),),
    )
    with serving(saying(GOOD)) as world:
        ask(world, dataclasses.replace(request, post_condition=asked))
    task = world.requests[0].json['task']
    assert task['rubric'] == {
        'text': '',
        'criteria': [{'name': 'held', 'text': 'It is held.', 'weight': 2.0, 'must': True}],
        'version': '3',
    }
    assert task['report'] == [{'key': 'color', 'title': 'Its colour', 'type': 'string'}]


def test_depth_in_metres_travels_as_millimetres_of_16_bits() -> None:
    depth = np.array([[0.0, 0.5, 1.2341, np.nan, np.inf, 70.0]], np.float32)
    with serving(saying(GOOD)) as world:
        ask(world, make_request(make_view('depth', depth)))
    picture = world.requests[0].json['observation']['views']['depth']['image']
    assert (picture['bits'], picture['channels'], picture['unit']) == (16, 1, 'mm')
    assert decoded(picture).tolist() == [[0, 500, 1234, 0, 65535, 65535]]


def test_a_picture_of_16_bits_travels_bit_by_bit() -> None:
    grey = np.arange(600, dtype=np.uint16).reshape(20, 30) * 100
    with serving(saying(GOOD)) as world:
        ask(world, make_request(make_view('thermal', grey)))
    picture = world.requests[0].json['observation']['views']['thermal']['image']
    assert (picture['bits'], picture['unit']) == (16, '')
    assert np.array_equal(decoded(picture), grey)


def test_a_picture_of_floats_that_is_no_depth_is_not_sent() -> None:
    with serving(saying(GOOD)) as world:
        request = make_request(make_view('flow', np.array([[-0.5]], np.float32)))
        error = fault(world, request=request)
    assert (error.kind, world.requests) == ('unsendable_picture', [])
    assert "view 'flow'" in error.message


def test_a_picture_that_cannot_be_decoded_is_not_sent() -> None:
    broken = make_view('front', DecodeError('bad_image', 'half a picture'))
    with serving(saying(GOOD)) as world, pytest.raises(DecodeError):
        ask(world, make_request(broken))
    assert world.requests == []


def test_the_page_shows_the_schemas_of_question_and_answers() -> None:
    blocks = [part.partition('```')[0] for part in PAGE.read_text().split('```json\n')[1:]]
    shown = [json.loads(block) for block in blocks]
    for model in (Question, RewardAnswer, VerdictAnswer):
        assert model.model_json_schema() in shown


# --- good answers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('answer', 'status', 'score'),
    [
        ('{"reward": 0.97}', Status.SUCCESS, 0.97),
        ('{"reward": 1}', Status.SUCCESS, 1.0),
        ('{"reward": 0.2, "info": {"model": "m"}}', Status.FAILURE, 0.2),
    ],
)
def test_a_reward_is_a_score_for_the_thresholds(answer: str, status: Status, score: float) -> None:
    with serving(saying(reply(answer))) as world:
        verdict = ask(world)
    assert (verdict.status, verdict.score) == (status, score)


def test_a_verdict_object_is_taken_with_all_its_fields() -> None:
    answer = {
        'status': 'failure',
        'evidence': ['the gripper is empty'],
        'failure_reason': 'nothing is held',
        'failure_kind': 'dropped',
        'score': 0.04,
        'report': {'count': 0},
        'route': 'grader-2',
        'cost': 0.002,
    }
    with serving(saying(reply(json.dumps(answer), status='201 Created'))) as world:
        verdict = ask(world, make_request(failure_kinds=('dropped',)))
    assert verdict == Verdict(
        Status.FAILURE,
        ('the gripper is empty',),
        'nothing is held',
        'dropped',
        0.04,
        {'count': 0},
        'grader-2',
        0.002,
    )


def test_a_service_may_abstain_and_say_why() -> None:
    answer = reply('{"status": "abstain", "evidence": ["the lens is covered"]}')
    with serving(saying(answer)) as world, pytest.raises(Abstention) as caught:
        ask(world)
    assert (caught.value.kind, caught.value.message) == ('judge_abstained', 'the lens is covered')


def test_a_reward_between_the_thresholds_abstains() -> None:
    with serving(saying(reply('{"reward": 0.7}'))) as world, pytest.raises(Abstention) as caught:
        ask(world)
    assert caught.value.kind == 'unsure'


def test_clamp_cuts_a_reward_with_a_warning() -> None:
    with serving(saying(reply('{"reward": 1.5}'))) as world:
        verdict = ask(world, clamp=True)
    assert verdict.score == 1.0
    assert any('warning' in line for line in verdict.evidence)


# --- answers that are none --------------------------------------------------------------------

NOT_ANSWERS = [
    '',
    ' ',
    '{}',
    'null',
    '0.95',
    'true',
    '"success"',
    '[{"reward": 1.0}]',
    '{"reward": true}',
    '{"reward": null}',
    '{"reward": "0.95"}',
    '{"reward": [0.95]}',
    '{"reward": NaN}',
    '{"reward": Infinity}',
    '{"reward": 1e999}',
    '{"reward": ' + '9' * 500 + '}',
    '{"reward": 0.95, "reward": 0.1}',
    '{"reward": 0.95, "error": "camera dark"}',
    '{"reward": 0.95, "status": "success"}',
    '{"Reward": 0.95}',
    '{"reward": 0.95',
    '{"reward": 0.95}{"reward": 0.95}',
    '```json\n{"reward": 0.95}\n```',
    '\ufeff{"reward": 0.95}',
    '{"status": "SUCCESS"}',
    '{"status": "ok"}',
    '{"status": null}',
    '{"status": "success", "failure_reason": "it fell"}',
    '{"status": "success", "failure_kind": "dropped"}',
    '{"status": "success", "score": 1.2}',
    '{"status": "success", "score": true}',
    '{"status": "success", "evidence": "seen"}',
    '{"status": "success", "evidence": [1]}',
    '{"status": "success", "report": []}',
    '{"status": "success", "cost": -1}',
    '{"status": "success", "verdict": "failure"}',
    '{"status": "success", "status": "success"}',
    '{"status": "failure"}',
    '{"status": "failure", "failure_reason": "  "}',
    '{"status": "abstain", "failure_reason": "it fell"}',
    '[' * 100_000,
]


@pytest.mark.parametrize('answer', NOT_ANSWERS, ids=lambda answer: repr(answer[:40]))
def test_whatever_is_no_well_formed_answer_is_an_error(answer: str) -> None:
    kind, again, _ = fault_of(reply(answer))
    assert (kind, again) == ('malformed_answer', False)


@pytest.mark.parametrize(
    ('answer', 'expected'),
    [
        ('{"reward": 1.01}', 'score_out_of_range'),
        ('{"reward": -0.1}', 'score_out_of_range'),
        ('{"status": "process"}', 'process_not_allowed'),
        ('{"status": "failure", "failure_reason": "x", "failure_kind": "segment_budget"}',
         'unknown_failure_kind'),
    ],
)  # fmt: skip
def test_an_answer_that_was_not_allowed_is_an_error(answer: str, expected: str) -> None:
    assert fault_of(reply(answer))[0] == expected


def test_bytes_that_are_no_text_are_an_error() -> None:
    assert fault_of(reply(b'{"reward": 0.95, "info": "\xff"}'))[0] == 'malformed_answer'


def test_an_error_names_the_key_and_repeats_no_value() -> None:
    _, _, message = fault_of(reply('{"reward": "my-secret"}'))
    assert 'reward' in message
    assert 'my-secret' not in message


@pytest.mark.parametrize('kind', ['text/html; charset=utf-8', 'text/plain', None])
def test_an_answer_of_another_type_is_an_error_whatever_it_holds(kind: str | None) -> None:
    found, _, message = fault_of(reply('{"reward": 0.95}', kind=kind))
    assert found == 'malformed_answer'
    assert (kind or 'none') in message


def test_an_html_page_is_an_error() -> None:
    page = reply('<html><body>Login</body></html>', kind='text/html')
    assert fault_of(page)[0] == 'malformed_answer'


def test_a_packed_answer_is_not_unpacked() -> None:
    import gzip

    bomb = gzip.compress(b' ' * 50_000_000)
    answer = reply(bomb, headers=('Content-Encoding: gzip',))
    assert fault_of(answer)[0] == 'malformed_answer'


def test_an_answer_is_bounded_to_a_mebibyte() -> None:
    padding = ' ' * (1024 * 1024 - len('{"reward": 0.95}'))
    with serving(saying(reply('{"reward": 0.95}' + padding))) as world:
        assert ask(world).status is Status.SUCCESS
    kind, _, message = fault_of(reply('{"reward": 0.95} ' + padding))
    assert kind == 'malformed_answer'
    assert '1048576' in message


def test_an_answer_without_end_is_given_up_at_the_bound() -> None:
    def flood(connection: socket.socket, request: Request) -> None:
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n')
        while True:
            connection.sendall(b' ' * 65536)

    with serving(flood) as world:
        assert fault(world).kind == 'malformed_answer'
        assert world.cut.wait(5.0)


# --- HTTP statuses ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('status', 'expected', 'again'),
    [
        ('202 Accepted', 'endpoint_status', False),
        ('204 No Content', 'endpoint_status', False),
        ('301 Moved Permanently', 'endpoint_redirect', False),
        ('304 Not Modified', 'endpoint_redirect', False),
        ('400 Bad Request', 'endpoint_refused', False),
        ('401 Unauthorized', 'endpoint_unauthorized', False),
        ('403 Forbidden', 'endpoint_unauthorized', False),
        ('404 Not Found', 'endpoint_not_found', False),
        ('405 Method Not Allowed', 'endpoint_not_found', False),
        ('408 Request Timeout', 'endpoint_failed', True),
        ('409 Conflict', 'endpoint_failed', True),
        ('413 Content Too Large', 'endpoint_refused', False),
        ('422 Unprocessable Content', 'endpoint_refused', False),
        ('429 Too Many Requests', 'rate_limited', True),
        ('500 Internal Server Error', 'endpoint_failed', True),
        ('503 Service Unavailable', 'endpoint_failed', True),
    ],
)
def test_no_status_but_success_carries_an_answer(status: str, expected: str, again: bool) -> None:
    kind, retryable, message = fault_of(reply('{"reward": 1.0}', status=status))
    assert (kind, retryable) == (expected, again)
    assert status[:3] in message


@pytest.mark.parametrize(
    ('given', 'least', 'most'),
    [
        ('7', 7.0, 7.0),
        ('0', 0.0, 0.0),
        (1000, 500.0, 1000.0),  # seconds from now, as a date
        (-1000, 0.0, 0.0),
    ],
)
def test_how_long_a_service_asks_to_be_left_alone_is_in_the_error(
    given: str | int, least: float, most: float
) -> None:
    if isinstance(given, int):
        given = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=given))
    answer = reply(status='429 Too Many Requests', headers=(f'Retry-After: {given}',))
    with serving(saying(answer)) as world:
        error = refused(world)
    assert error.retry_after is not None
    assert least <= error.retry_after <= most


@pytest.mark.parametrize('headers', [(), ('Retry-After: soon',), ('Retry-After: -3',)])
def test_a_wait_that_cannot_be_read_is_none(headers: tuple[str, ...]) -> None:
    with serving(saying(reply(status='503 Busy', headers=headers))) as world:
        assert refused(world).retry_after is None


def refused(world: HttpWorld) -> EvaluatorError:
    with pytest.raises(EvaluatorError) as caught:
        ask(world)
    return caught.value


def test_a_refusal_is_repeated_in_short() -> None:
    answer = reply('{"detail": "no field prompt\\n"}', status='422 Unprocessable Content')
    assert 'no field prompt' in fault_of(answer)[2]
    page = reply('<html>secret page</html>', status='500 Oops', kind='text/html')
    assert 'secret page' not in fault_of(page)[2]


# --- redirects --------------------------------------------------------------------------------


def redirect(where: str, status: str = '307 Temporary Redirect') -> bytes:
    return reply(status=status, headers=(f'Location: {where}',))


def test_a_redirect_within_the_same_place_repeats_the_post() -> None:
    with serving(saying(redirect('/judge/'), GOOD)) as world:
        assert ask(world, make_request(make_state('x', 1.0))).status is Status.SUCCESS
    first, second = world.requests
    assert second.line == 'POST /judge/ HTTP/1.1'
    assert second.body == first.body


def test_neither_pictures_nor_token_follow_a_redirect_to_another_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv('JUDGE_TOKEN', TOKEN)
    with serving(saying(GOOD)) as other, serving(saying(redirect(other.url))) as world:
        error = fault(world, token_env='JUDGE_TOKEN')
    assert (error.kind, error.retryable, other.requests) == ('endpoint_redirect', False, [])
    assert 'another place' in error.message


def test_a_redirect_that_would_lose_the_question_is_an_error() -> None:
    with serving(saying(redirect('/judge/', '302 Found'), GOOD)) as world:
        assert fault(world).kind == 'endpoint_redirect'
    assert len(world.requests) == 1


def test_redirects_in_a_circle_end() -> None:
    with serving(saying(redirect('/judge'))) as world:
        assert fault(world).kind == 'endpoint_redirect'
    assert len(world.requests) == 4


# --- connections ------------------------------------------------------------------------------


def test_a_server_that_says_nothing_is_given_up_at_the_deadline() -> None:
    with serving(lambda connection, request: world.closing.wait(10.0)) as world:
        error = fault(world, timeout=0.3)
    assert (error.kind, error.retryable) == ('endpoint_timeout', True)
    assert '0.3 s' in error.message


def test_the_deadline_is_one_for_the_whole_answer_however_slowly_it_drips() -> None:
    head = GOOD.replace(b'Content-Length: 16', b'Content-Length: 5000')
    assert head != GOOD

    def body_drip(connection: socket.socket, request: Request) -> None:
        connection.sendall(head)
        while not world.closing.wait(0.05):
            connection.sendall(b' ')

    def header_drip(connection: socket.socket, request: Request) -> None:
        connection.sendall(b'HTTP/1.1 200 OK\r\n')
        while not world.closing.wait(0.05):
            connection.sendall(b'X')

    for handler in (body_drip, header_drip):
        with serving(handler) as world:
            assert fault(world, timeout=0.4).kind == 'endpoint_timeout'
            assert world.cut.wait(5.0)


@pytest.mark.parametrize('kept', [0, 20, len(GOOD) - 1])
def test_a_connection_cut_in_the_middle_is_an_error(kept: int) -> None:
    kind, again, _ = fault_of(GOOD[:kept])
    assert (kind, again) == ('endpoint_cut', True)


def test_what_is_no_http_is_an_error() -> None:
    kind, again, _ = fault_of(b'SSH-2.0-OpenSSH_9.6\r\n')
    assert (kind, again) == ('endpoint_cut', True)


def test_nobody_listening_is_an_error_that_may_be_tried_again() -> None:
    with serving(saying(GOOD)) as world:
        pass
    error = fault(world)
    assert (error.kind, error.retryable) == ('endpoint_unreachable', True)


def test_whoever_gives_up_closes_the_connection() -> None:
    def watch(connection: socket.socket, request: Request) -> None:
        asked.set()
        if connection.recv(1) == b'':
            world.cut.set()

    asked = threading.Event()
    with serving(watch) as world:
        settings = EndpointSettings(kind='endpoint', url=world.url, timeout=30.0)
        calls = JudgeCalls(build_evaluator('remote', settings), settings, Thresholds())
        handle = calls.call(make_request(), lambda outcome: None)
        assert asked.wait(5.0)
        assert handle.cancel()
        assert world.cut.wait(5.0)


# --- TLS --------------------------------------------------------------------------------------


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    context, certificate = own_certificate(tmp_path)
    with serving(saying(GOOD), tls=context) as world:
        error = fault(world)
        assert (error.kind, error.retryable, world.requests) == ('endpoint_tls', False, [])
        assert 'ca_file' in error.message
        assert ask(world, ca_file=str(certificate)).status is Status.SUCCESS


def test_a_certificate_of_another_host_is_refused(tmp_path: Path) -> None:
    context, certificate = own_certificate(tmp_path)
    with serving(saying(GOOD), tls=context) as world:
        world.url = world.url.replace('localhost', '127.0.0.1')
        error = fault(world, ca_file=str(certificate))
    assert (error.kind, world.requests) == ('endpoint_tls', [])


def test_certificates_that_cannot_be_read_are_named_by_their_fault_alone(tmp_path: Path) -> None:
    context, _ = own_certificate(tmp_path)
    with serving(saying(GOOD), tls=context) as world:
        error = fault(world, ca_file=str(tmp_path / 'missing.pem'))
    assert error.kind == 'endpoint_tls'
    assert str(tmp_path) not in str(error)


# --- token ------------------------------------------------------------------------------------


def test_the_token_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('JUDGE_TOKEN', TOKEN)
    with serving(saying(GOOD)) as world:
        ask(world, token_env='JUDGE_TOKEN')
    assert world.requests[0].headers['authorization'] == f'Bearer {TOKEN}'


@pytest.mark.parametrize('value', [None, '', '  '])
def test_a_token_that_is_not_set_is_an_error_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is None:
        monkeypatch.delenv('JUDGE_TOKEN', raising=False)
    else:
        monkeypatch.setenv('JUDGE_TOKEN', value)
    with serving(saying(GOOD)) as world:
        error = fault(world, token_env='JUDGE_TOKEN')
    assert (error.kind, error.retryable, world.requests) == ('no_token', False, [])
    assert 'JUDGE_TOKEN' in error.message


def test_a_token_that_would_break_the_header_is_an_error_that_does_not_show_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv('JUDGE_TOKEN', 'sk-one\nsk-two')
    with serving(saying(GOOD)) as world:
        error = fault(world, token_env='JUDGE_TOKEN')
    assert error.kind == 'no_token'
    assert 'sk-' not in str(error)


@pytest.mark.parametrize(
    'answer',
    [
        reply('{"status": "success", "evidence": ["' + TOKEN + '"]}'),
        reply('{"status": "success", "evidence": ["' + TOKEN.replace('/', '\\/') + '"]}'),
        reply('{"' + TOKEN + '": 1, "' + TOKEN + '": 2}'),
        reply('{"detail": "' + TOKEN + '"}', status='401 Unauthorized'),
        reply(f'bad token {TOKEN}', status='500 Oops', kind='text/plain'),
    ],
)
def test_a_server_that_repeats_the_token_does_not_get_it_into_a_record(
    answer: bytes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv('JUDGE_TOKEN', TOKEN)
    with serving(saying(answer)) as world:
        error = fault(world, token_env='JUDGE_TOKEN')
    for text in (str(error), repr(error.__cause__), repr(error.__context__), caplog.text):
        assert 'secret-token' not in text


def test_neither_the_query_nor_a_proxy_or_netrc_of_the_environment_plays_a_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / 'netrc'
    netrc.write_text('machine 127.0.0.1 login me password mine\n')
    netrc.chmod(0o600)
    monkeypatch.setenv('NETRC', str(netrc))
    with serving(saying(GOOD)) as proxy, serving(saying(GOOD), path='/judge?cell=7') as world:
        monkeypatch.setenv('HTTP_PROXY', proxy.url)
        monkeypatch.setenv('http_proxy', proxy.url)
        ask(world)
        assert proxy.requests == []
    assert world.requests[0].line == 'POST /judge?cell=7 HTTP/1.1'
    assert 'authorization' not in world.requests[0].headers


# --- the library ------------------------------------------------------------------------------


@pytest.mark.parametrize('name', ['httpx2', 'httpx'])
def test_either_name_of_the_library_will_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(name)
    other = {'httpx2': 'httpx', 'httpx': 'httpx2'}[name]
    monkeypatch.setitem(sys.modules, other, None)
    with serving(saying(GOOD)) as world:
        assert ask(world).status is Status.SUCCESS
    with serving(saying(GOOD[:-3])) as world:
        assert fault(world).kind == 'endpoint_cut'
    assert fault(world).kind == 'endpoint_unreachable'


def test_without_the_library_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, 'httpx', None)
    monkeypatch.setitem(sys.modules, 'httpx2', None)
    with serving(saying(GOOD)) as world:
        error = fault(world)
    assert error.kind == 'missing_library'
    assert 'harness_eval[endpoint]' in error.message


def test_what_is_awaited_is_made_on_the_calling_thread() -> None:
    settings = EndpointSettings(kind='endpoint', url='http://127.0.0.1:1/judge')
    answer: Any = build_evaluator('remote', settings).evaluate(make_request())
    assert inspect.isawaitable(answer)
    answer.close()  # type: ignore[attr-defined]


# --- whatever comes ---------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ['reward', 'status', 'score', 'evidence', 'failure_reason', 'info', 'error', 'x']
            ),
            inner | st.sampled_from(['success', 'failure', 'abstain', 'process', 0.95, 1.0]),
            max_size=4,
        )
    ),
    max_leaves=8,
)


@given(JSON)
def test_only_a_reward_or_a_verdict_that_says_so_is_ever_a_success(answer: Any) -> None:
    try:
        verdict = interpret(read_answer(answer, 'x'), make_request(), Thresholds(), evaluator='x')
    except EvaluationError:
        return
    if verdict.status is Status.SUCCESS:
        known = {'reward', 'info'} if 'reward' in answer else {*VerdictAnswer.model_fields}
        assert set(answer) <= known
        if 'reward' in answer:
            assert type(answer['reward']) in (int, float)
            assert 0.9 <= answer['reward'] <= 1.0
        else:
            assert answer['status'] == 'success'
            assert not answer.get('failure_reason')
