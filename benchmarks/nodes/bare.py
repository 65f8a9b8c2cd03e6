"""The least that a managed rclpy node costs: it answers a completion with a verdict at once.

It keeps nothing, looks at nothing and decides nothing; what `harness_eval` takes beyond it is the
price of what it does. ``python -m benchmarks.nodes.bare --ros-args -r __ns:=/bare``.
"""

from __future__ import annotations

import time

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import DurabilityPolicy, QoSProfile

from harness_eval_msgs.msg import SceneGraphUpdate, ToolCompletion, Verdict

RELIABLE = QoSProfile(depth=1000)
LATCHED = QoSProfile(depth=1000, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def main() -> None:
    """Answer until interrupted."""
    rclpy.init()
    node = LifecycleNode('harness_eval')
    verdicts = node.create_publisher(Verdict, '~/verdicts', LATCHED)
    updates = node.create_publisher(SceneGraphUpdate, 'scene_graph/updates', LATCHED)

    def completed(completion: ToolCompletion) -> None:
        verdict = Verdict(run_id=completion.run_id, status=Verdict.SUCCESS)
        verdicts.publish(verdict)
        update = SceneGraphUpdate(run_id=completion.run_id)
        update.header.stamp = node.get_clock().now().to_msg()
        updates.publish(update)

    node.create_subscription(ToolCompletion, 'tool_completions', completed, RELIABLE)
    node.trigger_configure()
    node.trigger_activate()
    print(f'active {time.monotonic_ns()}', flush=True)
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except Exception:
        time.sleep(0.5)  # a signal shuts the context down on another thread
        if rclpy.ok():
            raise
    finally:
        rclpy.try_shutdown()


if __name__ == '__main__':
    main()
