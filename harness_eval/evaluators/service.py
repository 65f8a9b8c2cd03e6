"""The ``service`` evaluator: a ROS 2 service of type ``harness_eval_msgs/srv/Judge``.

This side knows no ROS: the question is plain data, and whatever calls the service is handed in by
the node (:mod:`harness_eval.ros.judge_service`). The pictures are encoded on the thread that asks;
the call itself is awaited, so that it can be given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
import math
from typing import Protocol

from harness_eval.config.evaluators import ServiceSettings
from harness_eval.contract import Answer, EvaluationRequest, EvaluatorError, Status, Verdict
from harness_eval.evaluators.context import EvaluatorContext
from harness_eval.evaluators.elsewhere import told_abstention
from harness_eval.evaluators.service_forms import (
    ABSTAIN,
    FAILURE,
    JudgeQuestion,
    JudgeReply,
    PROCESS,
    question_of,
    SUCCESS,
    UNSET,
)
from harness_eval.judging import interpret, Thresholds
from harness_eval.lines import clean_line

_STATUSES = {PROCESS: Status.PROCESS, SUCCESS: Status.SUCCESS, FAILURE: Status.FAILURE}

_UNTOUCHED = JudgeReply(score=0.0, cost=0.0)
"""A response as it is made: a server that returns it has not said that anything failed."""


class JudgeService(Protocol):
    """A service that can be called; the node hands it in."""

    async def ask(self, question: JudgeQuestion) -> JudgeReply:
        """Call it. Whoever gives up cancels this; it sets no deadline of its own.

        Raises:
            EvaluatorError: ``service_absent``, ``service_gone`` or another of that kind.
        """
        ...


class ServiceEvaluator:
    """Calls a ROS 2 service and takes its answer.

    Args:
        name: What the configuration calls it.
        settings: Name of the service, time-out, ``clamp``.
        context: Its ``ros_service`` gives a :class:`JudgeService` by name and by how many
            questions may be under way.

    Attributes:
        ref: ``service:`` and the name of the service.
    """

    def __init__(self, name: str, settings: ServiceSettings, context: EvaluatorContext) -> None:
        self.ref = f'service:{settings.service}'
        self._timeout = settings.timeout
        self._clamp = settings.clamp
        self._thresholds = context.thresholds
        self._service: JudgeService | None = None
        if context.ros_service is not None:
            self._service = context.ros_service(settings.service, settings.max_concurrency)

    def evaluate(self, request: EvaluationRequest) -> Awaitable[Answer]:
        """Encode the question on this thread; what is returned calls the service.

        Raises:
            EvaluatorError: ``no_ros``, ``unsendable_picture``, and once awaited
                ``service_absent``, ``service_ambiguous``, ``service_gone``, ``service_timeout``,
                ``service_error`` or what the answer comes to.
            DecodeError: A picture cannot be decoded.
        """
        if self._service is None:
            raise self._error(
                'no_ros', 'a ROS 2 service is asked by a node, and there is none here'
            )
        try:
            question = question_of(request)
        except EvaluatorError as error:
            raise self._error(error.kind, error.message) from None
        return self._ask(self._service, question, request)

    async def _ask(
        self, service: JudgeService, question: JudgeQuestion, request: EvaluationRequest
    ) -> Answer:
        try:
            reply = await asyncio.wait_for(service.ask(question), self._timeout)
        except (asyncio.TimeoutError, TimeoutError):
            raise self._error(
                'service_timeout', f'no answer within {self._timeout:g} s', again=True
            ) from None
        except EvaluatorError as error:
            raise self._error(error.kind, error.message, again=error.retryable) from None
        return read_reply(reply, request, self._thresholds, self.ref, clamp=self._clamp)

    def _error(self, kind: str, message: str, *, again: bool = False) -> EvaluatorError:
        return EvaluatorError(kind, message, evaluator=self.ref, retryable=again)


def read_reply(
    reply: JudgeReply,
    request: EvaluationRequest,
    thresholds: Thresholds,
    ref: str,
    *,
    clamp: bool = False,
) -> Verdict:
    """Make a verdict of what a service answered.

    Args:
        reply: The answer.
        request: What was asked.
        thresholds: What decides when the service gives a score and no status.
        ref: How errors name the service.
        clamp: Cut a score outside [0, 1].

    Raises:
        EvaluatorError: ``service_error`` with what the service says of itself,
            ``malformed_answer``, ``score_out_of_range``.
        Abstention: ``judge_abstained``, or ``unsure``.
    """
    if reply.error:
        said = clean_line(reply.error) or 'an error without a text'
        raise EvaluatorError('service_error', said, evaluator=ref, retryable=True)
    try:
        if reply.status == ABSTAIN:
            _carries_no_failure(reply, 'ABSTAIN')
            raise told_abstention(reply.evidence, ref)
        if reply.status == UNSET:
            return _by_score(reply, request, thresholds, ref, clamp)
        if reply.status not in _STATUSES:
            raise ValueError(
                f'status is {reply.status}; expected UNSET (0), PROCESS (1), SUCCESS (2), '
                'FAILURE (3) or ABSTAIN (4)'
            )
        return Verdict(
            status=_STATUSES[reply.status],
            evidence=reply.evidence,
            failure_reason=reply.failure_reason,
            failure_kind=reply.failure_kind,
            score=_number(reply.score),
            route=reply.route,
            cost=_number(reply.cost),
        )
    except ValueError as error:
        raise EvaluatorError('malformed_answer', str(error), evaluator=ref) from None


def _by_score(
    reply: JudgeReply, request: EvaluationRequest, thresholds: Thresholds, ref: str, clamp: bool
) -> Verdict:
    if math.isnan(reply.score):
        raise ValueError('the answer has neither a status nor a score (nor an error)')
    if reply == _UNTOUCHED:
        raise ValueError(
            'nobody filled in the response; a score of 0 that is meant comes with a line of '
            'evidence, or with the status FAILURE'
        )
    _carries_no_failure(reply, 'UNSET')
    verdict = interpret(reply.score, request, thresholds, evaluator=ref, clamp=clamp)
    return replace(
        verdict,
        evidence=(*verdict.evidence, *reply.evidence),
        route=reply.route,
        cost=_number(reply.cost),
    )


def _carries_no_failure(reply: JudgeReply, status: str) -> None:
    if reply.failure_reason or reply.failure_kind:
        raise ValueError(f'the status {status} carries no failure_reason and no failure_kind')


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
