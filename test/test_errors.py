"""Errors cross processes: each can be pickled, whatever its constructor takes."""

from __future__ import annotations

from collections.abc import Iterator
import copy
import importlib
import pickle
import pkgutil
from typing import Any

from pipeline_world import START
import pytest

import harness_eval
from harness_eval.config import Problem
from harness_eval.contract import EvaluationError, Status, Verdict
from harness_eval.contract.errors import HarnessEvalError
from harness_eval.runs import Outcome, OutcomeKind

_KNOW_ROS = ('ros', 'demo', '__main__')
_OUTCOME = Outcome('a', 'pick', 0, 1, OutcomeKind.ERROR, START, error_kind='frozen')
_OTHER_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    'CalibrationError': ('too_few_cases', 'more are needed', 149),
    'ConfigError': ([Problem('cell.yaml', 3, 'capture', 'is missing')],),
    'InitialGraphError': ('no graph',),
    'HarnessEvalError': ('anything',),
    'RevisionGap': (('graph', 1), ('graph', 3)),
    'Unsure': (Verdict(Status.SUCCESS, score=0.55), (0.5, 0.6), 'model:it'),
    **dict.fromkeys(
        (
            'NoOutcome',
            'RunAbstained',
            'RunError',
            'RunFailed',
            'RunInterrupted',
            'RunNotSuccessfulError',
        ),
        ('a', 'it slipped', _OUTCOME),
    ),
}


def kinds(kind: type[HarnessEvalError] = HarnessEvalError) -> Iterator[type[HarnessEvalError]]:
    """An error and all that derive from it in this package."""
    if kind.__module__.startswith('harness_eval.'):
        yield kind
    for one in kind.__subclasses__():
        yield from kinds(one)


@pytest.fixture(scope='module')
def errors() -> list[HarnessEvalError]:
    """One of each, of those that can be had without ROS."""
    for module in pkgutil.walk_packages(harness_eval.__path__, 'harness_eval.'):
        if not set(_KNOW_ROS) & set(module.name.split('.')):
            importlib.import_module(module.name)
    made = []
    for kind in dict.fromkeys(kinds()):
        if not set(_KNOW_ROS) & set(kind.__module__.split('.')):
            arguments = _OTHER_ARGUMENTS.get(kind.__name__, ('frozen', 'the view stands still'))
            made.append(kind(*arguments))
    return made


def test_every_error_comes_to_another_process_as_it_is(errors: list[HarnessEvalError]) -> None:
    assert len(errors) > 20
    for error in errors:
        for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
            assert type(again) is type(error)
            assert str(again) == str(error)
            assert again.args == error.args
            assert again.__dict__.keys() == error.__dict__.keys()


def test_what_was_noted_on_an_error_goes_with_it() -> None:
    error = EvaluationError('judge_failed', 'it raised', evaluator='plugin:a:b', retryable=True)
    error.evaluator = 'plugin:c:d'
    again = pickle.loads(pickle.dumps(error))
    assert (again.kind, again.message) == ('judge_failed', 'it raised')
    assert (again.evaluator, again.retryable) == ('plugin:c:d', True)
