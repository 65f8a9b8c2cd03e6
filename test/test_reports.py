"""A typed report is exactly what the tool asks for, and can only take from a verdict."""

from __future__ import annotations

from collections.abc import Iterator
import math
from pathlib import Path
from queue import Queue
import sys
import threading
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from judged_world import make_request
from member_judges import Members, PATIENCE, waits_for
import pytest

from harness_eval.calls import Outcome
from harness_eval.config.tool_judging import ReportSettings
from harness_eval.contract import Abstention, EvaluatorError, Status, Verdict
from harness_eval.reports import report_schema, Reports, validate_report, with_report

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


# Calls, with a report that the judge or a plugin fills in.


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Write a plugin that fills in reports; give its name."""

    def write(body: str) -> str:
        (tmp_path / 'filling_in.py').write_text(body)
        sys.modules.pop('filling_in', None)
        return 'filling_in:fill'

    monkeypatch.syspath_prepend(str(tmp_path))
    yield write
    sys.modules.pop('filling_in', None)


def reported(answer: Any, source: str | None = None) -> Outcome:
    settings = ReportSettings.model_validate({'from': source, 'outputs': OUTPUTS})
    done: Queue[Outcome] = Queue()
    judge = Members(judge=answer).context.calls('judge')
    Reports({'pick': settings}, PATIENCE).call('pick', judge, make_request(), done.put)
    return done.get(timeout=PATIENCE)


def test_a_tool_without_a_report_keeps_what_its_judge_says() -> None:
    done: Queue[Outcome] = Queue()
    judge = Members(judge=success({'any': 'thing'})).context.calls('judge')
    Reports({}).call('pick', judge, make_request(), done.put)
    assert done.get(timeout=PATIENCE) == success({'any': 'thing'})


def test_the_report_of_the_judge_is_validated() -> None:
    assert reported(success(GOOD)) == success(GOOD)
    found = reported(success({**GOOD, 'held': False}))
    assert isinstance(found, EvaluatorError)
    assert (found.kind, found.evaluator) == ('report_rejected', 'test:judge')


def test_an_abstention_and_an_error_stay_what_they_are() -> None:
    assert isinstance(reported(None), Abstention)
    assert getattr(reported('nonsense'), 'kind', None) == 'malformed_answer'


@pytest.mark.parametrize('start', ['def', 'async def'])
def test_a_plugin_fills_in_the_report_of_a_success(plugin: Any, start: str) -> None:
    source = plugin(f'{start} fill(request):\n    return {GOOD}\n')
    assert reported(True, source) == success_of_bool(GOOD)
    assert reported(success({'of': 'the judge'}), source) == success(GOOD)


def success_of_bool(report: Any) -> Verdict:
    return Verdict(Status.SUCCESS, ('the evaluator answered True',), report=report)


def test_a_plugin_is_not_asked_about_a_failure(plugin: Any) -> None:
    source = plugin('def fill(request):\n    raise SystemExit\n')
    assert reported(failure({'of': 'the judge'}), source) == failure()


@pytest.mark.parametrize(
    ('body', 'kind', 'words'),
    [
        ('return {"held": False}', 'report_rejected', "'depth' is missing"),
        ('return [1]', 'malformed_report', 'expected a mapping of outputs, found list'),
        ('return None', 'malformed_report', 'found NoneType'),
        ('return {"held": object()}', 'malformed_answer', 'cannot be written as JSON'),
        ('raise OSError("gone")', 'evaluator_raised', 'OSError: gone'),
    ],
)
def test_a_success_is_an_error_if_the_plugin_does_not_fill_in_its_report(
    plugin: Any, body: str, kind: str, words: str
) -> None:
    found = reported(True, plugin(f'def fill(request):\n    {body}\n'))
    assert isinstance(found, EvaluatorError)
    assert (found.kind, found.evaluator) == (kind, 'plugin:filling_in:fill')
    assert words in found.message


def test_a_call_that_is_cancelled_delivers_nothing() -> None:
    release = threading.Event()
    done: Queue[Outcome] = Queue()
    calls = Members(judge=waits_for(release, success(GOOD))).context.calls('judge')
    call = Reports({'pick': SETTINGS}).call('pick', calls, make_request(), done.put)
    assert call.cancel()
    assert not call.cancel()
    release.set()
    after: Queue[Outcome] = Queue()
    calls.call(make_request(), after.put)
    after.get(timeout=PATIENCE)
    assert done.empty()
