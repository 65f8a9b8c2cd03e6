"""One conversion of times serves all."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from harness_eval.times import nanoseconds, nanoseconds_of, sec_and_nanosec, SECOND, seconds


@given(st.integers(-(2**31) * SECOND, 2**31 * SECOND - 1))
def test_a_time_comes_back_from_its_message_to_the_nanosecond(time: int) -> None:
    sec, nanosec = sec_and_nanosec(time)
    assert 0 <= nanosec < SECOND
    assert -(2**31) <= sec < 2**31
    assert nanoseconds_of(SimpleNamespace(sec=sec, nanosec=nanosec)) == time


@given(st.integers(0, 10**15))
def test_a_duration_of_days_comes_back_from_seconds_to_the_nanosecond(duration: int) -> None:
    assert nanoseconds(seconds(duration)) == duration
