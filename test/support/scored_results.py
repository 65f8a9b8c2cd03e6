"""Results of judged segments, made up: what was said, what is true, with which score."""

from __future__ import annotations

from harness_eval.contract import Status, Verdict
from harness_eval.replay.results import Result, Truth
from harness_eval.runs import Completion, Outcome, OutcomeKind

END = 1_700_000_000 * 10**9
SECOND = 10**9


def result(
    said: str,
    truth: bool | None = None,
    *,
    score: float | None = None,
    run_id: str = 'run-1',
    tool: str = 'pick',
    segment: int = 0,
    source: str = 'bag',
    truth_from: str = 'label',
    evaluator: str = 'plugin:judge',
    route: str = '',
    cost: float | None = None,
    seconds: float = float('nan'),
    decided_after: float = 0.0,
    error_kind: str = '',
) -> Result:
    """A result of which each number depends on what the test says, and on nothing else.

    ``said`` is ``success``, ``failure``, ``process``, ``abstained``, ``error`` or
    ``interrupted``; ``decided_after`` are seconds from the end to the decision, 0 if they are not
    on record. The ``score`` of an abstention is the one that left the judge unsure.
    """
    verdict = None
    if said in {status.value for status in Status}:
        verdict = Verdict(
            Status(said),
            failure_reason='it fell' if said == 'failure' else '',
            score=score,
            route=route,
            cost=cost,
        )
    outcome = Outcome(
        run_id=run_id,
        tool=tool,
        segment=segment,
        attempt=1,
        kind=OutcomeKind.VERDICT if verdict else OutcomeKind(said),
        decided_at=int(END + decided_after * SECOND) if decided_after else 0,
        verdict=verdict,
        error_kind=error_kind or ('unsure' if said == 'abstained' else ''),
        evaluator=evaluator,
        completed_at=END,
        score=score if said == 'abstained' else None,
    )
    return Result(
        source=source,
        completion=Completion(run_id, tool, segment, END),
        outcome=outcome,
        truth=None if truth is None else Truth(truth, truth_from),
        seconds=seconds,
    )
