"""Every benchmark runs and gives figures; how fast anything is, is not tested here."""

from __future__ import annotations

import math

import pytest

pytest.importorskip('rclpy', reason='the benchmarks need ROS 2: run `make test`')
pytest.importorskip('harness_eval_msgs.msg', reason='build the messages with `make build`')

from benchmarks.__main__ import BENCHMARKS, machine
from benchmarks.effort import Effort
from benchmarks.memory import slope
from benchmarks.rows import percentile, Row, row, Target
from benchmarks.table import table_of

TINY = Effort(
    repetitions=2,
    idle_window=0.2,
    capture_runs=2,
    overhead_runs=2,
    gate_runs=2,
    memory_runs=30,
    memory_settled=5,
    choice_frames=40,
    choice_views=(2, 3),
    cached_answers=5,
    replay_seconds=30.0,
)


@pytest.mark.parametrize('name', BENCHMARKS)
def test_a_benchmark_gives_finite_figures(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Other tests keep the machine busy, so that the side to compare with may lose pictures.
    monkeypatch.setattr('benchmarks.idle.LEAST_SHARE', 0.0)
    rows = BENCHMARKS[name](TINY)
    assert rows
    for found in rows:
        assert math.isfinite(found.value)
        assert found.low <= found.high or found.statistic == 'peak'
        assert found.samples >= 1
        if found.reference is not None:
            assert found.reference > 0.0
            assert found.reference_name
    assert table_of(rows, machine()).row_count == len(rows)


def test_a_row_holds_its_statistic_against_the_target_and_the_reference() -> None:
    found = row(
        'latency',
        'ms',
        [1.0, 2.0, 9.0],
        repetitions=3,
        target=Target(2.5),
        reference=[4.0],
        reference_name='another',
    )
    assert (found.value, found.low, found.high) == (2.0, 1.0, 9.0)
    assert (found.met, found.ratio) == (True, 0.5)


def test_a_target_may_be_a_least() -> None:
    assert [Target(15.0, at_least=True).met(value) for value in (14.9, 15.0, 16.0)] == [
        False,
        True,
        True,
    ]


def test_a_row_without_a_target_is_neither_met_nor_missed() -> None:
    found = Row('size', 'MB', 3.0, 'peak', 1.0, 3.0, samples=3, repetitions=1)
    assert found.met is None
    assert found.ratio is None


def test_a_percentile_is_the_smallest_sample_that_so_many_do_not_exceed() -> None:
    samples = [float(number) for number in range(200, 0, -1)]
    assert [percentile(samples, share) for share in (0.0, 0.5, 0.99, 1.0)] == [
        1.0,
        100.0,
        198.0,
        200.0,
    ]


def test_the_slope_of_memory_is_in_megabytes_for_a_thousand_runs() -> None:
    assert slope([(0, 100.0), (500, 101.0), (1000, 102.0)]) == pytest.approx(2.0)
