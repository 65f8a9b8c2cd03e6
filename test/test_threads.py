"""Threads that are kept for the next piece of work, and never waited for."""

from __future__ import annotations

from queue import SimpleQueue
import threading

import pytest

from harness_eval.threads import HANGING, Threads

PATIENCE = 10.0


def test_work_runs_on_another_daemon_thread_that_is_used_again() -> None:
    threads = Threads('test')
    served: SimpleQueue[threading.Thread] = SimpleQueue()
    threads.run(lambda: served.put(threading.current_thread()))
    first = served.get(timeout=PATIENCE)
    assert first is not threading.current_thread()
    assert first.daemon
    used_again = set()
    while first not in used_again:  # the thread is idle a moment after its work said so
        threads.run(lambda: served.put(threading.current_thread()))
        used_again.add(served.get(timeout=PATIENCE))


def test_work_that_hangs_holds_up_nothing_else() -> None:
    threads = Threads('test')
    release = threading.Event()
    done: SimpleQueue[int] = SimpleQueue()
    for _ in range(5):
        threads.run(lambda: (release.wait(PATIENCE), None)[1])
    for number in range(5):
        threads.run(lambda number=number: done.put(number))  # type: ignore[misc]
    assert sorted(done.get(timeout=PATIENCE) for _ in range(5)) == [0, 1, 2, 3, 4]
    release.set()


def test_every_piece_of_work_runs_once_however_it_meets_the_end_of_idle_threads() -> None:
    threads = Threads('test', linger=0.0)
    done: SimpleQueue[int] = SimpleQueue()
    for number in range(500):
        threads.run(lambda number=number: done.put(number))  # type: ignore[misc]
    assert sorted(done.get(timeout=PATIENCE) for _ in range(500)) == list(range(500))
    assert done.empty()


def test_an_idle_thread_ends() -> None:
    threads = Threads('test', linger=0.0)
    served: SimpleQueue[threading.Thread] = SimpleQueue()
    threads.run(lambda: served.put(threading.current_thread()))
    thread = served.get(timeout=PATIENCE)
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_system_that_gives_no_thread_is_told_to_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, 'start', refuse)
    with pytest.raises(RuntimeError):
        Threads('test').run(lambda: None)


@pytest.mark.parametrize('error', [RuntimeError, SystemExit])
def test_work_that_raises_costs_no_thread(error: type[BaseException]) -> None:
    threads = Threads('test', most=1)

    def fail() -> None:
        raise error('odd')

    done: SimpleQueue[int] = SimpleQueue()
    for number in range(3):
        threads.run(fail)
        threads.run(lambda number=number: done.put(number))  # type: ignore[misc]
    assert [done.get(timeout=PATIENCE) for _ in range(3)] == [0, 1, 2]


def test_threads_whose_work_hangs_are_replaced_and_end_when_it_comes_back() -> None:
    now = [0.0]
    threads = Threads('test', most=2, now=lambda: now[0])
    release = threading.Event()
    hung: SimpleQueue[threading.Thread] = SimpleQueue()
    done: SimpleQueue[int] = SimpleQueue()

    def hang() -> None:
        hung.put(threading.current_thread())
        release.wait(PATIENCE)

    for _ in range(2):
        threads.run(hang)
    lost = [hung.get(timeout=PATIENCE) for _ in range(2)]
    for number in range(3):
        threads.run(lambda number=number: done.put(number))  # type: ignore[misc]
    now[0] = HANGING
    threads.run(lambda: done.put(3))
    assert done.empty(), 'it may still come back'
    now[0] = HANGING + 0.1
    threads.run(lambda: done.put(4))
    assert sorted(done.get(timeout=PATIENCE) for _ in range(5)) == [0, 1, 2, 3, 4]
    release.set()
    for thread in lost:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_no_more_than_so_many_threads_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('harness_eval.threads.MOST_LOST', 2)
    now = [0.0]
    threads = Threads('test', most=1, now=lambda: now[0])
    release = threading.Event()
    hung: SimpleQueue[None] = SimpleQueue()
    began = 0
    for _ in range(5):
        now[0] += HANGING + 1
        threads.run(lambda: (hung.put(None), release.wait(PATIENCE), None)[2])
        if began < 3:
            hung.get(timeout=PATIENCE)
            began += 1
    assert hung.empty(), 'the first and its two replacements hang; what comes later waits'
    release.set()
    for _ in range(2):
        hung.get(timeout=PATIENCE)
