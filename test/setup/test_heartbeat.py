"""A long step says that it is still at work, and nothing once it is over."""

from __future__ import annotations

import threading

from heartbeat import heartbeat
import pytest


def test_a_long_step_says_again_and_again_that_it_is_at_work() -> None:
    lines: list[str] = []
    thrice = threading.Event()

    def say(line: str) -> None:
        lines.append(line)
        if len(lines) == 3:
            thrice.set()

    with heartbeat('set-up', say, 0.01):
        assert thrice.wait(10.0)
    assert lines[0].startswith('set-up: still at work after ')
    assert 'heartbeat' not in [thread.name for thread in threading.enumerate()]


def test_a_short_step_says_nothing_and_a_failed_one_fails() -> None:
    lines: list[str] = []
    with pytest.raises(SystemExit, match='broken'), heartbeat('set-up', lines.append):
        raise SystemExit('broken')
    assert lines == []
