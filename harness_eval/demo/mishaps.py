"""Lets mishaps happen to the cell: near misses, as large as chance will have it."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from harness_eval.demo import layout as at
from harness_eval.demo.cell import Cell, CONTROL_PERIOD
from harness_eval.demo.faults import Mishap
from harness_eval.demo.tools import GRASP_HEIGHT, Motion

_RAMP: Final = 0.4  # s in which the gripper goes up or down
_CALM: Final = 0.6  # s in which things come to rest


def befall(cell: Cell, mishap: Mishap, rng: np.random.Generator) -> Motion:
    """Let it happen; a generator as the tools are.

    Args:
        cell: What it happens to.
        mishap: What happens.
        rng: Where its size comes from.
    """
    if mishap is Mishap.THING_DISPLACED:
        _shift(cell, ('bottle', 'tin')[int(rng.integers(2))], rng.uniform(0.004, 0.050), rng)
    elif mishap is Mishap.THING_TOPPLED:
        _topple(cell, ('bottle', 'tin')[int(rng.integers(2))], rng)
    elif mishap is Mishap.DRAWER_LEFT_OPEN:
        _set_drawer(cell, rng.uniform(0.0, 0.6))
    elif mishap is Mishap.PUSHED_BACK:
        _set_drawer(cell, rng.uniform(0.65, 1.0))
    elif mishap is Mishap.NUDGED:
        _shift(cell, 'bottle', rng.uniform(0.0, 0.045), rng)
    elif mishap is Mishap.HELD_LOW:
        yield from _go_to_height(cell, GRASP_HEIGHT['bottle'] + rng.uniform(0.010, 0.130))
    elif mishap is Mishap.DRAWN_OUT:
        yield from _go_to_height(cell, float(cell.commanded[2]) + rng.uniform(0.0, 0.015))
    for _ in range(round(_CALM / CONTROL_PERIOD)):
        yield


def _shift(cell: Cell, thing: str, distance: float, rng: np.random.Generator) -> None:
    angle = rng.uniform(-math.pi, math.pi)
    joint = cell.data.joint(thing)
    joint.qpos[:2] += (distance * math.cos(angle), distance * math.sin(angle))
    joint.qpos[2] += 0.001  # so that it does not begin inside what it stands on
    joint.qvel[:] = 0.0


def _topple(cell: Cell, thing: str, rng: np.random.Generator) -> None:
    joint = cell.data.joint(thing)
    side = 1.0 if rng.uniform() < 0.5 else -1.0
    half = {'bottle': at.BOTTLE_HALF, 'tin': at.TIN_HALF}[thing]
    joint.qpos[2] = half + 0.001
    joint.qpos[3:] = (math.sqrt(0.5), 0.0, side * math.sqrt(0.5), 0.0)
    joint.qvel[:] = 0.0


def _set_drawer(cell: Cell, share: float) -> None:
    joint = cell.data.joint('drawer_joint')
    joint.qpos[0] = share * at.DRAWER_TRAVEL
    joint.qvel[0] = 0.0


def _go_to_height(cell: Cell, height: float) -> Motion:
    start = cell.commanded
    steps = round(_RAMP / CONTROL_PERIOD)
    for step in range(1, steps + 1):
        share = step / steps
        cell.command((*start[:2], start[2] + (height - start[2]) * share, start[3]))
        yield
