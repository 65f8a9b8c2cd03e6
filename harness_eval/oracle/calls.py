"""How an oracle is asked: never waiting, on a thread of its own.

Threading model. :meth:`OracleCalls.ask` may be called from any thread and never waits: each
question has a daemon thread of its own, on which the answer is handed on. Whoever asks keeps the
deadline; a thread that hangs on is not heard any more, and while too many do, nothing is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
import inspect
import threading
import time
from typing import Any

import numpy as np

from harness_eval.contract import EvaluatorError
from harness_eval.evaluators.faults import as_evaluation_error
from harness_eval.oracle.answers import Oracle, OracleAnswer, OracleRequest
from harness_eval.threads import Threads

MAX_HANGING = 4
"""Questions still unanswered past their deadline at which an oracle is not asked any more."""


class OracleCalls:
    """Asks one oracle.

    Args:
        oracle: What knows the truth.
        timeout: Seconds after which nobody waits for an answer.
        decides: Whether an answer is the verdict.
        clock: Seconds of a steady clock.
    """

    def __init__(
        self,
        oracle: Oracle,
        timeout: float,
        *,
        decides: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._oracle = oracle
        self._clock = clock
        self._threads = Threads('oracle')
        self._lock = threading.Lock()
        self._number = 0
        self._started: dict[int, float] = {}
        self.ref = oracle.ref
        self.timeout = timeout
        self.decides = decides

    def ask(self, request: OracleRequest, on_answer: Callable[[OracleAnswer], None]) -> None:
        """Ask, and return at once.

        Args:
            request: What is asked.
            on_answer: Gets what it came to, once, on another thread or (if nothing can be asked)
                on this one; not if the oracle hangs for good.
        """
        with self._lock:
            now = self._clock()
            hanging = sum(now - since > self.timeout for since in self._started.values())
            if hanging >= MAX_HANGING:
                refusal = f'oracle_hangs: {hanging} earlier questions are not answered yet'
            else:
                refusal = ''
                self._number += 1
                number = self._number
                self._started[number] = now
        if refusal:
            on_answer(OracleAnswer(self.ref, error=refusal))
            return

        def work() -> None:
            try:
                answer = ask_here(self._oracle, request, self.timeout)
            finally:
                with self._lock:
                    del self._started[number]
            on_answer(answer)

        try:
            self._threads.run(work)
        except (RuntimeError, MemoryError):
            with self._lock:
                del self._started[number]
            on_answer(OracleAnswer(self.ref, error='no_thread: the system gave no thread'))


def ask_here(oracle: Oracle, request: OracleRequest, timeout: float) -> OracleAnswer:
    """Ask on this thread; whatever the oracle raises is in the answer.

    Args:
        oracle: What knows the truth.
        request: What is asked.
        timeout: Seconds after which an asynchronous oracle is cancelled.
    """
    try:
        result: Any = oracle.answer(request)
        if inspect.isawaitable(result):
            result = asyncio.run(_within(result, timeout))
        return OracleAnswer(oracle.ref, _checked(result))
    except BaseException as error:  # SystemExit of foreign code too: nothing else may end by it
        fault = as_evaluation_error(error, oracle.ref)
        return OracleAnswer(oracle.ref, error=f'{fault.kind}: {fault.message}')


async def _within(awaitable: Awaitable[Any], timeout: float) -> Any:
    try:
        return await asyncio.wait_for(awaitable, timeout)
    except (asyncio.TimeoutError, TimeoutError):
        raise EvaluatorError('oracle_timeout', f'no answer within {timeout:g} s') from None


def _checked(result: Any) -> bool | None:
    if result is None:
        return None
    if isinstance(result, (bool, np.bool_)):
        return bool(result)
    raise EvaluatorError(
        'malformed_answer',
        f'an oracle answers True, False or None, not a value of type {type(result).__name__}',
    )
