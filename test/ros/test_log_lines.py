"""What the log of a healthy node says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from child_node import ChildNode
from evaluation_world import Ears
from fake_cell import cell_yaml, FakeCell

from harness_eval.config import load_config
from harness_eval.contract import Status, Verdict
from harness_eval.ros.log_lines import active_line, outcome_line
from harness_eval.runs import Outcome, OutcomeKind

FILE = """
evaluation:
  required_tools: [pick, insert, plug]
  evaluator: cell
  evaluators: {cell: {kind: checks}, own: {kind: plugin, ref: "a:b"}}
  tools:
    pick: {checks: [{state: {name: grip, between: [0, 1]}}]}
    insert: {checks: [{state: {name: grip, between: [0, 1]}}]}
    plug: {evaluator: own, post_condition: "It holds."}
capture: {states: {grip: {topic: joint_states, field: "position[0]"}}}
completions: [{topic: tool_completions}, {action: go, tool: plug}]
"""


def test_an_active_node_says_what_it_judges_by_what_and_where_the_record_is(
    tmp_path: Path,
) -> None:
    file = tmp_path / 'cell.yaml'
    file.write_text(FILE)
    line = active_line(load_config(file), 'sqlite:////home/me/l.sqlite3', '/arm/{}'.format)
    assert line == (
        'judging pick, insert by cell and plug by own; record l.sqlite3; '
        'listening on /arm/tool_completions, the goals of go'
    )


def test_a_line_says_what_a_run_came_to_and_why() -> None:
    common: dict[str, Any] = {'run_id': 'r', 'tool': 'pick', 'attempt': 1, 'decided_at': 1}
    failed = Outcome(
        segment=2,
        kind=OutcomeKind.VERDICT,
        verdict=Verdict(Status.FAILURE, failure_reason='it fell\n', score=0.25),
        **common,
    )
    assert outcome_line(failed) == 'pick FAILURE (run r segment 2): score 0.25; it fell'
    error = Outcome(
        segment=0, kind=OutcomeKind.ERROR, error_kind='stale', message='too old', **common
    )
    assert outcome_line(error) == 'pick ERROR (run r): stale: too old'


def test_the_log_of_a_node_has_both_once(
    ros: Any, tmp_path: Path, subprocess_node: Callable[..., ChildNode]
) -> None:
    ears = Ears(ros)
    ros.spin(ros.adopt(FakeCell(context=ros.context)))
    file = tmp_path / 'evaluation.yaml'
    file.write_text(cell_yaml())
    child = subprocess_node(
        'harness_eval.ros.evaluator_node',
        parameters={'config': file, 'ledger_url': f'sqlite:///{tmp_path}/l.sqlite3'},
    )
    active = child.wait_for_log('listening on /tool_completions')
    assert 'record l.sqlite3;' in active
    assert str(tmp_path) not in active
    ears.wait_for_node()
    ears.end('run-1', target='bottle')
    assert child.wait_for_log('(run run-1)').count('pick SUCCESS (run run-1)') == 1
