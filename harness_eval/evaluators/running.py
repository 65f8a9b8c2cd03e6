"""Calling an evaluator on the present thread."""

from __future__ import annotations

import inspect

from harness_eval.contract import EvaluationRequest, Evaluator, Verdict
from harness_eval.evaluators.shared_loop import OWN, PLUGINS, SharedLoop
from harness_eval.evaluators.stop import Stop
from harness_eval.judging import interpret, Thresholds

__all__ = ['Stop', 'judge_here', 'loop_of']


def loop_of(kind: str) -> SharedLoop:
    """The event loop on which evaluators of a kind are awaited."""
    return PLUGINS if kind == 'plugin' else OWN


def judge_here(
    evaluator: Evaluator,
    request: EvaluationRequest,
    thresholds: Thresholds,
    *,
    clamp: bool,
    stop: Stop,
    loop: SharedLoop = OWN,
) -> Verdict:
    """Call the evaluator on this thread, await what it returns, and say what it means.

    What an asynchronous evaluator returns is awaited on a loop that all of them share, while this
    thread waits; a request to stop cancels it.

    Raises:
        EvaluationError: As :func:`harness_eval.judging.interpret`.
        BaseException: Whatever the evaluator raises.
    """
    answer = evaluator.evaluate(request)
    if inspect.isawaitable(answer):
        answer = loop.finish(answer, stop)
    return interpret(
        answer,
        request,
        thresholds,
        evaluator=evaluator.ref,
        clamp=clamp,
        share=getattr(evaluator, 'score_is_share', False),
    )
