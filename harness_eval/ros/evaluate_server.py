"""The ``~/evaluate`` action: the acknowledged way to report an end.

Threading: callbacks run on the executor's thread and only hand over. A goal waits without a
thread: it is executed, which takes no time, once its outcome is there. When the server is closed,
what still waits is told so before the server goes, in tasks of the executor.
"""

from __future__ import annotations

from collections.abc import Callable
import logging
import threading
from typing import Any

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.qos import QoSProfile

from harness_eval.completions import completion_of
from harness_eval.contract import EvaluationError
from harness_eval.lines import describe
from harness_eval.pipeline import Waiter
from harness_eval.ros.messages import event_message, outcome_message
from harness_eval.runs import Completion, Outcome, outcome_of, OutcomeKind, Segment
from harness_eval.stages import Event
from harness_eval_msgs.action import Evaluate

log = logging.getLogger('harness_eval.node')

DEPTH = 100
ROUNDS = 3
"""Rounds of the executor until results are sent: one concludes a goal, rclpy sends its result
in the next one, and one is to spare."""

_Key = tuple[str, int]


class EvaluateServer:
    """Serves ``~/evaluate``.

    A goal succeeds when the evaluation came to a verdict (whatever it says), is cancelled when it
    was interrupted on request, and is aborted otherwise; the result always holds the outcome.

    Args:
        node: The node that serves.
        group: A reentrant callback group.
        active: Whether completions are taken now; goals are rejected otherwise.
        complete: Takes a completion, its receipt and who waits for the outcome.
        interrupt: Stops the evaluation of a run.
    """

    def __init__(
        self,
        node: Node,
        group: Any,
        active: Callable[[], bool],
        complete: Callable[[Completion, int, Waiter], None],
        interrupt: Callable[[str, str], None],
    ) -> None:
        self._node = node
        self._active = active
        self._complete = complete
        self._interrupt = interrupt
        self._lock = threading.Lock()
        self._goals: dict[_Key, list[tuple[Any, int]]] = {}  # with their receipts
        depth = QoSProfile(depth=DEPTH)
        self._server = ActionServer(
            node,
            Evaluate,
            '~/evaluate',
            execute_callback=self._never,
            goal_callback=self._goal,
            handle_accepted_callback=self._accepted,
            cancel_callback=self._cancel,
            callback_group=group,
            goal_service_qos_profile=depth,
            result_service_qos_profile=depth,
            cancel_service_qos_profile=depth,
            feedback_pub_qos_profile=depth,
        )

    def event(self, event: Event) -> None:
        """Send a step as feedback to whoever waits for that segment; from any thread."""
        with self._lock:
            goals = list(self._goals.get((event.run_id, event.segment), ()))
        for goal, _ in goals:
            feedback = Evaluate.Feedback()
            feedback.event = event_message(event)
            goal.publish_feedback(feedback)

    def close(self) -> None:
        """Stop serving; whoever waits is told so, and finds the outcome on record later."""
        with self._lock:
            waiting = [entry for entries in self._goals.values() for entry in entries]
            self._goals.clear()
        now = self._node.get_clock().now().nanoseconds
        try:
            for goal, receipt in waiting:
                _execute(goal, _deactivated(completion_of(goal.request), receipt, now))
            _after_tasks(self._node.executor, ROUNDS, self._server.destroy)
        except Exception as error:  # the executor is shut down: nobody can be told anything
            log.debug('goals of ~/evaluate end without a result: %s', describe(error))
            self._server.destroy()

    def _goal(self, _request: Any) -> GoalResponse:
        return GoalResponse.ACCEPT if self._active() else GoalResponse.REJECT

    def _accepted(self, goal: Any) -> None:
        completion = completion_of(goal.request)
        key = (completion.run_id, completion.segment)
        receipt = self._node.get_clock().now().nanoseconds
        entry = (goal, receipt)
        with self._lock:
            self._goals.setdefault(key, []).append(entry)

        def answer(outcome: Outcome) -> None:
            with self._lock:
                waiting = self._goals.get(key, [])
                if entry not in waiting:
                    return  # the server was closed
                waiting.remove(entry)
                if not waiting:
                    self._goals.pop(key, None)
            _execute(goal, outcome)

        self._complete(completion, receipt, answer)

    def _cancel(self, goal: Any) -> CancelResponse:
        self._interrupt(goal.request.run_id, 'the goal of ~/evaluate was cancelled')
        return CancelResponse.ACCEPT

    def _never(self, _goal: Any) -> Any:
        raise AssertionError('goals are executed with a callback of their own')


def _deactivated(completion: Completion, receipt: int, now: int) -> Outcome:
    error = EvaluationError(
        'deactivated',
        'the node was deactivated before the outcome was there; what became of the run is '
        'published when the node is active again, and ~/get_run answers it',
    )
    segment = Segment(completion, order=0, receipt=receipt, attempt=0)
    return outcome_of(error, segment, decided_at=now, max_segments=1)


def _after_tasks(executor: Any, rounds: int, call: Callable[[], None]) -> None:
    """Run a call after so many rounds of the executor's tasks."""
    if rounds == 0:
        call()
    else:
        executor.create_task(lambda: _after_tasks(executor, rounds - 1, call))


def _execute(goal: Any, outcome: Outcome) -> None:
    goal.execute(lambda handle: _conclude(handle, outcome))


def _conclude(goal: Any, outcome: Outcome) -> Any:
    if outcome.kind is OutcomeKind.VERDICT:
        goal.succeed()
    elif outcome.kind is OutcomeKind.INTERRUPTED and goal.is_cancel_requested:
        goal.canceled()
    else:
        goal.abort()
    result = Evaluate.Result()
    result.outcome = outcome_message(outcome)
    return result
