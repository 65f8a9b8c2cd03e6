"""What really happened, from the state of the simulator.

This is the oracle of the demo. It never goes to the evaluator and on no topic: the player asks
it after the verdict, only to say whether the two agree.
"""

from __future__ import annotations

from collections.abc import Mapping
import math
from typing import Final

import numpy as np

from harness_eval.contract import Status
from harness_eval.demo import layout as at
from harness_eval.demo.cell import Cell, OBJECTS

LIFTED: Final = 0.050  # m of clear air under a held object
UPRIGHT: Final = math.radians(8.0)
AT_REST: Final = 0.01  # m/s
DRAWER_OPEN: Final = 0.85 * at.DRAWER_TRAVEL
PEG_DONE: Final = 0.044  # m of the shaft's 0.052 in the hole
PEG_STUCK: Final = 12.0  # N that the gantry pushes down with; a free peg takes less than 3
IN_TRAY: Final = at.TRAY_HALF - at.BOTTLE_HALF - 0.004
IN_PLACE: Final = 0.015  # m from where an object belongs


def truth(cell: Cell, tool: str, arguments: Mapping[str, str]) -> Status:
    """Whether the tool's post-condition holds right now.

    Returns:
        ``success`` or ``failure``; for ``insert_peg`` also ``process``: not yet, and not stuck.

    Raises:
        KeyError: Unknown tool, or the argument ``target`` is missing.
    """
    if tool == 'insert_peg':
        return _peg(cell)
    holds = {
        'survey_cell': lambda: _as_laid_out(cell),
        'pick_object': lambda: _held(cell, arguments['target']),
        'place_object': lambda: _placed(cell, arguments['target']),
        'open_drawer': lambda: cell.joint('drawer_joint').position >= DRAWER_OPEN,
    }[tool]()
    return Status.SUCCESS if holds else Status.FAILURE


def peg_depth(cell: Cell) -> float:
    """How deep the peg's tip is below the rim of the hole, metres; 0 if it is not in the hole."""
    peg = cell.position('peg')
    aside = float(np.abs(peg[:2] - at.HOLE_AT).max())
    if aside > at.HOLE_HALF or cell.tilt('peg') > UPRIGHT:
        return 0.0
    return max(0.0, at.HOLE_BLOCK_HEIGHT - float(peg[2]))


def _peg(cell: Cell) -> Status:
    depth = peg_depth(cell)
    if depth >= PEG_DONE:
        return Status.SUCCESS
    stuck = abs(cell.joint('gantry_z').effort) >= PEG_STUCK
    return Status.FAILURE if stuck or depth <= 0.0 else Status.PROCESS


def _held(cell: Cell, target: str) -> bool:
    lifted = float(cell.position(target)[2]) >= LIFTED
    return lifted and cell.fingers_touching(target) == {'left', 'right'}


def _placed(cell: Cell, target: str) -> bool:
    position = cell.position(target)
    return bool(
        np.abs(position[:2] - at.TRAY_AT).max() <= IN_TRAY
        and abs(position[2] - at.TRAY_FLOOR) < 0.004
        and cell.tilt(target) < UPRIGHT
        and cell.speed(target) < AT_REST
        and not cell.fingers_touching(target)
    )


def _as_laid_out(cell: Cell) -> bool:
    places = {'bottle': at.BOTTLE_AT, 'tin': at.TIN_AT, 'peg': at.RACK_AT}
    in_place = all(
        np.abs(cell.position(name)[:2] - places[name]).max() < IN_PLACE
        and float(cell.position(name)[2]) < IN_PLACE
        and cell.tilt(name) < UPRIGHT
        for name in OBJECTS
    )
    return bool(in_place and cell.joint('drawer_joint').position < 0.1 * at.DRAWER_TRAVEL)


def graph_truth(cell: Cell) -> frozenset[tuple[str, str, str]]:
    """Which relations hold between the things in the cell: subject, predicate, object."""
    relations = set()
    for name in ('bottle', 'tin'):
        if _held(cell, name):
            relations.add((name, 'held_by', 'gripper'))
        elif _placed(cell, name):
            relations.add((name, 'on', 'tray'))
        elif float(cell.position(name)[2]) < LIFTED:
            relations.add((name, 'on', 'table'))
    if _peg(cell) is Status.SUCCESS:
        relations.add(('peg', 'in', 'hole'))
    elif np.abs(cell.position('peg')[:2] - at.RACK_AT).max() < IN_PLACE:
        relations.add(('peg', 'in', 'rack'))
    return frozenset(relations)
