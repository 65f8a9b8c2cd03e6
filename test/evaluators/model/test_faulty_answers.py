"""Each way in which a server can fail to answer, over a real socket: a typed error, no verdict."""

from __future__ import annotations

from collections.abc import Callable
import time
from typing import Any

from asked_model import ask, failure, front_request, judge, KEY, serving, success
from judged_world import make_request, make_state, make_view, noise
from model_faults import BODY, ENDLESS, FAULTS, seen
from model_server import (
    Answer,
    completion,
    dripping,
    hung,
    refused,
)
import pytest

from harness_eval.contract import Abstention, Status, Verdict
from harness_eval.evaluators.model import access, ModelError


@pytest.mark.parametrize('fault', FAULTS)
def test_a_faulty_answer_is_a_typed_error_that_names_the_evaluator(fault: str) -> None:
    answer, kind, retryable = FAULTS[fault]
    with serving(answer) as server, pytest.raises(ModelError) as caught:
        ask(judge(server.url, retries=0))
    error = caught.value
    assert (error.kind, error.retryable) == (kind, retryable)
    assert error.evaluator == 'model:vlm'
    assert len(server.requests) == 1
    assert KEY not in str(error)
    assert len(error.message) <= 500


def test_nobody_listening_is_an_error_that_may_pass() -> None:
    with serving(hung()) as server:
        url = server.url
    with serving(hung()), pytest.raises(ModelError) as caught:
        ask(judge(url, retries=0))
    assert (caught.value.kind, caught.value.retryable) == ('unreachable', True)


@pytest.mark.parametrize('answer', [hung(), dripping(BODY, every=0.05)], ids=['hung', 'dripping'])
def test_a_server_that_does_not_finish_is_given_up_at_the_deadline(answer: Answer) -> None:
    with serving(answer) as server:
        started = time.monotonic()
        with pytest.raises(ModelError) as caught:
            ask(judge(server.url, timeout=0.6))
    assert (caught.value.kind, caught.value.retryable) == ('judge_timeout', True)
    assert 0.4 < time.monotonic() - started < 8.0  # the server would wait for 10 s


def test_a_body_that_is_not_read_to_its_end_costs_no_wait() -> None:
    with serving(ENDLESS) as server, pytest.raises(ModelError, match='more than'):
        ask(judge(server.url))
    assert len(server.requests) == 1


@pytest.mark.parametrize('status', [400, 401, 404, 429, 500])
def test_a_server_that_repeats_the_key_does_not_get_it_into_an_error(status: int) -> None:
    answer = refused(status, f'bad key {KEY} was sent')
    with serving(answer) as server, pytest.raises(ModelError) as caught:
        ask(judge(server.url, retries=0))
    assert KEY not in str(caught.value)
    assert '0123456789' not in str(caught.value)


def test_a_server_that_repeats_the_key_does_not_get_it_into_a_verdict() -> None:
    answer = completion(failure(reasons=f'the key is {KEY}'), model=KEY, request_id=KEY)
    with serving(answer) as server:
        verdict = ask(judge(server.url))
    assert isinstance(verdict, Verdict)
    assert KEY not in repr(verdict)


@pytest.mark.parametrize(
    ('value', 'words'),
    [
        (None, 'not set or is empty'),
        ('', 'not set or is empty'),
        ('  \n', 'not set or is empty'),
        ('two words', 'white space'),
        ('schlüssel', 'characters that no key has'),
    ],
)
def test_a_key_that_is_none_is_an_error_that_says_so_and_nothing_is_sent(
    value: str | None, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('OPENAI_API_KEY', 'sk-of-somebody-else')
    with serving(completion(success())) as server, monkeypatch.context() as patch:
        patch.delenv('LOOPBACK_KEY')
        if value is not None:
            patch.setenv('LOOPBACK_KEY', value)
        with pytest.raises(ModelError) as caught:
            ask(judge(server.url))
    assert caught.value.kind == 'no_key'
    assert 'LOOPBACK_KEY' in caught.value.message
    assert words in caught.value.message
    assert server.requests == []


def test_without_the_sdk_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    real: Callable[..., Any] = importlib.import_module

    def gone(name: str, *rest: Any) -> Any:
        if name == 'openai':
            raise ImportError(name)
        return real(name, *rest)

    with serving(completion(success())) as server, monkeypatch.context() as patch:
        patch.setattr(access.importlib, 'import_module', gone)
        with pytest.raises(ModelError, match=r'harness_eval\[model\]') as caught:
            ask(judge(server.url))
    assert caught.value.kind == 'missing_library'


def test_what_an_unreadable_answer_used_stands_in_its_error() -> None:
    prices = {'input': 2.0, 'cached_input': 0.5, 'output': 10.0}
    with serving(completion('no json')) as server, pytest.raises(ModelError) as caught:
        ask(judge(server.url, prices=prices))
    assert caught.value.message.endswith(
        '(812 tokens in (512 cached), 93 out; cost 0.001786; request req-7; '
        'answered by judge-1-2026)'
    )
    assert caught.value.tally.cost == pytest.approx((300 * 2.0 + 512 * 0.5 + 93 * 10.0) / 1e6)
    assert caught.value.tally.answers[0].request_id == 'req-7'


def test_what_was_used_survives_a_very_long_message() -> None:
    with serving(completion('x' * 5000)) as server, pytest.raises(ModelError) as caught:
        ask(judge(server.url))
    assert 'request req-7' in caught.value.message


def test_a_model_that_cannot_tell_abstains_and_says_what_it_used() -> None:
    answer = completion(success(status='cannot_tell', score=0.5, reasons='The arm is in the way.'))
    with serving(answer) as server, pytest.raises(Abstention) as caught:
        ask(judge(server.url))
    assert caught.value.kind == 'no_answer'
    assert 'The arm is in the way.' in caught.value.message
    assert 'request req-7' in caught.value.message


@pytest.mark.parametrize(
    ('answer', 'score'), [(success(score=0.7), 0.7), (failure(score=0.5), 0.5)]
)
def test_a_score_between_the_thresholds_is_unsure_whatever_the_status(
    answer: dict[str, Any], score: float
) -> None:
    with serving(completion(answer)) as server, pytest.raises(Abstention) as caught:
        ask(judge(server.url))
    assert (caught.value.kind, caught.value.score) == ('unsure', score)


def test_process_is_an_answer_for_a_segment_tool() -> None:
    request = make_request(make_view('front', noise(1)), process_allowed=True)
    answer = completion(success(status='process', score=0.6))
    with serving(answer) as server:
        verdict = ask(judge(server.url), request)
    assert isinstance(verdict, Verdict)
    assert verdict.status is Status.PROCESS
    assert verdict.failure_reason == ''


def test_a_failure_may_be_called_by_a_kind_of_the_tool() -> None:
    request = front_request(failure_kinds=('dropped',))
    with serving(completion(failure(failure_kind='dropped'))) as server:
        verdict = ask(judge(server.url), request)
    assert isinstance(verdict, Verdict)
    assert (verdict.status, verdict.failure_kind) == (Status.FAILURE, 'dropped')
    assert verdict.failure_reason == 'The part is not in its place.'


@pytest.mark.parametrize(
    ('answer', 'kind'),
    [
        (failure(failure_kind='stolen'), 'unknown_failure_kind'),
        (success(failure_kind='dropped'), 'malformed_answer'),
        (failure(), 'malformed_answer'),
    ],
    ids=['unknown', 'beside success', 'missing'],
)
def test_a_failure_kind_out_of_place_is_an_error(answer: dict[str, Any], kind: str) -> None:
    with serving(completion(answer)) as server, pytest.raises(ModelError) as caught:
        ask(judge(server.url), front_request(failure_kinds=('dropped',)))
    assert caught.value.kind == kind


def test_a_score_out_of_range_is_cut_if_the_settings_say_so() -> None:
    with serving(completion(success(score=1.2))) as server:
        verdict = ask(judge(server.url, clamp=True))
    assert isinstance(verdict, Verdict)
    assert verdict.score == 1.0
    assert any('1.2 was outside [0, 1] and was cut to 1' in line for line in verdict.evidence)


def test_a_reading_may_be_what_was_seen() -> None:
    request = make_request(make_view('front', noise(1)), make_state('gripper', 0.02))
    with serving(completion(seen(source='gripper'))) as server:
        verdict = ask(judge(server.url), request)
    assert isinstance(verdict, Verdict)
    assert verdict.evidence[0] == 'gripper: A part.'
