"""Threads that are kept for the next piece of work, and never waited for."""

from __future__ import annotations

from queue import SimpleQueue
import threading

import pytest

from harness_eval.threads import Threads

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
