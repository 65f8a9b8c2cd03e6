"""A link from the shell to a running evaluator node.

Threading: none. The link has a context, a node and an executor of its own, which are spun by the
methods that wait, on the thread that calls them.
"""

from __future__ import annotations

from collections.abc import Callable
import os
import time
from types import TracebackType
from typing import Any
import uuid

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import qos_profile_sensor_data
from rosgraph_msgs.msg import Clock

from harness_eval.cli.waiting import OnRecord
from harness_eval.outcome_messages import outcome_of_message
from harness_eval.ros.qos import BURST, latched
from harness_eval.runs import Outcome, SegmentState
from harness_eval.times import nanoseconds_of, seconds
from harness_eval_msgs.msg import RunOutcome
from harness_eval_msgs.srv import GetRun, InterruptRun, JudgeRun

FIRST_PATIENCE, LAST_PATIENCE = 0.4, 5.0
"""Seconds until a call counts as lost; doubled with each one. A node that has only just been found
may hear the request before it knows our way back, and its answer never arrives then."""
GRACE = 0.1
"""Seconds between finding a service and the first call, in which the node finds us as well."""
READY_TIMEOUT = 2.0
"""Seconds until a service that is not there counts as an answer that did not come."""
SPIN_PERIOD = 0.1
CLOCK_TIMEOUT = 1.0
"""Seconds to wait for a ``/clock``."""


class EvaluatorLink:
    """Asks an evaluator node, and hears the outcomes that it publishes.

    Args:
        name: Name of the node, with its namespace if it has one.
        run_id: The run whose outcomes are kept.

    Attributes:
        heard: The outcomes of the run that were published, in order of arrival.
        unreadable: What is wrong with an outcome of the run that could not be read; empty if
            none was.
    """

    def __init__(self, name: str, run_id: str) -> None:
        """Join the ROS graph."""
        self.heard: list[Outcome] = []
        self.unreadable = ''
        self._run_id = run_id
        self._patience = FIRST_PATIENCE
        self._context = rclpy.Context()
        rclpy.init(args=[], context=self._context)
        try:
            self._node = Node(
                f'harness_eval_cli_{os.getpid()}_{uuid.uuid4().hex[:6]}',
                context=self._context,
                use_global_arguments=False,
                enable_rosout=False,
                start_parameter_services=False,
            )
            self._executor = SingleThreadedExecutor(context=self._context)
            self._executor.add_node(self._node)
            self._get_run = self._node.create_client(GetRun, f'{name}/get_run')
            self._judge_run = self._node.create_client(JudgeRun, f'{name}/judge_run')
            self._interrupt_run = self._node.create_client(InterruptRun, f'{name}/interrupt_run')
            self._node.create_subscription(
                RunOutcome, f'{name}/outcomes', self._outcome, latched(BURST)
            )
        except BaseException:
            self._context.try_shutdown()
            raise

    def __enter__(self) -> EvaluatorLink:
        """Use the link in a ``with`` block that closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the ROS graph."""
        self._executor.shutdown(timeout_sec=0.0)
        self._node.destroy_node()
        self._context.try_shutdown()

    def wait_for_node(self, deadline: float) -> bool:
        """Wait until the node answers questions; False if it does not in time.

        Args:
            deadline: On the clock of :func:`time.monotonic`.
        """
        return self.spin_until(self._get_run.service_is_ready, deadline)

    def spin_until(self, condition: Callable[[], object], deadline: float) -> bool:
        """Take messages until a condition holds; False if it does not in time."""
        while not condition():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._executor.spin_once(timeout_sec=min(SPIN_PERIOD, left))
        return True

    def spin_until_heard(self, count: int, deadline: float) -> bool:
        """Take messages until more than so many outcomes of the run were heard."""
        return self.spin_until(lambda: len(self.heard) > count, deadline)

    def look(self, deadline: float) -> OnRecord | str | None:
        """Ask what is on record of the run.

        Returns:
            What is on record; a text if the answer cannot be read; None if nothing is on record.

        Raises:
            TimeoutError: No node answered.
        """
        request = GetRun.Request(run_id=self._run_id)
        try:
            response = self._call(self._get_run, request, deadline, self._patience)
        except TimeoutError:
            self._patience = min(2 * self._patience, LAST_PATIENCE)
            raise
        if not response.known:
            return None
        try:
            return OnRecord(
                self._run_id,
                response.tool,
                SegmentState(response.state),
                response.segment,
                tuple(outcome_of_message(message) for message in response.outcomes),
            )
        except ValueError as error:
            return f'the node sent an answer that cannot be read: {error}'

    def judge_again(self, segment: int, deadline: float) -> tuple[int, str]:
        """Have a segment judged again.

        Returns:
            Number of the new attempt, or 0; and why it was refused.

        Raises:
            TimeoutError: No node answered.
        """
        request = JudgeRun.Request(run_id=self._run_id, segment=segment)
        response = self._call(self._judge_run, request, deadline, LAST_PATIENCE)
        return (response.attempt, '') if response.accepted else (0, response.message)

    def interrupt(self, reason: str, deadline: float) -> tuple[bool, str]:
        """Stop the evaluation of the run; return whether it is, and why it is not.

        Raises:
            TimeoutError: No node answered.
        """
        request = InterruptRun.Request(run_id=self._run_id, reason=reason)
        response = self._call(self._interrupt_run, request, deadline, LAST_PATIENCE)
        return response.interrupted, response.message

    def age(self, stamp: int) -> float:
        """Seconds since a stamp: on the wall clock, or on the ``/clock`` of a simulation."""
        clocks: list[Any] = []
        if self._node.count_publishers('/clock'):
            subscription = self._node.create_subscription(
                Clock, '/clock', clocks.append, qos_profile_sensor_data
            )
            self.spin_until(lambda: clocks, time.monotonic() + CLOCK_TIMEOUT)
            self._node.destroy_subscription(subscription)
        now = nanoseconds_of(clocks[-1].clock) if clocks else time.time_ns()
        return seconds(now - stamp)

    def _call(self, client: Any, request: Any, deadline: float, patience: float) -> Any:
        if not client.service_is_ready():
            found = min(deadline, time.monotonic() + READY_TIMEOUT)
            if not self.spin_until(client.service_is_ready, found):
                raise TimeoutError
            self.spin_until(lambda: False, min(deadline, time.monotonic() + GRACE))
        future = client.call_async(request)
        if not self.spin_until(future.done, min(deadline, time.monotonic() + patience)):
            client.remove_pending_request(future)
            raise TimeoutError
        return future.result()

    def _outcome(self, message: Any) -> None:
        if message.run_id != self._run_id:
            return
        try:
            self.heard.append(outcome_of_message(message))
        except ValueError as error:
            self.unreadable = f'the node published an outcome that cannot be read: {error}'
