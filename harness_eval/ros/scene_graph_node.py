"""The node that keeps the scene graph: executable ``scene_graph_node``, name ``scene_graph``.

It applies the released updates of ``scene_graph/updates``, each whole, once and in order, answers
``scene_graph/query`` and publishes the graph, latched, on ``scene_graph/snapshot``. What it missed
it gets from ``scene_graph/get_updates``: at the start, on a gap, when a server comes up and every
``resync_period``. The rules are in :mod:`harness_eval.graph_follower`; this module only carries
messages and time to it, and :mod:`harness_eval.ros.scene_graph_questions` its questions.

An update that cannot be read (an unknown operation, an invalid name) is asked for again. If the
server's copy cannot be read either, its revision is passed over without a change: a graph that
stopped there would never learn anything again, and it would be wrong for longer. From then on the
node's diagnostics are at ERROR, with the revision and the reason, until another graph begins.

Threads: the node works under a single- or multi-threaded executor. One lock guards the follower
and its graph; every callback holds it for a short computation and never while it waits, sends or
publishes. Updates and timers are in mutually exclusive groups, so that updates stay in order and
snapshots do not overtake each other; the query service and the client are in a reentrant group.
Timers run on the steady clock: a paused simulation does not stop them.
"""

from __future__ import annotations

from collections.abc import Callable
import functools
import sys
import threading
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
import rclpy
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile

from harness_eval.contract import HarnessEvalError
from harness_eval.graph_follower import GraphFollower
from harness_eval.lines import describe
from harness_eval.ros.qos import BURST, latched
from harness_eval.ros.scene_graph_messages import (
    snapshot_to_message,
    update_from_message,
    update_name,
)
from harness_eval.ros.scene_graph_parameters import asking_seconds, initial_graph
from harness_eval.ros.scene_graph_questions import Questions
from harness_eval.ros.scene_graph_status import scene_graph_status
from harness_eval.ros.spinning import BAD_CONFIGURATION, ignore_interrupts
from harness_eval.scene_graph import SceneGraph
from harness_eval_msgs.msg import SceneGraph as SceneGraphMessage
from harness_eval_msgs.msg import SceneGraphUpdate
from harness_eval_msgs.srv import QuerySceneGraph

SERVICE_DEPTH = 100
"""Requests that may wait; with the default of 10 a burst of callers would lose some."""

TICK = 0.2
"""Seconds between looks at what is due; a question on a gap is sent at once all the same."""

SNAPSHOT_DELAY = 0.05
"""Seconds in which further updates join the same snapshot."""

DIAGNOSTICS_PERIOD = 1.0
"""Seconds between two reports on ``/diagnostics``."""

LOG_PERIOD = 1.0
"""Seconds between two lines about unreadable messages, which anybody may publish in a flood."""


class SceneGraphNode(Node):
    """Applies released updates to a scene graph and answers what is in it.

    Args:
        node_name: Name of the node.
        options: Further keyword arguments of :class:`rclpy.node.Node`.

    Raises:
        InitialGraphError: The file of the parameter ``initial_graph`` cannot be used.
        ParameterError: Another parameter has a value that means nothing.
    """

    def __init__(self, node_name: str = 'scene_graph', **options: Any) -> None:
        super().__init__(node_name, **options)
        self.exceptions = 0
        self._unreadable = 0
        self._lock = threading.Lock()
        self._follower = GraphFollower(
            SceneGraph(initial=initial_graph(self)),
            resync_period=asking_seconds(
                self, 'resync_period', 10.0, 'between two questions when all seems well; 0: never'
            ),
            reply_timeout=asking_seconds(
                self, 'reply_timeout', 2.0, 'until a question is given up'
            ),
        )
        self._snapshot_due = False

        in_order = MutuallyExclusiveCallbackGroup()
        timers = MutuallyExclusiveCallbackGroup()
        reentrant = ReentrantCallbackGroup()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._snapshots = self.create_publisher(
            SceneGraphMessage, 'scene_graph/snapshot', latched(1)
        )
        self._diagnostics = self.create_publisher(DiagnosticArray, '/diagnostics', 10)
        services = QoSProfile(depth=SERVICE_DEPTH)
        self._questions = Questions(
            self,
            services,
            reentrant,
            self._follower,
            self._lock,
            self._publish_soon,
            self._guarded,
        )
        self.create_service(
            QuerySceneGraph,
            'scene_graph/query',
            self._guarded(self._on_query),
            qos_profile=services,
            callback_group=reentrant,
        )
        self.create_subscription(
            SceneGraphUpdate,
            'scene_graph/updates',
            self._guarded(self._on_update),
            latched(BURST),
            callback_group=in_order,
        )
        self._snapshot_timer = self.create_timer(
            SNAPSHOT_DELAY, self._guarded(self._publish_snapshot), timers, steady
        )
        self.create_timer(TICK, self._guarded(self._questions.look), timers, steady)
        self.create_timer(
            DIAGNOSTICS_PERIOD, self._guarded(self._publish_diagnostics), timers, steady
        )
        # The first snapshot is the graph at revision 0: the timer runs once by itself.
        self._snapshot_due = True

    def _guarded(self, callback: Callable[..., Any]) -> Callable[..., Any]:
        """Keep an exception in a callback from ending the node: it is logged and counted."""

        @functools.wraps(callback)
        def guarded(*arguments: Any) -> Any:
            try:
                return callback(*arguments)
            except Exception as error:
                if self.context.ok():
                    self.exceptions += 1
                    self.get_logger().error(f'{callback.__name__}: {describe(error)}')
                # A service must answer, whatever happened: with the response, its last argument.
                return arguments[-1] if arguments else None

        return guarded

    def _on_update(self, message: Any) -> None:
        changed = False
        with self._lock:
            if self._follower.is_old(message.graph_id, message.revision):
                return
            try:
                changed = self._follower.offer(update_from_message(message))
                problem = ''
            except ValueError as error:
                problem = str(error)
                self._unreadable += 1
                if message.graph_id and message.revision:
                    self._follower.note_unreadable(message.graph_id, message.revision)
        if problem:
            self.get_logger().error(
                f'unreadable update on scene_graph/updates ({update_name(message)}): {problem}',
                throttle_duration_sec=LOG_PERIOD,
            )
        if changed:
            self._publish_soon()
        self._questions.ask()

    def _on_query(self, request: Any, response: Any) -> Any:
        with self._lock:
            graph = self._follower.graph
            match = graph.query(request.subject, request.predicate, request.object)
            graph_id, revision = graph.graph_id, graph.revision
        response.graph = snapshot_to_message(graph_id, revision, match, self._now())
        return response

    def _publish_soon(self) -> None:
        """See to it that a change is published."""
        with self._lock:
            arm, self._snapshot_due = not self._snapshot_due, True
        if arm:
            self._snapshot_timer.reset()

    def _publish_snapshot(self) -> None:
        self._snapshot_timer.cancel()
        with self._lock:
            if not self._snapshot_due:
                return
            self._snapshot_due = False
            graph = self._follower.graph
            match, graph_id, revision = graph.query(), graph.graph_id, graph.revision
        self._snapshots.publish(snapshot_to_message(graph_id, revision, match, self._now()))

    def _publish_diagnostics(self) -> None:
        message = DiagnosticArray(status=[self._status()])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)

    def _status(self) -> Any:
        with self._lock:
            return scene_graph_status(
                self.get_fully_qualified_name(),
                self._questions.service,
                self._follower,
                self._questions.passed_over,
                reachable=self._questions.reachable,
                unreadable_messages=self._unreadable,
                exceptions=self.exceptions,
            )

    def _now(self) -> int:
        return int(self.get_clock().now().nanoseconds)


def main(args: list[str] | None = None) -> int:
    """Run the node until SIGINT or SIGTERM.

    Args:
        args: Command line; default: that of the process.

    Returns:
        Exit code: 0, or 2 for a configuration that cannot be used.
    """
    node = None
    initialized = False
    try:
        rclpy.init(args=args)
        initialized = True
        node = SceneGraphNode()
        rclpy.spin(node)
    except (HarnessEvalError, ParameterException) as error:
        print(f'scene_graph_node: {error}', file=sys.stderr)  # noqa: T201 - for the shell
        return BAD_CONFIGURATION
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except Exception:
        # A signal that comes early shuts the context down under the hands of the constructor.
        if rclpy.ok() or not initialized:
            raise
    finally:
        ignore_interrupts()
        if node is not None:
            node.destroy_node()
        rclpy.try_shutdown()
    return 0


if __name__ == '__main__':
    sys.exit(main())
