"""Where something stands in a configuration file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
import re

from harness_eval.config.errors import Problem

KeyPath = tuple[str | int, ...]
"""Where a value stands: keys of mappings and indexes of lists."""

_PLAIN_KEY = re.compile(r'[^\s.\[\]"\'\x00-\x1f]{1,60}\Z')


@dataclass(frozen=True)
class Source:
    """A file that is being read.

    Attributes:
        name: Base name, for errors.
        directory: Where relative paths in it start; never shown.
    """

    name: str
    directory: Path = field(repr=False)


@dataclass(frozen=True)
class Place:
    """Where a key or a list's element was written.

    Attributes:
        source: The file.
        line: Counted from 1.
        key: The dotted key in that file.
    """

    source: Source
    line: int
    key: str

    def problem(self, message: str) -> Problem:
        """Make the problem that ``message`` describes, at this place."""
        return Problem(self.source.name, self.line, self.key, message)


def dotted(path: KeyPath) -> str:
    """Write a path as ``evaluation.tools.pick.views[1]``."""
    text = ''
    for part in path:
        if isinstance(part, int):
            text += f'[{part}]'
        elif _PLAIN_KEY.match(part):
            text += f'.{part}' if text else part
        else:
            text += f'[{part[:60]!r}]'
    return text
