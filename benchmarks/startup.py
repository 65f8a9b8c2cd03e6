"""How long the node takes from the start of its process to taking completions.

A new process each time, with a new ledger, on a machine whose disk cache is warm. ``active`` is
when the lifecycle node has activated itself; the first goal of ``~/evaluate`` is accepted
somewhat later, since the agent, which runs already, has to discover the node. The compared side is
a managed rclpy node with two publishers and a subscription, started in turns.
"""

from __future__ import annotations

import time

from rclpy.action import ActionClient

from benchmarks.agent import Agent, agent_on, LOOK_PERIOD, NoAnswerError, PATIENCE
from benchmarks.effort import Effort
from benchmarks.lab import configuration, Lab, open_lab
from benchmarks.rows import Row, row, Target
from harness_eval_msgs.action import Evaluate


def measure(effort: Effort) -> list[Row]:
    """Start both sides in turns."""
    active: list[float] = []
    accepted: list[float] = []
    plain: list[float] = []
    with open_lab() as lab, agent_on(lab.domain) as agent:
        for number in range(effort.repetitions):
            one, other = _start(lab, agent, f'evaluator_{number}')
            active.append(one)
            accepted.append(other)
            bare = lab.start('benchmarks.nodes.bare')
            plain.append(_seconds(bare.started, int(bare.wait_for('active'))))
            bare.close()
    return [
        row(
            'start-up, process to active',
            's',
            active,
            repetitions=effort.repetitions,
            target=Target(1.5),
            reference=plain,
            reference_name='bare rclpy lifecycle node',
        ),
        row(
            'start-up, process to first accepted goal',
            's',
            accepted,
            repetitions=effort.repetitions,
        ),
    ]


def _start(lab: Lab, agent: Agent, name: str) -> tuple[float, float]:
    client = ActionClient(agent.node, Evaluate, f'/{name}/harness_eval/evaluate')
    try:
        child = lab.evaluator(
            configuration(4, settle=0.3),
            name=name,
            module='benchmarks.nodes.observed_evaluator',
        )
        accepted = _first_goal(client)
        active = int(child.wait_for('active'))
        child.close()
    finally:
        client.destroy()
    return _seconds(child.started, active), _seconds(child.started, accepted)


def _first_goal(client: ActionClient) -> int:
    """Monotonic nanoseconds at which the first goal was accepted."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not client.server_is_ready():
            time.sleep(LOOK_PERIOD)
            continue
        future = client.send_goal_async(Evaluate.Goal(run_id='run-0', tool='pick'))
        while not future.done() and time.monotonic() < deadline:
            time.sleep(LOOK_PERIOD)
        if future.done() and future.result().accepted:
            return time.monotonic_ns()
    raise NoAnswerError('no goal was accepted')


def _seconds(began: int, ended: int) -> float:
    return (ended - began) / 1e9
