"""Whether an evaluator could judge now, asked over real sockets and in real processes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
import socket
from typing import Any

from model_server import as_json, closed, http, hung, LoopbackServer, refused
from pydantic import TypeAdapter
import pytest

from harness_eval.config.evaluators import AnyEvaluator
from harness_eval.contract import EvaluatorError
from harness_eval.evaluators import Judges
from harness_eval.evaluators.probes import JUDGE_SERVICE
from harness_eval.evaluators.probing import Probed, Prober, together
from harness_eval.judging import Thresholds

SECRET = 'sk-do-not-show-me-0123456789'
MODELS = {'object': 'list', 'data': [{'id': 'judge-1'}, {'id': 'models/judge-2'}, {'id': 'j3:7b'}]}


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('JUDGE_KEY', SECRET)


def prober(services: Mapping[str, int] | None = None, **evaluators: dict[str, Any]) -> Prober:
    adapter: TypeAdapter[Any] = TypeAdapter(AnyEvaluator)
    settings = {name: adapter.validate_python(given) for name, given in evaluators.items()}
    judges = Judges(settings, Thresholds())
    looked = None if services is None else lambda name: services
    return Prober(settings, judges.evaluator, looked, timeout=1.0)


def model(url: str, name: str = 'judge-1', **more: Any) -> dict[str, Any]:
    return {
        'kind': 'model',
        'model': name,
        'base_url': f'{url}/v1',
        'api_key_env': 'JUDGE_KEY',
        **more,
    }


def endpoint(url: str, **more: Any) -> dict[str, Any]:
    return {'kind': 'endpoint', 'url': f'{url}/judge?cell=northern', **more}


def fault(probed: Probed) -> tuple[str, str]:
    assert probed.fault is not None
    assert not probed.found
    assert SECRET not in probed.fault.message
    assert 'cell=northern' not in probed.fault.message
    return probed.fault.kind, probed.fault.message


@pytest.mark.parametrize('name', ['judge-1', 'judge-2', 'j3'])
def test_a_model_that_the_server_lists_is_found_and_nothing_is_asked_of_it(name: str) -> None:
    with LoopbackServer(as_json(MODELS)) as server:
        probed = prober(a=model(server.url, name)).probe('a')
        assert probed == Probed(found=f'the server, the key and the model {name} are there')
        (request,) = server.requests
        assert (request.method, request.path, request.body) == ('GET', '/v1/models', b'')
        assert request.headers['authorization'] == f'Bearer {SECRET}'


def test_a_model_that_the_server_does_not_list_is_told_with_those_that_it_has() -> None:
    with LoopbackServer(as_json(MODELS)) as server:
        kind, message = fault(prober(a=model(server.url, 'judge-9')).probe('a'))
        assert kind == 'model_absent'
        assert "'judge-9'" in message
        assert 'judge-1' in message


@pytest.mark.parametrize(
    ('answer', 'kind', 'remedy'),
    [
        (refused(401, f'bad key {SECRET}'), 'unauthorized', 'JUDGE_KEY'),
        (refused(403, 'no'), 'unauthorized', 'JUDGE_KEY'),
        (refused(429, 'slow down'), 'rate_limited', 'max_concurrency'),
        (refused(500, f'oops {SECRET}'), 'server_error', ''),
        (
            http(b'', status=302, headers={'Location': 'http://127.0.0.1:9/'}),
            'redirected',
            'base_url',
        ),
        (closed(), 'connection_lost', ''),
        (hung(), 'judge_timeout', ''),
    ],
)
def test_a_model_that_could_not_be_asked_is_told_with_what_to_do(
    answer: Any, kind: str, remedy: str
) -> None:
    with LoopbackServer(answer) as server:
        found, message = fault(prober(a=model(server.url)).probe('a'))
        assert found == kind
        assert remedy in message


@pytest.mark.parametrize(
    'answer', [http(b'', status=404), http(b'<html>'), as_json({'data': []}), as_json([1])]
)
def test_a_server_without_a_list_of_models_is_there(answer: Any) -> None:
    with LoopbackServer(answer) as server:
        assert prober(a=model(server.url)).probe('a').fault is None


def test_a_model_whose_key_is_not_set_is_told_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv('JUDGE_KEY', ' ')
    with LoopbackServer(as_json(MODELS)) as server:
        kind, message = fault(prober(a=model(server.url)).probe('a'))
        assert (kind, server.requests) == ('no_key', [])
        assert 'JUDGE_KEY' in message


def nobody() -> str:
    with socket.create_server(('127.0.0.1', 0)) as reserved:
        return f'http://127.0.0.1:{reserved.getsockname()[1]}'


def test_nobody_at_the_address_is_told() -> None:
    there = prober(a=model(nobody()), b=endpoint(nobody()))
    assert fault(there.probe('a'))[0] == 'unreachable'
    assert fault(there.probe('b'))[0] == 'endpoint_unreachable'


@pytest.mark.parametrize('status', [200, 204, 400, 404, 405, 501])
def test_an_endpoint_that_answers_anything_is_there_and_gets_no_question(status: int) -> None:
    with LoopbackServer(http(b'', status=status)) as server:
        probed = prober(a=endpoint(server.url, token_env='JUDGE_KEY')).probe('a')
        assert probed == Probed(found=f'it answers (OPTIONS: HTTP {status})')
        (request,) = server.requests
        assert (request.method, request.body) == ('OPTIONS', b'')
        assert request.headers['authorization'] == f'Bearer {SECRET}'


@pytest.mark.parametrize(
    ('answer', 'kind'),
    [
        (http(b'', status=401), 'endpoint_unauthorized'),
        (http(b'', status=503), 'endpoint_failed'),
        (closed(), 'endpoint_cut'),
        (hung(), 'endpoint_timeout'),
    ],
)
def test_an_endpoint_that_does_not_let_us_in_is_told(answer: Any, kind: str) -> None:
    with LoopbackServer(answer) as server:
        assert fault(prober(a=endpoint(server.url)).probe('a'))[0] == kind


@pytest.mark.parametrize(
    ('services', 'kind'),
    [
        (None, 'no_ros'),
        ({}, 'service_absent'),
        ({'std_srvs/srv/Trigger': 1}, 'service_type'),
        ({JUDGE_SERVICE: 2}, 'service_ambiguous'),
    ],
)
def test_a_service_is_looked_for_in_the_graph(
    services: Mapping[str, int] | None, kind: str
) -> None:
    there = prober(services, a={'kind': 'service', 'service': 'judge'})
    assert fault(there.probe('a'))[0] == kind


def test_a_service_that_is_offered_once_is_there() -> None:
    there = prober({JUDGE_SERVICE: 1}, a={'kind': 'service', 'service': 'judge'})
    assert there.probe('a') == Probed(found='judge is offered')


PLUGIN = """
import os
LOADED = os.getpid()
print('a plugin that talks')
def judge(request):
    raise AssertionError('it was asked')
nothing = 3
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / 'probed_plugin.py').write_text(PLUGIN)
    (tmp_path / 'dying_plugin.py').write_text('import os\nos._exit(7)\n')
    monkeypatch.syspath_prepend(str(tmp_path))
    return 'probed_plugin'


@pytest.mark.parametrize('isolation', ['thread', 'process'])
@pytest.mark.parametrize(
    ('ref', 'kind'),
    [
        ('probed_plugin:judge', ''),
        ('probed_plugin:absent', 'plugin_import'),
        ('probed_plugin:nothing', 'plugin_not_callable'),
        ('no_such_plugin:judge', 'plugin_import'),
    ],
)
def test_a_plugin_is_imported_and_not_called(
    plugin: str, isolation: str, ref: str, kind: str
) -> None:
    probed = prober(a={'kind': 'plugin', 'ref': ref, 'isolation': isolation}).probe('a')
    if kind:
        assert fault(probed)[0] == kind
    else:
        assert probed == Probed(found='probed_plugin:judge is imported and can be called')


def test_an_isolated_plugin_that_crashes_takes_nothing_with_it(plugin: str) -> None:
    there = prober(a={'kind': 'plugin', 'ref': 'dying_plugin:judge', 'isolation': 'process'})
    kind, message = fault(there.probe('a'))
    assert kind == 'evaluator_crashed'
    assert 'code 7' in message


def test_a_glance_imports_no_plugin(plugin: str) -> None:
    there = prober(
        a={'kind': 'plugin', 'ref': 'dying_plugin:judge'},
        b={'kind': 'plugin', 'ref': 'no_such_plugin:judge'},
        both={'kind': 'vote', 'members': ['a', 'b'], 'needed': 1},
    )
    assert there.glance('a').fault is None
    assert fault(there.glance('b'))[0] == 'plugin_import'
    assert there.glance('both').fault is None


def test_checks_are_always_there() -> None:
    assert prober(a={'kind': 'checks'}).probe('a') == Probed(found='always there')


def test_a_rubric_is_as_fit_as_its_model() -> None:
    with LoopbackServer(refused(401, 'no')) as server:
        there = prober(a=model(server.url), b={'kind': 'rubric', 'model': 'a'})
        kind, message = fault(there.probe('b'))
        assert kind == 'unauthorized'
        assert message.startswith('a, which it asks: ')


@pytest.mark.parametrize(
    ('given', 'tolerated'),
    [
        ({'kind': 'vote', 'members': ['a', 'b', 'c'], 'needed': 2}, 1),
        ({'kind': 'cascade', 'members': ['a', 'b', 'c'], 'on_error': 'next'}, 2),
        ({'kind': 'cascade', 'members': ['a', 'b', 'c']}, 0),
    ],
)
def test_so_many_members_may_be_down(given: dict[str, Any], tolerated: int) -> None:
    settings: Any = TypeAdapter[Any](AnyEvaluator).validate_python(given)
    down = EvaluatorError('down', 'it is down')
    for count in range(4):
        faults = {name: down if i < count else None for i, name in enumerate('abc')}
        assert (together(settings, faults) is None) == (count <= tolerated)
