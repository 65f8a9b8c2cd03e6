"""Asking again: which faults, how often, how long, and never beyond the one deadline."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
import time

from asked_model import ask, failure, front_request, judge, serving, success
from model_server import closed, completion, cut, hung, LoopbackServer, refused
import pytest

from harness_eval.contract import Status, Verdict
from harness_eval.evaluators.model import client, ModelError

SOON = {'Retry-After-Ms': '20'}
GOOD = completion(success())


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, 'FIRST_PAUSE', 0.01)


def status_of(server: LoopbackServer, **changes: object) -> Status:
    verdict = ask(judge(server.url, **changes))
    assert isinstance(verdict, Verdict)
    return verdict.status


@pytest.mark.parametrize(
    'fault',
    [
        refused(408, 'slow'),
        refused(409, 'locked'),
        refused(429, 'busy', headers=SOON),
        refused(500, 'oops'),
        refused(503, 'busy', headers=SOON),
        closed(),
        cut(b'{' * 100, after=10),
    ],
    ids=['408', '409', '429', '500', '503', 'closed', 'cut'],
)
def test_a_fault_that_passes_is_asked_about_again(fault: object) -> None:
    with serving(fault, fault, GOOD) as server:
        assert status_of(server) is Status.SUCCESS
    assert len(server.requests) == 3
    assert len({request.body for request in server.requests}) == 3  # a delimiter each


def test_an_error_after_all_attempts_counts_them() -> None:
    with serving(refused(500, 'oops')) as server, pytest.raises(ModelError) as caught:
        ask(judge(server.url, retries=1))
    assert len(server.requests) == 2
    assert caught.value.message == 'HTTP 500: the server failed; it says: oops (attempt 2 of 2)'


@pytest.mark.parametrize(
    'fault',
    [
        refused(400, 'bad'),
        refused(401, 'who'),
        refused(404, 'what'),
        refused(429, 'pay', code='insufficient_quota'),
        completion('no json'),
        completion('```json\n{}\n```'),
        completion('', finish_reason='length'),
        completion(None, refusal='no'),
    ],
)
def test_a_fault_that_does_not_pass_is_not_asked_about_again(fault: object) -> None:
    # Nor is an answer that cannot be read: asked often enough, any judge says success once.
    with serving(fault, GOOD) as server, pytest.raises(ModelError):
        ask(judge(server.url))
    assert len(server.requests) == 1


def test_a_short_retry_after_is_waited_for() -> None:
    busy = refused(429, 'busy', headers={'Retry-After': '0.3'})
    with serving(busy, GOOD) as server:
        started = time.monotonic()
        assert status_of(server) is Status.SUCCESS
    assert time.monotonic() - started >= 0.3


def test_a_retry_after_beyond_the_deadline_is_an_error_at_once() -> None:
    busy = refused(429, 'busy', headers={'Retry-After': '3600'})
    with serving(busy, GOOD) as server:
        started = time.monotonic()
        with pytest.raises(ModelError) as caught:
            ask(judge(server.url, timeout=20.0))
    assert time.monotonic() - started < 5.0
    assert (caught.value.kind, caught.value.retryable) == ('rate_limited', True)
    assert caught.value.retry_after == 3600.0
    assert 'asked again in 3.6e+03 s' in caught.value.message
    assert len(server.requests) == 1


def test_after_a_429_all_judgements_of_the_evaluator_leave_the_server_alone() -> None:
    busy = refused(429, 'busy', headers={'Retry-After': '30'})
    with serving(busy, GOOD) as server:
        evaluator = judge(server.url)
        with pytest.raises(ModelError):
            ask(evaluator)
        with pytest.raises(ModelError, match='left alone') as caught:
            ask(evaluator)
        assert len(server.requests) == 1
        assert 20.0 < (caught.value.retry_after or 0.0) <= 30.0
        other = ask(judge(server.url))  # what another evaluator was told does not concern it
    assert isinstance(other, Verdict)


def test_the_deadline_spans_all_attempts() -> None:
    slow = refused(500, 'oops', headers={'Retry-After': '1.0'})
    with serving(slow) as server:
        started = time.monotonic()
        with pytest.raises(ModelError) as caught:
            ask(judge(server.url, timeout=4.0, retries=10))
    assert time.monotonic() - started < 9.0  # all eleven attempts would take longer
    # On a busy machine the deadline may come within an attempt, and not between two of them.
    assert caught.value.kind in ('server_error', 'judge_timeout')
    assert 'oops' in caught.value.message
    assert 1 < len(server.requests) <= 4


def test_a_retry_that_hangs_ends_at_the_same_deadline() -> None:
    with serving(refused(500, 'oops'), hung()) as server:
        started = time.monotonic()
        with pytest.raises(ModelError) as caught:
            ask(judge(server.url, timeout=3.0))
    assert caught.value.kind == 'judge_timeout'
    assert caught.value.message.endswith(
        'the attempt before: HTTP 500: the server failed; it says: oops'
    )
    assert 2.5 < time.monotonic() - started < 8.0


def test_a_judgement_that_is_cancelled_lets_go_of_its_connection() -> None:
    async def cancelled(url: str) -> None:
        task = asyncio.ensure_future(judge(url).evaluate(request))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    request = front_request()
    with serving(hung()) as server:
        started = time.monotonic()
        asyncio.run(cancelled(server.url))
    assert time.monotonic() - started < 8.0


def test_one_evaluator_judges_on_several_threads_at_once() -> None:
    with serving(completion(failure())) as server, ThreadPoolExecutor(8) as pool:
        evaluator = judge(server.url)
        verdicts = list(pool.map(lambda _: ask(evaluator), range(16)))
    assert len(server.requests) == 16
    assert all(isinstance(v, Verdict) and v.status is Status.FAILURE for v in verdicts)


SCHEMA_REFUSALS = [
    refused(400, 'response_format is not supported', param='response_format'),
    refused(400, "Invalid schema for response_format 'verdict'"),
    refused(400, 'This model does not support json_schema'),
    refused(422, 'body.response_format: extra fields not permitted'),
]


@pytest.mark.parametrize('refusal', SCHEMA_REFUSALS)
def test_a_server_that_refuses_the_schema_is_asked_in_words_and_that_is_remembered(
    refusal: object,
) -> None:
    with serving(refusal, GOOD) as server:
        evaluator = judge(server.url, retries=0)
        for _ in range(2):
            verdict = ask(evaluator)
            assert isinstance(verdict, Verdict)
    first, *rest = (request.json for request in server.requests)
    assert first['response_format']['type'] == 'json_schema'
    assert len(rest) == 2
    for sent in rest:
        assert 'response_format' not in sent
        assert '"additionalProperties":false' in sent['messages'][0]['content']


def test_a_400_about_something_else_is_no_reason_to_ask_in_words() -> None:
    with serving(refused(400, 'image is broken'), GOOD) as server, pytest.raises(ModelError):
        ask(judge(server.url))
    assert len(server.requests) == 1


def test_a_400_that_only_seemed_to_be_about_the_schema_is_not_remembered() -> None:
    with serving(refused(400, 'the body does not match the schema')) as server:
        evaluator = judge(server.url)
        with pytest.raises(ModelError) as caught:
            ask(evaluator)
        assert caught.value.kind == 'request_refused'
        server.answer_with(GOOD)
        ask(evaluator)
    assert [('response_format' in request.json) for request in server.requests] == [
        True,
        False,
        True,
    ]


def test_with_structured_schema_there_is_no_falling_back() -> None:
    with serving(SCHEMA_REFUSALS[0], GOOD) as server, pytest.raises(ModelError) as caught:
        ask(judge(server.url, structured='schema'))
    assert caught.value.kind == 'request_refused'
    assert len(server.requests) == 1


def test_with_structured_words_no_schema_is_sent_as_such() -> None:
    with serving(GOOD) as server:
        ask(judge(server.url, structured='words'))
    assert 'response_format' not in server.requests[0].json


def test_an_answer_asked_for_in_words_is_read_no_laxer() -> None:
    fenced = completion('```json\n' + str(success()).replace("'", '"') + '\n```')
    with serving(fenced) as server, pytest.raises(ModelError) as caught:
        ask(judge(server.url, structured='words'))
    assert caught.value.kind == 'malformed_answer'


def test_a_server_that_wants_max_completion_tokens_gets_them() -> None:
    wants = refused(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.")
    with serving(wants, GOOD) as server:
        evaluator = judge(server.url, max_tokens=300)
        ask(evaluator)
        ask(evaluator)
    sent = [request.json for request in server.requests]
    assert [one.get('max_tokens') for one in sent] == [300, None, None]
    assert [one.get('max_completion_tokens') for one in sent] == [None, 300, 300]
    assert all('response_format' in one for one in sent)
