"""Every kind of evaluator is made from its settings, and nothing is imported before its time."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from member_judges import PATIENCE
from pydantic import TypeAdapter
import pytest

from harness_eval.config.evaluators import AnyEvaluator, EvaluatorSettings, KINDS
from harness_eval.contract import Evaluator, EvaluatorError
from harness_eval.evaluators import build_evaluator, BUILDERS, Judges
from harness_eval.judging import Thresholds

SETTINGS: dict[str, dict[str, Any]] = {
    'cell': {'kind': 'checks'},
    'own': {'kind': 'plugin', 'ref': 'my_robot.grading:grade'},
    'vlm': {
        'kind': 'model',
        'model': 'm',
        'base_url': 'http://127.0.0.1:9/v1',
        'api_key_env': 'VLM_API_KEY',
    },
    'grader': {'kind': 'rubric', 'model': 'vlm'},
    'web': {'kind': 'endpoint', 'url': 'http://127.0.0.1:9/judge'},
    'node': {'kind': 'service', 'service': 'cell/judge'},
    'jury': {'kind': 'vote', 'members': ['cell', 'own'], 'needed': 2},
    'cheap_first': {'kind': 'cascade', 'members': ['cell', 'jury']},
}


def settings() -> dict[str, EvaluatorSettings]:
    adapter: TypeAdapter[EvaluatorSettings] = TypeAdapter(AnyEvaluator)
    return {name: adapter.validate_python(given) for name, given in SETTINGS.items()}


def test_every_kind_has_a_builder_and_no_other() -> None:
    assert set(BUILDERS) == set(KINDS)


def test_every_kind_is_made_with_a_reference_that_names_it() -> None:
    judges = Judges(settings(), Thresholds(), lambda *_args: None)
    made = judges.all()
    assert list(made) == list(SETTINGS)
    for name in SETTINGS:
        assert isinstance(judges.evaluator(name), Evaluator)
        assert made[name].evaluator == judges.evaluator(name).ref
        assert '127.0.0.1:9/v1?' not in made[name].evaluator


def test_whoever_asks_an_evaluator_shares_its_calls() -> None:
    judges = Judges(settings(), Thresholds(), lambda *_args: None)
    jury: Any = judges.evaluator('jury')
    cascade: Any = judges.evaluator('cheap_first')
    assert jury._members['cell'] is cascade._members['cell'] is judges.all()['cell']


def test_a_member_that_is_not_there_is_an_error_that_names_it() -> None:
    given = settings()
    del given['own']
    with pytest.raises(EvaluatorError, match="found 'own'; there are cell, vlm") as caught:
        Judges(given, Thresholds()).calls('jury')
    assert caught.value.kind == 'unknown_evaluator'


def test_a_vote_by_itself_has_nobody_to_ask() -> None:
    with pytest.raises(EvaluatorError, match="no evaluator 'cell' beside"):
        build_evaluator('jury', settings()['jury'])


def test_a_kind_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(EvaluatorError, match="has the kind 'oracle'; known: checks") as caught:
        build_evaluator('x', EvaluatorSettings(kind='oracle'))
    assert caught.value.kind == 'unknown_evaluator_kind'


def test_a_node_of_checks_imports_no_model_no_network_and_no_plugin() -> None:
    code = (
        'import sys\n'
        'from harness_eval.config.evaluators import ChecksSettings\n'
        'from harness_eval.evaluators import Judges\n'
        'from harness_eval.judging import Thresholds\n'
        'Judges({"cell": ChecksSettings(kind="checks")}, Thresholds()).all()\n'
        'heavy = {"openai", "httpx", "httpx2", "http.client", "rclpy", "cv2"}\n'
        'ours = {"harness_eval.evaluators." + name for name in ("model", "endpoint", "vote")}\n'
        'print(sorted((heavy | ours) & set(sys.modules)))\n'
    )
    done = subprocess.run(
        [sys.executable, '-c', code], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert done.stdout.strip() == '[]'
