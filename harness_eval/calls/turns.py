"""All that is decided about calls of one evaluator: whose turn it is, what they come to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass

from harness_eval.calls.back_off import asks_for_a_pause, BackOff
from harness_eval.calls.call import Call, OnDone, Outcome
from harness_eval.calls.constant_scores import ConstantScores
from harness_eval.calls.health import Counts, JudgeHealth
from harness_eval.calls.line import Line
from harness_eval.calls.refusals import Refusals
from harness_eval.config.evaluators import EvaluatorSettings
from harness_eval.contract import EvaluationRequest, EvaluatorError, Verdict
from harness_eval.judging import Unsure

QUARANTINE_AFTER = 4
"""Abandoned calls still hanging at which an evaluator is not called any more."""

WAITED_TIMEOUTS = 5
"""How many time-outs long a call waits for its turn."""

_ASKING_OTHERS = ('vote', 'cascade')
"""Kinds whose members are left alone if need be, each by itself."""

_TRYING_AGAIN = ('model', 'rubric', *_ASKING_OTHERS)
"""Kinds that have asked again themselves, if that could help, when they come to an error."""

Due = tuple[Call, EvaluatorError | None]
"""A call that is over without an answer, and what to tell whoever waits, if anybody does."""


@dataclass(frozen=True)
class Answered:
    """What the answer of a call led to.

    Attributes:
        settled: It is what the call came to.
        late: It came after the deadline.
        lifted: It ended the quarantine.
        constant: It made the scores constant.
    """

    settled: bool
    late: bool
    lifted: bool
    constant: bool


class Turns:
    """The calls of one evaluator, without threads or clock. The caller has the lock.

    Args:
        evaluator: Reference of the evaluator.
        settings: Its kind, time-out and ``max_concurrency``.
        back_off: When it may be called again after it was called too often.

    Attributes:
        counts: How often what happened.
        scores: Its newest scores.
        hanging: Calls that are past their deadline and not over.
    """

    def __init__(self, evaluator: str, settings: EvaluatorSettings, back_off: BackOff) -> None:
        self.counts = Counts()
        self.scores = ConstantScores()
        self.hanging = 0
        self._evaluator = evaluator
        self._timeout = settings.timeout
        self._patience = settings.timeout * WAITED_TIMEOUTS
        self._pauses = settings.kind not in _ASKING_OTHERS
        self._asks_again = settings.kind not in _TRYING_AGAIN
        self._back_off = back_off
        self._line = Line(settings.max_concurrency)
        self._refusals = Refusals(evaluator, self._timeout, self._patience)
        self._refused: deque[tuple[Call, EvaluatorError]] = deque()
        self._running = 0
        self._closed = False

    @property
    def quarantined(self) -> bool:
        """Whether further calls are refused."""
        return self.hanging >= QUARANTINE_AFTER

    def health(self) -> JudgeHealth:
        """All counters."""
        return JudgeHealth(
            evaluator=self._evaluator,
            running=self._running,
            waiting=self._line.waiting,
            abandoned=self.hanging,
            quarantined=self.quarantined,
            constant_score=self.scores.constant,
            **asdict(self.counts),
        )

    def enter(self, request: EvaluationRequest, on_done: OnDone, now: float) -> Call:
        """Have a new call wait for its turn."""
        self.counts.calls += 1
        call = Call(self.counts.calls, on_done, request, now + self._patience)
        if self._closed:
            self._refuse(call, self._refusals.closed())
        else:
            self._line.enter(call)
        return call

    def begin(self, now: float) -> Call | None:
        """Give the next call its turn; ``None``: none may begin now.

        Calls that will not have a turn are refused.
        """
        if self.quarantined:
            self._refuse_waiting(lambda: self._refusals.quarantined(self.hanging))
        until = self._back_off.until
        if now < until:
            while (vain := self._line.out_of_patience(until)) is not None:
                self._refuse(vain, vain.refusal or self._refusals.pausing(until - now))
            return None
        call = self._line.begin(now, self._timeout)
        if call is not None:
            self._running += 1
        return call

    def not_begun(self, call: Call) -> None:
        """There was no thread for a call that had its turn."""
        self._running -= 1
        self._line.free(call)
        self._refuse(call, self._refusals.no_thread())

    def no_thread(self, call: Call) -> EvaluatorError | None:
        """There is no thread for anything: what to tell whoever waits."""
        self._line.leave(call)
        error = self._refusals.no_thread()
        return error if self._settle(call, error) else None

    def cancel(self, call: Call) -> bool:
        """Nobody waits for a call any more; False: it came to something already."""
        if not self._settle(call, None):
            return False
        self._line.leave(call)
        return True

    def known(self, call: Call, verdict: Verdict | None) -> bool:
        """Take the kept answer to a call, which may begin if there is none.

        Returns:
            Whether the verdict is what the call came to.
        """
        call.ready = True
        if verdict is None or not self._settle(call, verdict):
            return False
        self._line.leave(call)
        self.counts.cached += 1
        return True

    def answered(self, call: Call, outcome: Outcome, now: float) -> Answered:
        """Take the answer of a call whose thread is done with it."""
        self._running -= 1
        self._line.free(call)
        lifted = False
        if call.abandoned:
            lifted = self.hanging == QUARANTINE_AFTER
            self.hanging -= 1
            self.counts.late += 1
        again = self._pauses and self._paused(call, outcome, now)
        settled = not again and self._settle(call, outcome)
        return Answered(settled, call.abandoned, lifted, settled and self._same_again(outcome))

    def due(self, now: float) -> Due | None:
        """The next call that is over without an answer, by its deadline or refused."""
        if self._refused:
            call, error = self._refused.popleft()
            return call, error if self._settle(call, error) else None
        overdue = self._line.overdue(now)
        if overdue is not None:
            return self._abandon(overdue)
        vain = self._line.out_of_patience(now)
        if vain is not None:
            return self._turn_away(vain)
        return None

    def next_time(self, now: float) -> float | None:
        """Steady seconds at which something is due, or a turn may begin; ``None``: nothing is."""
        if self._refused:
            return now
        at = self._line.next_time()
        if at is not None and self._line.waiting and self._back_off.until > now:
            return min(at, self._back_off.until)
        return at

    def close(self) -> None:
        """Give nobody a turn any more."""
        self._closed = True
        self._refuse_waiting(self._refusals.closed)

    def _refuse(self, call: Call, error: EvaluatorError) -> None:
        self._refused.append((call, error))

    def _refuse_waiting(self, error: Callable[[], EvaluatorError]) -> None:
        for call in self._line.take_waiting():
            self._refuse(call, error())

    def _settle(self, call: Call, outcome: Outcome | None) -> bool:
        """Decide what a call came to; ``None``: nobody wants to know. False: it is too late."""
        if call.settled:
            return False
        call.settled = True
        call.request = None
        if outcome is None:
            self.counts.cancelled += 1
        else:
            self.counts.count(outcome)
        return True

    def _paused(self, call: Call, outcome: Outcome, now: float) -> bool:
        """Pause if the evaluator asks for it; return whether the call is made again after that."""
        if not isinstance(outcome, EvaluatorError) or not asks_for_a_pause(outcome):
            self._back_off.answered(call.tried)
            return False
        self.counts.rate_limited += 1
        self._back_off.refused(outcome, call.tried, now)
        in_vain = self._back_off.until >= call.deadline
        if in_vain or call.settled or self._closed or not self._asks_again:
            return False
        call.refusal = outcome
        call.patience = call.deadline
        self._line.enter_again(call)
        return True

    def _same_again(self, outcome: Outcome) -> bool:
        verdict = outcome.verdict if isinstance(outcome, Unsure) else outcome
        if not isinstance(verdict, Verdict) or verdict.score is None:
            return False
        return self.scores.add(verdict.score)

    def _abandon(self, call: Call) -> Due:
        call.abandoned = True
        self.hanging += 1
        error = self._refusals.timeout()
        if not self._settle(call, error):
            return call, None
        self.counts.timed_out += 1
        return call, error

    def _turn_away(self, call: Call) -> Due:
        error = call.refusal or self._refusals.busy(self._line.under_way)
        if not self._settle(call, error):
            return call, None
        if call.refusal is None:
            self.counts.busy += 1
        return call, error
