"""How often the node's clock has gone back: a simulation that is reset, a bag that loops."""

from __future__ import annotations

BACK_NS = 1_000_000
"""How far times of one source, which come in order, must go back to show it."""
BACK_ACROSS_NS = 250_000_000
"""The same for times of different sources, which may overtake each other on a busy machine."""


class Eras:
    """Counts how often a clock went back, from all times that were read from it. Pure.

    Args:
        count: How often it had gone back before.
        newest: Newest time since, in nanoseconds; 0: none.
    """

    def __init__(self, count: int = 0, newest: int = 0) -> None:
        self.count = count
        self._newest = newest
        self._last: dict[str, int] = {}

    def see(self, source: str, now: int) -> None:
        """Take one more time.

        Args:
            source: Where it was read; the times of one source come in order.
            now: Nanoseconds; 0, before the first ``/clock``, says nothing.
        """
        if now <= 0:
            return
        last = self._last.get(source, now)
        if now <= last - BACK_NS or now <= self._newest - BACK_ACROSS_NS:
            self.jumped()
        self._last[source] = now
        self._newest = max(self._newest, now)

    def jumped(self) -> None:
        """The clock has gone back, whatever times were seen."""
        self.count += 1
        self._newest = 0
        self._last.clear()
