"""What ``vote`` and ``cascade`` share: asking another evaluator, and telling what it said."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from harness_eval.contract import Abstention, EvaluationError, EvaluationRequest, Verdict
from harness_eval.judging import Unsure
from harness_eval.lines import clean_line

if TYPE_CHECKING:
    from harness_eval.calls import JudgeCalls

Outcome = Verdict | EvaluationError

_HASTE = 0.05
"""Share of a time-out that is left for what follows the last answer."""

_MOST_HASTE = 0.5
"""Seconds of it, at most."""


def patience(timeout: float) -> float:
    """Seconds that members may take within a time-out, so that it is still kept after them."""
    return timeout - min(timeout * _HASTE, _MOST_HASTE)


async def ask(calls: JudgeCalls, request: EvaluationRequest) -> Outcome:
    """Ask an evaluator behind its calls, without a thread that waits.

    Cancelled, it gives the call up: an asynchronous evaluator is cancelled with it.

    Args:
        calls: The evaluator; its own deadline and limits hold.
        request: What is judged.

    Returns:
        A verdict, an abstention or an error; nothing is raised.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Outcome] = loop.create_future()

    def settle(outcome: Outcome) -> None:
        if not answer.done():
            answer.set_result(outcome)

    def tell(outcome: Outcome) -> None:
        with suppress(RuntimeError):  # the loop is gone: nobody waits any more
            loop.call_soon_threadsafe(settle, outcome)

    handle = calls.call(request, tell)
    try:
        return await answer
    finally:
        handle.cancel()


def said(name: str, outcome: Outcome) -> str:
    """Write what a member said as a line of evidence."""
    if isinstance(outcome, Verdict):
        score = '' if outcome.score is None else f' (score {outcome.score:.4g})'
        why = outcome.failure_reason or next(iter(outcome.evidence), '')
        return clean_line(f'{name}: {outcome.status.value}{score}' + (f': {why}' if why else ''))
    what = 'abstained' if isinstance(outcome, Abstention) else 'error'
    return clean_line(f'{name}: {what}, {outcome.kind}: {outcome.message}')


def details(name: str, verdict: Verdict) -> list[str]:
    """Give the lines of a member's evidence that :func:`said` has no room for."""
    rest = verdict.evidence if verdict.failure_reason else verdict.evidence[1:]
    return [f'{name}: {line}' for line in rest if line != verdict.failure_reason]


def route(name: str, verdict: Verdict) -> str:
    """Say which member answered, and by which route of its own."""
    return f'{name} ({verdict.route})' if verdict.route else name


def cost(outcomes: Iterable[Outcome]) -> float | None:
    """Add up what is known of the cost of all members, decisive or not."""
    known = []
    for outcome in outcomes:
        answer = outcome.verdict if isinstance(outcome, Unsure) else outcome
        if isinstance(answer, Verdict) and answer.cost is not None:
            known.append(answer.cost)
    return sum(known) if known else None
