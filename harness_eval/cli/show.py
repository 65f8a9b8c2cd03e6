"""``harness-eval show``: everything that is on record about a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Any

from rich.console import RenderableType
from rich.text import Text
import typer

from harness_eval.cases import oracle_of_case
from harness_eval.cli.exit_codes import code_of_state, NO_OUTCOME
from harness_eval.cli.outcome_text import outcome_json, outcome_rows, seconds_or_none
from harness_eval.cli.records import (
    DEFAULT_NODE,
    evidence_folder,
    EvidenceOption,
    JsonOption,
    LedgerOption,
    NodeOption,
    reading,
)
from harness_eval.cli.screen import fields, plain, print_json, print_screen, refuse, state_text
from harness_eval.ledger import UpdateRecord
from harness_eval.oracle import OracleAnswer
from harness_eval.runs import Outcome, Run, Segment
from harness_eval.scene_graph import Op
from harness_eval.times import SECOND, seconds

_UNKNOWN_STATE = 'UNKNOWN'
"""Shown for a run of which only proposed updates are on record: it has not ended yet."""
_FIRST_CREDIBLE_STAMP = 10**9 * SECOND
"""An earlier stamp (before September 2001) is simulated time and no date."""


@dataclass(frozen=True)
class _OnRecord:
    """All that is on record about a run.

    Attributes:
        run_id: Its name.
        run: Its completions and their states; None if only updates of it are known.
        attempts: Every outcome, those that were followed by another attempt too.
        updates: Its proposed, held, released and rejected updates.
        truths: What the oracle said of each segment, by its number.
    """

    run_id: str
    run: Run | None
    attempts: Sequence[Outcome]
    updates: Sequence[UpdateRecord]
    truths: Mapping[int, OracleAnswer | None]

    @property
    def state(self) -> str:
        """Name of the state that is shown."""
        return _UNKNOWN_STATE if self.run is None else self.run.state.value

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Its segments in order."""
        return () if self.run is None else self.run.segments

    def attempts_at(self, segment: Segment) -> list[Outcome]:
        """The outcomes of one segment, oldest first."""
        number = segment.completion.segment
        return [outcome for outcome in self.attempts if outcome.segment == number]


def show(
    run_id: Annotated[str, typer.Argument(metavar='RUN_ID', help='The run.')],
    ledger: LedgerOption = None,
    node: NodeOption = DEFAULT_NODE,
    evidence: EvidenceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show everything on record about a run, and exit with the code of its state.

    Needs neither ROS nor a running node. The code is 124 while the run is being evaluated.
    """
    with reading(ledger, node) as reader:
        run = reader.run(run_id)
        attempts = reader.attempts(run_id)
        updates = reader.updates_of(run_id)
    if run is None and not updates:
        refuse(f'there is no run {plain(run_id, 80)!r} on record; `harness-eval runs` lists them')
    cases = evidence_folder(evidence, ledger, node)
    segments = () if run is None else run.segments
    truths = {s.completion.segment: oracle_of_case(cases, s.evidence) for s in segments}
    found = _OnRecord(run_id, run, attempts, updates, truths)
    if as_json:
        print_json(_json(found))
    else:
        print_screen(*_parts(found))
    raise typer.Exit(NO_OUTCOME if run is None else code_of_state(found.state))


def _parts(found: _OnRecord) -> Iterator[RenderableType]:
    run = found.run
    heading: list[tuple[str, RenderableType]] = [
        ('run', plain(found.run_id)),
        ('state', state_text(found.state, '' if run else ': no completion of this run came')),
    ]
    if run is not None and run.tool:
        heading.append(('tool', plain(run.tool)))
    elif run is not None:
        heading.append(('', 'it was interrupted before any completion of it came'))
    yield fields(heading)
    for segment in found.segments:
        number = segment.completion.segment
        yield Text.assemble('\n', (f'segment {number}', 'bold'), '  ', _state(segment))
        yield fields(_segment_rows(segment, found.truths[number]))
        for outcome in found.attempts_at(segment):
            yield Text.assemble(
                (f'attempt {outcome.attempt}', 'bold'), '  ', state_text(outcome.state.value)
            )
            yield fields(outcome_rows(outcome))
    if found.updates:
        yield Text('\nscene graph', style='bold')
        for record in found.updates:
            yield fields(_update_rows(record))


def _state(segment: Segment) -> Text:
    return state_text(segment.state.value)


def _segment_rows(
    segment: Segment, truth: OracleAnswer | None
) -> Iterator[tuple[str, RenderableType]]:
    completion = segment.completion
    for name, value in completion.arguments:
        yield 'arguments', f'{plain(name)}: {plain(value)}'
    yield 'ended', _end_text(segment)
    yield 'case', plain(segment.evidence) or 'no evidence is stored'
    if truth is not None:
        yield 'oracle', plain(f'{truth} ({truth.ref})')


def _end_text(segment: Segment) -> str:
    end = segment.t_end
    if end < _FIRST_CREDIBLE_STAMP:
        text = f'{seconds(end):.3f} s of simulated time'
    else:
        moment = datetime.fromtimestamp(seconds(end), timezone.utc)
        text = f'{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d} UTC'
    if not segment.completion.stamp:
        return f'{text} (receipt; the completion had no stamp)'
    late = seconds(segment.receipt - segment.completion.stamp)
    return f'{text} (received {late:.3f} s after its stamp)'


def _update_rows(record: UpdateRecord) -> Iterator[tuple[str, RenderableType]]:
    what = {
        'released': f'released as revision {record.update.revision}',
        'rejected': f'rejected: {plain(record.reason)}',
    }.get(record.state, record.state)
    origin = ' (on_success)' if record.effect else ''
    yield 'update', f'{plain(record.update.update_id)}{origin}, {what}'
    for op in record.update.ops:
        yield '', f'  {_op_text(op)}'


def _op_text(op: Op) -> str:
    words = [op.kind.value, op.subject, op.predicate, op.object]
    words += [f'{key}={value}' for key, value in op.attributes]
    return plain(' '.join(word for word in words if word))


def _json(found: _OnRecord) -> dict[str, Any]:
    run = found.run
    return {
        'run_id': found.run_id,
        'tool': '' if run is None else run.tool,
        'state': found.state,
        'exit_code': code_of_state(found.state),
        'interrupted': run is not None and run.interrupted,
        'segments': [
            {
                'segment': segment.completion.segment,
                'state': segment.state.value,
                'arguments': dict(segment.completion.arguments),
                'stamp': seconds_or_none(segment.completion.stamp),
                'receipt': seconds_or_none(segment.receipt),
                'case': segment.evidence,
                'oracle': _truth_json(found.truths[segment.completion.segment]),
                'attempts': [outcome_json(outcome) for outcome in found.attempts_at(segment)],
            }
            for segment in found.segments
        ],
        'updates': [
            {
                'update_id': record.update.update_id,
                'on_success': record.effect,
                'state': record.state,
                'reason': record.reason,
                'revision': record.update.revision or None,
                'ops': [_op_text(op) for op in record.update.ops],
            }
            for record in found.updates
        ],
    }


def _truth_json(truth: OracleAnswer | None) -> dict[str, Any] | None:
    return None if truth is None else truth.to_plain()
