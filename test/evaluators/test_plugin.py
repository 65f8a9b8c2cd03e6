"""A judge of the user's, named as ``module:callable``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
import pickle
from queue import Queue
import sys
import threading
from typing import Any

from judged_world import make_request
import pytest

from harness_eval.calls import JudgeCalls, Outcome
from harness_eval.config.evaluators import PluginSettings
from harness_eval.contract import (
    Abstention,
    DecodeError,
    EvaluationError,
    Evaluator,
    EvaluatorError,
)
from harness_eval.evaluators import build_evaluator
from harness_eval.evaluators.faults import as_evaluation_error
from harness_eval.judging import Thresholds

Write = Callable[[str], str]


@pytest.fixture
def write_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write the source of a plugin; gives the name of its module."""
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f'plugin_{tmp_path.name.replace("-", "_")}'
    monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)

    def write(source: str) -> str:
        (tmp_path / f'{name}.py').write_text(source, encoding='utf-8')
        return name

    return write


def plugin(ref: str, **options: Any) -> Evaluator:
    return build_evaluator('grader', PluginSettings(kind='plugin', ref=ref, options=options))


def fault(ref: str) -> EvaluatorError:
    with pytest.raises(EvaluatorError) as caught:
        plugin(ref).evaluate(make_request())
    assert caught.value.evaluator == f'plugin:{ref}'
    return caught.value


def test_a_function_is_called_with_the_request_and_the_options(write_plugin: Write) -> None:
    name = write_plugin('def grade(request, *, gain):\n    return (request, gain)\n')
    request = make_request()
    judge = plugin(f'{name}:grade', gain=2.0)
    answer: Any = judge.evaluate(request)
    assert answer == (request, 2.0)
    assert judge.ref == f'plugin:{name}:grade'


def test_the_module_is_imported_on_first_use_and_once(write_plugin: Write) -> None:
    name = write_plugin('calls = []\ndef grade(request):\n    calls.append(1)\n    return True\n')
    judge = plugin(f'{name}:grade')
    assert name not in sys.modules
    judge.evaluate(make_request())
    module = sys.modules[name]
    judge.evaluate(make_request())
    assert module.calls == [1, 1]


def test_calls_at_the_same_time_import_it_once(write_plugin: Write) -> None:
    name = write_plugin(
        'import time\n'
        'made = []\n'
        'class Grader:\n'
        '    def __init__(self):\n'
        '        time.sleep(0.05)\n'
        '        made.append(self)\n'
        '    def evaluate(self, request):\n'
        '        return True\n'
    )
    judge = plugin(f'{name}:Grader')
    threads = [threading.Thread(target=judge.evaluate, args=(make_request(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sys.modules[name].made) == 1


def test_a_class_is_made_once_with_the_options(write_plugin: Write) -> None:
    name = write_plugin(
        'class Grader:\n'
        '    made = 0\n'
        '    def __init__(self, gain):\n'
        '        Grader.made += 1\n'
        '        self.gain = gain\n'
        '    def evaluate(self, request):\n'
        '        return self.gain * Grader.made\n'
    )
    judge = plugin(f'{name}:Grader', gain=0.25)
    assert [judge.evaluate(make_request()) for _ in range(2)] == [0.25, 0.25]


def test_an_object_with_evaluate_is_asked_through_it(write_plugin: Write) -> None:
    name = write_plugin(
        'class Grader:\n'
        '    def evaluate(self, request, gain=1.0):\n'
        '        return gain\n'
        'grader = Grader()\n'
    )
    assert plugin(f'{name}:grader', gain=0.5).evaluate(make_request()) == 0.5


def test_a_dotted_callable_is_found(write_plugin: Write) -> None:
    name = write_plugin(
        'class Grader:\n    @staticmethod\n    def judge(request):\n        return 0.75\n'
    )
    assert plugin(f'{name}:Grader.judge').evaluate(make_request()) == 0.75


def test_a_coroutine_function_gives_an_awaitable(write_plugin: Write) -> None:
    name = write_plugin('async def grade(request):\n    return 0.5\n')

    async def awaited() -> Any:
        return await plugin(f'{name}:grade').evaluate(make_request())  # type: ignore[misc]

    assert asyncio.run(awaited()) == 0.5


def test_a_module_that_is_not_there_is_an_error_that_may_pass() -> None:
    error = fault('no_such_module_of_mine:grade')
    assert (error.kind, error.retryable) == ('plugin_import', True)
    assert "No module named 'no_such_module_of_mine'" in error.message


@pytest.mark.parametrize(
    ('source', 'text'),
    [('1 / 0', 'ZeroDivisionError'), ('def grade(:', 'SyntaxError'),
     ('raise SystemExit(2)', 'SystemExit: 2'), ('raise KeyboardInterrupt', 'KeyboardInterrupt')],
)  # fmt: skip
def test_a_module_that_fails_to_import_is_an_error_without_its_path(
    write_plugin: Write, tmp_path: Path, source: str, text: str
) -> None:
    error = fault(f'{write_plugin(source)}:grade')
    assert error.kind == 'plugin_import'
    assert text in error.message
    assert str(tmp_path) not in error.message


def test_a_failed_import_is_tried_again(write_plugin: Write) -> None:
    name = write_plugin('1 / 0')
    judge = plugin(f'{name}:grade')
    with pytest.raises(EvaluatorError, match='ZeroDivisionError'):
        judge.evaluate(make_request())
    write_plugin('def grade(request):\n    return True\n')
    assert judge.evaluate(make_request()) is True


def test_a_name_that_the_module_lacks_is_an_error(write_plugin: Write) -> None:
    error = fault(f'{write_plugin("x = 1")}:grade')
    assert (error.kind, error.retryable) == ('plugin_import', False)
    assert "has no 'grade'" in error.message


@pytest.mark.parametrize(
    ('source', 'what'), [('grade = 3', 'of type int'), ('class grade: pass', 'a class without')]
)
def test_what_is_not_callable_is_an_error(write_plugin: Write, source: str, what: str) -> None:
    error = fault(f'{write_plugin(source)}:grade')
    assert error.kind == 'plugin_not_callable'
    assert what in error.message


def test_a_class_that_cannot_be_made_is_an_error(write_plugin: Write) -> None:
    source = 'class G:\n    def __init__(self):\n        raise OSError("no model")\n'
    name = write_plugin(source + '    def evaluate(self, request): ...\n')
    error = fault(f'{name}:G')
    assert (error.kind, error.retryable) == ('plugin_import', True)
    assert 'OSError: no model' in error.message


@pytest.mark.parametrize('ref', ['', 'grading', 'a:b:c', '../x:y', 'a b:c', ':c', 'a:', 'a.:c'])
def test_a_ref_of_another_form_is_refused_when_it_is_built(ref: str) -> None:
    with pytest.raises(EvaluatorError, match='module:callable'):
        plugin(ref)


def test_a_plugin_travels_to_another_process_by_name(write_plugin: Write) -> None:
    name = write_plugin('def grade(request, *, gain):\n    return gain\n')
    copy = pickle.loads(pickle.dumps(plugin(f'{name}:grade', gain=0.5)))
    assert copy.evaluate(make_request()) == 0.5


@pytest.mark.parametrize(
    ('body', 'kind'),
    [('raise ValueError("no")', 'evaluator_raised'),
     ('import sys; sys.exit()', 'evaluator_raised'),
     ('return float("nan")', 'score_out_of_range'), ('return 3.7', 'score_out_of_range'),
     ('return "success"', 'malformed_answer'),
     ('return {"status": "success"}', 'malformed_answer'),
     ('import threading; threading.Event().wait()', 'judge_timeout')],
)  # fmt: skip
def test_a_plugin_that_misbehaves_is_an_error_that_names_it(
    write_plugin: Write, body: str, kind: str
) -> None:
    name = write_plugin(f'def grade(request):\n    {body}\n')
    patience = 0.2 if kind == 'judge_timeout' else 60.0
    settings = PluginSettings(kind='plugin', ref=f'{name}:grade', timeout=patience)
    calls = JudgeCalls(build_evaluator('grader', settings), settings, Thresholds())
    done: Queue[Outcome] = Queue()
    calls.call(make_request(), done.put)
    outcome = done.get(timeout=60.0)
    assert isinstance(outcome, EvaluatorError)
    assert (outcome.kind, outcome.evaluator) == (kind, f'plugin:{name}:grade')


@pytest.mark.parametrize(
    ('raised', 'family', 'kind'),
    [('EvaluatorError("no_gpu", "m")', EvaluatorError, 'plugin_no_gpu'),
     ('EvaluatorError("judge_timeout", "m")', EvaluatorError, 'plugin_judge_timeout'),
     ('EvaluatorError("No GPU", "m")', EvaluatorError, 'evaluator_raised'),
     ('EvaluatorError("x" * 41, "m")', EvaluatorError, 'evaluator_raised'),
     ('EvaluatorError(None, b"m")', EvaluatorError, 'evaluator_raised'),
     ('CaptureError("clock_skew", "m")', EvaluatorError, 'evaluator_raised'),
     ('LedgerError("ledger_damaged", "m")', EvaluatorError, 'evaluator_raised'),
     ('Abstention("too_dark", "m")', Abstention, 'too_dark'),
     ('DecodeError("broken_jpeg", "m")', DecodeError, 'broken_jpeg'),
     ('Broken()', EvaluatorError, 'evaluator_raised'),
     ('Lying("frozen", "m")', EvaluatorError, 'evaluator_raised')],
)  # fmt: skip
@pytest.mark.parametrize('define', ['def', 'async def'])
def test_no_error_that_a_plugin_raises_passes_for_one_of_ours(
    write_plugin: Write, define: str, raised: str, family: type[Exception], kind: str
) -> None:
    name = write_plugin(
        'from harness_eval.contract import *\n'
        'class Meta(type):\n'
        '    __name__ = property(lambda cls: 1 / 0)\n'
        'class Broken(Exception, metaclass=Meta):\n'
        '    def __str__(self):\n'
        '        raise SystemExit\n'
        'class Lying(EvaluatorError):\n'
        '    __class__ = property(lambda self: 1 / 0)\n'
        '    kind = property(lambda self: 1 / 0, lambda self, value: None)\n'
        f'{define} grade(request):\n    raise {raised}\n'
    )
    settings = PluginSettings(kind='plugin', ref=f'{name}:grade', timeout=60.0)
    calls = JudgeCalls(build_evaluator('grader', settings), settings, Thresholds())
    done: Queue[Outcome] = Queue()
    calls.call(make_request(), done.put)
    outcome = done.get(timeout=60.0)
    assert type(outcome) is family
    assert isinstance(outcome, EvaluationError)
    assert (outcome.kind, outcome.evaluator) == (kind, f'plugin:{name}:grade')


@pytest.mark.parametrize(
    ('score', 'kept'),
    [(0.7, 0.7), (1, 1.0), (1.1, None), (float('nan'), None), (True, None), ('0.7', None)],
)
def test_the_score_of_an_abstention_is_kept_if_it_is_one(score: object, kept: object) -> None:
    abstention = Abstention('unsure', 'who knows')
    abstention.score = score  # type: ignore[assignment]
    found = as_evaluation_error(abstention, 'plugin:grade')
    assert isinstance(found, Abstention)
    assert found.score == kept
