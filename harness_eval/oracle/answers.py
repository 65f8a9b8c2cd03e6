"""What an oracle is asked, what it answers, and what an answer may change."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from harness_eval.contract import EvaluationError, Status, Verdict
from harness_eval.lines import clean_evidence, clean_line, MAX_EVIDENCE_LINES

_SHOWN_OF_EVIDENCE = MAX_EVIDENCE_LINES - 4
"""Lines of the judge's evidence that are kept beside an oracle's verdict."""


@dataclass(frozen=True)
class OracleRequest:
    """What an oracle is asked: did this run really achieve what it was asked to do?

    Attributes:
        run_id: Names the execution.
        tool: Name of the tool.
        segment: Number of the segment, from 0.
        arguments: What the tool was asked to do.
    """

    run_id: str
    tool: str
    segment: int = 0
    arguments: Mapping[str, str] = field(default_factory=dict)


OracleResult = bool | None
"""``True``: the outcome is as it should be; ``False``: it is not; ``None``: not known here."""


class Oracle(Protocol):
    """Whatever knows the truth.

    Attributes:
        ref: How records and errors name it; no credentials, no query.
    """

    ref: str

    def answer(self, request: OracleRequest) -> OracleResult | Awaitable[OracleResult]:
        """Say whether the outcome is correct. It may block; it runs on a thread of its own."""
        ...


@dataclass(frozen=True)
class OracleAnswer:
    """What asking an oracle came to.

    Attributes:
        ref: The oracle.
        outcome_correct: Its answer; None: it has none, or could not be asked.
        error: Kind and message of what kept it from answering; empty if nothing did.
    """

    ref: str
    outcome_correct: bool | None = None
    error: str = ''

    def to_plain(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return asdict(self)

    @classmethod
    def from_plain(cls, data: Any) -> OracleAnswer | None:
        """Read plain data; None for what does not hold an answer."""
        if not isinstance(data, Mapping):
            return None
        correct = data.get('outcome_correct')
        return cls(
            ref=str(data.get('ref', '')),
            outcome_correct=correct if isinstance(correct, bool) else None,
            error=str(data.get('error', '')),
        )

    def __str__(self) -> str:
        if self.error:
            return f'no answer: {self.error}'
        if self.outcome_correct is None:
            return 'does not know'
        return 'correct' if self.outcome_correct else 'not correct'


def decided_by(
    answer: OracleAnswer, judged: Verdict | EvaluationError
) -> Verdict | EvaluationError:
    """What a segment comes to where the oracle decides: its answer, if there is one.

    Args:
        answer: The oracle's.
        judged: The judge's verdict, error or abstention; it is kept in the evidence.
    """
    if answer.outcome_correct is None:
        if isinstance(judged, Verdict):
            line = f'{answer.ref} would decide, but {_lead(answer)}'
            return replace(judged, evidence=clean_evidence((line, *judged.evidence)))
        return judged
    said = f'{answer.ref} says that the outcome is {answer}'
    beside = (said, *_beside(judged))
    # A report that came with a failure need not be one that a success may have.
    agreed = isinstance(judged, Verdict) and judged.status is Status.SUCCESS
    report = judged.report if agreed and isinstance(judged, Verdict) else None
    cost = judged.cost if isinstance(judged, Verdict) else None
    return Verdict(
        status=Status.SUCCESS if answer.outcome_correct else Status.FAILURE,
        evidence=clean_evidence(beside),
        failure_reason='' if answer.outcome_correct else said,
        report=report,
        route=answer.ref,
        cost=cost,
    )


def _lead(answer: OracleAnswer) -> str:
    return f'gave no answer: {answer.error}' if answer.error else 'does not know'


def _beside(judged: Verdict | EvaluationError) -> tuple[str, ...]:
    if not isinstance(judged, Verdict):
        return (clean_line(f'the judge came to no verdict: {judged}'),)
    score = '' if judged.score is None else f', score {judged.score:.4g}'
    reason = f': {judged.failure_reason}' if judged.failure_reason else ''
    first = clean_line(f'the judge says {judged.status.value}{score}{reason}')
    return (first, *(f'judge: {line}' for line in judged.evidence[:_SHOWN_OF_EVIDENCE]))
