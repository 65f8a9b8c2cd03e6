"""Threads for work that may block, kept for the next piece of work instead of made anew.

To start a thread takes two switches between threads, which under load cost milliseconds on the
starter's side; to hand work to one that waits already costs none.

Threading model. :meth:`Threads.run` may be called from any thread and never waits: if no thread
is idle it starts another one, so that work that hangs holds up nothing but its own thread. Where
there is a most, work waits in order for one of so many threads. An idle thread ends after a while.
All are daemon threads.
"""

from __future__ import annotations

from collections.abc import Callable
import queue
import threading

LINGER = 30.0
"""Seconds that an idle thread waits for more work."""

Work = Callable[[], None]


class Threads:
    """As many threads as there is work at the same time.

    Args:
        name: What the threads are called.
        linger: Seconds that an idle one waits for more work.
        most: Most threads; None: no limit.
    """

    def __init__(self, name: str, linger: float = LINGER, most: int | None = None) -> None:
        self._name = name
        self._linger = linger
        self._lock = threading.Lock()
        # How many threads wait for work that nobody has promised them: whoever puts work into the
        # queue has taken one off or started one, so that there is a thread for each piece. Below
        # zero it is how many pieces wait for one of the most threads to come free.
        self._idle = 0
        self._most = most
        self._threads = 0
        self._work: queue.SimpleQueue[Work] = queue.SimpleQueue()

    def run(self, work: Work) -> None:
        """Have ``work`` run on a thread that does nothing else meanwhile; return at once.

        Args:
            work: Should not raise; if it does, its thread ends.

        Raises:
            RuntimeError: The system gives no thread; ``work`` does not run. So does MemoryError.
        """
        with self._lock:
            start = self._idle <= 0 and (self._most is None or self._threads < self._most)
            if start:
                self._threads += 1
            else:
                self._idle -= 1
        if start:
            try:
                threading.Thread(target=self._serve, name=self._name, daemon=True).start()
            except (RuntimeError, MemoryError):
                with self._lock:
                    self._threads -= 1
                raise
        self._work.put(work)

    def _serve(self) -> None:
        while (work := self._next()) is not None:
            work()
            del work  # it may hold pictures, and the next wait may be long
            with self._lock:
                self._idle += 1

    def _next(self) -> Work | None:
        """Wait for more work; None when the wait is over and the thread is needed no more."""
        try:
            return self._work.get(timeout=self._linger)
        except queue.Empty:
            with self._lock:
                if self._idle > 0:
                    self._idle -= 1
                    self._threads -= 1
                    return None
            return self._work.get()  # promised a moment ago
