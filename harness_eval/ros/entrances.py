"""What comes into the node, and is handed over to the pipeline at once.

Threading: all callbacks run on the executor's thread. They store the receipt time and post to the
pipeline's thread, where completions are read; none waits, decodes or judges. An exception in one
is caught, counted and shown in ``/diagnostics``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
import logging
from typing import Any

from rclpy.node import Node

from harness_eval.completions import CompletionReader
from harness_eval.config.models import CompletionSource
from harness_eval.contract import DecodeError
from harness_eval.decode import Decoder
from harness_eval.ledger import LedgerReader
from harness_eval.lines import describe, redact
from harness_eval.pipeline import Pipeline, Waiter
from harness_eval.ros.completion_subscriptions import CompletionSubscriptions
from harness_eval.ros.evaluate_server import EvaluateServer
from harness_eval.ros.publications import RELIABLE
from harness_eval.ros.scene_graph_messages import update_from_message
from harness_eval.ros.services import Services
from harness_eval.runs import Completion
from harness_eval.scene_graph import Update
from harness_eval.stages import Event
from harness_eval_msgs.msg import SceneGraphUpdate

log = logging.getLogger('harness_eval.node')


class Entrances:
    """Subscriptions, the action and the services, while the node is active.

    Args:
        node: The node.
        group: A reentrant callback group.
        sources: Where completions come from.
        decoder: Reads their messages.
        reader: Reads the ledger.
        pipeline: Takes everything.
        post: Has a call run on the pipeline's thread.
        active: Whether the node is active.
        on_fault: Told of exceptions.
    """

    def __init__(
        self,
        node: Node,
        group: Any,
        sources: Iterable[CompletionSource],
        decoder: Decoder,
        reader: LedgerReader,
        pipeline: Pipeline,
        post: Callable[[Callable[[], None]], None],
        active: Callable[[], bool],
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self._node = node
        self._pipeline = pipeline
        self._post = post
        self._on_fault = on_fault
        self.unreadable = ''
        started = node.get_clock().now().nanoseconds
        readers = [CompletionReader(source, decoder, started) for source in sources]
        self._completions: CompletionSubscriptions | None = CompletionSubscriptions(
            node, readers, self._completion, group
        )
        self._proposals: Any = node.create_subscription(
            SceneGraphUpdate,
            'scene_graph/proposed',
            self._guarded(self._proposal),
            RELIABLE,
            callback_group=group,
        )
        self._server = EvaluateServer(node, group, active, self._complete, self._interrupt)
        self._services = Services(
            node, group, reader, self._ask, pipeline.interrupt, pipeline.judge_again
        )

    def event(self, event: Event) -> None:
        """Send a step to the goals that wait for its segment; from any thread."""
        self._server.event(event)

    def stop_listening(self) -> None:
        """Take no more completions and proposals; goals and services are answered still."""
        if self._completions is not None:
            self._completions.close()
            self._node.destroy_subscription(self._proposals)
            self._completions = self._proposals = None

    def close(self) -> None:
        """Destroy everything."""
        self.stop_listening()
        self._services.close()
        self._server.close()

    def _guarded(self, callback: Callable[[Any], None]) -> Callable[[Any], None]:
        """Keep an exception of a callback from stopping the executor."""

        def guarded(message: Any) -> None:
            try:
                callback(message)
            except Exception as error:
                log.exception('a fault inside harness_eval; the node goes on')
                self._on_fault(error)

        return guarded

    def _completion(self, reader: CompletionReader, data: bytes) -> None:
        try:
            receipt = self._node.get_clock().now().nanoseconds
            self._post(lambda: self._read(reader, data, receipt))
        except Exception as error:  # it must not stop the executor
            log.exception('a fault inside harness_eval; the node goes on')
            self._on_fault(error)

    def _read(self, reader: CompletionReader, data: bytes, receipt: int) -> None:
        """Read a message, on the pipeline's thread: the first one may import much."""
        try:
            completions = reader.read(data)
        except DecodeError as error:
            self.unreadable = f'{reader.topic}: {error.message}'
            log.error('a completion on %s cannot be read: %s', reader.topic, error.message)
            return
        for completion in completions:
            self._pipeline.completion(completion, receipt, None)

    def _complete(self, completion: Completion, receipt: int, waiter: Waiter | None) -> None:
        self._post(lambda: self._pipeline.completion(completion, receipt, waiter))

    def _proposal(self, message: Any) -> None:
        try:
            update = replace(update_from_message(message), graph_id='', revision=0)
        except ValueError as error:
            reason = redact(str(error))
            bare = Update(run_id=message.run_id, update_id=message.update_id, ops=())
            self._post(lambda: self._pipeline.refuse_proposal(bare, reason))
            return
        self._post(lambda: self._pipeline.propose(update))

    def _interrupt(self, run_id: str, reason: str) -> None:
        self._ask(lambda: self._pipeline.interrupt(run_id, reason), lambda _: None)

    def _ask(
        self,
        question: Callable[[], tuple[int, str]],
        answer: Callable[[tuple[int, str]], None],
    ) -> None:
        def ask() -> None:
            try:
                answer(question())
            except Exception as error:  # whoever asked must not wait for ever
                answer((0, f'an internal fault: {describe(error)}'))
                raise

        self._post(ask)
