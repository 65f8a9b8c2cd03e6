"""What is wrong with a configuration file: each problem with its file, line and key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from harness_eval.contract import HarnessEvalError

_SHOWN_CHARACTERS = 60
_SHOWN_NAMES = 12

# Comparing words is slow; a hint is not worth more than a moment, whatever the file.
_COMPARED_NAMES = 200
_COMPARED_CHARACTERS = 100

MAX_PROBLEMS = 200
"""Most problems that are told of one file."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    Attributes:
        file: Base name of the file.
        line: Line in it, counted from 1; 0 if the file as a whole is meant.
        key: Dotted key, for example ``evaluation.tools.pick.views[1]``; empty for the file.
        message: What was expected, what was found and what to do.
    """

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        """Write the problem on one line."""
        place = f'{self.file}:{self.line}' if self.line else self.file
        key = f'{self.key}: ' if self.key else ''
        return f'{place}: {key}{self.message}'


class ConfigError(HarnessEvalError):
    """A configuration file cannot be used. ``str()`` gives one line for each problem.

    Args:
        problems: Everything that is wrong, at least one.

    Attributes:
        problems: Everything that is wrong, in the order of the file.
        file: Base name of the file of the first problem.
        line: Line of the first problem.
        key: Dotted key of the first problem.
        message: Message of the first problem.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Keep the problems and make the message."""
        self.problems: list[Problem] = list(problems)
        first = self.problems[0]
        self.file = first.file
        self.line = first.line
        self.key = first.key
        self.message = first.message
        super().__init__('\n'.join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[type[ConfigError], tuple[list[Problem]]]:
        """Give what a copy is made from."""
        return type(self), (self.problems,)


def describe(value: Any) -> str:
    """Say what was found, short and on one line."""
    if value is None:
        return 'nothing'
    if isinstance(value, bool):
        return 'true' if value else 'false'
    if isinstance(value, Mapping):
        return 'a mapping'
    if isinstance(value, (list, tuple)):
        return f'a list of {len(value)}'
    if isinstance(value, str) and len(value) > _SHOWN_CHARACTERS:
        return repr(value[:_SHOWN_CHARACTERS]) + '…'
    if isinstance(value, int) and value.bit_length() > 4 * _SHOWN_CHARACTERS:
        return 'a very large number'
    return repr(value)


def did_you_mean(word: str, known: Sequence[str], *, what: str = 'known') -> str:
    """Say what would be right instead of ``word``, beginning with a separator."""
    compared = known[:_COMPARED_NAMES] if len(word) <= _COMPARED_CHARACTERS else []
    close = get_close_matches(word, compared, n=1, cutoff=0.6)
    if close:
        return f', did you mean {close[0]!r}?'
    if not known:
        return '; there is none' if what not in ('known', 'required') else ''
    shown = ', '.join(known[:_SHOWN_NAMES]) + (', …' if len(known) > _SHOWN_NAMES else '')
    return f'; {what}: {shown}'
