"""The node that keeps the scene graph: executable ``scene_graph_node``, name ``scene_graph``.

It applies the released updates of ``scene_graph/updates``, each whole, once and in order, answers
``scene_graph/query`` and publishes the graph, latched, on ``scene_graph/snapshot``. What it missed
it gets from ``scene_graph/get_updates``: at the start, on a gap, when a server comes up and every
``resync_period``. The rules are in :mod:`harness_eval.graph_follower`; this module only carries
messages and time to it.

An update that cannot be read (an unknown operation, an invalid name) is asked for again. If the
server's copy cannot be read either, its revision is passed over without a change: a graph that
stopped there would never learn anything again, and it would be wrong for longer. From then on the
node's diagnostics are at ERROR, with the revision and the reason, until another graph begins.

Threads: the node works under a single- or multi-threaded executor. One lock guards the follower
and its graph; every callback holds it for a short computation and never while it waits, sends or
publishes. Updates and timers are in mutually exclusive groups, so that updates stay in order and
snapshots do not overtake each other; the query service and the client are in a reentrant group.
The client's answers come back as callbacks, so nothing ever blocks on one. Timers run on the
steady clock: a paused simulation does not stop them.
"""

from __future__ import annotations

from collections.abc import Callable
import functools
import sys
import threading
import time
from typing import Any, TypeVar

from diagnostic_msgs.msg import DiagnosticArray
import rclpy
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup, ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile

from harness_eval.contract import HarnessEvalError
from harness_eval.graph_follower import Answer, GraphFollower, Question
from harness_eval.lines import describe
from harness_eval.ros.qos import BURST, latched
from harness_eval.ros.scene_graph_messages import (
    read_or_pass_over,
    snapshot_to_message,
    update_from_message,
    update_name,
)
from harness_eval.ros.scene_graph_parameters import asking_seconds, initial_graph
from harness_eval.ros.scene_graph_status import scene_graph_status
from harness_eval.ros.spinning import BAD_CONFIGURATION, ignore_interrupts
from harness_eval.scene_graph import SceneGraph
from harness_eval_msgs.msg import SceneGraph as SceneGraphMessage
from harness_eval_msgs.msg import SceneGraphUpdate
from harness_eval_msgs.srv import GetUpdates, QuerySceneGraph

SERVICE_DEPTH = 100
"""Requests that may wait; with the default of 10 a burst of callers would lose some."""

PAGE = 500
"""Updates asked for at a time: one answer stays well below a second of work."""

TICK = 0.2
"""Seconds between looks at what is due; a question on a gap is sent at once all the same."""

SNAPSHOT_DELAY = 0.05
"""Seconds in which further updates join the same snapshot."""

DIAGNOSTICS_PERIOD = 1.0
"""Seconds between two reports on ``/diagnostics``."""

LOG_PERIOD = 1.0
"""Seconds between two lines about unreadable messages, which anybody may publish in a flood."""

Method = TypeVar('Method', bound=Callable[..., Any])


def _guarded(method: Method) -> Method:
    """Keep an exception in a callback from ending the node: it is logged and counted."""

    @functools.wraps(method)
    def guarded(self: SceneGraphNode, *arguments: Any) -> Any:
        try:
            return method(self, *arguments)
        except Exception as error:
            if self.context.ok():
                self.exceptions += 1
                self.get_logger().error(f'{method.__name__}: {describe(error)}')
            # A service must answer with a response, whatever happened; it is the last argument.
            return arguments[-1] if arguments else None

    return guarded  # type: ignore[return-value]


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
        self._passed_over: dict[tuple[str, int], str] = {}
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
        self._pending: Any = None
        self._server_ready = False
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
        self._client = self.create_client(
            GetUpdates, 'scene_graph/get_updates', qos_profile=services, callback_group=reentrant
        )
        self.create_service(
            QuerySceneGraph,
            'scene_graph/query',
            self._on_query,
            qos_profile=services,
            callback_group=reentrant,
        )
        self.create_subscription(
            SceneGraphUpdate,
            'scene_graph/updates',
            self._on_update,
            latched(BURST),
            callback_group=in_order,
        )
        self._snapshot_timer = self.create_timer(
            SNAPSHOT_DELAY, self._publish_snapshot, timers, steady
        )
        self.create_timer(TICK, self._tick, timers, steady)
        self.create_timer(DIAGNOSTICS_PERIOD, self._publish_diagnostics, timers, steady)
        # The first snapshot is the graph at revision 0: the timer runs once by itself.
        self._snapshot_due = True

    @_guarded
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
        self._after(changed)

    @_guarded
    def _on_query(self, request: Any, response: Any) -> Any:
        with self._lock:
            graph = self._follower.graph
            match = graph.query(request.subject, request.predicate, request.object)
            graph_id, revision = graph.graph_id, graph.revision
        response.graph = snapshot_to_message(graph_id, revision, match, self._now())
        return response

    @_guarded
    def _tick(self) -> None:
        now = time.monotonic()
        ready = self._client.service_is_ready()
        with self._lock:
            appeared = ready and not self._server_ready
            self._server_ready = ready
            abandoned = None
            if appeared:
                self._follower.server_appeared(now)
            if appeared or self._follower.expired(now):
                abandoned, self._pending = self._pending, None
        if abandoned is not None:
            # Otherwise the client would keep it for ever.
            self._client.remove_pending_request(abandoned)
        self._ask()

    def _ask(self) -> None:
        """Send the next question if there is one."""
        now = time.monotonic()
        with self._lock:
            question = self._follower.next_question(now)
            if question is None:
                return
            if not self._server_ready:
                self._follower.unanswered(question, now)
                return
        request = GetUpdates.Request(
            graph_id=question.graph_id, after_revision=question.after_revision, limit=PAGE
        )
        future = self._client.call_async(request)
        with self._lock:
            self._pending = future
        future.add_done_callback(functools.partial(self._on_answer, question))

    @_guarded
    def _on_answer(self, question: Question, future: Any) -> None:
        now = time.monotonic()
        try:
            response = future.result()
        except Exception as error:
            self.get_logger().warning(f'scene_graph/get_updates failed: {describe(error)}')
            with self._lock:
                self._follower.unanswered(question, now)
            return
        if response is None:
            return
        read = [read_or_pass_over(message) for message in response.updates]
        unreadable = {(update.graph_id, update.revision): why for update, why in read if why}
        answer = Answer(
            response.graph_id, response.last_revision, tuple(update for update, _ in read)
        )
        with self._lock:
            before = self._follower.graph.graph_id, self._follower.graph.revision
            changed = self._follower.answer(question, answer, now)
            graph = self._follower.graph
            after = graph.graph_id, graph.revision
            self._passed_over = {
                key: why
                for key, why in {**self._passed_over, **unreadable}.items()
                if key[0] == graph.graph_id
            }
        if changed and before[0] not in ('', after[0]):
            self.get_logger().warning(
                f'graph {after[0]!r} replaces graph {before[0]!r} at revision {before[1]}'
            )
        for (_, revision), why in unreadable.items():
            self.get_logger().error(
                f'released revision {revision} cannot be read and is passed over; '
                f'what it says is missing from the graph: {why}'
            )
        self._after(changed)

    def _after(self, changed: bool) -> None:
        """Ask what is to be asked next, and see to it that a change is published."""
        if changed:
            with self._lock:
                arm, self._snapshot_due = not self._snapshot_due, True
            if arm:
                self._snapshot_timer.reset()
        self._ask()

    @_guarded
    def _publish_snapshot(self) -> None:
        self._snapshot_timer.cancel()
        with self._lock:
            if not self._snapshot_due:
                return
            self._snapshot_due = False
            graph = self._follower.graph
            match, graph_id, revision = graph.query(), graph.graph_id, graph.revision
        self._snapshots.publish(snapshot_to_message(graph_id, revision, match, self._now()))

    @_guarded
    def _publish_diagnostics(self) -> None:
        message = DiagnosticArray(status=[self._status()])
        message.header.stamp = self.get_clock().now().to_msg()
        self._diagnostics.publish(message)

    def _status(self) -> Any:
        with self._lock:
            revision = self._follower.graph.revision
            passed_over = sorted(
                (key[1], why) for key, why in self._passed_over.items() if key[1] <= revision
            )
            return scene_graph_status(
                self.get_fully_qualified_name(),
                self.resolve_service_name(self._client.srv_name),
                self._follower,
                passed_over,
                reachable=self._server_ready and self._follower.answering,
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
