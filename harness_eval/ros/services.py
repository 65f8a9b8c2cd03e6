"""The services of the node: what is on record, interruption, judging again, released updates.

Threading: callbacks run on the executor's thread. Reading services look into the ledger through
a reader of their own, which no writer blocks; where something else holds the file they give up
after ``BUSY_TIMEOUT_MS``, which bounds what they keep the executor. The others hand over to the
pipeline and are answered when it has ruled, without holding the executor's thread.
"""

from __future__ import annotations

from collections.abc import Callable
import logging
from typing import Any

from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile
from rclpy.task import Future

from harness_eval.contract import LedgerError
from harness_eval.ledger import LedgerReader
from harness_eval.ros.messages import outcome_message
from harness_eval.ros.scene_graph_messages import update_to_message
from harness_eval_msgs.srv import GetRun, GetUpdates, InterruptRun, JudgeRun

log = logging.getLogger('harness_eval.services')

QOS = QoSProfile(history=HistoryPolicy.KEEP_LAST, depth=100)
MAX_UPDATES = 500
"""Most updates in one answer of ``scene_graph/get_updates``."""

Ask = Callable[[Callable[[], tuple[int, str]], Callable[[tuple[int, str]], None]], None]
"""Runs the first on the pipeline's thread and hands what it returns to the second."""


class Services:
    """Serves ``~/get_run``, ``~/interrupt_run``, ``~/judge_run`` and ``scene_graph/get_updates``.

    Args:
        node: The node that serves.
        group: A reentrant callback group.
        reader: Reads the ledger.
        ask: How the pipeline is asked.
        interrupt: ``Pipeline.interrupt``.
        judge_again: ``Pipeline.judge_again``.
    """

    def __init__(
        self,
        node: Node,
        group: Any,
        reader: LedgerReader,
        ask: Ask,
        interrupt: Callable[[str, str], tuple[bool, str]],
        judge_again: Callable[[str, int], tuple[int, str]],
    ) -> None:
        self._node = node
        self._reader = reader
        self._ask = ask
        self._interrupt = interrupt
        self._judge_again = judge_again
        kinds: list[tuple[Any, str, Callable[..., Any]]] = [
            (GetRun, '~/get_run', self._get_run),
            (GetUpdates, 'scene_graph/get_updates', self._get_updates),
            (InterruptRun, '~/interrupt_run', self._interrupt_run),
            (JudgeRun, '~/judge_run', self._judge_run),
        ]
        self._services = [
            node.create_service(kind, name, callback, qos_profile=QOS, callback_group=group)
            for kind, name, callback in kinds
        ]

    def close(self) -> None:
        """Stop serving."""
        for service in self._services:
            self._node.destroy_service(service)

    def _get_run(self, request: Any, response: Any) -> Any:
        """Answer what is on record.

        Raises:
            LedgerError: The ledger cannot be read. No answer is sent then, since "unknown" would
                be one, and the caller asks again.
        """
        run = self._reader.run(request.run_id)
        if run is not None:
            response.known = True
            response.tool = run.tool
            response.state = run.state.value
            response.segment = 0 if run.last is None else run.last.completion.segment
            response.outcomes = [
                outcome_message(s.outcome) for s in run.segments if s.outcome is not None
            ]
        return response

    def _get_updates(self, request: Any, response: Any) -> Any:
        limit = min(request.limit or MAX_UPDATES, MAX_UPDATES)
        try:
            graph, newest, found = self._reader.released(request.after_revision, limit)
            if request.graph_id and request.graph_id != graph:
                found = []  # the caller follows another graph: it must start again from 0
            updates = [update_to_message(update) for update in found]
        except LedgerError as error:
            log.error('%s', error)
            return response  # of no graph, which the caller takes for "not now"
        except Exception:  # the caller must not wait for ever
            log.exception('a fault in answering get_updates; the node goes on')
            return response
        response.graph_id = graph
        response.last_revision = newest
        response.updates = updates
        return response

    async def _interrupt_run(self, request: Any, response: Any) -> Any:
        reason = request.reason or 'interrupted by ~/interrupt_run'
        done, message = await self._asked(lambda: self._interrupt(request.run_id, reason))
        response.interrupted = bool(done)
        response.message = message
        return response

    async def _judge_run(self, request: Any, response: Any) -> Any:
        attempt, message = await self._asked(
            lambda: self._judge_again(request.run_id, request.segment)
        )
        response.accepted = attempt > 0
        response.attempt = attempt
        response.message = message
        return response

    def _asked(self, question: Callable[[], tuple[int, str]]) -> Any:
        future: Any = Future(executor=self._node.executor)
        future.add_done_callback(lambda _: None)  # its being called wakes the executor
        self._ask(question, future.set_result)
        return future
