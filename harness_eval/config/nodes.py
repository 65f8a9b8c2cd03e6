"""YAML text to a tree of nodes with their lines, within bounds, aliases not yet followed.

PyYAML's event stream is read one event at a time, so a bound is met before anything large exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
import re

import yaml

from harness_eval.config.errors import ConfigError, Problem
from harness_eval.config.places import Source

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML built without libyaml
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

MAX_DEPTH = 24
"""Mappings and lists within one another; the settings need 9."""

MAX_VALUES = 20_000
"""Keys and values of a file with its aliases followed; a large cell has some hundreds."""


_GLUED = re.compile(r'\s*(?:- )?(?P<key>[A-Za-z_][A-Za-z0-9_]*):(?P<value>[^\s:/][^\s:]*)\s*\Z')
"""A key and its value without the space that YAML wants between them."""


@dataclass
class Node:
    """A value of the file before aliases are followed; ``children`` alternate key and value."""

    kind: str
    line: int
    text: str = ''
    plain: bool = True
    children: list[Node] = field(default_factory=list)
    open: bool = True


def compose(text: str, source: Source) -> Node | None:
    """Make the tree of nodes; an alias is the same node once more."""
    root: Node | None = None
    stack: list[Node] = []
    anchors: dict[str, Node] = {}
    count = 0
    for event in _events(text, source):
        if isinstance(event, yaml.DocumentStartEvent) and root is not None:
            raise _refusal(source, event, 'expected one document, found a second one after ---')
        if isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            stack.pop().open = False
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        count += 1
        node = _node(event, anchors, source)
        if count > MAX_VALUES:
            raise _refusal(source, event, f'expected at most {MAX_VALUES} values, found more')
        if stack:
            stack[-1].children.append(node)
        else:
            root = node
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append(node)
            if len(stack) > MAX_DEPTH:
                raise _refusal(source, event, f'expected at most {MAX_DEPTH} levels, found more')
    return root


def _node(event: yaml.NodeEvent, anchors: dict[str, Node], source: Source) -> Node:
    """Make the node of an event, or find the one that an alias names."""
    if isinstance(event, yaml.AliasEvent):
        known = anchors.get(event.anchor or '')
        if known is None:
            raise _refusal(
                source, event, f'expected an anchor &{event.anchor} before the alias, found none'
            )
        if known.open:
            raise _refusal(
                source, event, f'expected a finite file, found *{event.anchor} within itself'
            )
        return known
    tag = getattr(event, 'tag', None)
    if tag is not None:
        raise _refusal(source, event, f'expected no tag, found {tag[:40]!r}; delete it')
    line = _line(event)
    if isinstance(event, yaml.ScalarEvent):
        node = Node('scalar', line, event.value, plain=event.implicit[0], open=False)
    else:
        kind = 'mapping' if isinstance(event, yaml.MappingStartEvent) else 'sequence'
        node = Node(kind, line)
    if event.anchor is not None:
        anchors[event.anchor] = node
    return node


def _events(text: str, source: Source) -> Iterator[yaml.Event]:
    """Give PyYAML's events, with its errors turned into ours."""
    try:
        yield from yaml.parse(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        line, message = _syntax_fault(error, text)
        raise ConfigError([Problem(source.name, line, '', message)]) from None
    except yaml.YAMLError as error:
        position = getattr(error, 'position', None)
        line = text.count('\n', 0, position) + 1 if isinstance(position, int) else 0
        reason = getattr(error, 'reason', 'unreadable')
        message = f'expected readable text, found a character that YAML refuses: {reason}'
        raise ConfigError([Problem(source.name, line, '', message)]) from None


def _syntax_fault(error: yaml.MarkedYAMLError, text: str) -> tuple[int, str]:
    """The line of what is no YAML, and what would be right there."""
    problem = error.problem or 'not readable'
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return 0, f'expected YAML, found what is not: {problem}'
    lines = text.splitlines()
    line = lines[mark.line] if mark.line < len(lines) else ''
    if '\t' in line[: _indent(line)]:
        return mark.line + 1, 'expected spaces, found a tab; YAML is indented with spaces only'
    around = error.context_mark
    if around is not None and around.line < len(lines):
        if glued := _GLUED.match(lines[around.line]):
            return around.line + 1, _missing_space(glued['key'], glued['value'])
        if 'block' in (error.context or '') and line.strip() and _indent(line) != around.column:
            return mark.line + 1, (
                f'expected {around.column} spaces before what belongs to the block that begins '
                f'in line {around.line + 1}, found {_indent(line)}; keys of one mapping begin in '
                'the same column'
            )
    context = f' {error.context}' if error.context else ''
    return mark.line + 1, (
        f'expected YAML, found what is not{context}: {problem}; check the indentation, and quote '
        "a text that begins with one of {[*&!%@` or holds ': ' or ' #'"
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _missing_space(key: str, value: str) -> str:
    found = f'{key}:{value}'
    return (
        f'expected a space after the colon, found {found[:60]!r}; write {key[:60]}: {value[:60]}'
    )


def glued_key(text: str) -> tuple[str, str, str] | None:
    """Take ``key:value`` apart, and say what is missing; None for any other key."""
    glued = _GLUED.match(text)
    if glued is None:
        return None
    return glued['key'], glued['value'], _missing_space(glued['key'], glued['value'])


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _refusal(source: Source, event: yaml.Event, message: str) -> ConfigError:
    return ConfigError([Problem(source.name, _line(event), '', message)])
