"""A typed report is exactly what the tool asks for, and can only take from a verdict."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import pytest

from harness_eval.config.tool_judging import ReportSettings
from harness_eval.contract import EvaluatorError, Status, Verdict
from harness_eval.reports import report_schema, validate_report, with_report

OUTPUTS = [
    {'key': 'held', 'title': 'Whether it is held.', 'type': 'boolean', 'equals': True},
    {'key': 'depth', 'title': 'Depth in m.', 'type': 'number', 'between': [0.0, 0.012]},
    {'key': 'count', 'title': 'Pegs in holes.', 'type': 'integer', 'between': [1, 4]},
    {'key': 'colour', 'title': 'Its colour.', 'type': 'string', 'one_of': ['red', 'blue']},
    {'key': 'remark', 'title': 'What else is seen.', 'type': 'string'},
]
SETTINGS = ReportSettings.model_validate({'outputs': OUTPUTS})
GOOD = {'held': True, 'depth': 0.012, 'count': 1, 'colour': 'red', 'remark': ''}


def success(report: Any = None, **fields: Any) -> Verdict:
    return Verdict(Status.SUCCESS, ('seen',), report=report, **fields)


def failure(report: Any = None) -> Verdict:
    return Verdict(Status.FAILURE, ('not seen',), failure_reason='not there', report=report)


def rejection(verdict: Verdict) -> str:
    with pytest.raises(EvaluatorError) as caught:
        with_report(SETTINGS, verdict, 'model:vlm')
    assert (caught.value.kind, caught.value.evaluator) == ('report_rejected', 'model:vlm')
    return caught.value.message


def test_a_good_report_is_given_as_it_is_with_bounds_included() -> None:
    found = validate_report(SETTINGS, GOOD)
    assert found.values == GOOD
    assert found.unaccepted == ()
    assert with_report(SETTINGS, success(GOOD), 'x').report == GOOD


@pytest.mark.parametrize(
    ('key', 'value', 'words'),
    [
        ('held', 1, 'expected true or false, found 1'),
        ('held', 'true', "found 'true'"),
        ('held', None, 'found nothing'),
        ('depth', True, 'expected a finite number, found true'),
        ('depth', '0.01', "found '0.01'"),
        ('depth', math.nan, 'found nan'),
        ('depth', math.inf, 'found inf'),
        ('depth', [0.01], 'found a list'),
        ('count', 1.0, 'expected a whole number, written without a fraction, found 1.0'),
        ('count', True, 'found true'),
        ('count', '3', "found '3'"),
        ('colour', 3, 'expected a string, found 3'),
        ('colour', {'name': 'red'}, 'found a dict'),
    ],
)
def test_nothing_is_converted_and_the_error_names_the_output(
    key: str, value: Any, words: str
) -> None:
    message = rejection(success({**GOOD, key: value}))
    assert f'{key!r}: expected' in message
    assert words in message


@pytest.mark.parametrize(
    ('key', 'value', 'words'),
    [
        ('held', False, "'held': expected true, found false"),
        ('depth', 0.0121, "'depth': expected a value in [0, 0.012], found 0.0121"),
        ('depth', 10**400, 'found a very large number'),
        ('count', 0, "'count': expected a value in [1, 4], found 0"),
        ('colour', 'Red', "'colour': expected one of 'red', 'blue', found 'Red'"),
    ],
)
def test_a_success_with_a_value_that_is_not_accepted_is_an_error_that_names_the_output(
    key: str, value: Any, words: str
) -> None:
    assert words in rejection(success({**GOOD, key: value}))


def test_exactly_the_outputs_are_in_a_report() -> None:
    assert "'remark' is missing" in rejection(
        success({key: value for key, value in GOOD.items() if key != 'remark'})
    )
    assert "'extra' is not one of the outputs" in rejection(success({**GOOD, 'extra': 1}))
    assert 'expected a mapping' in rejection(success([1]))


def test_a_success_without_a_report_is_an_error() -> None:
    assert 'gave no report' in rejection(success())


def test_a_failure_stands_with_a_report_that_no_success_may_have() -> None:
    report = {**GOOD, 'held': False}
    assert with_report(SETTINGS, failure(report), 'x') == failure(report)


def test_a_failure_stands_without_a_report_or_with_one_that_is_malformed() -> None:
    assert with_report(SETTINGS, failure(), 'x') == failure()
    found = with_report(SETTINGS, failure({'held': 1}), 'x')
    assert (found.status, found.report) == (Status.FAILURE, None)
    assert found.evidence[-1].startswith('warning: the report was left out, it is malformed')


def test_the_schema_asks_for_each_output_and_does_not_tell_what_is_accepted() -> None:
    schema = report_schema(SETTINGS)
    assert schema['required'] == list(GOOD)
    assert schema['additionalProperties'] is False
    assert schema['properties']['depth'] == {'type': 'number', 'description': 'Depth in m.'}
    assert 'blue' not in str(schema)


def test_what_is_well_formed_is_valid_under_the_schema() -> None:
    jsonschema = pytest.importorskip('jsonschema', reason='jsonschema is not installed')
    validator = jsonschema.Draft202012Validator(report_schema(SETTINGS))
    validator.validate(GOOD)
    assert not validator.is_valid({**GOOD, 'count': 'one'})


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from(['red', 'blue']),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=3,
)  # fmt: skip
REPORTS = st.fixed_dictionaries(
    {},
    optional={**{key: st.just(value) | ANYTHING for key, value in GOOD.items()}, 'x': ANYTHING},
)
VERDICTS = st.sampled_from([success(), failure(), Verdict(Status.PROCESS)])


def accepted(report: Any) -> bool:
    """The rules once more, in another way."""
    return (
        sorted(report) == sorted(GOOD)
        and report['held'] is True
        and type(report['depth']) in (int, float)
        and 0.0 <= report['depth'] <= 0.012
        and type(report['count']) is int
        and report['count'] in range(1, 5)
        and report['colour'] in (['red', 'blue'] if isinstance(report['colour'], str) else [])
        and isinstance(report['remark'], str)
    )


@given(VERDICTS, REPORTS | ANYTHING)
def test_no_report_makes_a_success_and_only_an_accepted_one_leaves_it(
    verdict: Verdict, report: Any
) -> None:
    judged = Verdict(**{**vars(verdict), 'report': report})
    good = isinstance(report, dict) and accepted(report)
    if verdict.status is Status.SUCCESS and not good:
        rejection(judged)
    else:
        assert with_report(SETTINGS, judged, 'x').status is verdict.status
