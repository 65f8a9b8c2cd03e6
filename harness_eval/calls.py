"""How a judge is called: each call on a thread of its own, with a deadline, answered once.

Threading model. :meth:`JudgeCalls.call` hands the call to a daemon thread of its own, a new one
if none is idle, and returns at once; no pool exists that a hanging judge could fill. One watchdog
thread for each :class:`JudgeCalls` looks after the deadlines; it is started with the first call
and ends a while after the last one. A call is settled exactly once, by whichever comes first: the
answer (on the call's thread), the deadline (on the watchdog) or :meth:`CallHandle.cancel` (on the
caller's thread). All counters and flags live under one lock, and ``on_done`` is called outside it.

``on_done`` runs on the call's thread or on the watchdog. It should hand its argument over and
return: while it blocks the watchdog, no other deadline of this evaluator is kept.

A thread cannot be ended from outside. A call that passes its deadline is abandoned: its answer,
should one still come, is logged and dropped. While four abandoned calls still hang the evaluator
is quarantined and further calls are refused at once; quarantine lifts as soon as one of them
comes back. Asynchronous judges are cancelled at the deadline and with ``isolation: process`` the
child is killed, so neither is normally left hanging.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
import logging
import threading
import time

from harness_eval.config.evaluators import EvaluatorSettings
from harness_eval.contract import (
    Abstention,
    EvaluationError,
    EvaluationRequest,
    Evaluator,
    EvaluatorError,
    Verdict,
)
from harness_eval.evaluators.faults import as_evaluation_error
from harness_eval.evaluators.running import judge_here, Stop
from harness_eval.judging import doubted, Thresholds
from harness_eval.threads import LINGER, Threads

QUARANTINE_AFTER = 4
"""Abandoned calls still hanging at which an evaluator is not called any more."""

Outcome = Verdict | EvaluationError
OnDone = Callable[[Outcome], None]

_log = logging.getLogger('harness_eval.calls')


@dataclass(frozen=True)
class JudgeHealth:
    """What diagnostics show of one evaluator. The counters run since the start.

    Attributes:
        evaluator: Its reference.
        running: Calls whose thread is alive, abandoned ones included.
        abandoned: Calls that are past their deadline and still hang.
        quarantined: Whether further calls are refused.
        calls: Calls made, refused ones included.
        verdicts: Calls that ended in a verdict.
        abstained: Calls that ended in an abstention.
        errors: Calls that ended in an error, timed out and refused ones included.
        timed_out: Calls that ended at their deadline.
        late: Answers that came after the deadline and were dropped.
        cancelled: Calls that nobody waited for any more.
    """

    evaluator: str
    running: int
    abandoned: int
    quarantined: bool
    calls: int
    verdicts: int
    abstained: int
    errors: int
    timed_out: int
    late: int
    cancelled: int


@dataclass(eq=False)
class _Call:
    number: int
    on_done: OnDone
    started: float
    deadline: float
    stop: Stop = field(default_factory=Stop)
    settled: bool = False
    abandoned: bool = False


class CallHandle:
    """One call under way."""

    def __init__(self, calls: JudgeCalls, call: _Call) -> None:
        self._calls = calls
        self._call = call

    def cancel(self) -> bool:
        """Give up waiting: ``on_done`` is not called after this returned ``True``.

        An asynchronous judge is cancelled and a child process killed; a judge on a thread runs on
        unheard, and counts as abandoned from its deadline on if it still hangs then.

        Returns:
            ``False`` if the call was settled already; ``on_done`` was called or is about to be.
        """
        return self._calls._cancel(self._call)

    @property
    def settled(self) -> bool:
        """Whether an outcome, or a cancellation, has been decided upon."""
        return self._call.settled


class JudgeCalls:
    """Calls one evaluator; all its limits are kept here.

    Args:
        evaluator: What judges.
        settings: Its time-out, ``clamp`` and ``isolation``.
        thresholds: Where a score becomes a verdict.
        clock: Seconds of a steady clock.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        settings: EvaluatorSettings,
        thresholds: Thresholds,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._evaluator = evaluator
        self._timeout = settings.timeout
        self._clamp = settings.clamp
        self._unsure = settings.unsure
        self._thresholds = thresholds
        self._clock = clock
        self._condition = threading.Condition()
        self._watchdog: threading.Thread | None = None
        self._threads = Threads('judge')
        # Every call of an evaluator has the same time-out, so the order of calls is the order of
        # deadlines and a dict, which keeps it, serves as the queue.
        self._pending: dict[int, _Call] = {}
        self._refused: deque[tuple[_Call, EvaluatorError]] = deque()
        self._running = self._abandoned = 0
        self._started = self._verdicts = self._abstained = self._errors = 0
        self._timed_out = self._late = self._cancelled = 0
        self._isolated = None
        if settings.isolated:
            from harness_eval.evaluators.isolation import IsolatedJudge

            self._isolated = IsolatedJudge(evaluator, thresholds, self._clamp, self._timeout)

    @property
    def evaluator(self) -> str:
        """Reference of the evaluator."""
        return self._evaluator.ref

    @property
    def quarantined(self) -> bool:
        """Whether further calls are refused."""
        return self._abandoned >= QUARANTINE_AFTER

    @property
    def abandoned(self) -> int:
        """Calls that are past their deadline and still hang."""
        return self._abandoned

    def health(self) -> JudgeHealth:
        """Look at all counters at one moment."""
        with self._condition:
            return JudgeHealth(
                evaluator=self._evaluator.ref,
                running=self._running,
                abandoned=self._abandoned,
                quarantined=self.quarantined,
                calls=self._started,
                verdicts=self._verdicts,
                abstained=self._abstained,
                errors=self._errors,
                timed_out=self._timed_out,
                late=self._late,
                cancelled=self._cancelled,
            )

    def call(self, request: EvaluationRequest, on_done: OnDone) -> CallHandle:
        """Start judging and return at once.

        Args:
            request: What is judged.
            on_done: Called exactly once, from another thread, with a :class:`Verdict`, an
                :class:`Abstention` or another :class:`EvaluationError` that names the evaluator:
                ``judge_timeout``, ``quarantined``, ``evaluator_raised``, ``evaluator_crashed``,
                ``no_thread`` or what the evaluator and :func:`interpret` raise. Not called after
                a successful :meth:`CallHandle.cancel`. (Only if the system gives no thread at
                all, not even for the watchdog, is it called from this method.)
        """
        now = self._clock()
        with self._condition:
            self._started += 1
            call = _Call(self._started, on_done, now, now + self._timeout)
            watched = self._watchdog_runs()
            if watched and self.quarantined:
                self._refuse(call, self._quarantine_error())
            elif watched:
                self._start(call, request)
        if not watched:
            self._settle_with(call, self._no_thread())
        return CallHandle(self, call)

    def close(self) -> None:
        """End idle child processes. Calls under way keep their deadlines."""
        if self._isolated is not None:
            self._isolated.close()

    # The caller's side; the lock is held.

    def _start(self, call: _Call, request: EvaluationRequest) -> None:
        idle = not self._pending
        self._pending[call.number] = call
        self._running += 1
        try:
            self._threads.run(lambda: self._run(call, request))
        except (RuntimeError, MemoryError):
            self._running -= 1
            del self._pending[call.number]
            self._refuse(call, self._no_thread())
        else:
            if idle:  # otherwise the watchdog waits for an earlier deadline
                self._condition.notify()

    def _refuse(self, call: _Call, error: EvaluatorError) -> None:
        self._refused.append((call, error))
        self._condition.notify()

    def _watchdog_runs(self) -> bool:
        if self._watchdog is not None:
            return True
        watchdog = threading.Thread(target=self._watch, daemon=True, name='judge-watchdog')
        try:
            watchdog.start()
        except (RuntimeError, MemoryError):
            return False
        self._watchdog = watchdog
        return True

    def _cancel(self, call: _Call) -> bool:
        with self._condition:
            if call.settled:
                return False
            call.settled = True
            self._cancelled += 1
        call.stop.request()
        return True

    # The thread of a call.

    def _run(self, call: _Call, request: EvaluationRequest) -> None:
        outcome = self._judge(call, request)
        self._settle_with(call, outcome, answered=True)

    def _judge(self, call: _Call, request: EvaluationRequest) -> Outcome:
        """Judge; whatever the judge raises, SystemExit and MemoryError included, is an error."""
        try:
            if self._isolated is not None:
                verdict = self._isolated.judge(request, call.stop)
            else:
                verdict = judge_here(
                    self._evaluator, request, self._thresholds, clamp=self._clamp, stop=call.stop
                )
            return doubted(verdict, self._unsure, self._evaluator.ref)
        except BaseException as error:
            return as_evaluation_error(error, self._evaluator.ref)

    def _settle_with(self, call: _Call, outcome: Outcome, *, answered: bool = False) -> None:
        """Give the outcome to ``on_done`` unless the call is settled already."""
        lifted = late = False
        with self._condition:
            if answered:
                self._pending.pop(call.number, None)
                self._running -= 1
                if call.abandoned:
                    lifted = self._abandoned == QUARANTINE_AFTER
                    self._abandoned -= 1
                    late = True
                    self._late += 1
            first = not call.settled
            call.settled = True
            if first:
                self._count(outcome)
        if late:
            _log.warning(
                '%s: a late answer (%.1f s after the call) was dropped',
                self._evaluator.ref,
                self._clock() - call.started,
            )
        if lifted:
            _log.warning('%s: a hanging call came back; out of quarantine', self._evaluator.ref)
        if first:
            self._deliver(call, outcome)

    def _count(self, outcome: Outcome) -> None:
        if isinstance(outcome, Verdict):
            self._verdicts += 1
        elif isinstance(outcome, Abstention):
            self._abstained += 1
        else:
            self._errors += 1

    def _deliver(self, call: _Call, outcome: Outcome) -> None:
        try:
            call.on_done(outcome)
        except Exception:
            _log.exception('%s: the receiver of an outcome failed', self._evaluator.ref)

    # The watchdog.

    def _watch(self) -> None:
        while True:
            with self._condition:
                due = self._next_due()
            if due is None:
                return
            call, error = due
            call.stop.request()
            if error is not None:
                self._deliver(call, error)

    def _next_due(self) -> tuple[_Call, EvaluatorError | None] | None:
        """Wait for a refusal or a deadline; ``None``: none comes. The lock is held."""
        while True:
            if self._refused:
                call, refusal = self._refused.popleft()
                return call, self._settle_locked(call, refusal)
            if not self._pending:
                waited = self._condition.wait(LINGER)
                if not (waited or self._pending or self._refused):
                    self._watchdog = None
                    return None
                continue
            call = next(iter(self._pending.values()))
            remaining = call.deadline - self._clock()
            if remaining <= 0.0:
                return self._abandon(call)
            self._condition.wait(remaining)

    def _abandon(self, call: _Call) -> tuple[_Call, EvaluatorError | None]:
        del self._pending[call.number]
        call.abandoned = True
        self._abandoned += 1
        if self._abandoned == QUARANTINE_AFTER:
            _log.error(
                '%s: %d calls hang past their deadline; quarantined',
                self._evaluator.ref,
                self._abandoned,
            )
        error = self._settle_locked(call, self._timeout_error())
        if error is not None:
            self._timed_out += 1
        return call, error

    def _settle_locked(self, call: _Call, error: EvaluatorError) -> EvaluatorError | None:
        if call.settled:
            return None
        call.settled = True
        self._count(error)
        return error

    # What is said of it.

    def _timeout_error(self) -> EvaluatorError:
        return EvaluatorError(
            'judge_timeout',
            f'no answer within {self._timeout:g} s; the call was given up',
            evaluator=self._evaluator.ref,
            retryable=True,
        )

    def _quarantine_error(self) -> EvaluatorError:
        return EvaluatorError(
            'quarantined',
            f'{self._abandoned} calls still hang past their deadline of {self._timeout:g} s; '
            'it is called again when one of them comes back, or after a restart',
            evaluator=self._evaluator.ref,
            retryable=True,
        )

    def _no_thread(self) -> EvaluatorError:
        return EvaluatorError(
            'no_thread',
            'the system gave no thread to judge on; try again when load is lower',
            evaluator=self._evaluator.ref,
            retryable=True,
        )
