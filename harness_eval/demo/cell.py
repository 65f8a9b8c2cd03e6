"""The simulated robot cell: its physics, its joints and what only a simulator can know.

:class:`Cell` is free of ROS and of pictures; :mod:`harness_eval.demo.cameras` draws it. Whoever
owns a cell steps it from one thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math
from typing import Final

import mujoco
import numpy as np
import numpy.typing as npt

from harness_eval.demo import layout as at
from harness_eval.demo import scene

Vector = npt.NDArray[np.float64]

CONTROL_PERIOD: Final = 0.01
"""Seconds between two commands to the actuators."""

OBJECTS: Final = ('bottle', 'tin', 'peg')

_JOINTS: Final = ('gantry_x', 'gantry_y', 'gantry_z', 'gantry_yaw')
_CLOSING_SPEED: Final = 0.07  # m/s of one finger; faster ones kick light objects
_POSITION_JITTER: Final = 0.004  # m; a person puts things back about this well
_YAW_JITTER: Final = math.radians(4.0)
_STATE: Final = mujoco.mjtState.mjSTATE_INTEGRATION
_CALM: Final = 0.5  # s of simulated time for things to come to rest after a reset


@dataclass(frozen=True)
class JointReading:
    """One joint as its encoder and its drive report it.

    Attributes:
        name: Of the joint; ``finger_joint`` is the opening between the finger pads.
        position: Metres or radians.
        velocity: Metres or radians per second.
        effort: Newtons or newton metres of its drive; 0 for a joint without one.
    """

    name: str
    position: float
    velocity: float
    effort: float


class Cell:
    """A table-top cell with a gantry, a gripper, a drawer and things to handle.

    Args:
        seed: Of the surfaces' grain and of the places where things lie.
    """

    def __init__(self, seed: int = 0) -> None:
        """Build the model and let everything come to rest."""
        self.model = mujoco.MjModel.from_xml_string(scene.model_xml(), scene.assets(seed))
        self.data = mujoco.MjData(self.model)
        self._rng = np.random.default_rng(seed)
        self._pose = np.zeros(4)
        self._finger = 0.0
        self._grip_force: float | None = None
        self.reset()

    @property
    def time(self) -> float:
        """Simulated seconds since the last reset."""
        return float(self.data.time)

    def reset(self, seed: int | None = None) -> None:
        """Put everything back to where it belongs, as well as a person would.

        Args:
            seed: Of the small errors in doing so; default: go on with the cell's own numbers.
        """
        if seed is not None:
            self._rng = np.random.default_rng(seed)
        mujoco.mj_resetData(self.model, self.data)
        self.unblock_hole()
        self.uncover()
        for name, (x, y), jitter in (
            ('bottle', at.BOTTLE_AT, _POSITION_JITTER),
            ('tin', at.TIN_AT, _POSITION_JITTER),
            ('peg', at.RACK_AT, 0.0),
        ):
            dx, dy = self._rng.uniform(-jitter, jitter, 2)
            yaw = self._rng.uniform(-_YAW_JITTER, _YAW_JITTER) if jitter else 0.0
            pose = self.data.joint(name).qpos
            pose[:] = (x + dx, y + dy, 0.0005, math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
        for joint, value in zip(_JOINTS, (*at.HOME, 0.0), strict=True):
            self.data.joint(joint).qpos[0] = value
        for joint in ('finger_left', 'finger_right'):
            self.data.joint(joint).qpos[0] = at.FINGER_TRAVEL
        self._pose[:] = (*at.HOME, 0.0)
        self._finger = at.FINGER_TRAVEL
        self._grip_force = None
        mujoco.mj_forward(self.model, self.data)
        self.advance(_CALM)

    # What a tool may command.

    @property
    def commanded(self) -> Vector:
        """Commanded ``(x, y, z, yaw)`` of the finger tips."""
        return np.array(self._pose)

    def command(self, pose: Sequence[float] | Vector) -> None:
        """Send the finger tips to ``(x, y, z, yaw)``; metres and radians."""
        self._pose[:] = pose

    def open_gripper(self, opening: float = 2 * at.FINGER_TRAVEL) -> None:
        """Let go and open the fingers to the given distance, metres."""
        self._grip_force = None
        self._finger = opening / 2

    def close_gripper(self, force: float) -> None:
        """Close the fingers until they press with the given force, newtons."""
        if self._grip_force is None:
            self._finger = float(self.data.joint('finger_left').qpos[0])
        self._grip_force = force

    def advance(self, seconds: float) -> None:
        """Let the given simulated time pass, in whole control periods."""
        steps = round(CONTROL_PERIOD / at.PHYSICS_STEP)
        for _ in range(max(1, round(seconds / CONTROL_PERIOD))):
            self._actuate()
            mujoco.mj_step(self.model, self.data, steps)
        # Positions of bodies are those before the last step otherwise.
        mujoco.mj_forward(self.model, self.data)

    def state(self) -> Vector:
        """All that the physics knows of this moment, for :meth:`show`."""
        state = np.empty(mujoco.mj_stateSize(self.model, _STATE))
        mujoco.mj_getState(self.model, self.data, state, _STATE)
        return state

    def show(self, state: Vector) -> None:
        """Go back to a moment that :meth:`state` gave, and on from there if time passes."""
        mujoco.mj_setState(self.model, self.data, state, _STATE)
        mujoco.mj_forward(self.model, self.data)

    def _actuate(self) -> None:
        data = self.data
        for name, value in zip(('x', 'y', 'z', 'yaw'), self._pose, strict=True):
            data.actuator(name).ctrl[0] = value
        if self._grip_force is not None:
            actual = float(data.joint('finger_left').qpos[0])
            squeeze = self._grip_force / at.GRIP_STIFFNESS
            self._finger = max(self._finger - _CLOSING_SPEED * CONTROL_PERIOD, actual - squeeze)
        for name in ('left', 'right'):
            data.actuator(name).ctrl[0] = self._finger

    # What its sensors report.

    def joints(self) -> list[JointReading]:
        """All joints with an encoder, gantry first."""
        data = self.data
        readings = [
            JointReading(
                name,
                float(data.joint(name).qpos[0]),
                float(data.joint(name).qvel[0]),
                float(data.actuator(name.removeprefix('gantry_')).force[0]),
            )
            for name in _JOINTS
        ]
        fingers = [data.joint(name) for name in ('finger_left', 'finger_right')]
        drives = [data.actuator(name) for name in ('left', 'right')]
        readings.append(
            JointReading(
                'finger_joint',
                sum(float(finger.qpos[0]) for finger in fingers),
                sum(float(finger.qvel[0]) for finger in fingers),
                sum(float(drive.force[0]) for drive in drives) / 2,
            )
        )
        drawer = data.joint('drawer_joint')
        readings.append(
            JointReading('drawer_joint', float(drawer.qpos[0]), float(drawer.qvel[0]), 0.0)
        )
        return readings

    def joint(self, name: str) -> JointReading:
        """The reading of one joint.

        Raises:
            KeyError: There is no such joint.
        """
        for reading in self.joints():
            if reading.name == name:
                return reading
        raise KeyError(name)

    # What only the simulator knows. Tools use it to find things, truth to tell what happened.

    def position(self, body: str) -> Vector:
        """World position of a body's origin (the middle of its underside), metres."""
        return np.array(self.data.body(body).xpos)

    def yaw(self, body: str) -> float:
        """Turn of a body about the vertical, radians."""
        matrix = np.array(self.data.body(body).xmat).reshape(3, 3)
        return math.atan2(matrix[1, 0], matrix[0, 0])

    def tilt(self, body: str) -> float:
        """Angle between a body's axis and the vertical, radians."""
        matrix = np.array(self.data.body(body).xmat).reshape(3, 3)
        return math.acos(min(1.0, max(-1.0, float(matrix[2, 2]))))

    def speed(self, body: str) -> float:
        """Linear speed of a free body, metres per second."""
        return float(np.linalg.norm(self.data.joint(body).qvel[:3]))

    def fingers_touching(self, body: str) -> set[str]:
        """Which of ``left`` and ``right`` are in contact with the body."""
        wanted = self.model.body(body).id
        sides = {self.model.body(f'{side}_finger').id: side for side in ('left', 'right')}
        touching = set()
        for contact in self.data.contact[: self.data.ncon]:
            pair = [int(self.model.geom_bodyid[geom]) for geom in contact.geom]
            if wanted in pair:
                other = pair[1] if pair[0] == wanted else pair[0]
                if other in sides:
                    touching.add(sides[other])
        return touching

    # What the faults do to the cell.

    def block_hole(self) -> None:
        """Leave a broken-off stub in the hole."""
        self.model.body('chip').pos = (*at.HOLE_AT, 0.0)
        mujoco.mj_forward(self.model, self.data)

    def unblock_hole(self) -> None:
        """Take the stub out of the hole."""
        self.model.body('chip').pos = at.PARKED
        mujoco.mj_forward(self.model, self.data)

    def cover(self) -> None:
        """Leave a piece of cardboard standing before the front camera."""
        camera = self.model.camera('front').id
        frame = np.array(self.data.cam_xmat[camera]).reshape(3, 3)
        body = self.model.body('occluder')
        # It hides most of the picture but not all: what is left must not be taken for evidence.
        distance, sideways, lower = 0.30, -0.035, -0.020
        body.pos = (
            self.data.cam_xpos[camera]
            - distance * frame[:, 2]
            + sideways * frame[:, 0]
            + lower * frame[:, 1]
        )
        turn = np.zeros(4)
        # The board's thin axis is y; turn it into the camera's line of sight, a little askew.
        board = np.column_stack([frame[:, 0], -frame[:, 2], frame[:, 1]])
        askew = math.radians(7.0)
        about = np.array(
            [
                [math.cos(askew), 0.0, math.sin(askew)],
                [0.0, 1.0, 0.0],
                [-math.sin(askew), 0.0, math.cos(askew)],
            ]
        )
        mujoco.mju_mat2Quat(turn, (board @ about).ravel())
        body.quat = turn
        mujoco.mj_forward(self.model, self.data)

    def uncover(self) -> None:
        """Take the cardboard away."""
        self.model.body('occluder').pos = at.PARKED
        mujoco.mj_forward(self.model, self.data)
