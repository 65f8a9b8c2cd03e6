"""Calling an evaluator on the present thread, and asking a call under way to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
import inspect
import threading

from harness_eval.contract import Answer, EvaluationRequest, Evaluator, Verdict
from harness_eval.judging import interpret, Thresholds


class Stop:
    """Asks one call to stop; what that takes is known only to whatever runs it.

    Thread-safe: the watchdog requests, the call's thread says what to do about it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requested = False
        self._action: Callable[[], None] | None = None

    def request(self) -> None:
        """Stop the call if it can be stopped; later registrations act at once."""
        with self._lock:
            self._requested = True
            if self._action is not None:
                self._action()

    @contextmanager
    def handled_by(self, action: Callable[[], None]) -> Iterator[None]:
        """Within the context a request calls ``action``, which must not block."""
        with self._lock:
            self._action = action
            if self._requested:
                action()
        try:
            yield
        finally:
            with self._lock:
                self._action = None


def judge_here(
    evaluator: Evaluator,
    request: EvaluationRequest,
    thresholds: Thresholds,
    *,
    clamp: bool,
    stop: Stop,
) -> Verdict:
    """Call the evaluator on this thread, await what it returns, and say what it means.

    An asynchronous evaluator gets an event loop of its own; a request to stop cancels it.

    Raises:
        EvaluationError: As :func:`harness_eval.judging.interpret`.
        BaseException: Whatever the evaluator raises.
    """
    answer = evaluator.evaluate(request)
    if inspect.isawaitable(answer):
        answer = asyncio.run(_finished(answer, stop))
    return interpret(
        answer,
        request,
        thresholds,
        evaluator=evaluator.ref,
        clamp=clamp,
        share=getattr(evaluator, 'score_is_share', False),
    )


async def _finished(awaitable: Awaitable[Answer], stop: Stop) -> Answer:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(awaitable)

    def cancel() -> None:
        loop.call_soon_threadsafe(task.cancel)

    with stop.handled_by(cancel):
        return await task
