"""The runs that the demo cell knows, played without ROS and looked at as the evaluator would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from harness_eval.config import Config
from harness_eval.contract import (
    CameraInfo,
    EvaluationRequest,
    Image,
    Observation,
    PostCondition,
    State,
    Status,
    View,
)
from harness_eval.demo.cameras import Cameras, intrinsics
from harness_eval.demo.cell import Cell, CONTROL_PERIOD
from harness_eval.demo.faults import Fault
from harness_eval.demo.tools import run_tool

BOTTLE = {'target': 'bottle'}
SETTLE = 0.3

READINGS: Mapping[str, Callable[[Cell], float]] = {
    'gripper_opening': lambda cell: cell.joint('finger_joint').position,
    'drawer': lambda cell: cell.joint('drawer_joint').position,
    'push_force': lambda cell: cell.joint('gantry_z').effort,
}
"""What the states of ``config/demo.yaml`` read."""


@dataclass(frozen=True)
class Script:
    """Tools one after the other from a cell that was put back; the last one is of interest.

    Attributes:
        steps: Tool, fault and segment of each.
        truth: What the last one comes to.
    """

    steps: tuple[tuple[str, Fault, int], ...]
    truth: Status

    def __str__(self) -> str:
        tool, fault, segment = self.steps[-1]
        return f'{tool}-{segment}-{fault.value}'.replace(' ', '_')


_PICK = ('pick_object', Fault.NONE, 0)
_FREE_PEG = tuple(('insert_peg', Fault.NONE, segment) for segment in range(3))
_BLOCKED_PEG = tuple(('insert_peg', Fault.PEG_BLOCKED, segment) for segment in range(2))

SCRIPTS = (
    Script((('survey_cell', Fault.NONE, 0),), Status.SUCCESS),
    Script((_PICK,), Status.SUCCESS),
    Script((('pick_object', Fault.MISSED_GRASP, 0),), Status.FAILURE),
    Script((('pick_object', Fault.SLIP, 0),), Status.FAILURE),
    Script((('pick_object', Fault.WRONG_OBJECT, 0),), Status.FAILURE),
    Script((_PICK, ('place_object', Fault.NONE, 0)), Status.SUCCESS),
    Script((_PICK, ('place_object', Fault.OFF_TARGET, 0)), Status.FAILURE),
    Script((_PICK, ('place_object', Fault.KNOCKED_OVER, 0)), Status.FAILURE),
    Script((('open_drawer', Fault.NONE, 0),), Status.SUCCESS),
    Script((('open_drawer', Fault.HALF_OPEN, 0),), Status.FAILURE),
    Script(_FREE_PEG[:1], Status.PROCESS),
    Script(_FREE_PEG[:2], Status.PROCESS),
    Script(_FREE_PEG, Status.SUCCESS),
    Script((('insert_peg', Fault.PEG_ON_RIM, 0),), Status.FAILURE),
    Script(_BLOCKED_PEG[:1], Status.PROCESS),
    Script(_BLOCKED_PEG, Status.FAILURE),
)


def perform(cell: Cell, script: Script, seed: int) -> None:
    """Put the cell back, run the tools of a script and let it settle."""
    cell.reset(seed)
    for number, (tool, fault, segment) in enumerate(script.steps):
        rng = np.random.default_rng([seed, number])
        for _ in run_tool(cell, tool, BOTTLE, segment, fault, rng):
            cell.advance(CONTROL_PERIOD)
    cell.advance(SETTLE)


def request(cell: Cell, cameras: Cameras, config: Config, tool: str) -> EvaluationRequest:
    """What the evaluator would be asked about the cell as it is now."""
    settings = config.evaluation.tools[tool]
    wanted = settings.views or (*config.capture.views, *config.capture.states)
    views = {name: _view(name, cameras) for name in config.capture.views if name in wanted}
    states = {
        name: State(name, 'joint_states', '', '', 1, SETTLE, 'header', read(cell), '')
        for name, read in READINGS.items()
        if name in wanted
    }
    return EvaluationRequest(
        PostCondition(
            checks=settings.checks,
            failure_kinds=settings.failure_kinds,
            process_allowed=tool in config.evaluation.segment_tools,
        ),
        Observation(views, states, 0, 0.0),
    )


def _view(name: str, cameras: Cameras) -> View:
    picture: Image = cameras.picture(name)[:, :, ::-1].copy()
    lens = intrinsics(name)
    (x, y), f = lens.centre, lens.focal
    info = CameraInfo(
        lens.width,
        lens.height,
        np.array([[f, 0.0, x], [0.0, f, y], [0.0, 0.0, 1.0]]),
        np.zeros(5),
        'plumb_bob',
    )
    return View(name, name, '', '', 1, SETTLE, 'header', '', lambda: picture, info)
