"""Asking ``scene_graph/get_updates`` for what the scene graph's node misses.

What to ask, and when, are rules of :mod:`harness_eval.graph_follower`; this carries its questions
to the service and the answers back.

Threads: as in :mod:`harness_eval.ros.scene_graph_node`, whose lock guards what is known here too.
Answers come back as callbacks, so nothing ever blocks on one.
"""

from __future__ import annotations

from collections.abc import Callable
import functools
import threading
import time
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile

from harness_eval.graph_follower import Answer, GraphFollower, Question
from harness_eval.lines import describe
from harness_eval.ros.scene_graph_messages import read_or_pass_over
from harness_eval_msgs.srv import GetUpdates

PAGE = 500
"""Updates asked for at a time: one answer stays well below a second of work."""


class Questions:
    """The client of the service that has all updates. One question is on its way at a time.

    Args:
        node: The node that asks.
        services: Quality of service of the client.
        group: Callback group of the client.
        follower: Says what to ask, and takes the answers.
        lock: Held for a short computation whenever the follower or what is known here is used.
        on_change: Called, without the lock, after an answer that changed the graph.
        guarded: Keeps an exception of a callback from ending the node.
    """

    def __init__(
        self,
        node: Node,
        services: QoSProfile,
        group: ReentrantCallbackGroup,
        follower: GraphFollower,
        lock: threading.Lock,
        on_change: Callable[[], None],
        guarded: Callable[[Callable[..., Any]], Callable[..., Any]],
    ) -> None:
        self._log = node.get_logger()
        self._follower = follower
        self._lock = lock
        self._on_change = on_change
        self._answered = guarded(self._on_answer)
        self._pending: Any = None
        self._server_ready = False
        self._passed_over: dict[tuple[str, int], str] = {}
        self._client = node.create_client(
            GetUpdates, 'scene_graph/get_updates', qos_profile=services, callback_group=group
        )
        self.service = node.resolve_service_name(self._client.srv_name)

    @property
    def reachable(self) -> bool:
        """Whether the service is there and answered the last question; ask with the lock held."""
        return self._server_ready and self._follower.answering

    @property
    def passed_over(self) -> list[tuple[int, str]]:
        """Revision and reason of each update that is missing from the graph, in order.

        The service's copy of it could not be read either. Ask with the lock held.
        """
        revision = self._follower.graph.revision
        return sorted(
            (key[1], why) for key, why in self._passed_over.items() if key[1] <= revision
        )

    def look(self) -> None:
        """See if the service came up and if an answer is overdue, and ask what is due."""
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
        self.ask()

    def ask(self) -> None:
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
        future.add_done_callback(functools.partial(self._answered, question))

    def _on_answer(self, question: Question, future: Any) -> None:
        now = time.monotonic()
        try:
            response = future.result()
        except Exception as error:
            self._log.warning(f'scene_graph/get_updates failed: {describe(error)}')
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
            self._log.warning(
                f'graph {after[0]!r} replaces graph {before[0]!r} at revision {before[1]}'
            )
        for (_, revision), why in unreadable.items():
            self._log.error(
                f'released revision {revision} cannot be read and is passed over; '
                f'what it says is missing from the graph: {why}'
            )
        if changed:
            self._on_change()
        self.ask()
