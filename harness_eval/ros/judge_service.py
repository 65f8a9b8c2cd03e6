"""Calling ``harness_eval_msgs/srv/Judge``: the side of the ``service`` evaluator that knows rclpy.

Threading: clients are made and destroyed on the executor's thread. A question is asked on the
judge's own thread, in an event loop that waits there; the executor only takes the response and
wakes that loop, so that neither ever waits for the other. An executor that does not spin leads to
the deadline of whoever asks.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import threading
from typing import Any

from rclpy.qos import QoSProfile
from sensor_msgs.msg import CompressedImage
from std_msgs.msg import Header

from harness_eval.contract import EvaluatorError
from harness_eval.evaluators.service_forms import JudgeQuestion, JudgeReply, SentPicture, SentState
from harness_eval.lines import describe
from harness_eval.ros.messages import time_message
from harness_eval.turns import Turns
from harness_eval_msgs.msg import JudgeState, JudgeView
from harness_eval_msgs.srv import Judge

PATIENCE = 3.0
"""Seconds in which a service that is there is discovered; it takes up to two after a start."""
READY_PERIOD = 0.05
"""Seconds between two looks for a service that is not there yet."""
GRACE = 0.1
"""Seconds between finding a service and the first call: it may not know the way back to us yet,
and its answer would never arrive."""
ALIVE_PERIOD = 0.5
"""Seconds between two looks whether a service that was asked is still there."""
GONE_AFTER = 2
"""Looks in a row at which a service that is not seen is gone: one may fall into a change."""

HELD_BY_A_SERVICE = 8
"""Questions that a service holds while it is busy. Its queue has a depth of 10 by default, and
what comes on top is lost without a word: of 40 at the same time two were never answered."""
RESPONSES = 1000
"""Depth of the queue of responses."""


class RosJudgeService:
    """One service of type ``Judge`` that can be asked.

    Args:
        node: The node; it must be spun.
        group: A reentrant callback group.
        name: Name of the service; a relative one is resolved by the node.
        most: Questions that wait for their answer at the same time; further ones wait for a turn.
    """

    def __init__(self, node: Any, group: Any, name: str, most: int) -> None:
        self._node = node
        self._turns = Turns(most)
        self._client = node.create_client(
            Judge, name, qos_profile=QoSProfile(depth=RESPONSES), callback_group=group
        )
        self._name = node.resolve_service_name(name)
        self._closed = threading.Event()

    async def ask(self, question: JudgeQuestion) -> JudgeReply:
        """Call the service; whoever gives up cancels this.

        Raises:
            EvaluatorError: ``service_absent``: nobody offers it; ``service_ambiguous``: several
                do; ``service_gone``: it was there and is not any more; ``service_failed``: the
                middleware could not send or the client was closed. All may be tried again.
        """
        try:
            await self._wait_until_ready()
            self._check_single()
            request = message_of(question)
            async with self._turns.one():
                return _plain(await self._answered(request))
        except (RuntimeError, ValueError) as error:  # rclpy's, also of a client that is destroyed
            raise self._error(
                'service_failed', f'it cannot be called: {describe(error)}'
            ) from None

    def close(self) -> None:
        """Destroy the client; whoever waits for an answer is told at the next look."""
        self._closed.set()
        self._node.destroy_client(self._client)

    async def _wait_until_ready(self) -> None:
        if self._is_ready():
            return
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        while not self._is_ready():
            if loop.time() >= until:
                raise self._error(
                    'service_absent',
                    f'nobody offers {self._name} of type harness_eval_msgs/srv/Judge; start it, '
                    'or correct its name',
                )
            await asyncio.sleep(READY_PERIOD)
        await asyncio.sleep(GRACE)

    def _check_single(self) -> None:
        # A request goes to every server of that name, and the quickest of them would decide.
        count = self._node.count_services(self._name)
        if count > 1:
            raise self._error(
                'service_ambiguous', f'{count} nodes offer {self._name}; leave one of them'
            )

    async def _answered(self, request: Any) -> Any:
        loop = asyncio.get_running_loop()
        answered = asyncio.Event()

        def wake(_: Any) -> None:
            with contextlib.suppress(RuntimeError):  # nobody waits any more, the loop is closed
                loop.call_soon_threadsafe(answered.set)

        future = self._client.call_async(request)
        future.add_done_callback(wake)
        missing = 0
        try:
            while not answered.is_set():
                with contextlib.suppress(asyncio.TimeoutError, TimeoutError):
                    await asyncio.wait_for(answered.wait(), ALIVE_PERIOD)
                missing = 0 if self._is_ready() else missing + 1
                if missing >= GONE_AFTER and not answered.is_set():
                    raise self._error(
                        'service_gone',
                        f'{self._name} went away before it answered; see what ended it',
                    )
        finally:
            if not self._closed.is_set():
                self._client.remove_pending_request(future)
        return future.result()

    def _is_ready(self) -> bool:
        if self._closed.is_set():
            raise self._error('service_failed', 'the node stopped asking')
        return bool(self._client.service_is_ready())

    def _error(self, kind: str, message: str) -> EvaluatorError:
        return EvaluatorError(kind, message, retryable=True)


class JudgeServices:
    """Gives services by name, each with one client.

    Args:
        node: The node; it must be spun.
        group: A reentrant callback group.
    """

    def __init__(self, node: Any, group: Any) -> None:
        self._node = node
        self._group = group
        self._services: dict[str, RosJudgeService] = {}

    def __call__(self, name: str, most: int | None = None) -> RosJudgeService:
        """The service of that name; on the executor's thread.

        Args:
            name: Its name.
            most: Questions that wait for their answer at the same time; default: as many as a
                service of default QoS can hold.
        """
        if name not in self._services:
            self._services[name] = RosJudgeService(
                self._node, self._group, name, most or HELD_BY_A_SERVICE
            )
        return self._services[name]

    def close(self) -> None:
        """Destroy the clients; on the executor's thread."""
        for service in self._services.values():
            service.close()
        self._services.clear()


def message_of(question: JudgeQuestion) -> Any:
    """The question as a request."""
    return Judge.Request(
        post_condition=question.post_condition,
        checks_json=question.checks_json,
        failure_kinds=list(question.failure_kinds),
        process_allowed=question.process_allowed,
        views=[_picture(view) for view in question.views],
        states=[_state(state) for state in question.states],
        references=[_picture(reference) for reference in question.references],
        input_digest=question.digest,
    )


def _picture(sent: SentPicture) -> JudgeView:
    image = CompressedImage(header=_header(sent.stamp, sent.frame_id), format=sent.format)
    image.data = array.array('B', sent.data)  # bytes would be checked one by one
    return JudgeView(name=sent.name, age=sent.age, image=image)


def _state(sent: SentState) -> JudgeState:
    return JudgeState(
        name=sent.name,
        age=sent.age,
        header=_header(sent.stamp, sent.frame_id),
        values=array.array('d', sent.values),
    )


def _header(stamp: int, frame_id: str) -> Header:
    return Header(stamp=time_message(stamp), frame_id=frame_id)


def _plain(response: Any) -> JudgeReply:
    return JudgeReply(
        status=int(response.status),
        score=float(response.score),
        evidence=tuple(response.evidence),
        failure_reason=response.failure_reason,
        failure_kind=response.failure_kind,
        route=response.route,
        cost=float(response.cost),
        error=response.error,
    )
