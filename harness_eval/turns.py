"""A bound on how much happens at the same time, for coroutines of several event loops.

:class:`asyncio.Semaphore` belongs to one loop; here each judge may wait in a loop of its own.
Nobody's wait blocks a loop or a thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
import threading


class Turns:
    """Lets so many through at a time, the others in the order in which they came.

    Args:
        most: How many, at least 1.
    """

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._free = most
        self._waiting: deque[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Wait for a turn, and end it with the block."""
        await self._begin()
        try:
            yield
        finally:
            self._end()

    async def _begin(self) -> None:
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._free > 0:
                self._free -= 1
                return
            turn = loop.create_future()
            entry = (loop, turn)
            self._waiting.append(entry)
        try:
            await turn
        except BaseException:  # cancelled, perhaps in the moment in which the turn came
            with self._lock:
                given = entry not in self._waiting
                if not given:
                    self._waiting.remove(entry)
            if given:
                self._end()
            raise

    def _end(self) -> None:
        with self._lock:
            while self._waiting:
                loop, turn = self._waiting.popleft()
                try:
                    loop.call_soon_threadsafe(_give, turn)
                except RuntimeError:  # its loop was closed without a word
                    continue
                return
            self._free += 1


def _give(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
