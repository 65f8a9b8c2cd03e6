"""What ``/diagnostics`` says of judges."""

from __future__ import annotations

from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticStatus

from harness_eval.ros.diagnostics import Condition, diagnostic_array

WELL: dict[str, Any] = {
    'active': True,
    'ledger_fault': '',
    'quarantined': (),
    'constant': {},
    'fault': '',
    'unreadable': '',
    'counts': {},
}


def status_of(**condition: Any) -> Any:
    return diagnostic_array('/evaluator', Condition(**{**WELL, **condition}), Time()).status[0]


def value_of(status: Any, key: str) -> str:
    return str(next(value.value for value in status.values if value.key == key))


def test_a_constant_score_is_a_warning_that_names_the_judge_and_the_score() -> None:
    status = status_of(constant={'grader': 0.5})
    assert status.level == DiagnosticStatus.WARN
    assert 'grader (0.5)' in status.message
    assert 'separates nothing' in status.message
    assert value_of(status, 'evaluators with a constant score') == 'grader (0.5)'


def test_worse_things_are_said_first() -> None:
    status = status_of(constant={'grader': 0.5}, quarantined=('hanging',))
    assert status.level == DiagnosticStatus.ERROR
    assert 'hanging' in status.message
    assert value_of(status, 'evaluators with a constant score') == 'grader (0.5)'


def test_scores_that_differ_are_no_word_worth() -> None:
    status = status_of()
    assert status.level == DiagnosticStatus.OK
    assert value_of(status, 'evaluators with a constant score') == 'none'
