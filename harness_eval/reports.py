"""A tool's typed report: its JSON Schema, the one validator of it, and who fills it in.

A report stands beside a verdict and can only take from it: a success whose report is missing,
malformed or not accepted is an error that names the output, and no report makes a success of
anything else. The rules are the same whoever filled it in.

Threading model. :meth:`Reports.call` may be called from any thread and does not block. What a
plugin fills in runs on a thread of its own with a deadline, as every evaluator does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
import inspect
import math
import threading
from typing import Any, Protocol, TYPE_CHECKING

from harness_eval.config.evaluators import PluginSettings
from harness_eval.config.tool_judging import OutputSettings, ReportSettings
from harness_eval.contract import (
    EvaluationError,
    EvaluationRequest,
    EvaluatorError,
    Status,
    Verdict,
)
from harness_eval.lines import clean_line

if TYPE_CHECKING:
    from harness_eval.calls import JudgeCalls

MAX_SHOWN = 80
"""Characters of a value that an error shows."""

Value = str | int | float | bool

_EXPECTED = {
    'string': 'a string',
    'integer': 'a whole number, written without a fraction',
    'number': 'a finite number',
    'boolean': 'true or false',
}


@dataclass(frozen=True)
class Report:
    """A well-formed report.

    Attributes:
        values: The outputs by key, in the order of the settings.
        unaccepted: For each output that no success may have: which one, and why.
    """

    values: Mapping[str, Value]
    unaccepted: tuple[str, ...] = ()


def report_schema(settings: ReportSettings) -> dict[str, Any]:
    """Make the JSON Schema (draft 2020-12) of a report.

    What is accepted is not in it: whoever fills it in must be able to say what is not.
    """
    return {
        'type': 'object',
        'properties': {
            output.key: {'type': output.type, 'description': output.title}
            for output in settings.outputs
        },
        'required': [output.key for output in settings.outputs],
        'additionalProperties': False,
    }


def validate_report(settings: ReportSettings, data: object) -> Report:
    """Look at what was filled in; nothing is converted.

    A truth value is no number, a text of digits no integer, and ``3.0`` is no integer either; a
    whole number is a number.

    Args:
        settings: The outputs of the tool.
        data: What was filled in: a mapping with exactly their keys.

    Raises:
        ValueError: It is not well-formed; names every output that is not.
    """
    if not isinstance(data, Mapping):
        raise ValueError(f'expected a mapping of outputs, found {type(data).__name__}')
    problems = [
        f'{clean_line(str(key), MAX_SHOWN)!r} is not one of the outputs'
        for key in data
        if key not in {output.key for output in settings.outputs}
    ]
    values: dict[str, Value] = {}
    for output in settings.outputs:
        if output.key not in data:
            problems.append(f'{output.key!r} is missing')
        elif _is_of(output.type, data[output.key]):
            values[output.key] = data[output.key]
        else:
            problems.append(
                f'{output.key!r}: expected {_EXPECTED[output.type]}, found '
                f'{_shown(data[output.key])}'
            )
    if problems:
        raise ValueError('; '.join(problems[:MAX_SHOWN]))
    refusals = (_refusal(output, values[output.key]) for output in settings.outputs)
    return Report(values, tuple(refusal for refusal in refusals if refusal))


def with_report(settings: ReportSettings, verdict: Verdict, evaluator: str) -> Verdict:
    """Let a verdict stand only with a report that fits it.

    Args:
        settings: The outputs of the tool.
        verdict: What the judge decided, with the report that was filled in.
        evaluator: Reference of who filled it in, for errors.

    Returns:
        The verdict with the validated report. A failure, or a process, stands without one that is
        malformed, and says so.

    Raises:
        EvaluatorError: ``report_rejected``: a success whose report is missing, malformed or not
            accepted.
    """
    succeeded = verdict.status is Status.SUCCESS
    if verdict.report is None:
        if succeeded:
            raise _rejected('the judge found a success and gave no report', evaluator)
        return verdict
    try:
        report = validate_report(settings, verdict.report)
    except ValueError as error:
        if succeeded:
            raise _rejected(f'the report is malformed: {error}', evaluator) from None
        line = clean_line(f'warning: the report was left out, it is malformed: {error}')
        return replace(verdict, report=None, evidence=(*verdict.evidence, line))
    if succeeded and report.unaccepted:
        raise _rejected(
            f'the judge found a success, and the report does not fit it: '
            f'{"; ".join(report.unaccepted)}',
            evaluator,
        )
    return replace(verdict, report=dict(report.values))


def _rejected(message: str, evaluator: str) -> EvaluatorError:
    return EvaluatorError('report_rejected', message, evaluator=evaluator, retryable=True)


def _is_of(kind: str, value: object) -> bool:
    if kind == 'string':
        return isinstance(value, str)
    if kind == 'boolean':
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if kind == 'integer':
        return isinstance(value, int)
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def _refusal(output: OutputSettings, value: Any) -> str:
    """Say why no success may have this value; empty if it may."""
    if output.equals is not None and value is not output.equals:
        expected = str(output.equals).lower()
    elif output.between is not None and not output.between[0] <= value <= output.between[1]:
        expected = f'a value in [{output.between[0]:g}, {output.between[1]:g}]'
    elif output.one_of is not None and value not in output.one_of:
        expected = f'one of {", ".join(map(repr, output.one_of))}'
    else:
        return ''
    return f'{output.key!r}: expected {expected}, found {_shown(value)}'


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > 4 * MAX_SHOWN:
        return 'a very large number'
    if isinstance(value, (str, int, float)):
        return clean_line(repr(value), MAX_SHOWN)
    return 'nothing' if value is None else f'a {type(value).__name__}'


class ReportPlugin:
    """Fills in a report by a plugin, which is given the request and returns a mapping.

    Args:
        ref: ``module:callable``.

    Attributes:
        ref: ``plugin:module:callable``.
    """

    def __init__(self, ref: str) -> None:
        # Only here: a configuration without reports needs no plugin.
        from harness_eval.evaluators.plugin import PluginEvaluator

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


class Reports:
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
        self, tool: str, judge: JudgeCalls, request: EvaluationRequest, on_done: OnDone
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
    # Only here: calls know the settings of evaluators, and those need not know calls.
    from harness_eval.calls import JudgeCalls
    from harness_eval.judging import Thresholds

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

    def start(self, judge: JudgeCalls, request: EvaluationRequest) -> None:
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
