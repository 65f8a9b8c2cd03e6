"""How long an update waits at the gate once the outcome of its run is decided.

From the stamp of the outcome (the moment of the decision) to the receipt, in another process, of
the update that was proposed for the run; before it come a commit of the ledger, the outcome and
the update that the success itself brings. The compared side is a bare rclpy node that stamps and
publishes the same message: the way through DDS alone.
"""

from __future__ import annotations

from benchmarks.agent import agent_on, check_success, Link
from benchmarks.effort import Effort
from benchmarks.lab import configuration, open_lab
from benchmarks.rows import Row, row, Target
from harness_eval_msgs.msg import RunOutcome, SceneGraphUpdate

SETTLE = 0.06
WARM_UP = 10
UPDATES = 2
"""Updates that a success lets through: that of ``on_success`` and the one that was proposed."""


def measure(effort: Effort) -> list[Row]:
    """Measure both sides in turns."""
    waits: list[float] = []
    ways: list[float] = []
    with open_lab() as lab, agent_on(lab.domain) as agent:
        lab.cameras(1, 160, 120)
        lab.evaluator(configuration(1, settle=SETTLE))
        bare = lab.start('benchmarks.nodes.bare', '--ros-args', '-r', '__ns:=/bare')
        bare.wait_for('active')
        gate = agent.link('evaluator', RunOutcome, SceneGraphUpdate)
        echo = agent.link('bare', SceneGraphUpdate)
        for number in range(WARM_UP):
            _gated(gate, f'warm-up-{number}')
            _plain(echo, f'warm-up-{number}')
        for repetition in range(effort.repetitions):
            names = [f'run-{repetition}-{number}' for number in range(effort.gate_runs)]
            waits += [_gated(gate, name) for name in names]
            ways += [_plain(echo, name) for name in names]
    return [
        row(
            'outcome decided to update received',
            'ms',
            waits,
            repetitions=effort.repetitions,
            target=Target(2.0),
            reference=ways,
            reference_name='bare rclpy node that only publishes',
        )
    ]


def _gated(link: Link, run_id: str) -> float:
    link.propose(run_id)
    link.complete(run_id)
    update = link.hear(SceneGraphUpdate, run_id, UPDATES)
    outcome = link.hear(RunOutcome, run_id)
    check_success(outcome)
    return (update.wall - _nanoseconds(outcome.message.header.stamp)) / 1e6


def _plain(link: Link, run_id: str) -> float:
    link.complete(run_id)
    update = link.hear(SceneGraphUpdate, run_id)
    return (update.wall - _nanoseconds(update.message.header.stamp)) / 1e6


def _nanoseconds(stamp: object) -> int:
    return stamp.sec * 10**9 + stamp.nanosec  # type: ignore[attr-defined,no-any-return]
