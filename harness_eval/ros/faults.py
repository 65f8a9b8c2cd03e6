"""Faults inside a node: counted for good, told for a while."""

from __future__ import annotations

import threading
import time

from harness_eval.lines import clean_line, describe

FAULT_SHOWN = 60.0
"""Seconds that a fault inside the node is shown as a warning; it stays counted."""
LONGEST = 200
"""Characters of a fault that are shown."""


class Faults:
    """What failed inside a node; may be told and asked from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._newest = ''
        self._at = 0.0  # steady seconds

    def note(self, error: BaseException) -> None:
        """Count a fault, and show it for a while."""
        text = clean_line(describe(error), LONGEST)
        with self._lock:
            self._count += 1
            self._newest = text
            self._at = time.monotonic()

    @property
    def count(self) -> int:
        """How many there were."""
        with self._lock:
            return self._count

    @property
    def newest(self) -> str:
        """The newest one, in one line; empty if there was none lately."""
        with self._lock:
            return self._newest if time.monotonic() - self._at < FAULT_SHOWN else ''
