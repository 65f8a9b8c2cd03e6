"""A tool's typed report: its JSON Schema, and the one validator of it. Pure.

A report stands beside a verdict and can only take from it: a success whose report is missing,
malformed or not accepted is an error that names the output, and no report makes a success of
anything else. The rules are the same whoever filled it in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
import math
from typing import Any

from harness_eval.config.tool_judging import OutputSettings, ReportSettings
from harness_eval.contract import EvaluatorError, Status, Verdict
from harness_eval.lines import clean_line

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
