"""CPU time of a node that waits for runs, against one that listens and decodes all the time.

Four cameras publish 640x480 colour pictures at 30 Hz from a process of their own. Both nodes are
measured over the same seconds of wall time, each as the CPU time of its whole process. The
evaluator node is active and has judged a run before, so that everything it needs is loaded.
"""

from __future__ import annotations

import time

from benchmarks.agent import agent_on, check_success
from benchmarks.effort import Effort
from benchmarks.lab import configuration, open_lab
from benchmarks.processes import Child
from benchmarks.rows import Row, row, Target
from harness_eval_msgs.msg import RunOutcome

CAMERAS = 4
RATE = 30.0
QUIET = 1.0
"""Seconds that everything is left alone before it is measured."""
LEAST_SHARE = 0.8
"""Share of the pictures that the compared node must have had; it would look cheap with fewer."""


def measure(effort: Effort) -> list[Row]:
    """Measure both sides over the same windows."""
    with open_lab() as lab, agent_on(lab.domain) as agent:
        lab.cameras(CAMERAS, 640, 480, RATE)
        always_on = lab.start('benchmarks.nodes.always_on', str(CAMERAS))
        evaluator = lab.evaluator(configuration(CAMERAS, settle=0.3))
        link = agent.link('evaluator', RunOutcome)
        always_on.wait_for('ready')
        listening = time.monotonic()
        link.complete('warm-up')
        check_success(link.hear(RunOutcome, 'warm-up'))
        time.sleep(QUIET)
        idle: list[float] = []
        busy: list[float] = []
        for _ in range(effort.repetitions):
            one, other = _shares((evaluator, always_on), effort.idle_window)
            idle.append(one)
            busy.append(other)
        listened = time.monotonic() - listening
        always_on.close()
        _check_pictures(always_on, listened)
    return [
        row(
            'idle CPU, 4 cameras 640x480 at 30 Hz',
            '% of a core',
            idle,
            repetitions=effort.repetitions,
            target=Target(1.0),
            reference=busy,
            reference_name='always-on node that decodes',
        ),
        row(
            'always-on CPU as a multiple of idle CPU',
            'times',
            [theirs / ours for ours, theirs in zip(idle, busy, strict=True)],
            repetitions=effort.repetitions,
            target=Target(15.0, at_least=True),
        ),
    ]


def _shares(children: tuple[Child, ...], seconds: float) -> list[float]:
    """CPU time of each child in percent of the wall time."""
    began = time.monotonic()
    before = [child.cpu_seconds() for child in children]
    time.sleep(seconds)
    after = [child.cpu_seconds() for child in children]
    wall = time.monotonic() - began
    return [100.0 * (end - start) / wall for start, end in zip(before, after, strict=True)]


def _check_pictures(always_on: Child, seconds: float) -> None:
    seen = int(always_on.wait_for('pictures'))
    expected = seconds * RATE * CAMERAS
    if seen < LEAST_SHARE * expected:
        raise RuntimeError(
            f'the always-on node had {seen} of about {expected:.0f} pictures, which makes it look '
            'cheap; is the machine overloaded, or the Fast DDS profile missing?'
        )
