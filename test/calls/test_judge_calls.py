"""How a judge is called: once, with a deadline, and answered whatever it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
import gc
import logging
from queue import Empty, Queue
import threading
from typing import Any
import weakref

from judged_world import make_request
import pytest

from harness_eval.calls import JudgeCalls, Outcome, QUARANTINE_AFTER
from harness_eval.config.evaluators import ChecksSettings, PluginSettings
from harness_eval.contract import (
    Abstention,
    Answer,
    CaptureError,
    DecodeError,
    EvaluationError,
    EvaluationRequest,
    EvaluatorError,
    Status,
    Verdict,
)
from harness_eval.judging import Thresholds

PATIENCE = 20.0
"""Seconds that a test waits for what must happen; the machine may be busy."""

SHORT = 0.05
"""Seconds of a deadline that the test wants to pass."""


class Judge:
    """An evaluator made of a function."""

    ref = 'test:judge'

    def __init__(self, function: Callable[[EvaluationRequest], Any]) -> None:
        self.evaluate = function


class Stuck:
    """A judge that hangs until it is let go."""

    ref = 'test:stuck'

    def __init__(self) -> None:
        self.release = threading.Event()
        self.entered = 0

    def evaluate(self, request: EvaluationRequest) -> Answer:
        self.entered += 1
        self.release.wait(PATIENCE)
        return True


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    judge = Stuck()
    yield judge
    judge.release.set()


def calls_of(judge: Any, *, timeout: float = PATIENCE, **settings: Any) -> JudgeCalls:
    found = PluginSettings(kind='plugin', ref='a:b', timeout=timeout, **settings)
    return JudgeCalls(judge, found, Thresholds())


def answer(calls: JudgeCalls, request: EvaluationRequest | None = None) -> Outcome:
    done: Queue[Outcome] = Queue()
    calls.call(request or make_request(), done.put)
    outcome = done.get(timeout=PATIENCE)
    assert done.empty()
    return outcome


def fault(function: Callable[[EvaluationRequest], Any]) -> EvaluatorError:
    error = answer(calls_of(Judge(function)))
    assert isinstance(error, EvaluatorError)
    assert error.evaluator == 'test:judge'
    return error


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait on a condition that no event announces."""
    limit = threading.Event()
    timer = threading.Timer(PATIENCE, limit.set)
    timer.start()
    try:
        while not holds():
            assert not limit.wait(0.005), 'the condition did not come true'
    finally:
        timer.cancel()


def test_an_answer_becomes_a_verdict_on_another_thread() -> None:
    threads: Queue[tuple[Outcome, threading.Thread]] = Queue()
    calls = calls_of(Judge(lambda request: 0.95))
    calls.call(make_request(), lambda outcome: threads.put((outcome, threading.current_thread())))
    outcome, thread = threads.get(timeout=PATIENCE)
    assert isinstance(outcome, Verdict)
    assert (outcome.status, outcome.score) == (Status.SUCCESS, 0.95)
    assert thread is not threading.current_thread()
    assert thread.daemon


def test_the_judge_is_given_the_request_itself() -> None:
    request = make_request()
    seen: list[EvaluationRequest] = []
    answer(calls_of(Judge(lambda asked: seen.append(asked))), request)
    assert seen == [request]


def test_none_is_an_abstention() -> None:
    outcome = answer(calls_of(Judge(lambda request: None)))
    assert isinstance(outcome, Abstention)
    assert outcome.kind == 'no_answer'


def _raise(error: BaseException) -> Callable[[EvaluationRequest], Any]:
    def judge(request: EvaluationRequest) -> Any:
        raise error

    return judge


@pytest.mark.parametrize(
    ('raised', 'text'),
    [(ValueError('no such part'), 'ValueError: no such part'), (SystemExit(3), 'SystemExit: 3'),
     (KeyboardInterrupt(), 'KeyboardInterrupt'), (MemoryError(), 'MemoryError'),
     (asyncio.CancelledError(), 'CancelledError'), (GeneratorExit(), 'GeneratorExit'),
     (StopIteration(1), 'StopIteration: 1')],
)  # fmt: skip
def test_whatever_a_judge_raises_is_an_error(raised: BaseException, text: str) -> None:
    error = fault(_raise(raised))
    assert (error.kind, error.message) == ('evaluator_raised', text)


def test_a_judge_without_end_of_recursion_is_an_error() -> None:
    def judge(request: EvaluationRequest) -> Any:
        return judge(request)

    assert fault(judge).message.startswith('RecursionError')


def test_an_exception_that_cannot_be_written_is_an_error() -> None:
    class UnspeakableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert (
        fault(_raise(UnspeakableError())).message == 'UnspeakableError: (its text cannot be read)'
    )


def test_a_long_exception_text_is_one_line_of_at_most_500_characters() -> None:
    message = fault(_raise(ValueError('a\nb' * 100_000))).message
    assert message.startswith('ValueError: a ba b')
    assert len(message) <= 500


def test_an_error_holds_no_path_of_the_machine_and_no_secret() -> None:
    text = (
        "cannot read '/usr/share/models/peg.onnx', asked https://me:hunter2@host/v1?key=abc "
        'for topic /cell/front/image_raw'
    )
    assert fault(_raise(OSError(text))).message == (
        "OSError: cannot read 'peg.onnx', asked https://host/v1?… for topic /cell/front/image_raw"
    )


def test_an_evaluation_error_passes_and_names_the_evaluator() -> None:
    error = fault(_raise(EvaluatorError('gpu_gone', 'no GPU', retryable=True)))
    assert (error.kind, error.message, error.retryable) == ('gpu_gone', 'no GPU', True)


@pytest.mark.parametrize('family', [Abstention, DecodeError])
def test_an_abstention_and_a_decode_error_stay_what_they_are(
    family: type[EvaluationError],
) -> None:
    outcome = answer(calls_of(Judge(_raise(family('too_dark', 'nothing seen')))))
    assert type(outcome) is family
    assert isinstance(outcome, EvaluationError)
    assert outcome.evaluator == 'test:judge'


def test_a_judge_cannot_raise_an_error_of_the_capture() -> None:
    assert fault(_raise(CaptureError('clock_skew', 'off by 3 s'))).kind == 'clock_skew'


def test_an_exception_object_shared_between_calls_is_never_handed_out_itself() -> None:
    shared = EvaluatorError('gpu_gone', 'no GPU')
    assert fault(_raise(shared)) is not shared
    assert shared.evaluator == ''


@pytest.mark.parametrize(
    ('returned', 'kind'),
    [(float('nan'), 'score_out_of_range'), (3.7, 'score_out_of_range'),
     ('success', 'malformed_answer'), (Verdict(Status.PROCESS), 'process_not_allowed')],
)  # fmt: skip
def test_a_malformed_answer_is_an_error(returned: Any, kind: str) -> None:
    assert fault(lambda request: returned).kind == kind


def test_clamp_is_the_evaluators_own_setting() -> None:
    outcome = answer(calls_of(Judge(lambda request: 3.7), clamp=True))
    assert isinstance(outcome, Verdict)
    assert outcome.score == 1.0


def test_an_asynchronous_judge_is_awaited() -> None:
    async def judge(request: EvaluationRequest) -> float:
        await asyncio.sleep(0)
        return 0.2

    outcome = answer(calls_of(Judge(judge)))
    assert isinstance(outcome, Verdict)
    assert outcome.status is Status.FAILURE


def test_an_asynchronous_judge_is_cancelled_at_its_deadline() -> None:
    ended: Queue[str] = Queue()

    async def judge(request: EvaluationRequest) -> bool:
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            ended.put('cancelled')
            raise
        return True

    calls = calls_of(Judge(judge), timeout=SHORT)
    outcome = answer(calls)
    assert isinstance(outcome, EvaluatorError)
    assert outcome.kind == 'judge_timeout'
    assert ended.get(timeout=PATIENCE) == 'cancelled'
    wait_until(lambda: calls.health().abandoned == 0)


def test_an_asynchronous_judge_that_returns_another_coroutine_is_an_error() -> None:
    async def inner() -> bool:
        return True

    made: list[Any] = []

    async def judge(request: EvaluationRequest) -> Any:
        made.append(inner())
        return made[0]

    assert fault(judge).kind == 'malformed_answer'
    made[0].close()


def test_a_judge_that_hangs_times_out_and_may_be_asked_again(stuck: Stuck) -> None:
    outcome = answer(calls_of(stuck, timeout=SHORT))
    assert isinstance(outcome, EvaluatorError)
    assert (outcome.kind, outcome.evaluator, outcome.retryable) == (
        'judge_timeout', 'test:stuck', True,
    )  # fmt: skip
    assert outcome.message == 'no answer within 0.05 s; the call was given up'


def test_a_late_answer_is_logged_and_dropped(
    stuck: Stuck, caplog: pytest.LogCaptureFixture
) -> None:
    stuck.ref = 'test:late'  # threads of other tests may come back late, too
    calls = calls_of(stuck, timeout=SHORT)
    done: Queue[Outcome] = Queue()
    with caplog.at_level(logging.WARNING, 'harness_eval.calls'):
        calls.call(make_request(), done.put)
        assert isinstance(done.get(timeout=PATIENCE), EvaluatorError)
        stuck.release.set()
        wait_until(lambda: 'test:late: a late answer' in caplog.text)
    assert done.empty()
    assert (calls.health().late, calls.health().abandoned) == (1, 0)


def test_five_hanging_calls_quarantine_the_evaluator_until_one_comes_back(stuck: Stuck) -> None:
    calls = calls_of(stuck, timeout=SHORT)
    kinds = []
    for number in range(QUARANTINE_AFTER + 1):
        assert calls.quarantined is (number == QUARANTINE_AFTER)
        outcome = answer(calls)
        assert isinstance(outcome, EvaluatorError)
        kinds.append(outcome.kind)
    assert kinds == ['judge_timeout'] * 4 + ['quarantined']
    assert stuck.entered == QUARANTINE_AFTER
    health = calls.health()
    assert (health.abandoned, health.running, health.quarantined) == (4, 4, True)
    assert (health.calls, health.errors, health.timed_out) == (5, 5, 4)

    stuck.release.set()
    wait_until(lambda: calls.health().abandoned == 0)
    assert not calls.quarantined
    assert isinstance(answer(calls), Verdict)


def test_five_calls_that_hang_at_once_all_time_out(stuck: Stuck) -> None:
    calls = calls_of(stuck, timeout=SHORT)
    done: Queue[Outcome] = Queue()
    for _ in range(5):
        calls.call(make_request(), done.put)
    outcomes = [done.get(timeout=PATIENCE) for _ in range(5)]
    assert {getattr(outcome, 'kind', outcome) for outcome in outcomes} <= {
        'judge_timeout', 'quarantined',
    }  # fmt: skip
    assert calls.quarantined


def test_a_hanging_judge_does_not_hold_up_another_call() -> None:
    release = threading.Event()
    first = threading.Event()

    def judge(request: EvaluationRequest) -> bool:
        if not first.is_set():
            first.set()
            release.wait(PATIENCE)
        return True

    calls = calls_of(Judge(judge))
    held: Queue[Outcome] = Queue()
    calls.call(make_request(), held.put)
    assert first.wait(PATIENCE)
    assert isinstance(answer(calls), Verdict)
    assert held.empty()
    release.set()
    assert isinstance(held.get(timeout=PATIENCE), Verdict)


def test_a_cancelled_call_is_never_answered(stuck: Stuck) -> None:
    calls = calls_of(stuck)
    done: Queue[Outcome] = Queue()
    handle = calls.call(make_request(), done.put)
    assert handle.cancel() is True
    assert handle.cancel() is False
    stuck.release.set()
    wait_until(lambda: calls.health().running == 0)
    with pytest.raises(Empty):
        done.get_nowait()
    assert calls.health().cancelled == 1


def test_a_cancelled_call_that_hangs_counts_towards_quarantine(stuck: Stuck) -> None:
    calls = calls_of(stuck, timeout=SHORT)
    for _ in range(QUARANTINE_AFTER):
        calls.call(make_request(), lambda outcome: None).cancel()
    wait_until(lambda: calls.quarantined)
    assert calls.health().timed_out == 0


def test_a_settled_call_cannot_be_cancelled() -> None:
    done: Queue[Outcome] = Queue()
    handle = calls_of(Judge(lambda request: True)).call(make_request(), done.put)
    assert isinstance(done.get(timeout=PATIENCE), Verdict)
    assert handle.cancel() is False


def test_a_receiver_that_fails_breaks_nothing(
    stuck: Stuck, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(outcome: Outcome) -> None:
        raise RuntimeError('receiver broke')

    calls = calls_of(stuck, timeout=SHORT)
    calls.call(make_request(), fail)
    wait_until(lambda: 'receiver broke' in caplog.text)
    outcome = answer(calls)
    assert isinstance(outcome, EvaluatorError)
    assert outcome.kind == 'judge_timeout'


def test_a_system_without_threads_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    calls = calls_of(Judge(lambda request: True))
    done: Queue[Outcome] = Queue()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, 'start', refuse)
        calls.call(make_request(), done.put)
    outcome = done.get(timeout=PATIENCE)
    assert isinstance(outcome, EvaluatorError)
    assert (outcome.kind, outcome.retryable) == ('no_thread', True)
    assert isinstance(answer(calls), Verdict)


def test_a_system_with_a_thread_too_few_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name != 'judge-watchdog':
            raise RuntimeError("can't start new thread")
        start(thread)

    calls = calls_of(Judge(lambda request: True))
    done: Queue[Outcome] = Queue()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, 'start', refuse)
        calls.call(make_request(), done.put)
        outcome = done.get(timeout=PATIENCE)
    assert isinstance(outcome, EvaluatorError)
    assert outcome.kind == 'no_thread'
    assert calls.health().running == 0


def test_every_one_of_many_calls_is_answered_once() -> None:
    calls = calls_of(Judge(lambda request: True))
    done: Queue[int] = Queue()

    def tell(number: int) -> Callable[[Outcome], None]:
        return lambda outcome: done.put(number)

    for number in range(200):
        calls.call(make_request(), tell(number))
    assert sorted(done.get(timeout=PATIENCE) for _ in range(200)) == list(range(200))
    wait_until(lambda: calls.health().running == 0)
    assert done.empty()
    assert calls.health().verdicts == 200


def test_a_call_that_is_over_keeps_nothing_of_its_request() -> None:
    def judge(asked: EvaluationRequest) -> Any:
        raise EvaluatorError('gpu_gone', 'no GPU')

    calls = calls_of(Judge(judge))
    request = make_request()
    kept = weakref.ref(request)
    outcome = answer(calls, request)
    assert isinstance(outcome, EvaluatorError)
    del request
    wait_until(lambda: calls.health().running == 0)
    wait_until(lambda: gc.collect() >= 0 and kept() is None)


def test_the_clock_is_handed_in(stuck: Stuck) -> None:
    now = [0.0]
    calls = JudgeCalls(
        stuck, ChecksSettings(kind='checks', timeout=0.1), Thresholds(), clock=lambda: now[0]
    )
    done: Queue[Outcome] = Queue()
    calls.call(make_request(), done.put)
    with pytest.raises(Empty):
        done.get(timeout=0.3)
    now[0] = 0.2
    outcome = done.get(timeout=PATIENCE)
    assert isinstance(outcome, EvaluatorError)
    assert outcome.kind == 'judge_timeout'
