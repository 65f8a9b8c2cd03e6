"""Resident memory of the evaluator node over thousands of runs with 160x120 pictures.

One node judges run after run, several at a time, and keeps evidence within a bound that is soon
reached, so that old cases are deleted as in a long life. Memory is all that is resident for the
process, shared pages and the shared memory of DDS included. It grows at first, since the node
keeps its newest 1,000 outcomes for late joiners; what counts as flat is the slope after that. The
whole is too long to be repeated: the slope is computed over the blocks of it as well.
"""

from __future__ import annotations

from collections.abc import Sequence
import itertools

from benchmarks.agent import agent_on, check_success, Link
from benchmarks.effort import Effort
from benchmarks.lab import configuration, open_lab
from benchmarks.processes import Child
from benchmarks.rows import Row, Target
from harness_eval_msgs.msg import RunOutcome

CAMERAS = 2
SETTLE = 0.06
AT_ONCE = 20
"""Runs that are under evaluation at the same time."""
SAMPLES = 50
"""How many times memory is read over the whole measurement."""
FLAT = 0.5
"""MB per 1,000 runs. 100,000 runs, a year of a busy cell, would then cost 50 MB."""

Sample = tuple[int, float]
"""Number of runs and MB."""


def measure(effort: Effort) -> list[Row]:
    """Let one node judge thousands of runs."""
    with open_lab() as lab, agent_on(lab.domain) as agent:
        lab.cameras(CAMERAS, 160, 120)
        bare = lab.start('benchmarks.nodes.bare', '--ros-args', '-r', '__ns:=/bare')
        bare.wait_for('active')
        evaluator = lab.evaluator(configuration(CAMERAS, settle=SETTLE, max_bytes='20MiB'))
        link = agent.link('evaluator', RunOutcome)
        samples = _samples(link, evaluator, effort.memory_runs)
        peak = evaluator.peak_memory()
        plain = bare.memory()
    settled = [(runs, used) for runs, used in samples if runs >= effort.memory_settled]
    slopes = [slope(block) for block in _blocks(settled, effort.repetitions)]
    return [
        Row(
            name=f'memory, peak over {effort.memory_runs:,} runs',
            unit='MB',
            value=peak,
            statistic='peak',
            low=samples[0][1],
            high=samples[-1][1],
            samples=len(samples),
            repetitions=1,
            target=Target(180.0),
            reference=plain,
            reference_name='bare rclpy node that only answers',
        ),
        Row(
            name=f'memory, growth after {effort.memory_settled:,} runs',
            unit='MB per 1,000 runs',
            value=slope(settled),
            statistic='slope',
            low=min(slopes),
            high=max(slopes),
            samples=len(settled),
            repetitions=len(slopes),
            target=Target(FLAT),
        ),
    ]


def _samples(link: Link, evaluator: Child, runs: int) -> list[Sample]:
    """Memory after the first run, and then again and again until the last."""
    names = (f'run-{number}' for number in itertools.count())
    samples = []
    started = finished = 0
    block = max(1, runs // SAMPLES)
    while finished < runs:
        goal = 1 if not finished else min(runs, finished + block)
        while finished < goal:
            while started < min(runs, finished + AT_ONCE):
                link.complete(next(names))
                started += 1
            finished += 1
            link.wait_for_outcomes(finished)
            check_success(link.hear(RunOutcome, f'run-{finished - 1}'))
        samples.append((finished, evaluator.memory()))
    return samples


def _blocks(samples: Sequence[Sample], count: int) -> list[Sequence[Sample]]:
    """Samples in about so many blocks of at least two, each beginning where one ended."""
    length = max(1, (len(samples) - 1) // count)
    starts = range(0, len(samples) - length, length)
    return [samples[start : start + length + 1] for start in starts]


def slope(samples: Sequence[Sample]) -> float:
    """MB per 1,000 runs, by least squares."""
    runs = [count / 1000 for count, _ in samples]
    used = [megabytes for _, megabytes in samples]
    mean_runs, mean_used = sum(runs) / len(runs), sum(used) / len(used)
    spread = sum((x - mean_runs) ** 2 for x in runs)
    pairs = zip(runs, used, strict=True)
    return sum((x - mean_runs) * (y - mean_used) for x, y in pairs) / spread
