"""Tools are run, and their ends reported as goals of ``~/evaluate``.

Threading: see :mod:`harness_eval.client`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
import threading
import time
from types import TracebackType
from typing import Any
import uuid

from action_msgs.msg import GoalStatus
from diagnostic_msgs.msg import KeyValue
from rclpy.action import ActionClient
from rclpy.node import Node

from harness_eval.client.ends import NoOutcome, successful
from harness_eval.client.held_back import HeldBack
from harness_eval.client.own_node import OwnNode
from harness_eval.contract import Status
from harness_eval.outcome_messages import outcome_of_message
from harness_eval.ros.messages import event_of_message
from harness_eval.runs import Outcome
from harness_eval.stages import Event
from harness_eval_msgs.action import Evaluate
from harness_eval_msgs.srv import InterruptRun

ACCEPT_TIMEOUT = 5.0
"""Seconds that a server may take to accept a goal before it is sent again."""

POLL_PERIOD = 0.2
"""Seconds between looks at whether the server is still there."""

SILENT_WAIT = 3.0
"""Seconds of waiting for the server before a warning names it; discovery takes up to 1.7 s."""


class EvaluationClient:
    """Runs tools and waits for their outcomes.

    Args:
        node: A node that is spun by somebody else; None: the client makes and spins its own.
        server: Name of the evaluator node, as the client's node resolves it.
    """

    def __init__(self, node: Node | None = None, server: str = 'harness_eval') -> None:
        """Connect to the evaluator node; it need not be there yet."""
        self._own: OwnNode | None = None
        if node is None:
            self._own = OwnNode()
            node = self._own.node
        self._node = node
        self._server = server
        group = HeldBack()
        self._action = ActionClient(node, Evaluate, f'{server}/evaluate', callback_group=group)
        self._interrupt = node.create_client(
            InterruptRun, f'{server}/interrupt_run', callback_group=group
        )
        group.open(node)

    def __enter__(self) -> EvaluationClient:
        """Use the client in a ``with`` block that closes it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the client."""
        self.close()

    def close(self) -> None:
        """Give up what the client made."""
        self._action.destroy()
        self._node.destroy_client(self._interrupt)
        if self._own is not None:
            self._own.close()

    def wait_for_server(self, timeout: float = 30.0) -> bool:
        """Wait until the evaluator node takes completions; False if it does not in time.

        A warning names the node that is waited for, if that takes long.
        """
        start = time.monotonic()
        warned = False
        while not self._action.server_is_ready():
            waited = time.monotonic() - start
            if waited > timeout:
                return False
            if waited > SILENT_WAIT and not warned:
                warned = True
                self._node.get_logger().warning(
                    f'waiting for the evaluator node {self._server!r}, which is not there yet; '
                    'is it started and active, in this namespace and ROS_DOMAIN_ID?'
                )
            time.sleep(0.02)
        return True

    def run(
        self,
        tool: str,
        arguments: Mapping[str, str],
        execute: Callable[[int], object],
        *,
        run_id: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        timeout: float = 120.0,
        server_timeout: float = 30.0,
    ) -> Outcome:
        """Run a tool until it is done, one segment after the other.

        Nothing moves before the evaluator node is there to look at what comes of it.

        Args:
            tool: Name of the tool in the configuration.
            arguments: What the tool is asked to do, as its post-condition needs it.
            execute: Runs one segment and returns when the robot stands still. It is called with
                the number of the segment, again after each ``process``. What it returns is not
                looked at. If it raises, the run is interrupted and the exception goes on.
            run_id: Name of the run; never reused. Default: a new one.
            on_event: Gets each step, on the thread of the executor. After ``captured`` the robot
                may move again.
            timeout: Seconds to wait for the outcome of each segment.
            server_timeout: Seconds to wait for the evaluator node before each segment.

        Returns:
            The outcome, whose verdict is ``success``.

        Raises:
            RunFailed: The post-condition does not hold.
            RunError: The evaluation could not be done.
            RunAbstained: The evaluator has no answer.
            RunInterrupted: Somebody stopped it.
            NoOutcome: Nothing came in time, or the evaluator node was not there; then the segment
                was not begun.
        """
        name = run_id or f'{tool}-{uuid.uuid4().hex[:12]}'
        segment = 0
        while True:
            if not self.wait_for_server(server_timeout):
                raise NoOutcome(
                    name,
                    f'no evaluator node {self._server!r} within {server_timeout:g} s, so segment '
                    f'{segment} was not begun; start the node, or look at its namespace and at '
                    'ROS_DOMAIN_ID',
                )
            try:
                execute(segment)
            except BaseException as error:
                self.interrupt(name, f'the tool raised {type(error).__name__}', timeout=2.0)
                raise
            outcome = self.report(
                name, tool, arguments, segment=segment, on_event=on_event, timeout=timeout
            )
            verdict = outcome.verdict
            if verdict is None or verdict.status is not Status.PROCESS:
                return successful(outcome)
            segment += 1

    def report(
        self,
        run_id: str,
        tool: str,
        arguments: Mapping[str, str],
        *,
        segment: int = 0,
        on_event: Callable[[Event], None] | None = None,
        timeout: float = 120.0,
    ) -> Outcome:
        """Report that a segment ended just now, and wait for its outcome, whatever it is.

        A server that goes away is waited for and told again, which gives the recorded outcome if
        there is one.

        Raises:
            NoOutcome: Nothing came in time.
        """
        goal = Evaluate.Goal()
        goal.header.stamp = self._node.get_clock().now().to_msg()
        goal.run_id = run_id
        goal.tool = tool
        goal.segment = segment
        goal.arguments = [KeyValue(key=key, value=value) for key, value in arguments.items()]
        deadline = time.monotonic() + timeout
        why = 'no evaluator node takes completions'
        while time.monotonic() < deadline:
            if not self.wait_for_server(min(POLL_PERIOD, deadline - time.monotonic())):
                continue
            attempt = _Attempt(on_event)
            attempt.send(self._action, goal)
            why = self._watch(attempt, deadline) or why
            if attempt.outcome is not None:
                return attempt.outcome
            time.sleep(POLL_PERIOD)  # a node that is being activated rejects goals at once
        raise NoOutcome(run_id, f'no outcome within {timeout:g} s: {why}')

    def interrupt(self, run_id: str, reason: str, *, timeout: float = 5.0) -> bool:
        """Stop the evaluation of a run, or have it never begin.

        Returns:
            Whether the run is interrupted; False if it had ended, or nobody answered.
        """
        if not self._interrupt.wait_for_service(timeout_sec=timeout):
            return False
        answered = threading.Event()
        future = self._interrupt.call_async(InterruptRun.Request(run_id=run_id, reason=reason))
        future.add_done_callback(lambda _: answered.set())
        return answered.wait(timeout) and bool(future.result().interrupted)

    def _watch(self, attempt: _Attempt, deadline: float) -> str:
        """Wait for an attempt; give up when the server is gone. Returns why it gave none."""
        sent = time.monotonic()
        while not attempt.done.wait(POLL_PERIOD):
            now = time.monotonic()
            if now > deadline:
                return 'the evaluation is still under way'
            if not self._action.server_is_ready():
                return 'the evaluator node went away'
            if not attempt.accepted and now - sent > ACCEPT_TIMEOUT:
                return 'the evaluator node did not answer'
        return attempt.fault


class _Attempt:
    """One goal on its way; its methods are called on the executor's thread."""

    def __init__(self, on_event: Callable[[Event], None] | None) -> None:
        self.done = threading.Event()
        self.accepted = False
        self.outcome: Outcome | None = None
        self.fault = ''
        self._on_event = on_event

    def send(self, action: Any, goal: Any) -> None:
        future = action.send_goal_async(goal, feedback_callback=self._feedback)
        future.add_done_callback(self._answered)

    def _feedback(self, message: Any) -> None:
        if self._on_event is not None:
            self._on_event(event_of_message(message.feedback.event))

    def _answered(self, future: Any) -> None:
        handle = future.result()
        if not handle.accepted:
            self._end('the evaluator node is not active')
            return
        self.accepted = True
        handle.get_result_async().add_done_callback(self._finished)

    def _finished(self, future: Any) -> None:
        response = future.result()
        if response.status == GoalStatus.STATUS_UNKNOWN:
            self._end('the evaluator node has forgotten the goal')
            return
        try:
            self.outcome = outcome_of_message(response.result.outcome)
        except ValueError as error:
            self._end(f'the evaluator node sent an outcome that cannot be read: {error}')
            return
        self.done.set()

    def _end(self, fault: str) -> None:
        self.fault = fault
        self.done.set()
