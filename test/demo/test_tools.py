"""Every tool of the cell, good and bad, comes to what it should by physics alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from scripted_cell import BOTTLE, perform, Script, SCRIPTS

from harness_eval.demo import layout as at
from harness_eval.demo.cell import Cell, CONTROL_PERIOD
from harness_eval.demo.faults import Fault
from harness_eval.demo.tools import run_tool
from harness_eval.demo.truth import graph_truth, peg_depth, truth


@pytest.fixture(scope='module')
def cell() -> Cell:
    return Cell(0)


@pytest.mark.parametrize('script', SCRIPTS, ids=str)
@pytest.mark.parametrize('seed', [1, 2, 3])
def test_each_script_comes_to_its_truth_whatever_the_seed(
    cell: Cell, script: Script, seed: int
) -> None:
    perform(cell, script, seed)
    assert truth(cell, script.steps[-1][0], BOTTLE) is script.truth


def test_a_picked_bottle_is_held_by_friction_between_both_fingers(cell: Cell) -> None:
    perform(cell, SCRIPTS[1], 4)
    assert cell.fingers_touching('bottle') == {'left', 'right'}
    assert cell.position('bottle')[2] > 0.1
    # Nothing but the grip holds it: let go, and it falls.
    cell.open_gripper()
    cell.advance(1.0)
    assert cell.position('bottle')[2] < 0.05
    assert truth(cell, 'pick_object', BOTTLE).value == 'failure'


def test_a_slipping_bottle_was_lifted_before_it_fell(cell: Cell) -> None:
    cell.reset(5)
    highest = 0.0
    rng = np.random.default_rng(5)
    for _ in run_tool(cell, 'pick_object', BOTTLE, 0, Fault.SLIP, rng):
        cell.advance(CONTROL_PERIOD)
        highest = max(highest, float(cell.position('bottle')[2]))
    assert highest > 0.03
    assert cell.position('bottle')[2] < 0.03


def test_the_wrong_object_is_really_lifted(cell: Cell) -> None:
    cell.reset(6)
    rng = np.random.default_rng(6)
    for _ in run_tool(cell, 'pick_object', BOTTLE, 0, Fault.WRONG_OBJECT, rng):
        cell.advance(CONTROL_PERIOD)
    assert truth(cell, 'pick_object', {'target': 'tin'}).value == 'success'
    assert truth(cell, 'pick_object', BOTTLE).value == 'failure'


def test_each_segment_pushes_the_peg_deeper(cell: Cell) -> None:
    cell.reset(7)
    depths = []
    for segment in range(3):
        rng = np.random.default_rng(segment)
        for _ in run_tool(cell, 'insert_peg', {}, segment, Fault.NONE, rng):
            cell.advance(CONTROL_PERIOD)
        depths.append(peg_depth(cell))
    assert depths == pytest.approx([0.017, 0.034, 0.050], abs=0.002)


def test_a_jammed_peg_pushes_back_and_a_free_one_does_not(cell: Cell) -> None:
    efforts = {}
    for script in SCRIPTS:
        if script.steps[-1][0] == 'insert_peg':
            perform(cell, script, 8)
            efforts[str(script)] = abs(cell.joint('gantry_z').effort)
    assert efforts['insert_peg-0-peg_on_the_rim'] > 20.0
    assert efforts['insert_peg-1-peg_blocked'] > 20.0
    assert max(efforts[f'insert_peg-{n}-none'] for n in range(3)) < 3.0


def test_the_drawer_stays_where_the_handle_was_let_go(cell: Cell) -> None:
    perform(cell, SCRIPTS[9], 9)
    half = cell.joint('drawer_joint').position
    assert 0.2 * at.DRAWER_TRAVEL < half < 0.7 * at.DRAWER_TRAVEL
    cell.advance(1.0)
    assert cell.joint('drawer_joint').position == pytest.approx(half, abs=0.001)


def test_a_reset_puts_everything_back(cell: Cell) -> None:
    for script in (SCRIPTS[7], SCRIPTS[8], SCRIPTS[15]):
        perform(cell, script, 10)
        cell.reset()
        assert truth(cell, 'survey_cell', {}).value == 'success'


@pytest.mark.parametrize(
    ('number', 'relations'),
    [
        (0, {('bottle', 'on', 'table'), ('tin', 'on', 'table'), ('peg', 'in', 'rack')}),
        (1, {('bottle', 'held_by', 'gripper'), ('tin', 'on', 'table'), ('peg', 'in', 'rack')}),
        (5, {('bottle', 'on', 'tray'), ('tin', 'on', 'table'), ('peg', 'in', 'rack')}),
        (12, {('bottle', 'on', 'table'), ('tin', 'on', 'table'), ('peg', 'in', 'hole')}),
    ],
)
def test_the_relations_that_hold_follow_from_where_things_are(
    cell: Cell, number: int, relations: set[tuple[str, str, str]]
) -> None:
    perform(cell, SCRIPTS[number], 11)
    assert graph_truth(cell) == relations


def test_the_same_seed_plays_the_same_run() -> None:
    ends = []
    for _ in range(2):
        cell = Cell(12)
        perform(cell, SCRIPTS[7], 13)
        ends.append(cell.position('bottle'))
    assert np.array_equal(ends[0], ends[1])


@pytest.mark.parametrize(
    ('tool', 'arguments'), [('fly', {}), ('pick_object', {}), ('pick_object', {'target': 'moon'})]
)
def test_an_unknown_tool_or_object_is_refused(
    cell: Cell, tool: str, arguments: Mapping[str, str]
) -> None:
    with pytest.raises(KeyError):
        list(run_tool(cell, tool, arguments, 0, Fault.NONE, np.random.default_rng(0)))
