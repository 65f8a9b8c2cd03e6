"""Say now and then that a long step is still at work, so that nobody takes it for dead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import contextlib
import threading
import time

PERIOD = 15.0
"""Seconds between two lines."""


@contextlib.contextmanager
def heartbeat(what: str, say: Callable[[str], None], period: float = PERIOD) -> Iterator[None]:
    """Say every so often how long a block has been at work.

    Args:
        what: Name of the work.
        say: Takes each line; called on a thread of its own, never after the end of the block.
        period: Seconds between two lines.
    """
    start = time.monotonic()
    over = threading.Event()

    def tell() -> None:
        while not over.wait(period):
            say(f'{what}: still at work after {time.monotonic() - start:.0f} s')

    thread = threading.Thread(target=tell, name='heartbeat', daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
