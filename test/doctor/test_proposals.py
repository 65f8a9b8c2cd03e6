"""Which settings streams suggest, and the figures behind them."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from measured_streams import FRONT, measured, MS
import pytest

from harness_eval.capture import least_valid_set
from harness_eval.config.models import CaptureSettings
from harness_eval.doctor import propose
from harness_eval.doctor.proposals import best_spreads
from harness_eval.doctor.streams import StreamStatistics

WRIST = replace(FRONT, name='wrist')


def proposals(*streams: StreamStatistics, **capture: float) -> dict[str, tuple[float, str]]:
    found = propose(CaptureSettings(**capture), streams, {'pick': streams})
    return {one.key: (one.value, one.figures) for one in found}


def test_slop_is_what_nearly_all_frames_need_and_a_margin() -> None:
    streams = measured(50), measured(50, spec=WRIST, offset=-17 * MS)
    slop, figures = proposals(*streams)['slop']
    assert slop == pytest.approx(0.017)  # 12 ms, and at least 5 ms
    assert 'p99 12.0 ms' in figures
    assert '(pick)' in figures


def test_max_ahead_is_the_latest_stamp_and_a_margin() -> None:
    value, figures = proposals(measured(offset=31 * MS))['max_ahead']
    assert value == pytest.approx(0.06)
    assert '31.0 ms after its receipt' in figures
    value, figures = proposals(measured(offset=-31 * MS))['max_ahead']
    assert value == pytest.approx(0.02)
    assert '31.0 ms before its receipt' in figures


def test_settle_is_above_max_ahead_by_a_frame_and_never_lowered() -> None:
    assert proposals(measured(period=200 * MS), settle=0.1)['settle'][0] == pytest.approx(0.3)
    assert proposals(measured(period=200 * MS), settle=0.9)['settle'][0] == pytest.approx(0.9)


def test_what_was_not_seen_is_not_proposed() -> None:
    assert proposals(measured(0)) == {}
    assert set(proposals(measured())) == {'settle', 'max_ahead'}
    assert set(proposals(measured(), measured(0, spec=WRIST))) == {'settle', 'max_ahead'}


@given(st.integers(-300, 300), st.integers(10, 500))
def test_the_proposals_are_a_configuration_that_holds(offset: int, period: int) -> None:
    found = proposals(measured(offset=offset * MS, period=period * MS))
    assert found['settle'][0] > found['max_ahead'][0]
    assert found['max_ahead'][0] >= offset / 1000


@given(st.integers(0, 39), st.integers(20, 60))
def test_within_the_proposed_slop_there_is_an_observation(shift: int, period: int) -> None:
    streams = (
        measured(30, period=40 * MS),
        measured(30, spec=WRIST, period=period * MS, offset=-shift * MS),
    )
    slop, _ = proposals(*streams)['slop']
    stamps = {one.spec.name: one.stamps for one in streams}
    assert least_valid_set(stamps, slop=round(slop * 1e9)) is not None


def test_frames_without_a_neighbour_on_both_sides_tell_nothing_of_the_spread() -> None:
    late = replace(measured(3, spec=WRIST), stamps=(10**15, 10**15 + 1))
    assert best_spreads([measured(), late]) == []
