"""How a result stands to what really happened. Pure."""

from __future__ import annotations

from dataclasses import replace

from harness_eval.contract import Status
from harness_eval.replay.results import Result, Truth

_ORACLE = 'oracle:'


def came_to(result: Result) -> str:
    """What a result came to: a status, or the kind of an outcome without a verdict."""
    verdict = result.outcome.verdict
    return result.outcome.kind.value if verdict is None else verdict.status.value


def has_own_truth(result: Result) -> bool:
    """Whether the truth of a result comes from elsewhere than its verdict."""
    if result.truth is None:
        return False
    verdict = result.outcome.verdict
    by_oracle = verdict is not None and verdict.route.startswith(_ORACLE)
    return not (by_oracle and result.truth.source == 'oracle')


def agrees(result: Result, truth: Truth | None) -> bool | None:
    """Whether the verdict agrees with the truth; None: no truth, or no verdict that could.

    The verdict that an oracle gave agrees with what that oracle says, which means nothing.
    """
    verdict = result.outcome.verdict
    if truth is None or verdict is None or verdict.status is Status.PROCESS:
        return None
    if not has_own_truth(replace(result, truth=truth)):
        return None
    return (verdict.status is Status.SUCCESS) == truth.correct
