"""The pipeline's own thread: one queue, one thread, nothing else touches the pipeline."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
import logging
import queue
import threading
import time

log = logging.getLogger('harness_eval.loop')

CAPTURE_PERIOD = 0.02
"""Seconds between looks at deadlines on the ROS clock while a capture waits."""
HEAD_START = 0.0002
"""Seconds that whoever has given way leaves to the threads that were handed work meanwhile."""
MAX_WAITING = 32 * 2**20
"""Bytes of one topic's messages that wait for the thread: a second of pictures, many of joints."""


class _Message:
    """A call about a message, until it runs or is dropped."""

    __slots__ = ('call', 'size')

    def __init__(self, call: Callable[[], None], size: int) -> None:
        self.call: Callable[[], None] | None = call
        self.size = size


class _Waiting:
    """The messages of one topic that wait, oldest first."""

    def __init__(self) -> None:
        self.messages: deque[_Message] = deque()
        self.size = 0

    def take_oldest(self) -> _Message:
        message = self.messages.popleft()
        self.size -= message.size
        return message


class Loop:
    """Runs calls one after the other on a thread of its own.

    Every other thread hands its call over with :meth:`post` and goes on. An exception in a call
    is logged and counted, and the next call runs.

    Args:
        tick: Called when time has passed, with what ``now`` gave.
        now: Reads the clock that ``tick`` is told. All calls that were posted before it is read
            run before the tick, so that a frame that came in time is seen before its deadline.
        due: Steady seconds at which ``tick`` has something to do next; None: nothing is due.
        polling: Whether ``tick`` must run all the time (a capture waits).
        on_fault: Told of every exception.

    Attributes:
        dropped: How many messages were dropped, since the thread was held up.
    """

    def __init__(
        self,
        tick: Callable[[int], None],
        now: Callable[[], int],
        due: Callable[[], float | None],
        polling: Callable[[], bool],
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self._tick = tick
        self._now = now
        self._due = due
        self._polling = polling
        self._on_fault = on_fault
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._waiting: dict[str, _Waiting] = {}
        self._waiting_lock = threading.Lock()
        self._idle = threading.Event()
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name='harness_eval', daemon=True)

    def start(self) -> None:
        """Begin to run what was and will be posted."""
        self._thread.start()

    def post(self, call: Callable[[], None]) -> None:
        """Have a call run on the thread; from any thread."""
        self._idle.clear()
        self._calls.put(call)

    def give_way(self, timeout: float) -> None:
        """Wait until the thread has nothing to do, as far as that can be told without a lock.

        Two threads that both want the interpreter take it from each other half a millisecond at
        a time, and each of them takes as long as both.

        Whoever has waited then leaves :data:`HEAD_START` to the threads that were handed work.

        Args:
            timeout: Most seconds to wait.
        """
        if not self._idle.is_set():
            self._idle.wait(timeout)
            time.sleep(HEAD_START)

    def let_go(self) -> None:
        """Have whoever gives way go on: the thread has asked it for something."""
        self._idle.set()

    def post_message(self, topic: str, size: int, call: Callable[[], None]) -> None:
        """Have a call run that holds a message; from any thread.

        While the thread is held up, the oldest messages of a topic are dropped and counted in
        :attr:`dropped`, so that those that wait do not fill the memory.

        Args:
            topic: Its topic.
            size: Bytes that the call holds.
            call: What to run.
        """
        message = _Message(call, size)
        with self._waiting_lock:
            waiting = self._waiting.setdefault(topic, _Waiting())
            waiting.messages.append(message)
            waiting.size += size
            while waiting.size > MAX_WAITING and len(waiting.messages) > 1:
                waiting.take_oldest().call = None
                self.dropped += 1
            # Here, so that they are handled in the order in which they wait.
            self.post(lambda: self._handle(waiting, message))

    def _handle(self, waiting: _Waiting, message: _Message) -> None:
        with self._waiting_lock:
            call = message.call
            if call is None:
                return  # dropped
            waiting.take_oldest()
        call()

    def stop(self, timeout: float = 5.0) -> bool:
        """Run what was posted before, then end.

        Returns:
            Whether the thread has ended within ``timeout`` seconds.
        """
        self._calls.put(None)
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._run_calls()
        finally:
            self._idle.set()  # nobody gives way to a thread that has ended

    def _run_calls(self) -> None:
        ticked = time.monotonic()
        while True:
            if self._calls.empty():
                self._idle.set()
            try:
                call = self._calls.get(timeout=self._wait(ticked))
            except queue.Empty:
                pass
            else:
                if call is None:
                    return
                self._guarded(call)
            if self._wait(ticked) == 0.0:
                ticked = time.monotonic()
                if not self._tick_in_turn():
                    return

    def _tick_in_turn(self) -> bool:
        """Run what was posted until now, then tick; False: the end was among it."""
        posted = self._calls.qsize()
        now: int | None = None
        try:
            now = self._now()
        except Exception as error:  # the context is being shut down
            log.exception('the clock could not be read')
            self._on_fault(error)
        for _ in range(posted):
            call = self._calls.get()
            if call is None:
                return False
            self._guarded(call)
        if now is not None:
            moment = now
            self._guarded(lambda: self._tick(moment))
        return True

    def _wait(self, ticked: float) -> float | None:
        """Seconds until the next tick; None: no tick is due before something else happens."""
        now = time.monotonic()
        waits = []
        try:
            if self._polling():
                waits.append(ticked + CAPTURE_PERIOD - now)
            due = self._due()
        except Exception as error:  # it must not end the thread that everything waits for
            log.exception('a fault inside harness_eval; the node goes on')
            self._on_fault(error)
            return CAPTURE_PERIOD
        if due is not None:
            waits.append(max(due, ticked + CAPTURE_PERIOD) - now)
        return max(0.0, min(waits)) if waits else None

    def _guarded(self, call: Callable[[], None]) -> None:
        try:
            call()
        except Exception as error:
            log.exception('a fault inside harness_eval; the node goes on')
            self._on_fault(error)
