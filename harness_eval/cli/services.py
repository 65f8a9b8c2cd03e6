"""ROS 2 services asked from the shell, with a context and a node that exist only if one is asked.

Threading: a thread of its own spins the node from :meth:`ServicesOfTheShell.start` until the end
of the ``with`` block.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
import os
import threading
from types import TracebackType
from typing import Any

from harness_eval.cli.with_ros import need_ros

JOIN_TIMEOUT = 5.0
"""Seconds that the spinning thread has to end."""


class ServicesOfTheShell:
    """Gives services by name, as :class:`harness_eval.ros.judge_service.JudgeServices` does."""

    def __init__(self) -> None:
        self._undo = ExitStack()
        self._services: Any = None
        self._executor: Any = None

    def __enter__(self) -> ServicesOfTheShell:
        """Leave the graph at the end of the block, if it was joined."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the graph."""
        self._undo.close()

    def __call__(self, name: str, most: int | None = None) -> Any:
        """The service of that name; the first one joins the graph. Without ROS this is refused."""
        if self._services is None:
            need_ros()
            self._join()
        return self._services(name, most)

    def start(self) -> None:
        """Begin to hear answers, once all services are known."""
        if self._executor is None:
            return
        thread = threading.Thread(target=self._spin, name='services', daemon=True)
        thread.start()

        def stop() -> None:
            self._executor.shutdown(timeout_sec=0.0)
            thread.join(JOIN_TIMEOUT)

        self._undo.callback(stop)

    def _join(self) -> None:
        import rclpy
        from rclpy.callback_groups import ReentrantCallbackGroup
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.node import Node

        from harness_eval.ros.judge_service import JudgeServices

        context = rclpy.Context()
        rclpy.init(args=[], context=context)
        self._undo.callback(context.try_shutdown)
        node = Node(
            f'harness_eval_try_{os.getpid()}',
            context=context,
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
        )
        self._undo.callback(node.destroy_node)
        self._executor = SingleThreadedExecutor(context=context)
        self._executor.add_node(node)
        self._services = JudgeServices(node, ReentrantCallbackGroup())
        self._undo.callback(self._services.close)

    def _spin(self) -> None:
        from rclpy.executors import ExternalShutdownException

        with suppress(ExternalShutdownException):
            self._executor.spin()
