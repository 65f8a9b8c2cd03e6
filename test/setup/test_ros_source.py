"""A sourced ROS 2 of the distribution asked for wins; otherwise it comes from pinned wheels."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path

import pytest
from ros_source import find_ros, SOURCED_VARIABLES, without_ros

SETUP = Path(__file__).parents[2] / 'setup'


@pytest.fixture(params=[True, False], ids=['with rclpy', 'without rclpy'])
def rclpy_there(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    spec = importlib.machinery.ModuleSpec('rclpy', None, origin='/opt/ros/x/rclpy/__init__.py')
    there = bool(request.param)
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: spec if there else None)
    return there


def test_a_sourced_distribution_is_used_if_its_rclpy_is_there(
    monkeypatch: pytest.MonkeyPatch, rclpy_there: bool
) -> None:
    monkeypatch.setenv('ROS_DISTRO', 'jazzy')
    source = find_ros('jazzy', SETUP)
    assert source.pins == (None if rclpy_there else SETUP / 'ros-jazzy.txt')


def test_another_distribution_than_the_sourced_one_comes_from_wheels(
    monkeypatch: pytest.MonkeyPatch, rclpy_there: bool
) -> None:
    monkeypatch.setenv('ROS_DISTRO', 'jazzy')
    assert find_ros('kilted', SETUP).pins == SETUP / 'ros-kilted.txt'


def test_a_distribution_that_is_nowhere_is_refused_with_what_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv('ROS_DISTRO', raising=False)
    with pytest.raises(SystemExit, match=r'DISTRO=rolling: .* only jazzy, kilted can be had'):
        find_ros('rolling', SETUP)


def test_nothing_of_a_sourced_distribution_reaches_the_wheels() -> None:
    environment = {**dict.fromkeys(SOURCED_VARIABLES, '/opt/ros/jazzy'), 'HOME': '/home/robot'}
    assert without_ros(environment) == {'HOME': '/home/robot'}
