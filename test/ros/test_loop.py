"""The pipeline's thread: one call after the other, faults caught, deadlines never starved."""

from __future__ import annotations

from collections.abc import Callable
import threading
import time

from harness_eval.ros.loop import Loop, MAX_WAITING

GUARD = 10.0


def loop_of(
    tick: Callable[[], None] = lambda: None,
    due: Callable[[], float | None] = lambda: None,
    polling: Callable[[], bool] = lambda: False,
    faults: list[BaseException] | None = None,
) -> Loop:
    loop = Loop(
        lambda now: tick(), lambda: 0, due, polling, (faults if faults is not None else []).append
    )
    loop.start()
    return loop


def test_calls_run_in_order_on_one_thread_and_stop_runs_what_was_posted() -> None:
    seen: list[tuple[int, int]] = []
    loop = loop_of()
    for number in range(100):
        loop.post(lambda number=number: seen.append((number, threading.get_ident())))
    assert loop.stop()
    assert [number for number, _ in seen] == list(range(100))
    assert len({thread for _, thread in seen}) == 1


def test_an_exception_is_told_and_the_next_call_runs() -> None:
    faults: list[BaseException] = []
    done = threading.Event()
    loop = loop_of(faults=faults)
    loop.post(lambda: 1 / 0)
    loop.post(done.set)
    assert done.wait(GUARD)
    assert [type(fault) for fault in faults] == [ZeroDivisionError]
    loop.stop()


def test_it_ticks_all_the_time_while_a_capture_waits_even_in_a_flood_of_calls() -> None:
    ticked = threading.Event()
    ticks: list[float] = []

    def tick() -> None:
        ticks.append(time.monotonic())
        if len(ticks) >= 3:
            ticked.set()

    loop = loop_of(tick=tick, polling=lambda: True)

    def flood() -> None:
        if not ticked.is_set():
            loop.post(flood)

    loop.post(flood)
    assert ticked.wait(GUARD)
    loop.stop()


def test_it_ticks_when_something_is_due_and_not_before() -> None:
    ticked = threading.Event()
    due = [time.monotonic() + 0.2]

    def tick() -> None:
        ticked.set()
        due[0] = time.monotonic() + 3600.0

    first = due[0]
    loop = loop_of(tick=tick, due=lambda: due[0])
    assert ticked.wait(GUARD)
    assert time.monotonic() >= first
    loop.stop()


def test_nothing_runs_while_nothing_is_due() -> None:
    ticks: list[None] = []
    idle = threading.Event()
    loop = loop_of(tick=lambda: ticks.append(None))
    loop.post(idle.set)
    assert idle.wait(GUARD)
    assert loop.stop()
    assert not ticks


def test_what_was_posted_before_the_time_is_read_runs_before_the_tick_that_is_told_it() -> None:
    seen: list[str] = []
    blocked, release, ticked = threading.Event(), threading.Event(), threading.Event()

    def tick(now: int) -> None:
        seen.append('tick')
        if 'frame' in seen:
            ticked.set()

    loop = Loop(tick, lambda: 0, lambda: None, lambda: True, lambda error: None)

    def slow() -> None:
        blocked.set()
        release.wait(GUARD)  # longer than the period of ticks, so that one is due after this
        time.sleep(0.05)

    loop.post(slow)
    loop.start()
    assert blocked.wait(GUARD)
    for _ in range(3):
        loop.post(lambda: seen.append('frame'))
    release.set()
    assert ticked.wait(GUARD)
    loop.stop()
    assert seen[:4] == ['frame', 'frame', 'frame', 'tick']


def test_while_the_thread_is_held_up_the_newest_messages_of_each_topic_are_kept() -> None:
    seen: list[str] = []
    loop = Loop(lambda now: None, lambda: 0, lambda: None, lambda: False, lambda error: None)
    for number in range(10):  # it has not started yet, so nothing is handled
        text = f'picture {number}'
        loop.post_message('camera', MAX_WAITING // 3, lambda text=text: seen.append(text))
        loop.post_message('joints', 100, lambda number=number: seen.append(f'joints {number}'))
    loop.post(lambda: seen.append('completion'))
    loop.start()
    assert loop.stop()
    assert [s for s in seen if s.startswith('joints')] == [f'joints {n}' for n in range(10)]
    assert [s for s in seen if s.startswith('picture')] == ['picture 7', 'picture 8', 'picture 9']
    assert seen[-1] == 'completion'
    assert loop.dropped == 7


def test_a_message_that_is_larger_than_all_that_may_wait_is_handled() -> None:
    seen: list[int] = []
    loop = Loop(lambda now: None, lambda: 0, lambda: None, lambda: False, lambda error: None)
    for number in range(2):
        loop.post_message('camera', MAX_WAITING + 1, lambda number=number: seen.append(number))
    loop.start()
    assert loop.stop()
    assert (seen, loop.dropped) == ([1], 1)


def test_messages_that_are_handled_in_time_are_never_dropped() -> None:
    loop = loop_of()
    seen: list[int] = []
    for number in range(20):
        handled = threading.Event()

        def call(number: int = number, handled: threading.Event = handled) -> None:
            seen.append(number)
            handled.set()

        loop.post_message('camera', MAX_WAITING // 2, call)
        assert handled.wait(GUARD)
    loop.stop()
    assert (seen, loop.dropped) == (list(range(20)), 0)


def test_whoever_gives_way_waits_for_what_was_posted_and_no_longer_than_it_says() -> None:
    loop = loop_of()
    began, release = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        release.wait(GUARD)

    loop.post(work)
    assert began.wait(GUARD)
    asked = time.monotonic()
    loop.give_way(0.05)
    assert time.monotonic() - asked >= 0.05, 'the work goes on'
    release.set()
    asked = time.monotonic()
    loop.give_way(GUARD)
    assert time.monotonic() - asked < GUARD / 2, 'the work has ended'
    loop.stop()
    loop.give_way(GUARD)
    assert time.monotonic() - asked < GUARD / 2, 'nobody waits for a thread that has ended'


def test_whoever_gives_way_goes_on_when_the_thread_asks_for_something() -> None:
    free = threading.Event()
    loop = loop_of()

    def call() -> None:
        loop.let_go()
        free.wait(GUARD)

    loop.post(call)
    began = time.monotonic()
    loop.give_way(GUARD)
    waited = time.monotonic() - began
    free.set()
    assert loop.stop()
    assert waited < GUARD / 2
