"""Where ROS 2 comes from: a sourced installation, or the wheels that this folder pins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
import importlib.util
import os
from pathlib import Path

SOURCED_VARIABLES = (
    'AMENT_PREFIX_PATH',
    'CMAKE_PREFIX_PATH',
    'COLCON_PREFIX_PATH',
    'LD_LIBRARY_PATH',
    'PYTHONPATH',
    'ROS_DISTRO',
    'ROS_PYTHON_VERSION',
    'ROS_VERSION',
    '_ROS_WHEELS_BOOTSTRAP_COMPLETE',
)
"""What sourcing an installation sets; two distributions must never be mixed in one process."""


@dataclass(frozen=True)
class RosSource:
    """The ROS 2 to use.

    Attributes:
        distro: Name of the distribution.
        pins: Requirements file of its wheels; ``None`` for a sourced installation.
        key: What tells this source from another in a stamp.
    """

    distro: str
    pins: Path | None
    key: str


def find_ros(distro: str, setup: Path) -> RosSource:
    """Choose the sourced installation if it is the distribution asked for, else its wheels.

    Args:
        distro: Name of the distribution.
        setup: Folder with the pins.

    Raises:
        SystemExit: There is neither.
    """
    if os.environ.get('ROS_DISTRO') == distro:
        rclpy = importlib.util.find_spec('rclpy')
        if rclpy is not None:
            return RosSource(distro, None, f'sourced {rclpy.origin}')
    pins = setup / f'ros-{distro}.txt'
    if pins.is_file():
        return RosSource(distro, pins, 'wheels')
    known = ', '.join(sorted(p.stem.partition('-')[2] for p in setup.glob('ros-*.txt')))
    raise SystemExit(
        f'DISTRO={distro}: no such ROS 2 is sourced here, and only {known} can be had as wheels; '
        f'source it first (source /opt/ros/{distro}/setup.bash) or set DISTRO to one of these'
    )


def without_ros(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those that a sourced installation sets."""
    return {name: v for name, v in environment.items() if name not in SOURCED_VARIABLES}
