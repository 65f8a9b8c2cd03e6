"""How long a run waits for its pictures once they count, in periods of the cameras.

Three cameras publish 640x480 colour pictures at 30 Hz, each with a phase of its own. A run's wait
is counted from ``t_end + settle``, the first moment whose pictures count, to the moment at which
the node has chosen a complete set; the evidence is stored after that. The compared side is the
same node with ``always_on: true`` for every camera, in the same run and in turns: what listening
only on demand adds.

A set needs the first picture of each camera after that moment. With independent phases the last of
three comes after 0.79 periods in the median (the greatest of three uniform phases), so that less
is not possible.
"""

from __future__ import annotations

import random
import time

from benchmarks.agent import agent_on, APART, check_success, Link
from benchmarks.effort import Effort
from benchmarks.lab import configuration, open_lab
from benchmarks.observed import Record
from benchmarks.rows import Row, row, Target
from harness_eval_msgs.msg import RunOutcome

CAMERAS = 3
RATE = 30.0
SETTLE = 0.3
"""Seconds; the default of the package."""
_OBSERVED = 'benchmarks.nodes.observed_evaluator'


def measure(effort: Effort) -> list[Row]:
    """Measure both sides in turns."""
    chance = random.Random(0)
    with open_lab() as lab, agent_on(lab.domain) as agent:
        lab.cameras(CAMERAS, 640, 480, RATE)
        sides = ('on_demand', 'always_on')
        children = {
            side: lab.evaluator(
                configuration(CAMERAS, settle=SETTLE, always_on=side == 'always_on'),
                name=side,
                module=_OBSERVED,
            )
            for side in sides
        }
        links = {side: agent.link(side, RunOutcome) for side in sides}
        for side in sides:
            _run(links[side], 'warm-up')
        for repetition in range(effort.repetitions):
            for side in sides:
                for number in range(effort.capture_runs):
                    # So that the ends of runs meet the cameras at every phase.
                    time.sleep(APART + chance.random() / RATE)
                    _run(links[side], f'run-{repetition}-{number}')
        records = {side: Record.of(children[side]) for side in sides}
    waits = {side: [_periods(c) for c in records[side].captures[1:]] for side in sides}
    return [
        row(
            'capture latency, 3 cameras 640x480 at 30 Hz',
            'frame periods',
            waits['on_demand'],
            repetitions=effort.repetitions,
            target=Target(1.2),
            reference=waits['always_on'],
            reference_name='the same node, always on',
        )
    ]


def _run(link: Link, run_id: str) -> None:
    link.complete(run_id)
    check_success(link.hear(RunOutcome, run_id))


def _periods(capture: dict[str, int]) -> float:
    return (capture['decided'] - capture['opens']) / 1e9 * RATE
