"""What the player of the demo hears: outcomes, evidence pictures and the scene graph.

Threads: messages come on the executor's thread, the player waits for them on its own.
"""

from __future__ import annotations

from pathlib import Path
import queue
import threading
import time
from typing import Any, Final

from rclpy.node import Node
from sensor_msgs.msg import CompressedImage

from harness_eval.contract import HarnessEvalError
from harness_eval.outcome_messages import outcome_of_message
from harness_eval.ros.qos import BURST, latched
from harness_eval.runs import Outcome
from harness_eval_msgs.msg import RunOutcome, SceneGraph

SERVER: Final = 'harness_eval'
OUTCOME_TIMEOUT: Final = 40.0
_GRAPH_TIMEOUT: Final = 5.0
_PICTURE_TIMEOUT: Final = 3.0
_LATCHED: Final = latched(BURST)


class DemoError(HarnessEvalError):
    """The demo cannot be played to its end."""


class Ears:
    """What the player hears: outcomes, evidence pictures and the scene graph.

    Args:
        node: The player's node.
        pictures: Folder for the evidence pictures.
    """

    def __init__(self, node: Node, pictures: Path) -> None:
        """Subscribe."""
        self._folder = pictures
        self._outcomes: queue.SimpleQueue[tuple[float, Outcome]] = queue.SimpleQueue()
        self._heard: dict[tuple[str, int], tuple[float, Outcome]] = {}
        self._names: dict[str, str] = {}
        self._saved: set[str] = set()
        self._graph: Any = None
        self._changed = threading.Condition()
        node.create_subscription(RunOutcome, f'{SERVER}/outcomes', self._on_outcome, _LATCHED)
        node.create_subscription(
            CompressedImage, f'{SERVER}/evidence/compressed', self._on_picture, 10
        )
        node.create_subscription(SceneGraph, 'scene_graph/snapshot', self._on_graph, _LATCHED)

    def expect(self, run_id: str, segment: int, name: str) -> None:
        """Save the evidence picture of this segment under this name."""
        with self._changed:
            self._names[f'{run_id}/{segment}'] = name

    def outcome(self, run_id: str, segment: int) -> tuple[float, Outcome]:
        """Wait for an outcome; gives the steady seconds of its arrival with it.

        Raises:
            DemoError: None came in time.
        """
        deadline = time.monotonic() + OUTCOME_TIMEOUT
        while (run_id, segment) not in self._heard:
            try:
                arrival, outcome = self._outcomes.get(
                    timeout=max(0.0, deadline - time.monotonic())
                )
            except queue.Empty:
                raise DemoError(
                    f'no outcome of {run_id} segment {segment} on {SERVER}/outcomes within '
                    f'{OUTCOME_TIMEOUT:g} s'
                ) from None
            self._heard[outcome.run_id, outcome.segment] = (arrival, outcome)
        return self._heard[run_id, segment]

    def graph(self, revision: int) -> Any:
        """Wait until the scene graph has come to a revision; gives what there is if not."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._graph is not None and self._graph.revision >= revision,
                _GRAPH_TIMEOUT,
            )
            return self._graph

    def wait_for_pictures(self) -> None:
        """Wait a little for evidence pictures that are still on their way."""
        with self._changed:
            self._changed.wait_for(lambda: self._saved >= self._names.keys(), _PICTURE_TIMEOUT)

    def _on_outcome(self, message: Any) -> None:
        self._outcomes.put((time.monotonic(), outcome_of_message(message)))

    def _on_graph(self, message: Any) -> None:
        with self._changed:
            self._graph = message
            self._changed.notify_all()

    def _on_picture(self, message: Any) -> None:
        key = message.header.frame_id
        with self._changed:
            name = self._names.get(key)
        if name is None:
            return
        suffix = 'png' if 'png' in message.format else 'jpg'
        (self._folder / f'{name}.{suffix}').write_bytes(bytes(message.data))
        with self._changed:
            self._saved.add(key)
            self._changed.notify_all()
