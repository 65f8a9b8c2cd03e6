"""Rows of short cells with a reason each: a table where there is room, and readable where not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console, ConsoleOptions
from rich.text import Text

from harness_eval.cli.screen import plain
from harness_eval.lines import printable

_REASON = 120
"""Most characters of a reason beside a row; a file of results and a page have all of it."""
_ROOM = 60
"""Columns that a reason takes to stand beside its row."""
_LINES = 3
"""Lines of a reason beneath its row."""
_LEAST = 20
"""Columns of such a line, however narrow the terminal."""
_GAP = '  '
_INDENT = '    '


class ReasonedRows:
    """The rows, to be printed.

    The reason stands beside its row where there is room (always in a pipe: a row is a line
    there), else in lines of its own beneath.

    Args:
        names: Names of the columns; after them comes ``reason``.
        rows: The cells of each row, and its reason.
        right: Columns whose cells stand on the right.
    """

    def __init__(
        self,
        names: Sequence[str],
        rows: Iterable[tuple[Sequence[Text], str]],
        right: Sequence[str] = ('segment',),
    ) -> None:
        self._right = [name in right for name in names]
        self._rows = [([Text(name, style='bold') for name in names], 'reason')]
        self._rows += [(list(cells), plain(reason)) for cells, reason in rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        """Lay the rows out for a width."""
        columns = zip(*(cells for cells, _ in self._rows), strict=True)
        widths = [max(cell.cell_len for cell in column) for column in columns]
        room = options.max_width - sum(widths) - len(_GAP) * len(widths)
        beside = room >= _ROOM
        for number, (cells, reason) in enumerate(self._rows):
            line = Text(no_wrap=True, overflow='ignore')
            for cell, width, right in zip(cells, widths, self._right, strict=True):
                aligned = cell.copy()
                aligned.align('right' if right else 'left', width)
                line.append_text(aligned).append(_GAP)
            if beside:
                line.append(printable(reason, min(room, _REASON)), cells[0].style)
            line.rstrip()
            yield line
            if reason and not beside and number > 0:
                yield from _beneath(console, reason, options.max_width)
        yield Text()


def _beneath(console: Console, reason: str, width: int) -> Iterator[Text]:
    width = max(width - len(_INDENT), _LEAST)
    lines = Text(reason, style='dim').wrap(console, width)
    if len(lines) > _LINES:
        lines[_LINES - 1].truncate(width - 1)
        lines[_LINES - 1].append('…')
    for line in lines[:_LINES]:
        yield Text(_INDENT, no_wrap=True, overflow='ignore').append_text(line)
