"""The live table of the demo; plain lines where there is no terminal.

Threads: the player's thread begins and ends rows, the executor's thread tells the stages, and
rich's own thread draws. One lock keeps them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
import threading
import time
from types import TracebackType
from typing import Final

from rich import box
from rich.console import Console, Group, JustifyMethod, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from harness_eval.demo.faults import Fault
from harness_eval.demo.summary import Row

_COLORS: Final = {
    'success': 'bold green',
    'failure': 'bold red',
    'process': 'bold blue',
    'error': 'bold yellow',
    'abstained': 'bold magenta',
    'interrupted': 'bold white',
}
_REDRAWN_A_SECOND: Final = 8
_COLUMNS: Final[Sequence[tuple[str, int, JustifyMethod]]] = (
    ('run', 3, 'right'),
    ('tool', 12, 'left'),
    ('seg', 3, 'right'),
    ('what goes wrong', 18, 'left'),
    ('outcome', 24, 'left'),
    ('truth', 7, 'left'),
    ('', 1, 'left'),
    ('ms', 4, 'right'),
)

_HEADING: Final = (
    f'{"":2} {"tool":<12} # {"what goes wrong":<18} {"outcome":<23} {"truth":<7} {"":5} {"ms":>4}'
)


class Board:
    """Shows the runs while they are played.

    Args:
        console: Where to; default: the standard output.
    """

    def __init__(self, console: Console | None = None) -> None:
        """Begin with an empty table."""
        self._console = console or Console()
        self._lock = threading.Lock()
        self._rows: list[Row] = []
        self._current: tuple[int, str, int, Fault] | None = None
        self._stage = ''
        self._began = time.monotonic()
        self._live: Live | None = None
        if self._console.is_terminal:
            self._live = Live(
                get_renderable=self._draw,
                console=self._console,
                refresh_per_second=_REDRAWN_A_SECOND,
                vertical_overflow='visible',
            )

    def __enter__(self) -> Board:
        """Begin to draw."""
        if self._live is not None:
            self._live.start()
        else:
            self.note(_HEADING)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Draw for the last time."""
        if self._live is not None:
            with self._lock:
                self._current = None
            self._live.stop()

    def begin(self, number: int, tool: str, segment: int, fault: Fault) -> None:
        """Say what is being run now."""
        with self._lock:
            self._current = (number, tool, segment, fault)
            self._stage = 'executing'

    def stage(self, stage: str) -> None:
        """Say how far its evaluation is."""
        with self._lock:
            self._stage = stage

    def end(self, row: Row) -> None:
        """Show what became of it."""
        with self._lock:
            self._rows.append(row)
            self._current = None
        if self._live is None:
            self._console.print(_line(row), highlight=False, soft_wrap=True)

    def note(self, text: str) -> None:
        """Say something between the rows."""
        self._console.print(text, highlight=False, soft_wrap=True)

    def _draw(self) -> RenderableType:
        with self._lock:
            rows, current, stage = list(self._rows), self._current, self._stage
        # Old rows scroll out of a small window; the newest must be in it.
        room = max(4, self._console.size.height - 8)
        table = _table(rows[-room:])
        if current is not None:
            number, tool, segment, fault = current
            table.add_row(
                str(number), tool, str(segment), _fault(fault), Text(f'{stage} …', 'dim')
            )
        agreeing = sum(row.agrees for row in rows)
        footer = Text.assemble(
            f' {time.monotonic() - self._began:4.0f} s   ',
            (f'{agreeing} of {len(rows)}', 'bold green' if agreeing == len(rows) else 'bold red'),
            ' outcomes are what they had to be',
        )
        return Group(table, footer)


def _table(rows: Sequence[Row]) -> Table:
    """The rows in 80 columns, as wide as a plain terminal."""
    table = Table(
        title='harness_eval: a robot cell being judged',
        title_style='bold',
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=0,
        pad_edge=False,
    )
    for header, width, justify in _COLUMNS:
        table.add_column(header, width=width, justify=justify, no_wrap=True)
    for row in rows:
        table.add_row(
            str(row.number),
            row.outcome.tool,
            str(row.outcome.segment),
            _fault(row.fault),
            _outcome(row),
            Text(row.truth.value, 'dim' if row.fault.spoils_view else ''),
            Text('✓', 'green') if row.agrees else Text('✗', 'bold red'),
            f'{1000 * row.latency:.0f}',
        )
    return table


def _outcome(row: Row) -> Text:
    kind = f' {row.kind}' if row.kind else ''
    return Text.assemble((row.answer, _COLORS[row.answer]), kind)


def _fault(fault: Fault) -> Text:
    return Text('-', 'dim') if fault is Fault.NONE else Text(fault.value)


def _line(row: Row) -> Text:
    """A row in at most 80 columns, for a pipe and for a plain terminal."""
    outcome = _outcome(row)
    outcome.pad_right(23 - len(outcome))
    return Text.assemble(
        f'{row.number:2} {row.outcome.tool:<12} {row.outcome.segment} {row.fault.value:<18} ',
        outcome,
        f' {row.truth.value:<7} ',
        'ok   ' if row.agrees else ('WRONG', 'bold red'),
        f' {1000 * row.latency:4.0f}',
    )
