"""Calls of one judge on real threads: in turn, after pauses, from the cache, and cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
import logging
from queue import Empty, Queue
import threading
from typing import Any

from judged_world import make_request
from member_judges import FunctionJudge, PATIENCE
import pytest

from harness_eval.calls import CallHandle, JudgeCalls, Outcome
from harness_eval.calls.back_off import BackOff
from harness_eval.calls.constant_scores import WATCHED
from harness_eval.config.evaluators import PluginSettings
from harness_eval.contract import (
    Abstention,
    EvaluationRequest,
    EvaluatorError,
    Status,
    Verdict,
)
from harness_eval.judging import Thresholds

REQUEST = make_request()
ASKED_BEFORE = replace(REQUEST, digest='d' * 64)


class Gate:
    """A judge whose calls wait, one by one, until the test lets them through."""

    def __init__(self) -> None:
        self.entered: Queue[int] = Queue()
        self.tickets: Queue[Any] = Queue()
        self.inside = 0
        self.most = 0
        self._lock = threading.Lock()

    def __call__(self, request: EvaluationRequest) -> Any:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.entered.put(self.inside)
        try:
            return self.tickets.get(timeout=PATIENCE)
        finally:
            with self._lock:
                self.inside -= 1


def calls_of(function: Callable[[EvaluationRequest], Any], **given: Any) -> JudgeCalls:
    own = {name: given.pop(name) for name in ('kept', 'back_off') if name in given}
    settings = PluginSettings(kind='plugin', ref='a:b', **{'timeout': PATIENCE, **given})
    return JudgeCalls(FunctionJudge('judge', function), settings, Thresholds(), **own)


def ask(
    calls: JudgeCalls, done: Queue[Outcome], request: EvaluationRequest = REQUEST
) -> CallHandle:
    return calls.call(request, done.put)


def answer(calls: JudgeCalls, request: EvaluationRequest = REQUEST) -> Outcome:
    done: Queue[Outcome] = Queue()
    ask(calls, done, request)
    return done.get(timeout=PATIENCE)


def test_so_many_calls_are_under_way_and_the_others_follow() -> None:
    gate, done = Gate(), Queue[Outcome]()
    calls = calls_of(gate, max_concurrency=3)
    for _ in range(12):
        ask(calls, done)
    for _ in range(3):
        gate.entered.get(timeout=PATIENCE)
    with pytest.raises(Empty):
        gate.entered.get(timeout=0.05)
    assert calls.health().waiting == 9
    for _ in range(12):
        gate.tickets.put(True)
    assert all(isinstance(done.get(timeout=PATIENCE), Verdict) for _ in range(12))
    assert gate.most == 3


def test_a_call_that_is_cancelled_while_it_waits_is_never_made() -> None:
    gate, done = Gate(), Queue[Outcome]()
    calls = calls_of(gate, max_concurrency=1)
    ask(calls, done)
    gate.entered.get(timeout=PATIENCE)
    waiting = ask(calls, done)
    assert waiting.cancel() is True
    gate.tickets.put(True)
    assert isinstance(done.get(timeout=PATIENCE), Verdict)
    gate.tickets.put(False)
    last = answer(calls)
    assert isinstance(last, Verdict)
    assert last.status is Status.FAILURE
    assert done.empty()


def test_an_asynchronous_call_that_is_cancelled_gives_its_turn_to_the_next() -> None:
    begun: Queue[str] = Queue()

    async def judge(request: EvaluationRequest) -> bool:
        begun.put(request.post_condition.text)
        if request is REQUEST:
            await asyncio.sleep(PATIENCE)
        return True

    calls, done = calls_of(judge, max_concurrency=1), Queue[Outcome]()
    first = ask(calls, done)
    begun.get(timeout=PATIENCE)
    ask(calls, done, make_request())
    first.cancel()
    assert isinstance(done.get(timeout=PATIENCE), Verdict)


def test_a_hanging_call_leaves_its_slot_at_its_deadline() -> None:
    release = threading.Event()

    def judge(request: EvaluationRequest) -> bool:
        if request is REQUEST:
            release.wait(PATIENCE)
        return True

    calls, done = calls_of(judge, max_concurrency=1, timeout=0.1), Queue[Outcome]()
    ask(calls, done)
    ask(calls, done, make_request())
    first, second = done.get(timeout=PATIENCE), done.get(timeout=PATIENCE)
    release.set()
    assert isinstance(first, EvaluatorError)
    assert first.kind == 'judge_timeout'
    assert isinstance(second, Verdict)


def test_a_judge_that_is_called_too_often_is_called_again_after_the_pause() -> None:
    answers: list[Any] = [EvaluatorError('rate_limited', 'slow down', retry_after=0.0), True]

    def judge(request: EvaluationRequest) -> Any:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    calls = calls_of(judge)
    assert isinstance(answer(calls), Verdict)
    health = calls.health()
    assert (health.calls, health.verdicts, health.errors, health.rate_limited) == (1, 1, 0, 1)


def test_a_pause_that_outlasts_the_deadline_is_an_error_that_says_how_long_it_is() -> None:
    def judge(request: EvaluationRequest) -> Any:
        raise EvaluatorError('rate_limited', 'slow down', retry_after=30.0, retryable=True)

    outcome = answer(calls_of(judge))
    assert isinstance(outcome, EvaluatorError)
    assert (outcome.kind, outcome.retry_after, outcome.retryable) == ('rate_limited', 30.0, True)


@pytest.mark.parametrize('nonsense', ['soon', True, -1.0, float('nan'), float('inf')])
def test_a_time_that_makes_no_sense_is_none(nonsense: Any) -> None:
    def judge(request: EvaluationRequest) -> Any:
        raise EvaluatorError('gpu_gone', 'no GPU', retry_after=nonsense)

    outcome = answer(calls_of(judge))
    assert isinstance(outcome, EvaluatorError)
    assert outcome.retry_after is None


def test_calls_that_wait_when_the_node_stops_are_refused_and_not_made() -> None:
    gate, done = Gate(), Queue[Outcome]()
    calls = calls_of(gate, max_concurrency=1)
    ask(calls, done)
    gate.entered.get(timeout=PATIENCE)
    ask(calls, done)
    calls.close()
    outcome = done.get(timeout=PATIENCE)
    gate.tickets.put(True)
    assert isinstance(outcome, EvaluatorError)
    assert outcome.kind == 'judge_closed'
    assert isinstance(done.get(timeout=PATIENCE), Verdict)
    assert gate.entered.empty()


def test_a_constant_score_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    calls = calls_of(lambda request: 0.95)
    with caplog.at_level(logging.WARNING, 'harness_eval.calls'):
        for _ in range(WATCHED + 3):
            answer(calls)
    assert caplog.text.count('it separates nothing') == 1
    assert calls.constant_score == calls.health().constant_score == 0.95


def test_scores_of_abstentions_in_the_unsure_band_count_as_scores() -> None:
    calls = calls_of(lambda request: 0.95, unsure=(0.9, 1.0))
    assert all(isinstance(answer(calls), Abstention) for _ in range(WATCHED))
    assert calls.constant_score == 0.95


class Kept:
    """Answers that are kept in memory."""

    def __init__(self) -> None:
        self.answers: dict[str, Verdict] = {}
        self.put_in: Queue[str] = Queue()
        self.hold = threading.Event()
        self.hold.set()

    def get(self, digest: str) -> Verdict | None:
        self.hold.wait(PATIENCE)
        return self.answers.get(digest)

    def put(self, digest: str, verdict: Verdict) -> None:
        self.answers[digest] = verdict
        self.put_in.put(digest)


def test_a_verdict_is_kept_and_given_again_without_asking() -> None:
    asked: list[EvaluationRequest] = []

    def judge(request: EvaluationRequest) -> float:
        asked.append(request)
        return 0.95

    kept = Kept()
    calls = calls_of(judge, kept=kept)
    first = answer(calls, ASKED_BEFORE)
    kept.put_in.get(timeout=PATIENCE)
    second = answer(calls, ASKED_BEFORE)
    assert first == second
    assert len(asked) == 1
    health = calls.health()
    assert (health.calls, health.verdicts, health.cached) == (2, 2, 1)


@pytest.mark.parametrize('returned', [None, 0.7, 'prose'])
def test_what_is_no_verdict_is_not_kept(returned: Any) -> None:
    kept = Kept()
    calls = calls_of(lambda request: returned, kept=kept)
    assert not isinstance(answer(calls, ASKED_BEFORE), Verdict)
    assert not isinstance(answer(calls, ASKED_BEFORE), Verdict)
    assert kept.answers == {}


def test_a_question_without_a_digest_is_neither_looked_up_nor_kept() -> None:
    kept = Kept()
    kept.answers[''] = Verdict(Status.FAILURE, failure_reason='of another question')
    outcome = answer(calls_of(lambda request: True, kept=kept))
    assert isinstance(outcome, Verdict)
    assert outcome.status is Status.SUCCESS
    assert set(kept.answers) == {''}


def test_a_kept_answer_that_the_question_does_not_allow_is_not_used(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = Kept()
    kept.answers[ASKED_BEFORE.digest] = Verdict(Status.PROCESS)
    outcome = answer(calls_of(lambda request: True, kept=kept), ASKED_BEFORE)
    assert isinstance(outcome, Verdict)
    assert outcome.status is Status.SUCCESS
    assert 'a kept answer is not used' in caplog.text


def test_looking_for_a_kept_answer_holds_up_neither_the_caller_nor_another_question() -> None:
    kept, done = Kept(), Queue[Outcome]()
    kept.hold.clear()
    calls = calls_of(lambda request: True, kept=kept, max_concurrency=1)
    ask(calls, done, ASKED_BEFORE)
    assert isinstance(answer(calls), Verdict)
    assert done.empty()
    kept.hold.set()
    assert isinstance(done.get(timeout=PATIENCE), Verdict)


def test_a_clock_that_stands_still_ends_no_pause() -> None:
    def judge(request: EvaluationRequest) -> Any:
        raise EvaluatorError('rate_limited', 'slow down')

    settings = PluginSettings(kind='plugin', ref='a:b', timeout=1.0)
    judged, done, now = FunctionJudge('judge', judge), Queue[Outcome](), [0.0]
    calls = JudgeCalls(
        judged, settings, Thresholds(), clock=lambda: now[0], back_off=BackOff(lambda: 0.5)
    )
    calls.call(REQUEST, done.put)
    with pytest.raises(Empty):
        done.get(timeout=0.6)
    assert judged.asked == 1
    now[0] = 0.6
    outcome = done.get(timeout=PATIENCE)
    assert isinstance(outcome, EvaluatorError)
    assert (outcome.kind, judged.asked) == ('rate_limited', 2)
