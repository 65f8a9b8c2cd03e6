"""A success that needs a typed report is one only with it, whoever fills it in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from queue import Queue
import sys
import threading
from typing import Any

from judged_world import make_request
from member_judges import Members, PATIENCE, waits_for
import pytest

from harness_eval.calls import Outcome
from harness_eval.config.tool_judging import ReportSettings
from harness_eval.contract import Abstention, EvaluatorError, Status, Verdict
from harness_eval.reported_calls import ReportedCalls

OUTPUTS = [
    {'key': 'held', 'title': 'Whether it is held.', 'type': 'boolean', 'equals': True},
    {'key': 'depth', 'title': 'Depth in m.', 'type': 'number', 'between': [0.0, 0.012]},
]
SETTINGS = ReportSettings.model_validate({'outputs': OUTPUTS})
GOOD = {'held': True, 'depth': 0.012}


def success(report: Any = None) -> Verdict:
    return Verdict(Status.SUCCESS, ('seen',), report=report)


def failure(report: Any = None) -> Verdict:
    return Verdict(Status.FAILURE, ('not seen',), failure_reason='not there', report=report)


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
    ReportedCalls({'pick': settings}, PATIENCE).call('pick', judge, make_request(), done.put)
    return done.get(timeout=PATIENCE)


def test_a_tool_without_a_report_keeps_what_its_judge_says() -> None:
    done: Queue[Outcome] = Queue()
    judge = Members(judge=success({'any': 'thing'})).context.calls('judge')
    ReportedCalls({}).call('pick', judge, make_request(), done.put)
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
    call = ReportedCalls({'pick': SETTINGS}).call('pick', calls, make_request(), done.put)
    assert call.cancel()
    assert not call.cancel()
    release.set()
    after: Queue[Outcome] = Queue()
    calls.call(make_request(), after.put)
    after.get(timeout=PATIENCE)
    assert done.empty()
