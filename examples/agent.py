#!/usr/bin/env python3
"""An agent that goes by what the evaluator says of its robot, and never by what the robot says.

    python3 examples/agent.py pick target=bottle

Each tool of the robot is a ``std_srvs/Trigger`` service ``skills/<tool>`` here; yours is likely an
action. What it answers is not looked at. The program ends with 0 only if the tool has worked.
"""

from __future__ import annotations

import sys

import rclpy
from rclpy.node import Node
from rclpy.utilities import remove_ros_args
from std_srvs.srv import Trigger

from harness_eval.client import (
    EvaluationClient,
    RunAbstained,
    RunError,
    RunFailed,
    RunNotSuccessfulError,
)

TRIES = 3
RECOVERABLE = {'missed_grasp', 'dropped', 'post_condition'}
"""Kinds of failure after which the same again makes sense; a wrong object needs another plan."""


class Agent(Node):
    """Has a robot run its tools, and has an evaluator node say what became of it."""

    def __init__(self) -> None:
        """Connect to the evaluator node; it need not be there yet."""
        super().__init__('agent')
        self.evaluation = EvaluationClient()

    def do(self, tool: str, arguments: dict[str, str]) -> bool:
        """Have a tool work; give up after some tries, each of them a run with a new run id."""
        return any(self.attempt(tool, arguments) for _ in range(TRIES))

    def attempt(self, tool: str, arguments: dict[str, str]) -> bool:
        """Run a tool once; False if it failed in a way that a second try may mend."""
        log = self.get_logger()
        try:
            self.evaluation.run(tool, arguments, lambda segment: self.execute(tool))
        except RunFailed as failed:
            log.warning(f'{failed.failure_kind}: {failed.reason}')
            for line in failed.evidence:
                log.info(f'  {line}')
            if failed.failure_kind not in RECOVERABLE:
                raise
            return False
        except RunAbstained as unsure:  # it may have worked, so that it must not be repeated
            log.error(f'nobody can tell, look yourself: {unsure.reason}')
            raise
        except RunError as error:  # a camera or the judge is at fault, perhaps not the robot
            again = f'; try `harness-eval judge {error.run_id}`' if error.retryable else ''
            log.error(f'not evaluated: {error.reason}{again}')
            raise
        log.info(f'{tool} has worked')
        return True

    def execute(self, tool: str) -> None:
        """Have the robot run a tool, or one segment of it; return when it stands still."""
        skill = self.create_client(Trigger, f'skills/{tool}')
        self.get_logger().info(f'waiting for the robot to run {tool}')
        skill.wait_for_service()
        rclpy.spin_until_future_complete(self, skill.call_async(Trigger.Request()))
        self.destroy_client(skill)


def main() -> int:
    """Run the tool that the command line names."""
    tool, *pairs = remove_ros_args(sys.argv)[1:] or ['pick', 'target=bottle']
    rclpy.init()
    agent = Agent()
    try:
        return 0 if agent.do(tool, dict(pair.split('=', 1) for pair in pairs)) else 1
    except RunNotSuccessfulError as end:  # all that a second try cannot mend, and no outcome
        agent.get_logger().fatal(f'giving up: {end}')
        return 2
    finally:
        agent.evaluation.close()
        agent.destroy_node()
        rclpy.try_shutdown()


if __name__ == '__main__':
    sys.exit(main())
