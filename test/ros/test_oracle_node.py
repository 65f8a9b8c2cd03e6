"""An oracle in a running node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaluation_world import EvaluationWorld
from fake_cell import cell_yaml
import fake_judge
import fake_oracle
import pytest

from harness_eval.cases import oracle_of_case


@pytest.mark.parametrize('decides', [True, False])
def test_a_run_has_the_answer_of_its_oracle_in_its_case_and_where_it_decides_in_its_verdict(
    ros: Any, tmp_path: Path, decides: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_judge, 'behave', lambda request: True)
    monkeypatch.setattr(fake_oracle, 'truth', False)
    monkeypatch.setattr(fake_oracle, 'asked', [])
    oracle = f'{{kind: plugin, ref: "fake_oracle:answer", decides: {str(decides).lower()}}}'
    yaml = cell_yaml().replace(
        'plug: {evaluator: plugin}', f'plug: {{evaluator: plugin, oracle: {oracle}}}'
    )
    assert 'oracle' in yaml
    world = EvaluationWorld(ros, tmp_path, yaml)
    world.end('one', 'plug', target='bottle')
    verdict = world.outcome('one').verdict
    assert verdict.status == (verdict.FAILURE if decides else verdict.SUCCESS)
    assert ('the judge says success' in verdict.evidence) == decides
    assert [(r.run_id, r.tool, r.arguments) for r in fake_oracle.asked] == [
        ('one', 'plug', {'target': 'bottle'})
    ]
    (case,) = world.evidence.iterdir()
    recorded = ros.wait(lambda: oracle_of_case(world.evidence, case.name))
    assert recorded.outcome_correct is False
