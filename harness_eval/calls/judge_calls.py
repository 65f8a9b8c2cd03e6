"""How a judge is called: each call on a thread of its own, in turn, with a deadline, once.

Threading model. :meth:`JudgeCalls.call` hands the call to a daemon thread of its own, a new one
if none is idle, and returns at once; no pool exists that a hanging judge could fill. One watchdog
thread for each :class:`JudgeCalls` looks after everything that time brings; it is started with the
first call and ends a while after the last one. A call is settled exactly once, by whichever comes
first: the answer (on the call's thread), the deadline (on the watchdog) or
:meth:`CallHandle.cancel` (on the caller's thread). All counters and flags live under one lock, and
``on_done`` is called outside it.

``on_done`` runs on the call's thread or on the watchdog. It should hand its argument over and
return: while it blocks the watchdog, no other deadline of this evaluator is kept.

Turns. With ``max_concurrency`` further calls wait in the order in which they came. The deadline of
a call begins when the call begins; it waits for that for as long as :data:`WAITED_TIMEOUTS` calls
may take that all hang, and ends in ``judge_busy`` otherwise. A call that is cancelled leaves.

Pauses. An evaluator that says that it is called too often (``rate_limited``, or any error with
``retry_after``) is left alone by all its calls for a while, see
:class:`~harness_eval.calls.back_off.BackOff`. The call that was refused is made again after the
pause if its deadline allows, before all that wait; a ``model`` has tried again by itself, so its
error stands. ``vote`` and ``cascade`` do not pause: their members do.

A thread cannot be ended from outside. A call that passes its deadline is abandoned: it holds no
slot any more, and its answer, should one still come, is logged and dropped. While four abandoned
calls still hang the evaluator is quarantined, and further calls, those that wait included, are
refused at once; quarantine lifts as soon as one of them comes back. Asynchronous judges are
cancelled at the deadline and with ``isolation: process`` the child is killed, so neither is
normally left hanging.

Kept answers. With ``cache`` a verdict is kept by the digest of its question; looking for one and
keeping one happens on a call's thread, never on the caller's, and holds no slot.
"""

from __future__ import annotations

from collections.abc import Callable
import logging
import math
import threading
import time

from harness_eval.calls.back_off import BackOff
from harness_eval.calls.call import Call, CallHandle, OnDone, Outcome
from harness_eval.calls.constant_scores import WATCHED
from harness_eval.calls.health import JudgeHealth
from harness_eval.calls.turns import Answered, Due, QUARANTINE_AFTER, Turns
from harness_eval.config.evaluators import EvaluatorSettings
from harness_eval.contract import EvaluationError, EvaluationRequest, Evaluator, Verdict
from harness_eval.evaluators.faults import as_evaluation_error
from harness_eval.evaluators.running import judge_here, loop_of
from harness_eval.judging import doubted, interpret, Thresholds
from harness_eval.kept_answers import KeptAnswers
from harness_eval.threads import LINGER, Threads

_log = logging.getLogger('harness_eval.calls')


class JudgeCalls:
    """Calls one evaluator; all its limits are kept here.

    Args:
        evaluator: What judges.
        settings: Its kind, time-out, ``max_concurrency``, ``clamp``, ``isolation`` and ``unsure``.
        thresholds: Where a score becomes a verdict.
        clock: Seconds of a steady clock.
        kept: Answers to questions that were asked before; ``None``: none are kept.
        back_off: When it may be called again after it was called too often.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        settings: EvaluatorSettings,
        thresholds: Thresholds,
        *,
        clock: Callable[[], float] = time.monotonic,
        kept: KeptAnswers | None = None,
        back_off: BackOff | None = None,
    ) -> None:
        self._evaluator = evaluator
        self._clamp = settings.clamp
        self._unsure = settings.unsure
        self._loop = loop_of(settings.kind)
        self._thresholds = thresholds
        self._clock = clock
        self._kept = kept
        self._turns = Turns(evaluator.ref, settings, back_off or BackOff())
        self._condition = threading.Condition()
        self._watchdog: threading.Thread | None = None
        self._wakes_at = math.inf
        self._threads = Threads('judge')
        self._isolated = None
        if settings.isolated:
            from harness_eval.evaluators.isolation import IsolatedJudge

            self._isolated = IsolatedJudge(evaluator, thresholds, self._clamp, settings.timeout)

    @property
    def evaluator(self) -> str:
        """Reference of the evaluator."""
        return self._evaluator.ref

    @property
    def quarantined(self) -> bool:
        """Whether further calls are refused."""
        return self._turns.quarantined

    @property
    def constant_score(self) -> float | None:
        """The score that all of the newest runs got; ``None`` if they differ or are too few."""
        return self._turns.scores.constant

    def health(self) -> JudgeHealth:
        """Look at all counters at one moment."""
        with self._condition:
            return self._turns.health()

    def call(self, request: EvaluationRequest, on_done: OnDone) -> CallHandle:
        """Have a request judged, now or when it is its turn, and return at once.

        Args:
            request: What is judged; with its digest the answer may come from the cache.
            on_done: Called exactly once, from another thread, with a :class:`Verdict`, an
                :class:`Abstention` or another :class:`EvaluationError` that names the evaluator:
                ``judge_timeout``, ``judge_busy``, ``rate_limited``, ``quarantined``,
                ``evaluator_raised``, ``evaluator_crashed``, ``no_thread``, ``judge_closed`` or
                what the evaluator and :func:`interpret` raise. Not called after a successful
                :meth:`CallHandle.cancel`. (Only if the system gives no thread at all, not even
                for the watchdog, is it called from this method.)
        """
        now = self._clock()
        error = None
        with self._condition:
            call = self._turns.enter(request, on_done, now)
            if self._watchdog_runs():
                if self._kept is not None and request.digest:
                    self._look_up(call, request, self._kept)
                self._go_on(now)
            else:
                error = self._turns.no_thread(call)
        if error is not None:
            self._deliver(call, error)
        return CallHandle(call, self._cancel)

    def close(self) -> None:
        """End idle child processes and refuse the calls that wait for their turn.

        Calls under way keep their deadlines.
        """
        with self._condition:
            self._turns.close()
            self._condition.notify()
        if self._isolated is not None:
            self._isolated.close()

    def _cancel(self, call: Call) -> bool:
        with self._condition:
            if not self._turns.cancel(call):
                return False
        call.stop.request()
        return True

    # Turns; the lock is held.

    def _go_on(self, now: float) -> None:
        """Begin every call whose turn it is, and have the watchdog look when something is due."""
        self._begin(now)
        at = self._turns.next_time(now)
        if at is not None and at < self._wakes_at:
            self._condition.notify()

    def _begin(self, now: float) -> None:
        while (call := self._turns.begin(now)) is not None:
            self._start(call)

    def _start(self, call: Call) -> None:
        request = call.request
        assert request is not None, 'a call that is settled has no turn'
        try:
            self._threads.run(lambda: self._run(call, request))
        except (RuntimeError, MemoryError):
            self._turns.not_begun(call)

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

    # The thread of a call.

    def _run(self, call: Call, request: EvaluationRequest) -> None:
        outcome = self._judge(call, request)
        now = self._clock()
        with self._condition:
            answered = self._turns.answered(call, outcome, now)
            self._go_on(now)
        self._tell_of(answered, now - (now if call.began is None else call.began))
        if answered.settled:
            self._deliver(call, outcome)
            if self._kept is not None and request.digest and isinstance(outcome, Verdict):
                self._kept.put(request.digest, outcome)

    def _judge(self, call: Call, request: EvaluationRequest) -> Outcome:
        """Judge; whatever the judge raises, SystemExit and MemoryError included, is an error."""
        try:
            if self._isolated is not None:
                verdict = self._isolated.judge(request, call.stop)
            else:
                verdict = judge_here(
                    self._evaluator,
                    request,
                    self._thresholds,
                    clamp=self._clamp,
                    stop=call.stop,
                    loop=self._loop,
                )
            return doubted(verdict, self._unsure, self._evaluator.ref)
        except BaseException as error:
            return as_evaluation_error(error, self._evaluator.ref)

    def _tell_of(self, answered: Answered, took: float) -> None:
        ref = self._evaluator.ref
        if answered.late:
            _log.warning('%s: a late answer (%.1f s after the call) was dropped', ref, took)
        if answered.lifted:
            _log.warning('%s: a hanging call came back; out of quarantine', ref)
        if answered.constant:
            _log.warning(
                '%s: its newest %d scores are all the same: it separates nothing; see whether it '
                'looks at the right thing, by evidence that is known to be good and bad',
                ref,
                WATCHED,
            )

    def _deliver(self, call: Call, outcome: Outcome) -> None:
        try:
            call.on_done(outcome)
        except Exception:
            _log.exception('%s: the receiver of an outcome failed', self._evaluator.ref)

    # Kept answers.

    def _look_up(self, call: Call, request: EvaluationRequest, kept: KeptAnswers) -> None:
        """Look for a kept answer on another thread; the call may begin after that."""
        try:
            self._threads.run(lambda: self._recall(call, request, kept))
        except (RuntimeError, MemoryError):
            return  # the call itself will say so
        call.ready = False

    def _recall(self, call: Call, request: EvaluationRequest, kept: KeptAnswers) -> None:
        verdict = self._valid(kept.get(request.digest), request)
        with self._condition:
            found = self._turns.known(call, verdict)
            self._go_on(self._clock())
        if found and verdict is not None:
            self._deliver(call, verdict)

    def _valid(self, verdict: Verdict | None, request: EvaluationRequest) -> Verdict | None:
        """Hold a kept answer to the same rules as a new one."""
        if verdict is None:
            return None
        try:
            return interpret(verdict, request, self._thresholds, evaluator=self._evaluator.ref)
        except EvaluationError as error:
            _log.warning('%s: a kept answer is not used: %s', self._evaluator.ref, error)
            return None

    # The watchdog.

    def _watch(self) -> None:
        while (due := self._next_due()) is not None:
            call, error = due
            call.stop.request()
            if error is not None:
                self._deliver(call, error)
            del call, due  # the next wait may be long

    def _next_due(self) -> Due | None:
        """Wait for a refusal or a deadline; ``None``: none comes, and the watchdog ends."""
        with self._condition:
            while True:
                now = self._clock()
                hanging = self._turns.hanging
                self._begin(now)
                due = self._turns.due(now)
                if due is not None:
                    self._begin(now)
                    self._tell_of_quarantine(hanging)
                    return due
                if not self._wait(now):
                    self._watchdog = None
                    return None

    def _wait(self, now: float) -> bool:
        """Wait until something is due or may have changed; False: nothing was for a while."""
        at = self._turns.next_time(now)
        self._wakes_at = math.inf if at is None else at
        waited = self._condition.wait(LINGER if at is None else max(0.0, at - now))
        self._wakes_at = -math.inf  # it is awake, and looks before it waits again
        return waited or at is not None or self._turns.next_time(now) is not None

    def _tell_of_quarantine(self, before: int) -> None:
        if before < QUARANTINE_AFTER <= self._turns.hanging:
            _log.error(
                '%s: %d calls hang past their deadline; quarantined',
                self._evaluator.ref,
                self._turns.hanging,
            )
