"""A node that is told to stop ends cleanly, however often it is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from child_node import ChildNode
import pytest
from ros_world import RosWorld

CONFIG = Path(__file__).parents[2] / 'config' / 'demo.yaml'

NODES: dict[str, tuple[dict[str, Any], str]] = {
    'harness_eval.ros.evaluator_node': ({'config': CONFIG}, '/harness_eval/get_run'),
    'harness_eval.ros.scene_graph_node': ({}, '/scene_graph/query'),
}


@pytest.mark.parametrize('module', NODES)
def test_ctrl_c_under_ros2_launch_ends_a_node_cleanly(
    ros: RosWorld, subprocess_node: Callable[..., ChildNode], module: str
) -> None:
    # The terminal and `ros2 launch` both send SIGINT: the second one falls into the ending.
    parameters, service = NODES[module]
    child = subprocess_node(module, parameters=parameters)
    observer = ros.node('observer')
    ros.wait(
        lambda: service in dict(observer.get_service_names_and_types()) or not child.alive,
        what=f'{service} to be offered',
    )
    assert child.alive, child.log()

    def interrupted_to_its_end() -> bool:
        child.interrupt()
        return not child.alive

    ros.wait(interrupted_to_its_end, what='the node to end')
    assert 'Traceback' not in child.log()
    assert child.wait_for_end() == 0, child.log()
