"""The cell on ROS 2: camera pictures, camera_info, joint states and, if asked, ``/clock``.

All names are relative, so that a namespace can be put before them. A picture is rendered only
while somebody subscribes to it, as a camera driver with lazy publishing does.

Threads: :class:`~harness_eval.demo.live.LiveCell` publishes from its own thread; the executor of
whoever spins the node has nothing to do here.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
import sys
from typing import Any, Final

from rcl_interfaces.msg import ParameterDescriptor
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, JointState

from harness_eval.demo.cameras import CAMERAS, intrinsics, Picture
from harness_eval.demo.cell import JointReading
from harness_eval.demo.live import LiveCell, Pace

_SECOND: Final = 1_000_000_000
# A 640x480 picture travels in many fragments. On a busy machine best effort lost about half of the
# pictures whatever the transport; reliable delivered them.
_PICTURES: Final = QoSProfile(depth=5, reliability=ReliabilityPolicy.RELIABLE)
_CLOCK_PERIOD: Final = _SECOND // 50  # of simulated time between two messages on /clock


def _set_stamp(header: Any, stamp: int) -> None:
    header.stamp.sec, header.stamp.nanosec = divmod(stamp, _SECOND)


def _camera_info(camera: str) -> CameraInfo:
    lens = intrinsics(camera)
    message = CameraInfo()
    message.header.frame_id = _frame(camera)
    message.width, message.height = lens.width, lens.height
    message.distortion_model = 'plumb_bob'
    message.d = [0.0] * 5
    (cx, cy), f = lens.centre, lens.focal
    message.k = [f, 0.0, cx, 0.0, f, cy, 0.0, 0.0, 1.0]
    message.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
    message.p = [f, 0.0, cx, 0.0, 0.0, f, cy, 0.0, 0.0, 0.0, 1.0, 0.0]
    return message


def _frame(camera: str) -> str:
    return f'cell_{camera}_optical_frame'


class CellNode(Node):
    """Publishes what the cell senses.

    Args:
        seed: Of the cell; the parameter ``seed`` overrides it.
        options: Further keyword arguments of :class:`rclpy.node.Node`.

    Attributes:
        live: The cell; call ``live.start()`` once.
    """

    def __init__(self, seed: int = 0, **options: Any) -> None:
        """Declare the parameters and make the publishers; the cell is not alive yet."""
        super().__init__('demo_cell', **options)
        seed = self._parameter('seed', seed, 'Seed of the cell, its noise and its faults')
        speed = self._parameter('speed', Pace.speed, 'Simulated seconds in one while a tool moves')
        rate = self._parameter('frame_rate', 1 / Pace.frame_period, 'Pictures in a second')
        self._always = self._parameter('lazy', True, 'Render only what is subscribed') is False
        simulated = self._parameter('publish_clock', False, 'Publish /clock and stamp with it')
        self._images = {
            camera: self.create_publisher(Image, f'cell/{camera}/image_raw', _PICTURES)
            for camera in CAMERAS
        }
        self._infos = {
            camera: self.create_publisher(CameraInfo, f'cell/{camera}/camera_info', _PICTURES)
            for camera in CAMERAS
        }
        self._lenses = {camera: _camera_info(camera) for camera in CAMERAS}
        self._joints = self.create_publisher(JointState, 'joint_states', 10)
        self._clock_publisher = self.create_publisher(Clock, '/clock', 10) if simulated else None
        self._clock_due = 0
        ros_clock = self.get_clock()
        self.live = LiveCell(
            self,
            None if simulated else lambda: int(ros_clock.now().nanoseconds),
            seed=seed,
            pace=Pace(speed=speed, frame_period=1 / rate),
        )

    def _parameter(self, name: str, default: Any, description: str) -> Any:
        descriptor = ParameterDescriptor(description=description, read_only=True)
        return self.declare_parameter(name, default, descriptor).value

    def destroy_node(self) -> None:
        """Stop the cell, then the node."""
        self.live.stop()
        super().destroy_node()

    # The sink of the live cell; see harness_eval.demo.live.Sink.

    def wants(self, camera: str) -> bool:
        """Whether anybody subscribes to the camera's pictures."""
        return self._always or self._images[camera].get_subscription_count() > 0

    def picture(self, camera: str, stamp: int, picture: Picture) -> None:
        """Publish a picture with its camera_info."""
        message = Image()
        message.header.frame_id = _frame(camera)
        _set_stamp(message.header, stamp)
        message.height, message.width = picture.shape[:2]
        message.encoding = 'rgb8'
        message.step = 3 * message.width
        # Anything but an array of the right type is checked element by element, which is slow.
        data = array('B')
        data.frombytes(picture.tobytes())
        message.data = data
        info = self._lenses[camera]
        _set_stamp(info.header, stamp)
        self._infos[camera].publish(info)
        self._images[camera].publish(message)

    def joints(self, stamp: int, readings: Sequence[JointReading]) -> None:
        """Publish the joints."""
        message = JointState()
        _set_stamp(message.header, stamp)
        message.name = [reading.name for reading in readings]
        message.position = array('d', [reading.position for reading in readings])
        message.velocity = array('d', [reading.velocity for reading in readings])
        message.effort = array('d', [reading.effort for reading in readings])
        self._joints.publish(message)

    def passed(self, simulated: int) -> None:
        """Publish ``/clock`` if it is asked for."""
        if self._clock_publisher is None or simulated < self._clock_due:
            return
        self._clock_due = simulated + _CLOCK_PERIOD
        message = Clock()
        message.clock.sec, message.clock.nanosec = divmod(simulated, _SECOND)
        self._clock_publisher.publish(message)


def main(args: list[str] | None = None) -> int:
    """Run the cell alone until SIGINT or SIGTERM, for a look with rqt or for one's own tests."""
    node = None
    try:
        rclpy.init(args=args)
        node = CellNode()
        node.live.start()
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except Exception:
        if rclpy.ok():  # else it was shut down between two looks at it
            raise
    finally:
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main())
