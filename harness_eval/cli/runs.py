"""``harness-eval runs``: what is on record, newest first."""

from __future__ import annotations

from datetime import datetime, timezone
import time
from typing import Annotated, Any

from rich.table import Table
import typer

from harness_eval.cli.records import (
    DEFAULT_NODE,
    JsonOption,
    LedgerOption,
    NodeOption,
    reading,
)
from harness_eval.cli.screen import complain, plain, print_json, print_screen, state_text
from harness_eval.ledger import RunRow
from harness_eval.runs import Segment

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def runs(
    limit: Annotated[int, typer.Option(min=1, max=100_000, help='How many lines at most.')] = 20,
    ledger: LedgerOption = None,
    node: NodeOption = DEFAULT_NODE,
    as_json: JsonOption = False,
) -> None:
    """List the newest runs on record, one segment a line; needs neither ROS nor a running node."""
    with reading(ledger, node) as reader:
        rows = reader.latest(limit)
    if as_json:
        print_json([_json(row) for row in rows])
    elif rows:
        print_screen(_table(rows, time.time()))
    else:
        complain('no run is on record yet')


def age_text(seconds: float) -> str:
    """How long ago, in one unit."""
    if seconds < 2 * _MINUTE:
        return f'{max(0.0, seconds):.0f} s'
    if seconds < 2 * _HOUR:
        return f'{seconds / _MINUTE:.0f} min'
    if seconds < 2 * _DAY:
        return f'{seconds / _HOUR:.0f} h'
    return f'{seconds / _DAY:.0f} d'


def kind_of(segment: Segment) -> str:
    """Kind of the failure, error or abstention that the segment's newest outcome is."""
    outcome = segment.outcome
    if outcome is None or outcome.state is not segment.state:
        return ''
    return outcome.error_kind if outcome.verdict is None else outcome.verdict.failure_kind


def time_text(wall: float) -> str:
    """Wall-clock seconds as ISO 8601 in UTC."""
    return datetime.fromtimestamp(wall, timezone.utc).isoformat(timespec='milliseconds')


def _table(rows: list[RunRow], now: float) -> Table:
    repeated = any(row.segment.attempt > 1 for row in rows)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column('run', overflow='fold', min_width=8)
    table.add_column('seg', justify='right', no_wrap=True)
    table.add_column('tool', overflow='fold', min_width=6)
    table.add_column('state', no_wrap=True)
    table.add_column('kind', overflow='fold', min_width=8)
    if repeated:
        table.add_column('tries', justify='right', no_wrap=True)
    table.add_column('age', justify='right', no_wrap=True)
    for row in rows:
        segment = row.segment
        table.add_row(
            plain(segment.completion.run_id),
            str(segment.completion.segment),
            plain(segment.completion.tool),
            state_text(segment.state.value),
            plain(kind_of(segment)) or '-',
            *([str(segment.attempt)] if repeated else []),
            age_text(now - row.wall),
        )
    return table


def _json(row: RunRow) -> dict[str, Any]:
    segment = row.segment
    return {
        'run_id': segment.completion.run_id,
        'tool': segment.completion.tool,
        'segment': segment.completion.segment,
        'state': segment.state.value,
        'kind': kind_of(segment),
        'attempts': segment.attempt,
        'changed_at': time_text(row.wall),
    }
