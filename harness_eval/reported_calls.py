"""Calls of judges whose successes need a typed report, which the judge or a plugin fills in.

Threading model. :meth:`ReportedCalls.call` may be called from any thread and does not block. What
a plugin fills in runs on a thread of its own with a deadline, as every evaluator does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
import inspect
import threading
from typing import Any, Protocol

from harness_eval.calls import JudgeCalls
from harness_eval.config.evaluators import PluginSettings
from harness_eval.config.tool_judging import ReportSettings
from harness_eval.contract import (
    EvaluationError,
    EvaluationRequest,
    EvaluatorError,
    Status,
    Verdict,
)
from harness_eval.evaluators.plugin import PluginEvaluator
from harness_eval.judging import Thresholds
from harness_eval.reports import with_report


class ReportPlugin:
    """Fills in a report by a plugin, which is given the request and returns a mapping.

    Args:
        ref: ``module:callable``.

    Attributes:
        ref: ``plugin:module:callable``.
    """

    def __init__(self, ref: str) -> None:
        self._plugin = PluginEvaluator(ref, {})
        self.ref = self._plugin.ref

    def evaluate(self, request: EvaluationRequest) -> Verdict | Awaitable[Verdict]:
        """Fill it in. The verdict says nothing: it only carries the report.

        Raises:
            EvaluatorError: ``malformed_report``, or the plugin cannot be imported or called.
        """
        filled: Any = self._plugin.evaluate(request)
        return self._awaited(filled) if inspect.isawaitable(filled) else self._carried(filled)

    async def _awaited(self, filled: Awaitable[Any]) -> Verdict:
        return self._carried(await filled)

    def _carried(self, filled: object) -> Verdict:
        if not isinstance(filled, Mapping):
            raise EvaluatorError(
                'malformed_report',
                f'expected a mapping of outputs, found {type(filled).__name__}',
                evaluator=self.ref,
            )
        return Verdict(Status.SUCCESS, report=filled)


class Cancellable(Protocol):
    """A call under way."""

    def cancel(self) -> bool:
        """Give up waiting: nothing is delivered after this returned ``True``."""
        ...


OnDone = Callable[[Verdict | EvaluationError], None]


class Judge(Protocol):
    """What judges, as far as a run sees it: an evaluator behind its calls, as a rule."""

    @property
    def evaluator(self) -> str:
        """Reference of the evaluator."""
        ...

    def call(self, request: EvaluationRequest, on_done: OnDone) -> Cancellable:
        """Have a request judged; see :meth:`harness_eval.calls.JudgeCalls.call`."""
        ...


class ReportedCalls:
    """Calls judges, and lets their successes stand only with the report that the tool asks for.

    Args:
        settings: What each tool's report holds, by tool; tools without one are not in it.
        timeout: Seconds that a plugin may take to fill one in.
    """

    def __init__(self, settings: Mapping[str, ReportSettings], timeout: float = 60.0) -> None:
        self._settings = dict(settings)
        self._fillers = {
            tool: _filler(one.source, timeout)
            for tool, one in self._settings.items()
            if one.source is not None
        }

    def call(
        self, tool: str, judge: Judge, request: EvaluationRequest, on_done: OnDone
    ) -> Cancellable:
        """Start judging and return at once.

        Args:
            tool: Whose work is judged.
            judge: What judges it.
            request: What is judged.
            on_done: As for :meth:`harness_eval.calls.JudgeCalls.call`; gets ``report_rejected``
                too, and what keeps a plugin from filling in the report of a success.
        """
        settings = self._settings.get(tool)
        if settings is None:
            return judge.call(request, on_done)
        reported = _Reported(settings, judge.evaluator, self._fillers.get(tool), on_done)
        reported.start(judge, request)
        return reported


def _filler(ref: str, timeout: float) -> JudgeCalls:
    settings = PluginSettings(kind='plugin', ref=ref, timeout=timeout)
    return JudgeCalls(ReportPlugin(ref), settings, Thresholds())


class _Reported:
    """A call whose verdict needs a report: the judge's, then if need be the plugin's."""

    def __init__(
        self,
        settings: ReportSettings,
        judge: str,
        filler: JudgeCalls | None,
        on_done: OnDone,
    ) -> None:
        self._settings = settings
        self._judge = judge
        self._filler = filler
        self._on_done = on_done
        self._lock = threading.Lock()
        self._settled = False
        self._under_way: Cancellable | None = None

    def start(self, judge: Judge, request: EvaluationRequest) -> None:
        call = judge.call(request, lambda answer: self._judged(answer, request))
        self._follow(call, only_first=True)

    def cancel(self) -> bool:
        """Give up waiting: nothing is delivered after this returned ``True``."""
        with self._lock:
            first, self._settled = not self._settled, True
            under_way = self._under_way
        if first and under_way is not None:
            under_way.cancel()
        return first

    def _judged(self, answer: Verdict | EvaluationError, request: EvaluationRequest) -> None:
        if self._filler is None:
            self._deliver(answer, self._judge)
        elif not isinstance(answer, Verdict) or answer.status is not Status.SUCCESS:
            # Nobody is asked to fill in what could change nothing.
            self._deliver(_without_report(answer), self._judge)
        elif not self._settled:
            verdict, filler = answer, self._filler
            self._follow(filler.call(request, lambda filled: self._filled(verdict, filled)))

    def _filled(self, verdict: Verdict, filled: Verdict | EvaluationError) -> None:
        by = self._filler.evaluator if self._filler is not None else self._judge
        if isinstance(filled, Verdict):
            self._deliver(replace(verdict, report=filled.report), by)
        else:
            self._deliver(filled, by)

    def _follow(self, call: Cancellable, only_first: bool = False) -> None:
        """Remember what a cancellation has to cancel, unless it came meanwhile."""
        with self._lock:
            settled = self._settled
            # The judge may have answered, and a plugin been called, before its call is noted.
            if self._under_way is None or not only_first:
                self._under_way = call
        if settled:
            call.cancel()

    def _deliver(self, answer: Verdict | EvaluationError, by: str) -> None:
        if isinstance(answer, Verdict):
            try:
                answer = with_report(self._settings, answer, by)
            except EvaluatorError as error:
                answer = error
        with self._lock:
            if self._settled:
                return
            self._settled = True
        self._on_done(answer)


def _without_report(answer: Verdict | EvaluationError) -> Verdict | EvaluationError:
    return replace(answer, report=None) if isinstance(answer, Verdict) else answer
