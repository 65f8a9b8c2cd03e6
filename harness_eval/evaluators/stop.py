"""Asking a call under way to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import threading


class Stop:
    """Asks one call to stop; what that takes is known only to whatever runs it.

    Thread-safe: the watchdog requests, the call's thread says what to do about it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requested = False
        self._action: Callable[[], None] | None = None

    def request(self) -> None:
        """Stop the call if it can be stopped; later registrations act at once."""
        with self._lock:
            self._requested = True
            if self._action is not None:
                self._action()

    @contextmanager
    def handled_by(self, action: Callable[[], None]) -> Iterator[None]:
        """Within the context a request calls ``action``, which must not block."""
        with self._lock:
            self._action = action
            if self._requested:
                action()
        try:
            yield
        finally:
            with self._lock:
                self._action = None
