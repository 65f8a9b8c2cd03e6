"""What the node publishes. Publishing is safe from any thread."""

from __future__ import annotations

import threading
from typing import Any

from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CompressedImage

from harness_eval.contract import Observation
from harness_eval.ledger import REJECTED, UpdateRecord
from harness_eval.ros.messages import (
    event_message,
    outcome_message,
    rejection_message,
)
from harness_eval.ros.qos import BURST, latched
from harness_eval.ros.scene_graph_messages import update_to_message
from harness_eval.runs import Outcome
from harness_eval.stages import Event
from harness_eval_msgs.msg import (
    EvaluationEvent,
    RunOutcome,
    SceneGraphRejection,
    SceneGraphUpdate,
    Verdict,
)

LATCHED = latched(BURST)
RELIABLE = QoSProfile(depth=BURST, reliability=ReliabilityPolicy.RELIABLE)


class Publications:
    """The publishers of a managed node.

    A lifecycle publisher drops what it is given while it is inactive and says nothing; so every
    method here looks first, and says whether anything was published. A lock keeps the publishers
    open while one of them is used: what is said to be published was given to an open one.

    Args:
        node: The lifecycle node that publishes.
    """

    def __init__(self, node: Any) -> None:
        self._node = node
        self._lock = threading.Lock()
        self._opened = False

        def publisher(kind: Any, topic: str, qos: QoSProfile | int) -> Any:
            return node.create_lifecycle_publisher(kind, topic, qos)

        self._verdicts = publisher(Verdict, '~/verdicts', LATCHED)
        self._outcomes = publisher(RunOutcome, '~/outcomes', LATCHED)
        self._events = publisher(EvaluationEvent, '~/events', RELIABLE)
        self._updates = publisher(SceneGraphUpdate, 'scene_graph/updates', LATCHED)
        self._rejections = publisher(SceneGraphRejection, 'scene_graph/rejected', LATCHED)
        self._pictures = publisher(CompressedImage, '~/evidence/compressed', 10)
        self._all = (
            self._verdicts,
            self._outcomes,
            self._events,
            self._updates,
            self._rejections,
            self._pictures,
        )

    def open(self) -> None:
        """Publish from now on."""
        with self._lock:
            for publisher in self._all:
                publisher.on_activate(None)
            self._opened = True

    def shut(self) -> None:
        """Publish no more for now."""
        with self._lock:
            self._opened = False
            for publisher in self._all:
                publisher.on_deactivate(None)

    def close(self) -> None:
        """Destroy the publishers."""
        with self._lock:
            self._opened = False
            for publisher in self._all:
                self._node.destroy_publisher(publisher)

    def event(self, event: Event) -> bool:
        """Publish a step."""
        message = event_message(event)
        with self._lock:
            if self._opened:
                self._events.publish(message)
            return self._opened

    def outcome(self, outcome: Outcome) -> bool:
        """Publish an outcome, and its verdict if it has one."""
        message = outcome_message(outcome)
        with self._lock:
            if self._opened:
                if outcome.verdict is not None:
                    self._verdicts.publish(message.verdict)
                self._outcomes.publish(message)
            return self._opened

    def update(self, record: UpdateRecord, stamp: int) -> bool:
        """Publish a released update or a rejection; ``stamp`` is for the latter, nanoseconds."""
        rejected = record.state == REJECTED
        message = (
            rejection_message(record, stamp) if rejected else update_to_message(record.update)
        )
        with self._lock:
            if self._opened:
                (self._rejections if rejected else self._updates).publish(message)
            return self._opened

    @property
    def pictures_wanted(self) -> bool:
        """Whether anybody looks at the pictures."""
        with self._lock:
            return self._opened and self._pictures.get_subscription_count() > 0

    def picture(self, outcome: Outcome, observation: Observation | None) -> bool:
        """Draw the evidence of an outcome and publish it, when somebody looks."""
        if not self.pictures_wanted:
            return False
        from harness_eval.ros.evidence import picture_message

        message = picture_message(outcome, observation)
        with self._lock:
            if self._opened:
                self._pictures.publish(message)
            return self._opened
