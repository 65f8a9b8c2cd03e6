"""What is counted for diagnostics stays bounded."""

from __future__ import annotations

from pipeline_world import World

from harness_eval.pipeline.answers import MAX_COUNTED


def test_kinds_without_end_are_counted_together(world: World) -> None:
    recorder = world.pipeline._recorder
    for number in range(3 * MAX_COUNTED):
        recorder.count(f'error kind_{number}')
    recorder.count('error kind_0')
    assert len(recorder.counts) == MAX_COUNTED + 1
    assert recorder.counts['error kind_0'] == 2
    assert sum(recorder.counts.values()) == 3 * MAX_COUNTED + 1
