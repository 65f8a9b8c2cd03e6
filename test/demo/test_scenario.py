"""What the demo plays covers what it promises."""

from __future__ import annotations

from itertools import pairwise

from harness_eval.demo.faults import Fault
from harness_eval.demo.scenario import SCENARIO


def test_it_has_at_least_twelve_runs_of_all_five_tools() -> None:
    assert len(SCENARIO) >= 12
    assert {step.tool for step in SCENARIO} == {
        'survey_cell',
        'pick_object',
        'place_object',
        'open_drawer',
        'insert_peg',
    }


def test_every_fault_is_played_and_every_tool_also_without_one() -> None:
    assert {step.fault for step in SCENARIO} == set(Fault)
    good = {step.tool for step in SCENARIO if step.fault is Fault.NONE}
    assert good == {step.tool for step in SCENARIO}


def test_after_something_was_undone_that_the_graph_knows_a_survey_comes_first() -> None:
    undone = False
    for before, step in pairwise(SCENARIO):
        changed = before.fault is Fault.NONE and before.tool != 'survey_cell'
        undone = (undone or changed) and before.tool != 'survey_cell'
        if step.reset and undone:
            assert step.tool == 'survey_cell', step
