"""Printing: for people in a terminal, one line a row in a pipe, and JSON.

Everything foreign goes through :func:`plain`, so that no run id, argument or line of evidence can
move a cursor or change a colour. Nothing here raises because the reader of a pipe went away: the
exit code, which is what counts, is still that of the run.
"""

from __future__ import annotations

from collections.abc import Iterable
import contextlib
import json
import os
import sys
from typing import Any, NoReturn, TextIO

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
import typer

from harness_eval.cli.exit_codes import USAGE
from harness_eval.lines import printable

MAX_TEXT = 2000
"""Most characters of one foreign text; evidence lines and messages are shorter."""
MOST_TOLD = 20
"""Lines of one kind on the standard error."""
PIPE_WIDTH = 10_000
"""Columns where there is no terminal: rows stay on one line, for grep and awk."""

_STYLES = {
    'SUCCESS': 'green',
    'FAILURE': 'red',
    'PROCESS': 'cyan',
    'ERROR': 'magenta',
    'ABSTAINED': 'yellow',
    'INTERRUPTED': 'yellow',
}
_PENDING_STYLE = 'dim'


def plain(text: str, limit: int = MAX_TEXT) -> str:
    """A foreign text on one line, without control characters."""
    return printable(text, limit)


def state_text(state: str, after: str = '') -> Text:
    """The name of a state in its colour."""
    return Text.assemble((plain(state), _STYLES.get(state, _PENDING_STYLE)), after)


def fields(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    """Names and values in two columns; a name that repeats the one before is left out."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, style='dim')
    grid.add_column(overflow='fold')
    before = ''
    for name, value in rows:
        shown = Text(value) if isinstance(value, str) else value
        grid.add_row('' if name == before else name, shown)
        before = name
    return grid


def many(count: int, noun: str) -> str:
    """A number of things: ``1 result``, ``2 results``."""
    return f'{count} {noun}' if count == 1 else f'{count} {noun}s'


def print_screen(*parts: RenderableType) -> None:
    """Print to the standard output."""
    terminal = sys.stdout.isatty()
    console = Console(
        width=None if terminal or 'COLUMNS' in os.environ else PIPE_WIDTH,
        markup=False,
        highlight=False,
        emoji=False,
    )
    with console.capture() as captured:
        for part in parts:
            console.print(part, crop=False)  # what is too wide wraps; nothing is lost
    text = captured.get()
    if not terminal:
        text = '\n'.join(line.rstrip() for line in text.split('\n'))
    _write(sys.stdout, text)


def print_json(value: Any) -> None:
    """Print to the standard output as JSON in ASCII, indented."""
    _write(sys.stdout, json.dumps(value, indent=2, allow_nan=False) + '\n')


def complain(message: str) -> None:
    """Say in one line on the standard error what is wrong."""
    _write(sys.stderr, f'harness-eval: {plain(message)}\n')


def complain_of_each(lines: Iterable[str], what: str) -> None:
    """Complain of each line, up to a number of them.

    Args:
        lines: What is wrong.
        what: What they are, in the plural.
    """
    every = list(lines)
    for line in every[:MOST_TOLD]:
        complain(line)
    if len(every) > MOST_TOLD:
        complain(f'and {len(every) - MOST_TOLD} more {what}')


def refuse(message: str) -> NoReturn:
    """Say what is wrong and end with the code of bad usage."""
    complain(message)
    raise typer.Exit(USAGE)


def forget_closed_pipes() -> None:
    """Keep Python from flushing, at its end, into a pipe that nobody reads: it would complain."""
    _flush(sys.stdout)
    _flush(sys.stderr)


def _write(stream: TextIO, text: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        stream.write(text)
    _flush(stream)


def _flush(stream: TextIO) -> None:
    try:
        stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
