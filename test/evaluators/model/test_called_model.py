"""A model behind the calls that every judge is behind: deadlines, cancelling, interpretation."""

from __future__ import annotations

from queue import Queue
import time

from asked_model import failure, front_request, judge, serving, settings, success
from model_server import Answer, completion, hung
import pytest

from harness_eval.calls import JudgeCalls, Outcome
from harness_eval.contract import EvaluatorError, Status, Verdict
from harness_eval.judging import Thresholds


def outcome(answer: Answer, timeout: float = 20.0) -> Outcome:
    arrived: Queue[Outcome] = Queue()
    with serving(answer) as server:
        given = settings(server.url, timeout=timeout)
        calls = JudgeCalls(judge(server.url, timeout=timeout), given, Thresholds())
        calls.call(front_request(), arrived.put)
        found = arrived.get(timeout=30.0)
        calls.close()
    return found


@pytest.mark.parametrize('answer', [success(), failure()])
def test_a_verdict_of_a_model_is_taken_as_it_is(answer: dict[str, object]) -> None:
    found = outcome(completion(answer))
    assert isinstance(found, Verdict)
    assert found.status is Status(answer['status'])
    assert found.route == 'judge-1-2026'
    assert found.evidence[-1].startswith('used: 812 tokens in')


def test_the_error_of_a_hung_server_is_the_model_s_own_and_leaves_nothing_hanging() -> None:
    found = outcome(hung(), timeout=2.0)
    assert isinstance(found, EvaluatorError)
    assert (found.kind, found.evaluator) == ('judge_timeout', 'model:vlm')
    assert 'all attempts together' in found.message


def test_what_was_used_reaches_the_record_of_an_error() -> None:
    found = outcome(completion('x' * 4000))
    assert isinstance(found, EvaluatorError)
    assert found.kind == 'malformed_answer'
    assert found.message.endswith(
        '(812 tokens in (512 cached), 93 out; request req-7; answered by judge-1-2026)'
    )


def test_an_interrupted_run_lets_go_of_the_server_at_once() -> None:
    with serving(hung()) as server:
        given = settings(server.url, timeout=30.0)
        calls = JudgeCalls(judge(server.url, timeout=30.0), given, Thresholds())
        handle = calls.call(front_request(), lambda _found: None)
        until = time.monotonic() + 10.0
        while not server.requests and time.monotonic() < until:
            time.sleep(0.01)
        assert handle.cancel()
        while calls.health().running and time.monotonic() < until:
            time.sleep(0.01)
        assert calls.health().running == 0
        calls.close()
