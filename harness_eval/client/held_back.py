"""Entities that no executor looks at before they are whole."""

from __future__ import annotations

from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node


class HeldBack(ReentrantCallbackGroup):
    """A callback group whose entities are seen by the executor once it is opened.

    rclpy's ``ActionClient`` (Kilted) joins its node before it has all its attributes, so that a
    node that spins already ends with an ``AttributeError`` if it looks at that moment.
    """

    def __init__(self) -> None:
        """Hold back what is made in it."""
        super().__init__()
        self._opened = False

    def can_execute(self, entity: Any) -> bool:
        """Whether the executor may wait for it."""
        return self._opened

    def open(self, node: Node) -> None:
        """Have the executor of a node see what is in it from now on."""
        self._opened = True
        executor = node.executor
        if executor is not None:
            executor.wake()
