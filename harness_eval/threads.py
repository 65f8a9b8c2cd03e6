"""Threads for work that may block, kept for the next piece of work instead of made anew.

To start a thread takes two switches between threads, which under load cost milliseconds on the
starter's side; to hand work to one that waits already costs none.

Threading model. :meth:`Threads.run` may be called from any thread and never waits: if no thread
is idle it starts another one, so that work that hangs holds up nothing but its own thread. Where
there is a most, work waits in order for one of so many threads; a thread whose work has hung for
long is replaced, and ends when its work comes back. An idle thread ends after a while. All are
daemon threads.
"""

from __future__ import annotations

from collections.abc import Callable
import logging
import queue
import threading
import time

LINGER = 30.0
"""Seconds that an idle thread waits for more work."""

HANGING = 60.0
"""Seconds of one piece of work after which its thread counts as lost; nobody waits so long."""
MOST_LOST = 64
"""Most threads that are replaced; a disk that hangs for days must not take all that there are."""

log = logging.getLogger('harness_eval.threads')

Work = Callable[[], None]


class Threads:
    """As many threads as there is work at the same time.

    Args:
        name: What the threads are called.
        linger: Seconds that an idle one waits for more work.
        most: Most threads; None: no limit.
        now: Seconds on a clock that never jumps.
    """

    def __init__(
        self,
        name: str,
        linger: float = LINGER,
        most: int | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._linger = linger
        self._lock = threading.Lock()
        # How many threads wait for work that nobody has promised them: whoever puts work into the
        # queue has taken one off or started one, so that there is a thread for each piece. Below
        # zero it is how many pieces wait for one of the most threads to come free.
        self._idle = 0
        self._most = most
        self._threads = 0
        self._now = now
        self._running: dict[threading.Thread, float] = {}  # since when each works
        self._lost: set[threading.Thread] = set()
        self._work: queue.SimpleQueue[Work] = queue.SimpleQueue()

    def run(self, work: Work) -> None:
        """Have ``work`` run on a thread that does nothing else meanwhile; return at once.

        Args:
            work: Should not raise; if it does, that is logged.

        Raises:
            RuntimeError: The system gives no thread; ``work`` does not run. So does MemoryError.
        """
        self._replace_lost()
        with self._lock:
            start = self._idle <= 0 and (self._most is None or self._threads < self._most)
            if start:
                self._threads += 1
            else:
                self._idle -= 1
        if start:
            try:
                self._start()
            except (RuntimeError, MemoryError):
                with self._lock:
                    self._threads -= 1
                raise
        self._work.put(work)

    def _start(self) -> None:
        threading.Thread(target=self._serve, name=self._name, daemon=True).start()

    def _replace_lost(self) -> None:
        """Have other threads do what waits behind work that has hung for long."""
        if self._most is None:
            return  # nothing ever waits
        with self._lock:
            if self._threads < self._most:
                return
            before = self._now() - HANGING
            hanging = [thread for thread, since in self._running.items() if since < before]
            for thread in hanging[: MOST_LOST - len(self._lost)]:
                self._lost.add(thread)
                del self._running[thread]
                self._threads -= 1
            missing = min(-self._idle, self._most - self._threads)
        for _ in range(missing):
            with self._lock:
                self._threads += 1
                self._idle += 1  # one piece that waits has a thread now
            try:
                self._start()
            except (RuntimeError, MemoryError):
                with self._lock:
                    self._threads -= 1
                    self._idle -= 1
                return

    def _serve(self) -> None:
        me = threading.current_thread()
        while (work := self._next()) is not None:
            with self._lock:
                self._running[me] = self._now()
            try:
                work()
            except BaseException:  # SystemExit too: the thread has other work to do
                log.exception('a piece of work failed; its thread goes on')
            del work  # it may hold pictures, and the next wait may be long
            with self._lock:
                if me in self._lost:
                    self._lost.remove(me)  # another thread has its place
                    return
                del self._running[me]
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
