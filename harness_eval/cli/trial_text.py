"""A trial with still pictures for a person and for a program: what was sent, what came of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from harness_eval.cli.outcome_text import outcome_rows
from harness_eval.cli.screen import fields, plain, state_text
from harness_eval.cli.trial import Value
from harness_eval.contract import EvaluationRequest
from harness_eval.runs import Outcome

if TYPE_CHECKING:
    from harness_eval.still import Still


def shown(
    evaluator: str,
    tool: str,
    outcome: Outcome,
    request: EvaluationRequest | None,
    stills: Mapping[str, Still],
) -> Iterator[RenderableType]:
    """What was sent, if anything was, and what it came to, for the screen."""
    rows: list[tuple[str, RenderableType]] = [('tool', plain(tool)), ('judge', plain(evaluator))]
    if request is not None:
        rows += list(_sent_rows(request, stills))
    yield fields(rows)
    yield Text('')
    yield fields([('state', state_text(outcome.state.value)), *outcome_rows(outcome)])


def _sent_rows(
    request: EvaluationRequest, stills: Mapping[str, Still]
) -> Iterator[tuple[str, RenderableType]]:
    asked, seen = request.post_condition, request.observation
    if asked.text:
        yield 'text', plain(asked.text)
    if asked.checks:
        yield 'checks', str(len(asked.checks))
    if asked.rubric is not None:
        count = len(asked.rubric.criteria)
        yield 'rubric', f'{count} criteria' if count else 'free text'
    for output in asked.report:
        yield 'report', plain(f'{output.key} ({output.type}): {output.title}')
    for name in seen.views:
        yield 'view', plain(f'{name}: {stills[name].description}')
    for name, state in seen.states.items():
        yield 'state', f'{name}: {_number(state.value)}'
    for name, picture in asked.references.items():
        yield 'reference', plain(f'{name}: {picture.shape[1]}x{picture.shape[0]}')
    if asked.process_allowed:
        yield 'segments', 'process is an allowed answer'


def _number(value: Value) -> str:
    return ', '.join(f'{number:g}' for number in (value if isinstance(value, tuple) else (value,)))


def sent_json(request: EvaluationRequest, stills: Mapping[str, Still]) -> dict[str, Any]:
    """What was sent, for JSON; files by their base name."""
    asked, seen = request.post_condition, request.observation
    return {
        'post_condition': asked.text,
        'checks': len(asked.checks),
        'rubric': None if asked.rubric is None else asked.rubric.digest,
        'report': [output.key for output in asked.report],
        'failure_kinds': list(asked.failure_kinds),
        'process_allowed': asked.process_allowed,
        'views': {
            name: {
                'width': int(stills[name].picture.shape[1]),
                'height': int(stills[name].picture.shape[0]),
                'file': stills[name].origin,
            }
            for name in seen.views
        },
        'states': {name: _plain_number(state.value) for name, state in seen.states.items()},
        'references': sorted(asked.references),
    }


def _plain_number(value: Value) -> Any:
    """Numbers for JSON, which has none that are not finite."""
    if isinstance(value, tuple):
        return [_plain_number(one) for one in value]
    return value if abs(value) != float('inf') else str(value)
