"""Field paths: which part of a message is a reading, a run id or a stamp.

The grammar, by example::

    pose.pose.position.z                  names joined by dots
    data[3]    data[-1]                   one element
    ranges[170:190]                       several elements, as in Python; both ends must exist
    position[name=finger_joint]           the element at which the sibling sequence `name` of the
                                          same message holds that text
    transforms[child_frame_id=tool0].transform.translation.z
                                          the message of a sequence in which a field has that value
    status[name="motor ]1"].level         a value in double quotes may hold any character

A path that selects nothing, or two elements where it must select one, is an error and never a
default: a reading that is not there must not look like one.
"""

from __future__ import annotations

from dataclasses import dataclass
import re

_MAX_PATH_LENGTH = 500
_NAME = re.compile(r'[A-Za-z_][A-Za-z0-9_]*')
_SELECTOR = re.compile(r'\[((?:[^\]"]|"(?:[^"\\]|\\.)*")*)\]', re.DOTALL)
_INDEX = re.compile(r'[+-]?[0-9]{1,9}')
_SLICE = re.compile(r'([+-]?[0-9]{1,9})?\s*:\s*([+-]?[0-9]{1,9})?')
_MATCH = re.compile(
    r'([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^"\s](?:[^"]*[^"\s])?))',
    re.ASCII | re.DOTALL,
)


@dataclass(frozen=True)
class Index:
    """``[3]`` or ``[-1]``."""

    index: int

    def __str__(self) -> str:
        """Give it as it is written in a path."""
        return f'[{self.index}]'


@dataclass(frozen=True)
class Slice:
    """``[170:190]``; a missing bound means the first or the last element."""

    start: int | None
    stop: int | None

    def __str__(self) -> str:
        """Give it as it is written in a path."""
        start = '' if self.start is None else self.start
        stop = '' if self.stop is None else self.stop
        return f'[{start}:{stop}]'


@dataclass(frozen=True)
class Match:
    """``[name=finger_joint]``."""

    key: str
    value: str

    def __str__(self) -> str:
        """Give it as it is written in a path."""
        bare = _MATCH.fullmatch(f'{self.key}={self.value}')
        if (
            ']' not in self.value
            and self.value.isprintable()
            and bare is not None
            and bare.group(3) == self.value
        ):
            return f'[{self.key}={self.value}]'
        escaped = self.value.replace('\\', '\\\\').replace('"', '\\"')
        return f'[{self.key}="{escaped}"]'


Selector = Index | Slice | Match


@dataclass(frozen=True)
class Step:
    """One name of a path, with what is in brackets behind it."""

    name: str
    selector: Selector | None = None

    def __str__(self) -> str:
        """Give it as it is written in a path."""
        return f'{self.name}{self.selector or ""}'


@dataclass(frozen=True)
class FieldPath:
    """A parsed field path; see the module for the grammar.

    Attributes:
        steps: The names in order, each with its selector.
    """

    steps: tuple[Step, ...]

    def __str__(self) -> str:
        """Give the path as it is written in the configuration."""
        return '.'.join(map(str, self.steps))

    @classmethod
    def parse(cls, text: str) -> FieldPath:
        """Read a path as it is written in the configuration.

        Raises:
            ValueError: The text is not a field path; says where and what was expected.
        """
        if len(text) > _MAX_PATH_LENGTH:
            raise ValueError(f'a field path has at most {_MAX_PATH_LENGTH} characters')
        steps: list[Step] = []
        position = 0
        while True:
            name = _NAME.match(text, position)
            if name is None:
                raise ValueError(
                    f'field path {text!r}: expected a field name at character {position + 1}, '
                    f'found {text[position : position + 10]!r}'
                )
            position = name.end()
            selector: Selector | None = None
            if text[position : position + 1] == '[':
                selector, position = _parse_selector(text, position)
            steps.append(Step(name.group(), selector))
            if position == len(text):
                return cls(tuple(steps))
            if text[position] != '.':
                raise ValueError(
                    f'field path {text!r}: expected a dot or the end at character {position + 1}, '
                    f'found {text[position : position + 10]!r}'
                )
            position += 1


def _parse_selector(text: str, position: int) -> tuple[Selector, int]:
    bracket = _SELECTOR.match(text, position)
    if bracket is None:
        raise ValueError(f'field path {text!r}: the [ at character {position + 1} is not closed')
    inside = bracket.group(1).strip(' ')
    if _INDEX.fullmatch(inside):
        return Index(int(inside)), bracket.end()
    if found := _SLICE.fullmatch(inside):
        start, stop = (int(bound) if bound else None for bound in found.groups())
        if start is not None and stop is not None and (start < 0) == (stop < 0) and start >= stop:
            raise ValueError(f'field path {text!r}: [{inside}] selects no element')
        return Slice(start, stop), bracket.end()
    if found := _MATCH.fullmatch(inside):
        key, quoted, bare = found.groups()
        value = bare if quoted is None else re.sub(r'\\(.)', r'\1', quoted, flags=re.DOTALL)
        return Match(key, value), bracket.end()
    raise ValueError(
        f'field path {text!r}: [{inside}] must be an index [3], a slice [170:190] '
        'or a choice by name [name=finger_joint]'
    )
