"""The demo cell publishes like a real one, and its cameras fail as real ones do."""

from __future__ import annotations

import os
import time
from typing import Any, TYPE_CHECKING

import numpy as np
import pytest

os.environ.setdefault('MUJOCO_GL', 'egl')
pytest.importorskip('mujoco', reason='MuJoCo is not installed: pip install "harness_eval[demo]"')

from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, JointState

from harness_eval.contract import Status
from harness_eval.demo.cell_node import CellNode
from harness_eval.demo.faults import Fault
from harness_eval.demo.live import WRONG_CLOCK

if TYPE_CHECKING:
    from ros_world import RosWorld

BOTTLE = {'target': 'bottle'}


def stamp_of(message: Any) -> int:
    stamp = message.header.stamp
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


class Watched:
    """A living cell and what a subscriber gets from it."""

    def __init__(self, ros: RosWorld, **parameters: object) -> None:
        overrides = [Parameter(name, value=value) for name, value in parameters.items()]
        self.ros = ros
        self.cell = ros.adopt(
            CellNode(3, context=ros.context, namespace='robot', parameter_overrides=overrides)
        )
        self.eye = ros.node('eye', namespace='robot', spin=True)
        self.cell.live.start()

    def watch(self, kind: Any, topic: str) -> list[Any]:
        return self.ros.collect(self.eye, kind, topic)


@pytest.fixture
def watched(ros: RosWorld) -> Watched:
    return Watched(ros)


def test_pictures_and_camera_info_carry_the_same_stamp_and_the_right_shape(
    watched: Watched,
) -> None:
    images = watched.watch(Image, 'cell/wrist/image_raw')
    infos = watched.watch(CameraInfo, 'cell/wrist/camera_info')
    watched.ros.wait(lambda: len(images) >= 3 and len(infos) >= 3, what='pictures')
    image = images[-1]
    assert (image.width, image.height, image.encoding, image.step) == (320, 240, 'rgb8', 960)
    assert len(image.data) == 320 * 240 * 3
    assert image.header.frame_id == 'cell_wrist_optical_frame'
    stamps = {stamp_of(info): info for info in infos}
    both = [stamps[stamp_of(image)] for image in images if stamp_of(image) in stamps]
    assert both
    assert both[0].header.frame_id == image.header.frame_id
    assert both[0].k[0] == pytest.approx(120 / np.tan(np.radians(30)))
    assert abs(time.time_ns() - stamp_of(image)) < 5e9


def test_joints_are_named_and_read_what_the_cell_does(watched: Watched) -> None:
    readings = watched.watch(JointState, 'joint_states')
    watched.ros.wait(lambda: readings, what='joint states')
    message = readings[-1]
    assert list(message.name) == [
        'gantry_x',
        'gantry_y',
        'gantry_z',
        'gantry_yaw',
        'finger_joint',
        'drawer_joint',
    ]
    assert message.position[4] == pytest.approx(0.084, abs=0.002)
    watched.cell.live.run_tool('pick_object', BOTTLE)
    assert watched.cell.live.truth('pick_object', BOTTLE) is Status.SUCCESS
    count = len(readings)
    watched.ros.wait(lambda: len(readings) > count + 2, what='newer joint states')
    assert readings[-1].position[4] == pytest.approx(0.050, abs=0.003)


def test_nothing_is_rendered_while_nobody_looks(watched: Watched) -> None:
    live = watched.cell.live
    readings = watched.watch(JointState, 'joint_states')
    watched.ros.wait(lambda: len(readings) > 30, what='a while')
    assert live._last == {}
    images = watched.watch(Image, 'cell/front/image_raw')
    watched.ros.wait(lambda: images, what='a picture')
    assert set(live._last) == {'front'}


def test_a_dead_camera_stops_and_the_other_goes_on(watched: Watched) -> None:
    fronts = watched.watch(Image, 'cell/front/image_raw')
    wrists = watched.watch(Image, 'cell/wrist/image_raw')
    watched.ros.wait(lambda: fronts and wrists, what='both cameras')
    watched.cell.live.spoil(Fault.CAMERA_DEAD)
    told = watched.eye.get_clock().now().nanoseconds
    watched.ros.wait(lambda: stamp_of(fronts[-1]) > told + 5e8, what='half a second of the other')
    assert stamp_of(wrists[-1]) <= told
    watched.cell.live.reset()
    watched.ros.wait(lambda: stamp_of(wrists[-1]) > told, what='the camera after a reset')


def test_a_frozen_camera_repeats_one_picture_under_new_stamps(watched: Watched) -> None:
    fronts = watched.watch(Image, 'cell/front/image_raw')
    watched.ros.wait(lambda: len(fronts) >= 2, what='pictures')
    assert bytes(fronts[-1].data) != bytes(fronts[-2].data)
    watched.cell.live.spoil(Fault.CAMERA_FROZEN)
    fronts.clear()
    watched.ros.wait(lambda: len(fronts) >= 4, what='pictures of the frozen camera')
    assert bytes(fronts[-1].data) == bytes(fronts[-2].data)
    assert stamp_of(fronts[-1]) > stamp_of(fronts[-2])


def test_a_camera_with_a_wrong_clock_is_ahead_of_the_joints(watched: Watched) -> None:
    wrists = watched.watch(Image, 'cell/wrist/image_raw')
    watched.cell.live.spoil(Fault.CAMERA_CLOCK_WRONG)
    watched.ros.wait(lambda: len(wrists) >= 2, what='pictures')
    ahead = stamp_of(wrists[-1]) - watched.eye.get_clock().now().nanoseconds
    assert ahead > WRONG_CLOCK - 2e9


def test_the_truth_is_on_no_topic(watched: Watched) -> None:
    watched.watch(Image, 'cell/front/image_raw')
    names = {
        name
        for name, _ in watched.cell.get_publisher_names_and_types_by_node('demo_cell', '/robot')
    }
    assert names - {'/rosout', '/parameter_events'} == {
        '/robot/cell/front/image_raw',
        '/robot/cell/front/camera_info',
        '/robot/cell/wrist/image_raw',
        '/robot/cell/wrist/camera_info',
        '/robot/joint_states',
    }


def test_asked_for_a_clock_the_cell_publishes_it_and_stamps_with_it(ros: RosWorld) -> None:
    watched = Watched(ros, publish_clock=True)
    clocks = ros.collect(watched.eye, Clock, '/clock')
    readings = watched.watch(JointState, 'joint_states')
    ros.wait(lambda: len(clocks) > 10 and len(readings) > 10, what='clock and joints')
    times = [clock.clock.sec * 10**9 + clock.clock.nanosec for clock in clocks]
    assert times == sorted(times)
    assert abs(stamp_of(readings[-1]) - times[-1]) < 5e8
    assert times[-1] < 3600 * 10**9
