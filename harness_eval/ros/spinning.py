"""Spinning that outlives an exception of a callback, and an ending that nothing cuts short.

rclpy's executors let an exception of a callback out of ``spin``, which ends the process. Callbacks
of ours catch their own; this is for those of rclpy (services, actions, parameters) around them.
"""

from __future__ import annotations

from collections.abc import Callable
import logging
import signal

from rclpy.executors import (
    Executor,
    ExternalShutdownException,
    ShutdownException,
    SingleThreadedExecutor,
)

log = logging.getLogger('harness_eval.node')

BAD_CONFIGURATION = 2
"""Exit code of a node for bad usage or configuration, or a ledger that cannot be used."""


class GivingWay(SingleThreadedExecutor):
    """An executor that lets another thread finish before it looks for the next callback.

    To look for one takes half a millisecond of Python.

    Args:
        give_way: Called after each callback; must return soon.
    """

    def __init__(self, give_way: Callable[[], None]) -> None:
        super().__init__()
        self._give_way = give_way

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for a callback, run it, and give way."""
        super().spin_once(timeout_sec)
        self._give_way()


def spin_on(executor: Executor, on_fault: Callable[[BaseException], None]) -> None:
    """Spin until the context is shut down.

    Args:
        executor: The executor.
        on_fault: Told of every exception that a callback let out.

    Raises:
        ExternalShutdownException: The context was shut down.
        KeyboardInterrupt: The process was interrupted.
    """
    while True:
        try:
            executor.spin()
            return
        except (ExternalShutdownException, ShutdownException, KeyboardInterrupt):
            raise
        except Exception as error:
            if not executor.context.ok():  # it was shut down between two looks at it
                raise ExternalShutdownException from error
            log.exception('a callback failed; the node goes on')
            on_fault(error)


def ignore_interrupts() -> None:
    """Let SIGINT do nothing from now on, while the process closes what it has open and ends.

    On Ctrl-C the terminal and ``ros2 launch`` each send one, and the second would cut the ending
    short. SIGTERM and SIGKILL, which launch sends to what does not end, still work.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
