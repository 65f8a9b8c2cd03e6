"""What is known of one stream or one judge, and when to look at it again; told the time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness_eval.contract import EvaluationError, EvaluatorError
from harness_eval.doctor.remarks import Level, Remark
from harness_eval.evaluators.probing import Probed

ERRORS_IN_A_ROW = 3
"""Errors of a judge without an answer in between after which it has to be probed."""

FIRST_RETRY = 5.0
LONGEST_RETRY = 60.0
"""Seconds until what was not good is looked at again; doubled each time."""

_UNSEEN = 'it was not looked at yet; wait a moment'


@dataclass(frozen=True)
class Reason:
    """Why a tool is not ready.

    Attributes:
        kind: Machine-readable name in ``snake_case``.
        text: For a person, in one line, with what to do.
    """

    kind: str
    text: str


class Retry:
    """When to look again; never while a look is under way.

    Args:
        now: Steady seconds; the first look is due at once.
    """

    def __init__(self, now: float) -> None:
        self._due: float | None = now
        self._pause = FIRST_RETRY

    def due(self, now: float) -> bool:
        """Whether to look now."""
        return self._due is not None and now >= self._due

    def soon(self, now: float) -> None:
        """Something has happened: look at once."""
        self._due = now
        self._pause = FIRST_RETRY

    def begun(self) -> None:
        """A look is under way."""
        self._due = None

    def ended(self, now: float, *, good: bool) -> None:
        """A look has ended. What happened meanwhile is looked at as well."""
        if good:
            self._pause = FIRST_RETRY
        elif self._due is None:
            self._due = now + self._pause
            self._pause = min(2.0 * self._pause, LONGEST_RETRY)

    def no_more(self) -> None:
        """There is no need to look."""
        self._due = None
        self._pause = FIRST_RETRY


class StreamWatch:
    """What is known of one stream.

    Args:
        subject: How reasons name it.
        now: Steady seconds.
    """

    def __init__(self, subject: str, now: float) -> None:
        self.retry = Retry(now)
        self._graph: object = None
        self._absent: tuple[Remark, ...] = ()
        self._heard: tuple[Remark, ...] | None = None
        self._subject = subject

    def graph(self, now: float, signature: object, remarks: Sequence[Remark]) -> None:
        """Take what the graph says.

        Args:
            now: Steady seconds.
            signature: Who publishes; if that changes, the stream is heard again.
            remarks: What is wrong with it by the graph alone.
        """
        came_back = bool(self._absent) and not remarks
        self._absent = tuple(remarks)
        if came_back:
            self._heard = None
        if signature != self._graph:
            self._graph = signature
            if not remarks:
                self.retry.soon(now)

    def heard(self, remarks: Sequence[Remark]) -> None:
        """Take what hearing it showed."""
        self._heard = tuple(r for r in remarks if r.level is Level.FAIL)

    def captured(self) -> None:
        """A capture has seen it just now, and it was good."""
        self._heard = ()
        self.retry.no_more()

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """What speaks against it."""
        if self._absent:
            return tuple(Reason(remark.kind, remark.line) for remark in self._absent)
        if self._heard is None:
            return (Reason('not_seen_yet', f'{self._subject}: {_UNSEEN}'),)
        return tuple(Reason(remark.kind, remark.line) for remark in self._heard)


class JudgeWatch:
    """What is known of one evaluator.

    Args:
        name: Its name in the configuration.
        now: Steady seconds.
    """

    def __init__(self, name: str, now: float) -> None:
        self.retry = Retry(now)
        self._name = name
        self._row = self._errors = self._answers = 0
        self._last = ''
        self._quarantined = False
        self._fault: EvaluationError | None = EvaluatorError('not_seen_yet', _UNSEEN)

    def counted(self, now: float, errors: int, answers: int, *, quarantined: bool) -> None:
        """Take its counters.

        Args:
            now: Steady seconds.
            errors: Calls that ended in an error, since the start.
            answers: Calls that ended in a verdict or an abstention, since the start.
            quarantined: Whether it is given no more calls.
        """
        self._quarantined = quarantined
        failed, answered = errors - self._errors, answers - self._answers
        self._errors, self._answers = errors, answers
        if answered:
            self._row = 0
            self._fault = None
            self.retry.no_more()
        elif failed:
            before, self._row = self._row, self._row + failed
            if before < ERRORS_IN_A_ROW <= self._row:
                last = f'; the last one: {self._last}' if self._last else ''
                self._fault = EvaluatorError(
                    'judge_failing', f'{self._row} errors in a row, and no probe since{last}'
                )
                self.retry.soon(now)

    def told(self, message: str) -> None:
        """Take the message of its newest error."""
        self._last = message

    def probed(self, now: float, came_to: Probed) -> None:
        """Take what a probe came to."""
        self._fault = came_to.fault
        if came_to.fault is None:
            self._row = 0
        self.retry.ended(now, good=came_to.fault is None)

    @property
    def fault(self) -> EvaluationError | None:
        """What speaks against it, or None."""
        if self._quarantined:
            return EvaluatorError(
                'quarantined',
                'calls of it hang past their deadline, so that it is given no more; restart what '
                'it waits for, or this node',
            )
        return self._fault
