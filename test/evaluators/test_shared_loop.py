"""The event loop that all asynchronous evaluators share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
import logging
from queue import Queue
import sys
import threading
from typing import Any

import pytest

from harness_eval.evaluators.running import loop_of
from harness_eval.evaluators.shared_loop import SharedLoop
from harness_eval.evaluators.stop import Stop

PATIENCE = 20.0


def on_thread(loop: SharedLoop, make: Callable[[], Awaitable[Any]], stop: Stop) -> Queue[Any]:
    """Have a thread of its own await something, and give its result or error."""
    results: Queue[Any] = Queue()

    def work() -> None:
        try:
            results.put(loop.finish(make(), stop))
        except BaseException as error:
            results.put(error)

    threading.Thread(target=work, daemon=True).start()
    return results


async def which_loop() -> tuple[int, str]:
    return id(asyncio.get_running_loop()), threading.current_thread().name


def test_all_are_awaited_on_one_loop_of_one_thread() -> None:
    loop = SharedLoop('test-loop')
    found = {on_thread(loop, which_loop, Stop()).get(timeout=PATIENCE) for _ in range(5)}
    assert len(found) == 1
    assert found.pop()[1] == 'test-loop'


def test_plugins_have_a_loop_of_their_own() -> None:
    assert loop_of('plugin') is not loop_of('vote')
    assert loop_of('model') is loop_of('vote') is loop_of('endpoint')


def test_calls_wait_at_the_same_time() -> None:
    loop = SharedLoop('test-loop')
    barrier: list[asyncio.Event] = []
    together = 8
    arrived = 0

    async def meet() -> bool:
        nonlocal arrived
        if not barrier:
            barrier.append(asyncio.Event())
        arrived += 1
        if arrived == together:
            barrier[0].set()
        return await asyncio.wait_for(barrier[0].wait(), PATIENCE)

    results = [on_thread(loop, meet, Stop()) for _ in range(together)]
    assert all(result.get(timeout=PATIENCE) is True for result in results)


@pytest.mark.parametrize('raised', [ValueError('no'), SystemExit(3), asyncio.CancelledError()])
def test_what_is_raised_reaches_the_caller_and_ends_nothing_else(raised: BaseException) -> None:
    loop = SharedLoop('test-loop')

    async def fail() -> None:
        raise raised

    before = on_thread(loop, which_loop, Stop()).get(timeout=PATIENCE)
    assert on_thread(loop, fail, Stop()).get(timeout=PATIENCE) is raised
    assert on_thread(loop, which_loop, Stop()).get(timeout=PATIENCE) == before


def test_a_task_that_exits_does_not_end_the_loop_of_the_others() -> None:
    loop = SharedLoop('test-loop')
    kept: list[asyncio.Task[None]] = []

    async def leave() -> None:
        sys.exit(3)

    async def start_one_that_leaves() -> bool:
        kept.append(asyncio.ensure_future(leave()))
        await asyncio.sleep(0.01)
        return True

    assert on_thread(loop, start_one_that_leaves, Stop()).get(timeout=PATIENCE) is True


def test_a_request_to_stop_cancels_only_the_call_that_it_is_for() -> None:
    loop, stop = SharedLoop('test-loop'), Stop()
    begun: Queue[None] = Queue()
    end: list[asyncio.Event] = []

    async def wait() -> bool:
        end.append(asyncio.Event())
        begun.put(None)
        return await end[-1].wait()

    async def let_go() -> None:
        end[0].set()

    other = on_thread(loop, wait, Stop())
    begun.get(timeout=PATIENCE)
    stopped = on_thread(loop, wait, stop)
    begun.get(timeout=PATIENCE)
    stop.request()
    assert isinstance(stopped.get(timeout=PATIENCE), asyncio.CancelledError)
    on_thread(loop, let_go, Stop())
    assert other.get(timeout=PATIENCE) is True


def test_a_coroutine_that_blocks_does_not_hold_up_those_that_come_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = SharedLoop('test-loop', stall=0.05)
    release, blocked = threading.Event(), threading.Event()

    async def block() -> tuple[int, str]:
        blocked.set()
        release.wait(PATIENCE)
        return await which_loop()

    with caplog.at_level(logging.WARNING, 'harness_eval.calls'):
        held = on_thread(loop, block, Stop())
        assert blocked.wait(PATIENCE)
        later = on_thread(loop, which_loop, Stop()).get(timeout=PATIENCE)
        assert held.empty()
        assert caplog.text.count('has blocked its event loop') == 1
    release.set()
    assert held.get(timeout=PATIENCE) != later
    assert on_thread(loop, which_loop, Stop()).get(timeout=PATIENCE) == later


def test_a_loop_that_was_replaced_ends_with_its_last_call() -> None:
    loop = SharedLoop('test-loop-that-ends', stall=0.05)
    release, blocked = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    async def block() -> None:
        threads.append(threading.current_thread())
        blocked.set()
        release.wait(PATIENCE)

    held = on_thread(loop, block, Stop())
    assert blocked.wait(PATIENCE)
    on_thread(loop, which_loop, Stop()).get(timeout=PATIENCE)
    release.set()
    held.get(timeout=PATIENCE)
    threads[0].join(PATIENCE)
    assert not threads[0].is_alive()
