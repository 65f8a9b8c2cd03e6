"""The tools of the cell. Each is a plan of motions with seeded ways to go wrong.

A tool is a generator: it commands the cell and yields whenever one control period shall pass, so
that whoever runs it decides how fast time goes. None of them looks at what it achieved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import math
from typing import Final

import numpy as np

from harness_eval.demo import layout as at
from harness_eval.demo.cell import Cell, CONTROL_PERIOD
from harness_eval.demo.faults import Fault

Motion = Iterator[None]

FIRM_GRIP: Final = 14.0  # N
WEAK_GRIP: Final = 0.35  # N; a failing drive, less than any object's weight needs
CRUISE: Final = 0.45  # m/s
GENTLE: Final = 0.22  # m/s
CLEAR: Final = 0.185  # m, height at which held objects pass over everything else
LIFT: Final = 0.165  # m, height of the finger tips that hold a picked object
PEG_SEGMENTS: Final = 3
PEG_STROKES: Final = (0.017, 0.034, 0.050)  # m, depth that each segment pushes to
PEG_GRIP_ABOVE_TIP: Final = 0.061  # m, so that the fingers stay clear of the block
_SMALL_AIM_ERROR: Final = 0.0006  # m, what a calibrated gantry still gets wrong
_REST: Final = 0.35  # s in which things come to rest

GRASP_HEIGHT: Final = {'bottle': 0.030, 'tin': 0.026}


def run_tool(
    cell: Cell,
    tool: str,
    arguments: Mapping[str, str],
    segment: int,
    fault: Fault,
    rng: np.random.Generator,
) -> Motion:
    """The motions of one tool, or of one segment of a segmented tool.

    Args:
        cell: What to move.
        tool: Name of the tool.
        arguments: ``target`` names the object to pick or to place.
        segment: Number of the segment, for ``insert_peg``.
        fault: What goes wrong; a fault of a camera leaves the tool alone.
        rng: Where the size of each error comes from.

    Raises:
        KeyError: Unknown tool, unknown object, or the argument is missing.
    """
    if tool == 'survey_cell':
        return survey_cell(cell)
    if tool == 'pick_object':
        return pick_object(cell, arguments['target'], fault, rng)
    if tool == 'place_object':
        return place_object(cell, fault, rng)
    if tool == 'open_drawer':
        return open_drawer(cell, fault, rng)
    if tool == 'insert_peg':
        return insert_peg(cell, segment, fault, rng)
    raise KeyError(tool)


def survey_cell(cell: Cell) -> Motion:
    """Open the gripper and go home, out of the cameras' way."""
    cell.open_gripper()
    yield from _move(cell, (*at.HOME, 0.0))
    yield from _wait(_REST)


def pick_object(cell: Cell, target: str, fault: Fault, rng: np.random.Generator) -> Motion:
    """Grasp an object from above and lift it."""
    grasped = target
    if fault is Fault.WRONG_OBJECT:
        grasped = 'tin' if target == 'bottle' else 'bottle'
    x, y, _ = cell.position(grasped)
    yaw = cell.yaw(grasped)
    height = GRASP_HEIGHT[grasped]
    dx, dy = rng.uniform(-_SMALL_AIM_ERROR, _SMALL_AIM_ERROR, 2)
    if fault is Fault.MISSED_GRASP:
        # The detector was wrong about the depth: the fingers close in front of the object.
        dy -= rng.uniform(0.050, 0.060)
    cell.open_gripper()
    yield from _move(cell, (x + dx, y + dy, CLEAR, yaw))
    yield from _move(cell, (x + dx, y + dy, height, yaw), GENTLE)
    cell.close_gripper(FIRM_GRIP)
    yield from _wait(0.70)
    if fault is Fault.SLIP:
        yield from _move(cell, (x + dx, y + dy, height + rng.uniform(0.05, 0.09), yaw), GENTLE)
        cell.close_gripper(WEAK_GRIP)
        yield from _wait(0.70)
    yield from _move(cell, (x + dx, y + dy, LIFT, 0.0), GENTLE)
    cell.close_gripper(FIRM_GRIP)
    yield from _wait(2 * _REST if fault is Fault.SLIP else _REST)


def place_object(cell: Cell, fault: Fault, rng: np.random.Generator) -> Motion:
    """Carry what the gripper holds over the tray, set it down and let go."""
    x, y = at.TRAY_AT + rng.uniform(-0.004, 0.004, 2)
    drop = GRASP_HEIGHT['bottle'] + at.TRAY_FLOOR + 0.002
    if fault is Fault.OFF_TARGET:
        x -= rng.uniform(0.100, 0.125)
        y -= rng.uniform(-0.01, 0.02)
        drop -= at.TRAY_FLOOR
    yield from _move(cell, (*cell.commanded[:2], CLEAR, 0.0))
    yield from _move(cell, (x, y, CLEAR, 0.0))
    yield from _move(cell, (x, y, drop, 0.0), GENTLE)
    yield from _wait(0.1)
    cell.open_gripper()
    yield from _wait(0.35)
    if fault is Fault.KNOCKED_OVER:
        # It leaves sideways before it is clear of the object.
        yield from _move(cell, (x, y, drop + 0.040, 0.0))
        side = rng.uniform(0.09, 0.11)
        yield from _move(cell, (x - side, y, drop + 0.045, 0.0))
    yield from _move(cell, (*cell.commanded[:2], CLEAR, 0.0))
    yield from _move(cell, (x - 0.14, 0.06, CLEAR, 0.0))
    yield from _wait(_REST)


def open_drawer(cell: Cell, fault: Fault, rng: np.random.Generator) -> Motion:
    """Take the handle between the fingers and pull."""
    x, y = at.CABINET_AT[0] + 0.045, at.CABINET_AT[1] - at.CABINET_HALF[1] - 0.004
    y -= at.HANDLE_REACH
    start = cell.joint('drawer_joint').position
    y -= start
    low = at.HANDLE_HEIGHT - 0.024
    pull = at.DRAWER_TRAVEL - start - 0.002
    cell.open_gripper()
    yield from _move(cell, (x, y, CLEAR, 0.0))
    yield from _move(cell, (x, y, low, 0.0), GENTLE)
    cell.close_gripper(FIRM_GRIP)
    yield from _wait(0.75)
    if fault is Fault.HALF_OPEN:
        pull *= rng.uniform(0.35, 0.60)
    yield from _move(cell, (x, y - pull, low, 0.0), GENTLE)
    if fault is Fault.HALF_OPEN:
        # The fingers let go too early; the arm goes through the rest of the motion all the same.
        cell.open_gripper()
        yield from _wait(0.30)
        yield from _move(cell, (x, y - pull, CLEAR, 0.0))
    else:
        yield from _wait(0.1)
        cell.open_gripper()
        yield from _wait(0.30)
        yield from _move(cell, (x, y - pull, CLEAR, 0.0))
    yield from _move(cell, (0.05, 0.10, CLEAR, 0.0))
    yield from _wait(_REST)


def insert_peg(cell: Cell, segment: int, fault: Fault, rng: np.random.Generator) -> Motion:
    """Push the peg one stroke deeper; the first segment fetches it from its rack."""
    if segment == 0:
        yield from _fetch_peg(cell, fault, rng)
    stroke = PEG_STROKES[min(segment, PEG_SEGMENTS - 1)]
    grip_z = at.HOLE_BLOCK_HEIGHT - stroke + PEG_GRIP_ABOVE_TIP
    x, y, _, yaw = cell.commanded
    yield from _move(cell, (x, y, grip_z, yaw), 0.08)
    yield from _wait(_REST)


def _fetch_peg(cell: Cell, fault: Fault, rng: np.random.Generator) -> Motion:
    x, y, z = cell.position('peg')
    cell.open_gripper()
    yield from _move(cell, (x, y, CLEAR, 0.0))
    yield from _move(cell, (x, y, z + PEG_GRIP_ABOVE_TIP, 0.0), GENTLE)
    cell.close_gripper(FIRM_GRIP)
    yield from _wait(0.60)
    yield from _move(cell, (x, y, CLEAR, 0.0), GENTLE)
    x, y = at.HOLE_AT + rng.uniform(-0.0004, 0.0004, 2)
    if fault is Fault.PEG_ON_RIM:
        x += math.copysign(rng.uniform(0.0060, 0.0085), rng.uniform(-1, 1))
    if fault is Fault.PEG_BLOCKED:
        cell.block_hole()
    yield from _move(cell, (x, y, CLEAR, 0.0))
    above = at.HOLE_BLOCK_HEIGHT + PEG_GRIP_ABOVE_TIP + 0.004
    yield from _move(cell, (x, y, above, 0.0), GENTLE)


def _move(cell: Cell, goal: tuple[float, float, float, float], speed: float = CRUISE) -> Motion:
    """Go straight to a pose along a minimum-jerk profile (Flash and Hogan, 1985)."""
    start = cell.commanded
    change = np.array(goal, dtype=float) - start
    distance = max(float(np.linalg.norm(change[:3])), 0.1 * abs(float(change[3])))
    # The peak of a minimum-jerk motion is 1.875 times its mean speed.
    duration = max(1.875 * distance / speed, 4 * CONTROL_PERIOD)
    steps = math.ceil(duration / CONTROL_PERIOD)
    for step in range(1, steps + 1):
        s = step / steps
        cell.command(start + change * (10 * s**3 - 15 * s**4 + 6 * s**5))
        yield


def _wait(seconds: float) -> Motion:
    for _ in range(round(seconds / CONTROL_PERIOD)):
        yield
