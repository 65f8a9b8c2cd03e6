"""Results of replays made up by hand: what a segment came to, and what was true of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness_eval.contract import Status, Verdict
from harness_eval.replay.results import Replayed, Result, Truth
from harness_eval.runs import Completion, Outcome, OutcomeKind

END = 1_700_000_000_000_000_000
LABELS = {True: Truth(True, 'label'), False: Truth(False, 'label'), None: None}


def outcome_of(
    said: str,
    run_id: str = 'run',
    tool: str = 'pick',
    segment: int = 0,
    *,
    score: float | None = None,
    report: Any = None,
    evidence: tuple[str, ...] = (),
    reason: str = '',
) -> Outcome:
    """An outcome from a word: ``success``, ``failure``, ``process``, ``error``, ``abstained``."""
    common: dict[str, Any] = {
        'run_id': run_id,
        'tool': tool,
        'segment': segment,
        'attempt': 1,
        'decided_at': END + 10**9,
        'completed_at': END,
        'evaluator': 'checks',
    }
    if said in ('error', 'abstained', 'interrupted'):
        kind = {'error': 'judge_down', 'abstained': 'view_unusable'}.get(said, '')
        text = reason or 'the judge did not answer'
        return Outcome(kind=OutcomeKind(said), error_kind=kind, message=text, **common)
    status = Status(said)
    why = (reason or 'the gripper is empty') if status is Status.FAILURE else ''
    verdict = Verdict(status, evidence, why, score=score, report=report)
    return Outcome(kind=OutcomeKind.VERDICT, verdict=verdict, **common)


def result_of(
    said: str,
    run_id: str = 'run',
    *,
    tool: str = 'pick',
    segment: int = 0,
    truth: bool | None = None,
    source: str = 'case',
    case: Path | None = None,
    **more: Any,
) -> Result:
    """A result from a word and what was true."""
    completion = Completion(run_id, tool, segment, END, (('target', 'cup'),))
    outcome = outcome_of(said, run_id, tool, segment, **more)
    return Result(source, completion, outcome, truth=LABELS[truth], seconds=0.25, case=case)


def replayed(*results: Result, config: str = 'cell.yaml', **more: Any) -> Replayed:
    """A replay of them."""
    return Replayed(results, config=config, **more)


def runs(
    *said: str, truth: bool | None = None, config: str = 'cell.yaml', **more: Any
) -> Replayed:
    """A replay of one run for each word, all of them with the same truth."""
    results = [result_of(word, f'run_{n}', truth=truth) for n, word in enumerate(said)]
    return replayed(*results, config=config, **more)
