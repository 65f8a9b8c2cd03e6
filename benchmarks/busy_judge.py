"""How long many runs at the same time take on a judge that takes a second and bears 16 at once.

From the first of 64 completions to the last verdict, in another process than the node's: both
ways through DDS, one capture, evidence and a ledger for each run, and four turns of the judge.
The compared side is what the judge alone makes of it: four seconds.
"""

from __future__ import annotations

from benchmarks.agent import agent_on, check_success, Link
from benchmarks.effort import Effort
from benchmarks.lab import configuration, open_lab
from benchmarks.nodes.slow_judge import TAKES
from benchmarks.rows import Row, row, Target
from harness_eval_msgs.msg import RunOutcome, Verdict

RUNS = 64
AT_ONCE = 16
SETTLE = 0.06
INSTANT = '{kind: plugin, ref: "benchmarks.nodes.judge:judge"}'
SLOW = f'{{kind: plugin, ref: "benchmarks.nodes.slow_judge:judge", max_concurrency: {AT_ONCE}}}'


def measure(effort: Effort) -> list[Row]:
    """Have the runs judged, again and again."""
    config = configuration(1, settle=SETTLE)
    assert INSTANT in config
    with open_lab() as lab, agent_on(lab.domain) as agent:
        lab.cameras(1, 640, 480)
        lab.evaluator(config.replace(INSTANT, SLOW))
        link = agent.link('evaluator', Verdict, RunOutcome)
        _all(link, ['warm-up'])
        check_success(link.hear(RunOutcome, 'warm-up'))
        took = [
            _all(link, [f'run-{repetition}-{number}' for number in range(RUNS)])
            for repetition in range(effort.repetitions)
        ]
    return [
        row(
            f'{RUNS} runs on a judge of {TAKES:g} s, {AT_ONCE} at a time',
            's',
            took,
            repetitions=effort.repetitions,
            target=Target(5.0),
            reference=[RUNS / AT_ONCE * TAKES],
            reference_name='the judge alone',
        )
    ]


def _all(link: Link, names: list[str]) -> float:
    """Seconds from the first completion to the last verdict."""
    began = min([link.complete(name) for name in names])
    ended = max(link.hear(Verdict, name).monotonic for name in names)
    return (ended - began) / 1e9
