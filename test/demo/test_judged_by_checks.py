"""The checks of ``config/demo.yaml`` agree with the truth from pictures and joints alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted_cell import BOTTLE, perform, request, Script, SCRIPTS

from harness_eval.config import Config, load_config
from harness_eval.config.checks import UsableCondition
from harness_eval.contract import Abstention, Status, Verdict
from harness_eval.demo.cameras import Cameras
from harness_eval.demo.cell import Cell
from harness_eval.demo.truth import truth
from harness_eval.evaluators import build_evaluator
from harness_eval.usable import check_usable

CONFIG = Path(__file__).parents[2] / 'config' / 'demo.yaml'
KINDS = {
    'pick_object-0-missed_grasp': 'not_grasped',
    'pick_object-0-slip_while_lifting': 'not_grasped',
    'pick_object-0-wrong_object': 'wrong_object',
    'place_object-0-placed_off_target': 'off_target',
    'place_object-0-knocked_over': 'knocked_over',
    'open_drawer-0-drawer_half_open': 'half_open',
    'insert_peg-0-peg_on_the_rim': 'jammed',
    'insert_peg-1-peg_blocked': 'jammed',
}


@pytest.fixture(scope='module')
def config() -> Config:
    return load_config(CONFIG)


@pytest.fixture(scope='module')
def cell() -> Cell:
    return Cell(0)


@pytest.fixture(scope='module')
def cameras(cell: Cell) -> Iterator[Cameras]:
    made = Cameras(cell, 0)
    yield made
    made.close()


def conditions(config: Config) -> dict[str, UsableCondition]:
    found = {name: view.usable for name, view in config.capture.views.items()}
    assert all(found.values()), 'each view of the demo has a usable condition'
    return {name: usable for name, usable in found.items() if usable is not None}


@pytest.mark.parametrize('script', SCRIPTS, ids=str)
@pytest.mark.parametrize('seed', [21, 22])
def test_the_verdict_is_the_truth_and_names_the_kind_of_failure(
    cell: Cell, cameras: Cameras, config: Config, script: Script, seed: int
) -> None:
    perform(cell, script, seed)
    tool = script.steps[-1][0]
    asked = request(cell, cameras, config, tool)
    check_usable(asked.observation, conditions(config))
    judge = build_evaluator('cell_checks', config.evaluation.evaluators['cell_checks'])
    verdict = judge.evaluate(asked)
    assert isinstance(verdict, Verdict)
    assert verdict.status is truth(cell, tool, BOTTLE), verdict.evidence
    assert verdict.failure_kind == KINDS.get(str(script), '')


def test_a_run_that_went_well_before_a_covered_camera_is_not_judged(
    cell: Cell, cameras: Cameras, config: Config
) -> None:
    perform(cell, SCRIPTS[1], 23)
    cell.cover()
    assert truth(cell, 'pick_object', BOTTLE) is Status.SUCCESS
    observation = request(cell, cameras, config, 'pick_object').observation
    with pytest.raises(Abstention, match="view 'front'"):
        check_usable(observation, conditions(config))
    cell.uncover()


def test_what_was_true_before_the_tool_does_not_pass_for_its_success(
    cell: Cell, cameras: Cameras, config: Config
) -> None:
    cell.reset(24)
    judge = build_evaluator('cell_checks', config.evaluation.evaluators['cell_checks'])
    for tool in ('pick_object', 'place_object', 'open_drawer', 'insert_peg'):
        verdict = judge.evaluate(request(cell, cameras, config, tool))
        assert isinstance(verdict, Verdict)
        assert verdict.status is Status.FAILURE, tool
