"""Event loops that all asynchronous evaluators of this process are awaited on.

There are two: :data:`OWN` for the kinds of this package, and :data:`PLUGINS` for code of users, so
that a connection pool or a lock that a plugin keeps between calls belongs to one loop, and so that
a plugin that blocks its loop does not hold up a model or a vote.

Threading model. Each loop runs on a daemon thread, made when it is first needed and kept. The
thread of a call waits for the result, so deadlines, cancellation and quarantine are those of every
other call. A coroutine that blocks (``time.sleep``, ``requests``) holds up what is awaited on the
same loop: nothing can take a coroutine from one loop to another, and those calls go on, or meet
their deadlines. Calls that come later are not held up: one that the loop does not begin within
:data:`STALL` seconds begins on a new loop, which takes its place. The old one ends when the last
of its calls is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
import logging
import threading
from typing import Any

from harness_eval.evaluators.stop import Stop

STALL = 0.5
"""Seconds that a loop has to begin a call; one that takes longer is blocked by another call."""

_log = logging.getLogger('harness_eval.calls')


class SharedLoop:
    """Awaits on one thread what is handed in from many.

    Args:
        name: What its threads are called.
        stall: Seconds until the loop counts as blocked.
    """

    def __init__(self, name: str, stall: float = STALL) -> None:
        self._name = name
        self._stall = stall
        self._lock = threading.Lock()
        self._loop: _Loop | None = None

    def finish(self, awaitable: Awaitable[Any], stop: Stop) -> Any:
        """Await something on the loop, while this thread waits; a request to stop cancels it.

        Must not be called on the loop itself.

        Raises:
            RuntimeError: The system gives no thread for the loop. So does MemoryError.
            BaseException: Whatever the awaitable raises.
        """
        while True:
            loop = self._current()
            call = _Awaited(awaitable, loop)
            loop.soon(call.begin)
            if call.begun.wait(self._stall) or not call.withdraw():
                break
            self._replace(loop)
        with stop.handled_by(call.cancel):
            call.over.wait()
        if call.error is not None:
            # A new traceback each time it passes a thread would keep the pictures alive.
            raise call.error.with_traceback(None)
        return call.result

    def _current(self) -> _Loop:
        with self._lock:
            if self._loop is None or not self._loop.enter():
                self._loop = _Loop(self._name)
                self._loop.enter()
            return self._loop

    def _replace(self, blocked: _Loop) -> None:
        with self._lock:
            if self._loop is blocked:
                self._loop = None
                _log.warning(
                    '%s: a coroutine has blocked its event loop for %g s and holds up all that '
                    'are awaited there; await what it waits for, or make the judge a plain '
                    'function, which gets a thread of its own',
                    self._name,
                    self._stall,
                )
        blocked.retire()


class _Loop:
    """A loop and its thread. Counts its calls, so that it ends with the last one once retired."""

    def __init__(self, name: str) -> None:
        self._lock = threading.Lock()
        self._calls = 0
        self._retired = False
        self._loop = asyncio.new_event_loop()
        try:
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        except BaseException:
            self._loop.close()
            raise

    def enter(self) -> bool:
        """Count one call more; False: the loop takes none."""
        with self._lock:
            if not self._retired:
                self._calls += 1
            return not self._retired

    def soon(self, step: Callable[[], object]) -> None:
        """Have the loop do something for a call that entered."""
        self._loop.call_soon_threadsafe(step)

    def left(self) -> None:
        """Count one call less."""
        with self._lock:
            self._calls -= 1
            self._end_if_last()

    def retire(self) -> None:
        """Take no more calls, and end with the last one."""
        with self._lock:
            self._retired = True
            self._end_if_last()

    def _end_if_last(self) -> None:
        if self._retired and self._calls == 0:
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while True:
            try:
                self._loop.run_forever()
                break
            except BaseException:
                # sys.exit() in a task that a plugin started breaks out of the loop; the calls of
                # others are still there.
                _log.exception('a task has broken out of its event loop, which goes on')
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


class _Awaited:
    """One awaitable on its way through a loop."""

    def __init__(self, awaitable: Awaitable[Any], loop: _Loop) -> None:
        self.begun = threading.Event()
        self.over = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self._awaitable = awaitable
        self._loop = loop
        self._lock = threading.Lock()
        self._withdrawn = False
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """On the loop: begin, unless that came too late."""
        with self._lock:
            if not self._withdrawn:
                self.begun.set()
        if self._withdrawn:
            self._loop.left()
            return
        self._task = asyncio.ensure_future(self._run())

    def withdraw(self) -> bool:
        """Have it not begin; False: it has begun."""
        with self._lock:
            self._withdrawn = not self.begun.is_set()
            return self._withdrawn

    def cancel(self) -> None:
        """Cancel it, from any thread that knows it to be under way."""
        with suppress(RuntimeError):  # it ended just now, and with it the loop
            self._loop.soon(self._cancel_here)

    def _cancel_here(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            self.result = await self._awaitable
        except BaseException as error:  # SystemExit, which would end the loop, included
            self.error = error
        self.over.set()
        self._loop.left()


OWN = SharedLoop('judge-loop')
"""For the kinds of evaluators that this package brings."""

PLUGINS = SharedLoop('plugin-loop')
"""For the coroutines of plugins."""
