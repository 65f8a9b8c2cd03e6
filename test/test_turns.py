"""A bound that coroutines of many event loops keep together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
import threading

from harness_eval.turns import Turns


def in_a_thread(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_never_more_than_so_many_at_a_time_and_all_get_their_turn() -> None:
    turns, lock = Turns(3), threading.Lock()
    now, most, done = [0], [0], [0]

    async def work() -> None:
        for _ in range(5):
            async with turns.one():
                with lock:
                    now[0] += 1
                    most[0] = max(most[0], now[0])
                await asyncio.sleep(0.001)
                with lock:
                    now[0] -= 1
                    done[0] += 1

    async def two() -> None:
        await asyncio.gather(work(), work())

    for thread in [in_a_thread(lambda: asyncio.run(two())) for _ in range(6)]:
        thread.join(20.0)
    assert (most[0], done[0], now[0]) == (3, 60, 0)


def test_whoever_gives_up_waiting_takes_no_turn_with_it() -> None:
    async def play() -> list[str]:
        turns, order = Turns(1), []

        async def take(name: str) -> None:
            async with turns.one():
                order.append(name)
                await asyncio.sleep(0.01)

        first = asyncio.ensure_future(take('first'))
        await asyncio.sleep(0)
        second = asyncio.ensure_future(take('second'))
        third = asyncio.ensure_future(take('third'))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.wait_for(asyncio.gather(first, third), 5.0)
        await asyncio.wait_for(take('fourth'), 5.0)
        return order

    assert asyncio.run(play()) == ['first', 'third', 'fourth']


def test_a_turn_that_comes_to_one_who_is_just_giving_up_goes_on_to_the_next() -> None:
    async def play() -> None:
        turns = Turns(1)
        held = turns.one()
        await held.__aenter__()
        waits = asyncio.ensure_future(turns._begin())
        await asyncio.sleep(0)
        await held.__aexit__(None, None, None)  # the turn is on its way
        waits.cancel()
        await asyncio.wait({waits})

        async def next_one() -> None:
            async with turns.one():
                pass

        await asyncio.wait_for(next_one(), 5.0)

    asyncio.run(play())


def test_a_loop_that_was_closed_while_it_waited_holds_up_nobody() -> None:
    turns = Turns(1)
    taken, go = threading.Event(), threading.Event()

    async def hold() -> None:
        async with turns.one():
            taken.set()
            await asyncio.to_thread(go.wait, 10.0)

    holder = in_a_thread(lambda: asyncio.run(hold()))
    assert taken.wait(5.0)
    loop = asyncio.new_event_loop()
    task = loop.create_task(turns._begin())
    loop.call_later(0.01, loop.stop)
    loop.run_forever()
    loop.close()
    go.set()
    holder.join(5.0)

    async def next_one() -> None:
        async with turns.one():
            pass

    asyncio.run(asyncio.wait_for(next_one(), 5.0))
    assert not task.done()
