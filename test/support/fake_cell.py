"""A robot cell of a test: cameras and joints that publish what the test says, well or badly.

Threads: timers on the executor of the node; the test's thread only sets attributes.
"""

from __future__ import annotations

import array
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, JointState

WIDTH, HEIGHT = 160, 120
GREEN = (40, 200, 40)
"""RGB of the cell when its post-condition holds; see :func:`cell_yaml`."""
GREY = (90, 90, 90)
GREEN_RANGE = 'lower: [50, 80, 80], upper: [70, 255, 255]'


@dataclass
class Camera:
    """How one camera behaves now.

    Attributes:
        color: RGB of the whole picture.
        alive: Whether it publishes at all.
        stamp_offset: Seconds added to the true stamp; None: the stamp is zero.
        frozen: Whether it repeats its last picture, byte for byte.
        mangle: Changes a message before it is sent.
    """

    color: tuple[int, int, int] = GREEN
    alive: bool = True
    stamp_offset: float | None = 0.0
    frozen: bool = False
    mangle: Any = None
    published: int = 0
    last: Any = None
    noise: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))


class FakeCell(Node):
    """Publishes ``cell/<camera>/image_raw`` for each camera, and ``joint_states``."""

    def __init__(
        self,
        name: str = 'cell',
        *,
        cameras: tuple[str, ...] = ('front', 'wrist'),
        rate: float = 30.0,
        reliable: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(name, **options)
        self.cameras = {camera: Camera() for camera in cameras}
        self.finger = 0.03
        qos = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE)
        self._image_publishers = {
            camera: self.create_publisher(
                Image, f'cell/{camera}/image_raw', qos if reliable else qos_profile_sensor_data
            )
            for camera in cameras
        }
        self._joints = self.create_publisher(JointState, 'joint_states', 10)
        # On the steady clock, so that cameras go on while simulated time stands still.
        self.create_timer(1.0 / rate, self._publish, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _publish(self) -> None:
        now = self.get_clock().now().nanoseconds
        for name, camera in self.cameras.items():
            if camera.alive:
                self._image_publishers[name].publish(self._image(camera, name, now))
                camera.published += 1
        joints = JointState(name=['arm_joint', 'finger_joint'], position=[0.1, self.finger])
        set_stamp(joints, now)
        self._joints.publish(joints)

    def _image(self, camera: Camera, name: str, now: int) -> Image:
        if camera.frozen and camera.last is not None:
            message = camera.last
        else:
            pixels = np.empty((HEIGHT, WIDTH, 3), np.uint8)
            pixels[:] = camera.color
            pixels[0] = camera.noise.integers(0, 255, (WIDTH, 3))
            message = Image(
                height=HEIGHT,
                width=WIDTH,
                encoding='rgb8',
                step=WIDTH * 3,
                data=array.array('B', pixels.tobytes()),
            )
            message.header.frame_id = f'{name}_optical_frame'
            camera.last = message
        if camera.stamp_offset is None:
            set_stamp(message, 0)
        else:
            set_stamp(message, now + round(camera.stamp_offset * 1e9))
        return camera.mangle(message) if camera.mangle else message


def set_stamp(message: Any, nanoseconds: int) -> None:
    """Stamp a message."""
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, 10**9)


def cell_yaml(
    *,
    capture: str = '',
    scene_graph: str = '',
    evidence: str = '',
    tools: str = '',
    evaluators: str = '',
    evaluation: str = '',
    completions: str = '',
) -> str:
    """The configuration of the fake cell: ``pick`` succeeds when the front camera sees green."""
    return f"""
evaluation:
  required_tools: [pick, insert, plug]
  segment_tools: [insert]
  max_segments: 3
  evaluator: cell_checks
  {evaluation}
  post_conditions:
    pick: "The {{target}} is held."
    insert: "The peg is in."
    plug: "The plugin says so."
  evaluators:
    cell_checks: {{kind: checks}}
    plugin: {{kind: plugin, ref: "fake_judge:judge", timeout: 1.0}}
    {evaluators}
  tools:
    pick:
      arguments: [target]
      checks:
        - {{color: {{view: front, {GREEN_RANGE}, coverage: [0.9, 1.0]}}}}
        - {{state: {{name: gripper, between: [0.005, 0.06]}}}}
      on_success:
        - {{remove_edge: ["{{target}}", "on", "table"]}}
        - {{add_edge: ["{{target}}", "held_by", "gripper"]}}
    insert:
      checks:
        - {{color: {{view: front, {GREEN_RANGE}, coverage: [0.9, 1.0]}}}}
        - {{state: {{name: gripper, between: [0.005, 0.06]}}}}
    plug: {{evaluator: plugin}}
    {tools}
capture:
  views:
    front: {{topic: cell/front/image_raw}}
    wrist: {{topic: cell/wrist/image_raw}}
  states:
    gripper: {{topic: joint_states, field: "position[name=finger_joint]"}}
  settle: 0.15
  timeout: 1.5
  {capture}
{completions}
scene_graph: {{hold_timeout: 3.0{scene_graph}}}
evidence: {{keep: all{evidence}}}
"""
