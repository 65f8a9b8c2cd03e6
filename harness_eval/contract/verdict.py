"""What an evaluator is, and what it may answer."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, runtime_checkable

from harness_eval.contract.question import EvaluationRequest


class Status(str, Enum):
    """The three things a verdict can say."""

    PROCESS = 'process'
    SUCCESS = 'success'
    FAILURE = 'failure'


@dataclass(frozen=True)
class Verdict:
    """What an evaluator decided.

    Attributes:
        status: ``process``, ``success`` or ``failure``.
        evidence: What was seen, one line each.
        failure_reason: Why the post-condition does not hold; set for ``failure`` and only then.
        failure_kind: ``post_condition``, ``segment_budget``, ``stalled`` or one of the tool's own
            failure kinds; set for ``failure`` and only then.
        score: Confidence in [0, 1] that the post-condition holds, if there is one.
        report: The tool's typed report, if there is one.
        route: Which model or service answered; empty for the evaluator itself.
        cost: Price of the judgement, if known.

    Raises:
        ValueError: A failure without a reason, a reason without a failure, a score out of range.
    """

    status: Status
    evidence: tuple[str, ...] = ()
    failure_reason: str = ''
    failure_kind: str = ''
    score: float | None = None
    report: Mapping[str, Any] | None = None
    route: str = ''
    cost: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.status, Status):
            raise ValueError(f'status must be a Status, not {self.status!r}')
        if self.status is Status.FAILURE:
            if not self.failure_reason.strip():
                raise ValueError('a failure needs a failure_reason')
            if not self.failure_kind:
                object.__setattr__(self, 'failure_kind', 'post_condition')
        elif self.failure_reason or self.failure_kind:
            raise ValueError(f'{self.status.value} carries no failure_reason and no failure_kind')
        if self.score is not None and not 0.0 <= self.score <= 1.0:
            raise ValueError(f'score {self.score} is outside [0, 1]')


Answer = Verdict | float | bool | None
"""What an evaluator may return. ``None`` abstains; a float is a score in [0, 1]."""


@runtime_checkable
class Evaluator(Protocol):
    """Whatever judges a post-condition against an observation.

    Attributes:
        ref: How errors and verdicts name it; no credentials, no query.
    """

    ref: str

    def evaluate(self, request: EvaluationRequest) -> Answer | Awaitable[Answer]:
        """Judge the request. It may block; it runs on a thread of its own with a deadline.

        Raises:
            EvaluationError: The evaluation could not be done. Any other exception is turned
                into one by the caller.
        """
        ...
