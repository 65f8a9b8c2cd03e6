"""How much is measured: in full, or just enough to see that every benchmark runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """Sizes of the measurements.

    Attributes:
        repetitions: How many times each measurement is made; the sides that are compared take
            turns in each.
        idle_window: Seconds of one measurement of the CPU time.
        capture_runs: Runs of each side in one repetition of the capture latency.
        overhead_runs: Runs of each side in one repetition of the overhead.
        gate_runs: Runs of each side in one repetition of the gate latency.
        memory_runs: Runs of the whole measurement of memory.
        memory_settled: Runs after which the memory should be flat.
        choice_frames: Frames of each view in one measurement of the choice.
        choice_views: Numbers of views for which the choice is measured.
        cached_answers: Answers in the cache, each asked for once in one repetition.
        replay_seconds: Length of the bag that runs are read from.
    """

    repetitions: int
    idle_window: float
    capture_runs: int
    overhead_runs: int
    gate_runs: int
    memory_runs: int
    memory_settled: int
    choice_frames: int
    choice_views: tuple[int, ...]
    cached_answers: int
    replay_seconds: float


FULL = Effort(
    repetitions=5,
    idle_window=6.0,
    capture_runs=15,
    overhead_runs=50,
    gate_runs=50,
    memory_runs=5000,
    memory_settled=1500,
    choice_frames=600,
    choice_views=(2, 4, 6, 8),
    cached_answers=500,
    replay_seconds=600.0,
)
QUICK = Effort(
    repetitions=2,
    idle_window=0.5,
    capture_runs=3,
    overhead_runs=5,
    gate_runs=3,
    memory_runs=60,
    memory_settled=20,
    choice_frames=40,
    choice_views=(2, 4),
    cached_answers=40,
    replay_seconds=60.0,
)
