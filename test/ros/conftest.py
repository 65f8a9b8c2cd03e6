"""Fixtures of the tests that need real ROS 2: ``ros`` and ``subprocess_node``.

Where rclpy or the generated messages are missing these tests are skipped with the reason in words;
``HARNESS_EVAL_REQUIRE_ROS=1`` (set by ``make test``) turns the skip into a failure, so that a
broken set-up cannot look like a passed test run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
import importlib
import os
from pathlib import Path
from typing import Any, TYPE_CHECKING

import pytest
from ros_domain import own_domain

if TYPE_CHECKING:
    from child_node import ChildNode
    from ros_world import RosWorld


def _missing_ros() -> str:
    """Say in words what these tests miss; empty if nothing."""
    needed = {
        'rclpy': 'source a ROS 2 installation or run `make test`',
        'harness_eval_msgs.msg': 'build harness_eval_msgs with `make build` and source it',
    }
    for module, remedy in needed.items():
        try:
            importlib.import_module(module)
        except ImportError as error:
            name = module.partition('.')[0]
            return f'{name} cannot be imported ({error}): {remedy}'
    return ''


MISSING = _missing_ros()
REQUIRED = os.environ.get('HARNESS_EVAL_REQUIRE_ROS') == '1'


class _SkippedModule(pytest.Module):
    """A test module that is reported as skipped instead of failing at its first import."""

    def collect(self) -> Any:
        pytest.skip(MISSING, allow_module_level=True)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Skip the modules of this folder when ROS is missing and not required."""
    if MISSING and not REQUIRED:
        return _SkippedModule.from_parent(parent, path=module_path)
    return None


@pytest.fixture(scope='session', autouse=True)
def _ros_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep logs in a temporary folder and discovery on this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('ROS_LOG_DIR', str(tmp_path_factory.mktemp('ros_log')))
        patch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
        yield


@pytest.fixture
def ros_domain_id(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A domain that no other test uses, also set as ``ROS_DOMAIN_ID``."""
    with own_domain() as domain:
        monkeypatch.setenv('ROS_DOMAIN_ID', str(domain))
        yield domain


@pytest.fixture
def ros(ros_domain_id: int) -> Iterator[RosWorld]:
    """A real rclpy context on its own domain, with helpers; see :class:`ros_world.RosWorld`."""
    from ros_world import RosWorld

    world = RosWorld(ros_domain_id)
    try:
        yield world
    finally:
        world.close()


@pytest.fixture
def subprocess_node(ros_domain_id: int, tmp_path: Path) -> Iterator[Callable[..., ChildNode]]:
    """A function that starts ``python -m module --ros-args …`` on the domain of the test.

    It takes the module and the keyword arguments of :class:`child_node.ChildNode`. Whatever still
    runs at the end of the test is killed by its id.
    """
    from child_node import ChildNode

    children: list[ChildNode] = []

    def start(module: str, **options: Any) -> ChildNode:
        log_path = tmp_path / f'child_{len(children)}.log'
        child = ChildNode(module, domain_id=ros_domain_id, log_path=log_path, **options)
        children.append(child)
        return child

    try:
        yield start
    finally:
        for child in children:
            child.close()
