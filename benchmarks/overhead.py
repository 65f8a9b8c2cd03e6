"""What the harness itself adds to a run, in milliseconds.

That is the time from its completion to its verdict, less the wait for pictures, the storage of
evidence and the judge. It is measured in another process than the node's: from just before the
completion is published to the receipt of the verdict. What is left are both ways through DDS, the
commits of the ledger, the reading of the messages, and the way between threads. (The question with
its digest is made while the evidence is written; it counts only as far as it takes longer.)
The judge answers at once. The compared side is a managed rclpy node that answers a completion
with a verdict and does nothing else: both ways through DDS alone, after pauses as long.
"""

from __future__ import annotations

import random
import time

from benchmarks.agent import agent_on, APART, Link, NoAnswerError
from benchmarks.effort import Effort
from benchmarks.lab import configuration, open_lab
from benchmarks.observed import Interval, Record
from benchmarks.rows import Row, row, Target
from harness_eval_msgs.msg import Verdict

CAMERAS = 3
RATE = 30.0
SETTLE = 0.06
"""Seconds; as little as ``max_ahead`` allows, since the wait is not what is measured."""
WARM_UP = 10
"""Runs that are not counted: modules are imported, files made, caches filled."""


def measure(effort: Effort) -> list[Row]:
    """Measure both sides in turns."""
    chance = random.Random(0)
    runs: list[Interval] = []
    round_trips: list[float] = []
    with open_lab() as lab, agent_on(lab.domain) as agent:
        lab.cameras(CAMERAS, 640, 480, RATE)
        evaluator = lab.evaluator(
            configuration(CAMERAS, settle=SETTLE),
            module='benchmarks.nodes.observed_evaluator',
        )
        bare = lab.start('benchmarks.nodes.bare', '--ros-args', '-r', '__ns:=/bare')
        bare.wait_for('active')
        observed, echo = agent.link('evaluator', Verdict), agent.link('bare', Verdict)
        for number in range(WARM_UP):
            _run(observed, f'warm-up-{number}')
            _run(echo, f'warm-up-{number}')
        for repetition in range(effort.repetitions):
            for number in range(effort.overhead_runs):
                _pause(chance)
                runs.append(_run(observed, f'run-{repetition}-{number}'))
            for number in range(effort.overhead_runs):
                _pause(chance)
                began, ended = _run(echo, f'run-{repetition}-{number}')
                round_trips.append((ended - began) / 1e6)
        record = Record.of(evaluator)
    overheads = [record.overhead(run) for run in runs]
    return [
        row(
            'completion to verdict less capture, storage, judge',
            'ms',
            overheads,
            statistic=statistic,
            repetitions=effort.repetitions,
            target=target,
            reference=round_trips,
            reference_name='bare rclpy node that only answers',
        )
        for statistic, target in (('p99', Target(5.0)), ('median', None))
    ]


def _pause(chance: random.Random) -> None:
    """Let subscriptions end, at another moment between two pictures each time.

    Both sides pause: what has run a moment ago is in the processor's caches, and runs come rarely.
    """
    time.sleep(APART + chance.random() / RATE)


def _run(link: Link, run_id: str) -> Interval:
    began = link.complete(run_id)
    heard = link.hear(Verdict, run_id)
    if heard.message.status != Verdict.SUCCESS:
        raise NoAnswerError(f'run {run_id!r} was no success')
    return began, heard.monotonic
