"""A node of the client's own, for an agent that has none."""

from __future__ import annotations

import atexit
import contextlib
import threading
import uuid

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node


class OwnNode:
    """A context, a node and a thread that spins it."""

    def __init__(self) -> None:
        self._context = rclpy.Context()
        rclpy.init(context=self._context)
        name = f'harness_eval_client_{uuid.uuid4().hex[:8]}'
        self.node = Node(name, context=self._context, start_parameter_services=False)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._spin, name=name, daemon=True)
        self._thread.start()
        # A daemon thread that is inside rclpy when the interpreter goes down aborts the process.
        atexit.register(self.close)

    def close(self) -> None:
        """End the thread and give up the node."""
        atexit.unregister(self.close)
        self._executor.shutdown(timeout_sec=2.0)
        self._thread.join(2.0)
        self.node.destroy_node()
        self._context.try_shutdown()

    def _spin(self) -> None:
        with contextlib.suppress(ExternalShutdownException):
            self._executor.spin()
