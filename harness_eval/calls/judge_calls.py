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

from collections import deque
from collections.abc import Callable
from dataclasses import asdict
import logging
import math
import threading
import time

from harness_eval.calls.back_off import asks_for_a_pause, BackOff
from harness_eval.calls.call import Call, CallHandle, OnDone, Outcome
from harness_eval.calls.constant_scores import ConstantScores, WATCHED
from harness_eval.calls.health import Counts, JudgeHealth
from harness_eval.calls.line import Line
from harness_eval.calls.refusals import Refusals
from harness_eval.config.evaluators import EvaluatorSettings
from harness_eval.contract import (
    EvaluationError,
    EvaluationRequest,
    Evaluator,
    EvaluatorError,
    Verdict,
)
from harness_eval.evaluators.faults import as_evaluation_error
from harness_eval.evaluators.running import judge_here, loop_of
from harness_eval.judge_cache import KeptAnswers
from harness_eval.judging import doubted, interpret, Thresholds, Unsure
from harness_eval.threads import LINGER, Threads

QUARANTINE_AFTER = 4
"""Abandoned calls still hanging at which an evaluator is not called any more."""

WAITED_TIMEOUTS = 5
"""How many time-outs long a call waits for its turn."""

_ASKING_OTHERS = ('vote', 'cascade')
"""Kinds whose members are left alone if need be, each by itself."""

_TRYING_AGAIN = ('model', 'rubric', *_ASKING_OTHERS)
"""Kinds that have asked again themselves, if that could help, when they come to an error."""

_log = logging.getLogger('harness_eval.calls')


class JudgeCalls:
    """Calls one evaluator; all its limits are kept here.

    Args:
        evaluator: What judges.
        settings: Its time-out, ``clamp``, ``isolation``, ``max_concurrency`` and ``unsure``.
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
        self._timeout = settings.timeout
        self._patience = settings.timeout * WAITED_TIMEOUTS
        self._clamp = settings.clamp
        self._unsure = settings.unsure
        self._pauses = settings.kind not in _ASKING_OTHERS
        self._asks_again = settings.kind not in _TRYING_AGAIN
        self._loop = loop_of(settings.kind)
        self._thresholds = thresholds
        self._clock = clock
        self._kept = kept
        self._back_off = BackOff() if back_off is None else back_off
        self._condition = threading.Condition()
        self._watchdog: threading.Thread | None = None
        self._wakes_at = math.inf
        self._threads = Threads('judge')
        self._line = Line(settings.max_concurrency)
        self._refused: deque[tuple[Call, EvaluatorError]] = deque()
        self._refusals = Refusals(evaluator.ref, self._timeout, self._patience)
        self._counts = Counts()
        self._scores = ConstantScores()
        self._running = self._abandoned = 0
        self._closed = False
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

    @property
    def constant_score(self) -> float | None:
        """The score that all of the newest runs got; ``None`` if they differ or are too few."""
        return self._scores.constant

    def health(self) -> JudgeHealth:
        """Look at all counters at one moment."""
        with self._condition:
            return JudgeHealth(
                evaluator=self._evaluator.ref,
                running=self._running,
                waiting=self._line.waiting,
                abandoned=self._abandoned,
                quarantined=self.quarantined,
                constant_score=self._scores.constant,
                **asdict(self._counts),
            )

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
        with self._condition:
            self._counts.calls += 1
            call = Call(self._counts.calls, on_done, request, now + self._patience)
            watched = self._watchdog_runs()
            if watched:
                self._take_up(call, request, now)
        if not watched:
            self._settle_with(call, self._refusals.no_thread())
        return CallHandle(call, self._cancel)

    def close(self) -> None:
        """End idle child processes and refuse the calls that wait for their turn.

        Calls under way keep their deadlines.
        """
        with self._condition:
            self._closed = True
            for call in self._line.take_waiting():
                self._refuse(call, self._refusals.closed())
        if self._isolated is not None:
            self._isolated.close()

    # The line; the lock is held.

    def _take_up(self, call: Call, request: EvaluationRequest, now: float) -> None:
        if self._closed:
            self._refuse(call, self._refusals.closed())
            return
        if self._kept is not None and request.digest:
            self._look_up(call, request, self._kept)
        self._line.enter(call)
        self._begin_what_may(now)
        self._wake(call.deadline if call.began is not None else call.patience)

    def _begin_what_may(self, now: float) -> None:
        """Begin every call whose turn it is; refuse those that will not have one."""
        if self.quarantined:
            for call in self._line.take_waiting():
                self._refuse(call, self._refusals.quarantined(self._abandoned))
        until = self._back_off.until
        if now < until:
            while (vain := self._line.out_of_patience(until)) is not None:
                self._refuse(vain, vain.refusal or self._refusals.pausing(until - now))
            if self._line.waiting:
                self._wake(until)
            return
        while (begun := self._line.begin(now, self._timeout)) is not None:
            self._start(begun)

    def _start(self, call: Call) -> None:
        request = call.request
        assert request is not None, 'a settled call does not wait'
        self._running += 1
        try:
            self._threads.run(lambda: self._run(call, request))
        except (RuntimeError, MemoryError):
            self._running -= 1
            self._line.free(call)
            self._refuse(call, self._refusals.no_thread())
        else:
            self._wake(call.deadline)

    def _refuse(self, call: Call, error: EvaluatorError) -> None:
        self._refused.append((call, error))
        self._condition.notify()

    def _wake(self, at: float) -> None:
        """Have the watchdog look at a time, if it does not look before."""
        if at < self._wakes_at:
            self._wakes_at = at
            self._condition.notify()

    def _settle(self, call: Call, outcome: Outcome | None) -> bool:
        """Decide what a call came to; ``None``: nobody wants to know. False: it is too late."""
        if call.settled:
            return False
        call.settled = True
        call.request = None
        if outcome is None:
            self._counts.cancelled += 1
        else:
            self._counts.count(outcome)
        return True

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

    # The caller's thread.

    def _cancel(self, call: Call) -> bool:
        with self._condition:
            if not self._settle(call, None):
                return False
            self._line.leave(call)
        call.stop.request()
        return True

    # The thread of a call.

    def _run(self, call: Call, request: EvaluationRequest) -> None:
        outcome = self._judge(call, request)
        now = self._clock()
        lifted = constant = False
        with self._condition:
            self._running -= 1
            self._line.free(call)
            late = call.abandoned
            if late:
                lifted = self._abandoned == QUARANTINE_AFTER
                self._abandoned -= 1
                self._counts.late += 1
            again = self._note_limit(call, outcome, now)
            settled = not again and self._settle(call, outcome)
            if settled:
                constant = self._note_score(outcome)
            self._begin_what_may(now)
        if late:
            _log.warning(
                '%s: a late answer (%.1f s after the call) was dropped',
                self._evaluator.ref,
                now - (call.began or now),
            )
        if lifted:
            _log.warning('%s: a hanging call came back; out of quarantine', self._evaluator.ref)
        if settled:
            self._deliver(call, outcome)
            self._keep(request, outcome)
        if constant:
            self._warn_of_constant_scores()

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

    def _note_limit(self, call: Call, outcome: Outcome, now: float) -> bool:
        """Pause if the evaluator asks for it; return whether the call is made again after that.

        The lock is held.
        """
        if not self._pauses:
            return False
        if not isinstance(outcome, EvaluatorError) or not asks_for_a_pause(outcome):
            self._back_off.answered(call.tried)
            return False
        self._counts.rate_limited += 1
        self._back_off.refused(outcome, call.tried, now)
        until = self._back_off.until
        if call.settled or self._closed or not self._asks_again or until >= call.deadline:
            return False
        call.refusal = outcome
        call.patience = call.deadline
        self._line.enter_again(call)
        self._wake(until)
        return True

    def _note_score(self, outcome: Outcome) -> bool:
        verdict = outcome.verdict if isinstance(outcome, Unsure) else outcome
        if not isinstance(verdict, Verdict) or verdict.score is None:
            return False
        return self._scores.add(verdict.score)

    def _warn_of_constant_scores(self) -> None:
        _log.warning(
            '%s: the newest %d scores are all %g: it separates nothing; see whether it looks at '
            'the right thing, with evidence that is known to be good and bad',
            self._evaluator.ref,
            WATCHED,
            self._scores.constant or 0.0,
        )

    def _settle_with(self, call: Call, outcome: Outcome) -> None:
        with self._condition:
            first = self._settle(call, outcome)
        if first:
            self._deliver(call, outcome)

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
            call.ready = True
            found = verdict is not None and self._settle(call, verdict)
            if found:
                self._line.leave(call)
                self._counts.cached += 1
            else:
                self._begin_what_may(self._clock())
        if found and verdict is not None:
            self._deliver(call, verdict)

    def _valid(self, verdict: Verdict | None, request: EvaluationRequest) -> Verdict | None:
        """A kept answer is held to the same rules as a new one."""
        if verdict is None:
            return None
        try:
            return interpret(verdict, request, self._thresholds, evaluator=self._evaluator.ref)
        except EvaluationError as error:
            _log.warning('%s: a kept answer is not used: %s', self._evaluator.ref, error)
            return None

    def _keep(self, request: EvaluationRequest, outcome: Outcome) -> None:
        if self._kept is not None and request.digest and isinstance(outcome, Verdict):
            self._kept.put(request.digest, outcome)

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

    def _next_due(self) -> tuple[Call, EvaluatorError | None] | None:
        """Wait for a refusal or a deadline; ``None``: none comes. The lock is held."""
        while True:
            now = self._clock()
            if self._refused:
                call, error = self._refused.popleft()
                return call, error if self._settle(call, error) else None
            overdue = self._line.overdue(now)
            if overdue is not None:
                return self._abandon(overdue, now)
            vain = self._line.out_of_patience(now)
            if vain is not None:
                return self._turn_away(vain)
            self._begin_what_may(now)
            if self._refused:
                continue
            if not self._wait(now):
                return None

    def _wait(self, now: float) -> bool:
        """Wait until something happens or is due; False: nothing came, and the watchdog ends."""
        at = self._line.next_time()
        if at is None:
            self._wakes_at = math.inf
            waited = self._condition.wait(LINGER)
            if waited or self._line or self._refused:
                return True
            self._watchdog = None
            return False
        if self._line.waiting and self._back_off.until > now:
            at = min(at, self._back_off.until)
        self._wakes_at = at
        self._condition.wait(max(0.0, at - now))
        return True

    def _abandon(self, call: Call, now: float) -> tuple[Call, EvaluatorError | None]:
        call.abandoned = True
        self._abandoned += 1
        if self._abandoned == QUARANTINE_AFTER:
            _log.error(
                '%s: %d calls hang past their deadline; quarantined',
                self._evaluator.ref,
                self._abandoned,
            )
        error = self._refusals.timeout()
        first = self._settle(call, error)
        if first:
            self._counts.timed_out += 1
        self._begin_what_may(now)
        return call, error if first else None

    def _turn_away(self, call: Call) -> tuple[Call, EvaluatorError | None]:
        error = call.refusal or self._refusals.busy(self._line.under_way)
        first = self._settle(call, error)
        if first and call.refusal is None:
            self._counts.busy += 1
        return call, error if first else None
