"""What a page says of each run, as plain texts that are safe to show. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
import json
import math
from pathlib import Path
from typing import Any

from harness_eval.lines import clean_line, redact, redact_plain
from harness_eval.replay.agreement import agrees
from harness_eval.replay.comparison import Comparison, Pair
from harness_eval.replay.results import Replayed, Result, Truth
from harness_eval.runs import Outcome

MAX_TEXT = 2000
"""Characters of one text on a page."""

_RANKS = ('regression', 'correction')


@dataclass(frozen=True)
class Line:
    """A line of evidence.

    Attributes:
        text: What it says.
        only: The other outcome that it stands beside has no such line.
    """

    text: str
    only: bool = False


@dataclass(frozen=True)
class Side:
    """What a run came to, once.

    Attributes:
        title: Under which configuration.
        state: ``success``, ``failure``, ``process``, ``error``, ``abstained``, ``interrupted``.
        label: The same with the kind of an error.
        score: The judge's score; empty: none.
        reason: Why; empty for a success.
        kind: Kind of the failure.
        evidence: What was seen.
        facts: Names and values of what else is known.
    """

    title: str
    state: str
    label: str
    score: str
    reason: str
    kind: str
    evidence: tuple[Line, ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Entry:
    """One run, or one segment of it.

    Attributes:
        tool: Name of the tool.
        run: Run id and number of the segment.
        truth: ``succeeded`` or ``failed``; empty if nobody knows.
        truth_note: Who says so.
        agreement: ``right``, ``wrong`` or ``unknown``.
        change: ``regression``, ``correction``, ``changed`` or ``same``; empty: it is not compared.
        side: What it came to.
        other: What it came to under the base, or what is on record of it, if there is one.
        facts: Names and values of what does not depend on the configuration.
        case: Folder of its case.
    """

    tool: str
    run: str
    truth: str
    truth_note: str
    agreement: str
    change: str
    side: Side
    other: Side | None
    facts: tuple[tuple[str, str], ...]
    case: Path | None

    @property
    def rank(self) -> int:
        """How soon a reader wants to see it, lowest first."""
        if self.change in _RANKS:
            return _RANKS.index(self.change)
        if self.agreement == 'wrong' or self.change == 'changed':
            return 2
        return 4 if self.side.state == 'success' else 3


def entries(replayed: Replayed, comparison: Comparison | None) -> list[Entry]:
    """What a page says of each run.

    Args:
        replayed: The results.
        comparison: The comparison in which they are the candidate's; regressions come first then.
    """
    if comparison is None:
        return [_alone(result) for result in replayed.results]
    paired = {id(pair.candidate): pair for pair in comparison.pairs}
    found = []
    for result in replayed.results:
        pair = paired.get(id(result))
        found.append(_alone(result) if pair is None else _compared(pair, comparison))
    return sorted(found, key=lambda entry: entry.change != 'regression')


def safe(text: object, limit: int = MAX_TEXT) -> str:
    """A foreign text on one line, without paths of this machine."""
    return clean_line(redact(str(text)[: 4 * limit]), limit)


def _alone(result: Result) -> Entry:
    recorded = result.recorded
    differs = recorded is not None and _essence(recorded) != _essence(result.outcome)
    titles = ('this time', 'on record')
    other = recorded if differs else None
    return _entry(result, result.truth, '', titles, other, ())


def _compared(pair: Pair, comparison: Comparison) -> Entry:
    if pair.regression:
        change = 'regression'
    elif pair.correction:
        change = 'correction'
    else:
        change = 'changed' if pair.changed else 'same'
    titles = (
        f'candidate: {comparison.candidate}',
        f'base: {comparison.base}',
    )
    decides = 'nothing: it has no metric in both'
    if pair.metric:
        name = f'{pair.metric} {pair.name}'.strip()
        decides = (
            f'{name}: {pair.base_value:.4g} under the base, {pair.candidate_value:.4g} under the '
            f'candidate, a gain of {pair.difference:.4g}'
        )
    facts = (('decided by', decides),)
    shown = replace(pair.candidate, case=pair.candidate.case or pair.base.case)
    return _entry(shown, pair.truth, change, titles, pair.base.outcome, facts)


def _entry(
    result: Result,
    truth: Truth | None,
    change: str,
    titles: tuple[str, str],
    other: Outcome | None,
    facts: tuple[tuple[str, str], ...],
) -> Entry:
    completion = result.completion
    right = agrees(result, truth)
    known = () if truth is None else (truth.source, *((truth.note,) if truth.note else ()))
    asked = ', '.join(f'{name} = {value}' for name, value in completion.arguments)
    return Entry(
        tool=safe(completion.tool, 100),
        run=safe(f'{completion.run_id}/{completion.segment}', 300),
        truth='' if truth is None else 'succeeded' if truth.correct else 'failed',
        truth_note=safe(': '.join(known)),
        agreement='unknown' if right is None else 'right' if right else 'wrong',
        change=change,
        side=_side(titles[0], result.outcome, other, result.seconds),
        other=None if other is None else _side(titles[1], other, result.outcome),
        facts=tuple(
            (name, safe(value))
            for name, value in (('asked', asked), ('source', result.source), *facts)
            if value
        ),
        case=result.case,
    )


def _side(
    title: str, outcome: Outcome, other: Outcome | None, seconds: float = float('nan')
) -> Side:
    verdict = outcome.verdict
    beside = None if other is None else {*_evidence(other)}
    reason = outcome.message if verdict is None else verdict.failure_reason
    return Side(
        title=safe(title),
        state=outcome.state.value.lower(),
        label=safe(outcome.label, 100),
        score='' if verdict is None or verdict.score is None else f'{verdict.score:.3f}',
        reason=safe(reason),
        kind='' if verdict is None else safe(verdict.failure_kind, 100),
        evidence=tuple(
            Line(safe(line), beside is not None and line not in beside)
            for line in _evidence(outcome)
        ),
        facts=tuple((name, safe(value)) for name, value in _facts(outcome, seconds)),
    )


def _facts(outcome: Outcome, seconds: float) -> Iterator[tuple[str, str]]:
    verdict = outcome.verdict
    if verdict is not None and verdict.report is not None:
        for key, value in verdict.report.items():
            yield f'report {key}', json.dumps(redact_plain(value), ensure_ascii=False)
    if outcome.evaluator:
        route = f' through {verdict.route}' if verdict is not None and verdict.route else ''
        yield 'evaluator', outcome.evaluator + route
    if verdict is not None and verdict.cost is not None:
        yield 'cost', f'{verdict.cost:.4g}'
    if math.isfinite(seconds):
        yield 'took', f'{seconds:.3f} s'


def _evidence(outcome: Outcome) -> tuple[str, ...]:
    return () if outcome.verdict is None else tuple(outcome.verdict.evidence)


def _essence(outcome: Outcome) -> tuple[Any, ...]:
    """What makes two outcomes of one segment different for a reader."""
    verdict = outcome.verdict
    report: Mapping[str, Any] | None = None if verdict is None else verdict.report
    score = None if verdict is None else verdict.score
    return outcome.label, outcome.message, score, report, _evidence(outcome)
