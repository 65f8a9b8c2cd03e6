"""Processes that tests start are on the domain of the test and always end."""

from __future__ import annotations

from collections.abc import Callable
import os
from pathlib import Path
import signal

from child_node import ChildNode
import pytest
from ros_world import RosWorld
from std_msgs.msg import String

TALKER = """
import sys, rclpy
from rclpy.node import Node
from std_msgs.msg import String
rclpy.init(args=sys.argv)
node = Node('talker')
node.declare_parameter('word', '')
publisher = node.create_publisher(String, 'chat', 10)
def tick():
    publisher.publish(String(data=node.get_parameter('word').value))
node.create_timer(0.02, tick)
print('talking', flush=True)
try:
    rclpy.spin(node)
except KeyboardInterrupt:
    print('asked to end', flush=True)
"""

Start = Callable[..., ChildNode]


@pytest.fixture
def talker(tmp_path: Path, subprocess_node: Start) -> ChildNode:
    (tmp_path / 'stand_in_talker.py').write_text(TALKER)
    paths = os.pathsep.join([str(tmp_path), os.environ.get('PYTHONPATH', '')])
    return subprocess_node(
        'stand_in_talker', parameters={'word': "it's 0123"}, env={'PYTHONPATH': paths}
    )


def test_a_child_is_heard_in_the_domain_of_the_test(ros: RosWorld, talker: ChildNode) -> None:
    received = ros.collect(ros.node('listener', spin=True), String, 'chat')
    assert ros.wait(lambda: received, what='the child to talk')[0].data == "it's 0123"


def test_kill9_ends_a_child_as_a_crash_would(talker: ChildNode) -> None:
    talker.wait_for_log('talking')
    talker.kill9()
    assert talker.wait_for_end() == -signal.SIGKILL
    assert not talker.alive


def test_an_interrupted_child_may_say_goodbye(talker: ChildNode) -> None:
    talker.wait_for_log('talking')
    talker.interrupt()
    talker.wait_for_log('asked to end')
    assert talker.wait_for_end() == 0


def test_a_child_that_ends_early_shows_its_log(subprocess_node: Start) -> None:
    child = subprocess_node('no_such_module_anywhere')
    with pytest.raises(AssertionError, match='No module named no_such_module_anywhere'):
        child.wait_for_log('ready')
