"""YAML text to plain data with the line of every key, under strict rules.

The subset is meant to be read by a human in one way only:

- scalars follow the core schema of YAML 1.2.2 (https://yaml.org/spec/1.2.2/, chapter 10.3): only
  ``true`` and ``false`` are truth values, ``on``, ``yes`` and ``1:30`` are texts;
- every key is a text and stands once in its mapping; tags, merge keys and further documents are
  refused;
- aliases are followed within a bound on depth and on the number of values, so that a file of a
  few lines cannot become gigabytes.

PyYAML's event stream is read one event at a time, so a bound is met before anything large exists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from harness_eval.config.errors import ConfigError, Problem

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML built without libyaml
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

MAX_DEPTH = 24
"""Mappings and lists within one another; the settings need 9."""

MAX_VALUES = 20_000
"""Keys and values of a file with its aliases followed; a large cell has some hundreds."""

KeyPath = tuple[str | int, ...]
"""Where a value stands: keys of mappings and indexes of lists."""

_PLAIN_KEY = re.compile(r'[^\s.\[\]"\'\x00-\x1f]{1,60}\Z')
_NULL = frozenset({'', '~', 'null', 'Null', 'NULL'})
_TRUTH = {
    'true': True, 'True': True, 'TRUE': True, 'false': False, 'False': False, 'FALSE': False,
}  # fmt: skip
_NUMBERS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r'[-+]?[0-9]{1,1000}\Z'), int),
    (re.compile(r'0o[0-7]{1,1000}\Z'), lambda text: int(text[2:], 8)),
    (re.compile(r'0x[0-9a-fA-F]{1,1000}\Z'), lambda text: int(text[2:], 16)),
    (re.compile(r'[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z'), float),
    (re.compile(r'[-+]?\.(inf|Inf|INF)\Z'), lambda text: float(text.replace('.', ''))),
    (re.compile(r'\.(nan|NaN|NAN)\Z'), lambda text: float('nan')),
)


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


@dataclass
class Document:
    """A file as plain data.

    Attributes:
        source: The file.
        data: ``None``, ``bool``, ``int``, ``float``, ``str``, ``list`` and ``dict`` with keys
            that are texts.
        places: Where each key and each element stands.
        problems: What is wrong with it and still let it be read (a duplicate key).
    """

    source: Source
    data: Any
    places: dict[KeyPath, Place]
    problems: list[Problem] = field(default_factory=list)

    def place(self, path: KeyPath) -> Place:
        """Find where ``path`` stands, or where the closest thing around it does.

        The key is the one asked for, also if nothing stands there (a missing key).
        """
        for length in range(len(path), 0, -1):
            found = self.places.get(path[:length])
            if found is not None:
                rest = dotted(path[length:])
                joint = '.' if rest and not rest.startswith('[') else ''
                return Place(found.source, found.line, f'{found.key}{joint}{rest}')
        return Place(self.source, 1, dotted(path))

    def problem(self, path: KeyPath, message: str) -> Problem:
        """Make the problem that ``message`` describes, at ``path``."""
        return self.place(path).problem(message)


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


@dataclass
class _Node:
    """A value of the file before aliases are followed; ``children`` alternate key and value."""

    kind: str
    line: int
    text: str = ''
    plain: bool = True
    children: list[_Node] = field(default_factory=list)
    open: bool = True


def read_document(text: str, source: Source) -> Document:
    """Read one YAML document.

    Args:
        text: The text of the file.
        source: What errors call it.

    Raises:
        ConfigError: It is not YAML, or not within the rules of this module.
    """
    root = _compose(text, source)
    if root is None or (root.kind == 'scalar' and root.plain and root.text in _NULL):
        raise ConfigError(
            [Problem(source.name, 0, '', 'expected settings, found an empty file; a file needs '
                     "at least 'evaluation' and 'capture'")]
        )  # fmt: skip
    reader = _Reader(Document(source, None, {}))
    reader.document.data = reader.value(root, (), 0)
    if reader.fatal:
        raise ConfigError(reader.document.problems)
    return reader.document


def _compose(text: str, source: Source) -> _Node | None:
    """Make the tree of nodes; an alias is the same node once more."""
    root: _Node | None = None
    stack: list[_Node] = []
    anchors: dict[str, _Node] = {}
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


def _node(event: yaml.NodeEvent, anchors: dict[str, _Node], source: Source) -> _Node:
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
        node = _Node('scalar', line, event.value, plain=event.implicit[0], open=False)
    else:
        kind = 'mapping' if isinstance(event, yaml.MappingStartEvent) else 'sequence'
        node = _Node(kind, line)
    if event.anchor is not None:
        anchors[event.anchor] = node
    return node


def _events(text: str, source: Source) -> Iterator[yaml.Event]:
    """Give PyYAML's events, with its errors turned into ours."""
    try:
        yield from yaml.parse(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ConfigError(
            [Problem(source.name, mark.line + 1 if mark else 0, '', _syntax_message(error, text))]
        ) from None
    except yaml.YAMLError as error:
        position = getattr(error, 'position', None)
        line = text.count('\n', 0, position) + 1 if isinstance(position, int) else 0
        reason = getattr(error, 'reason', 'unreadable')
        message = f'expected readable text, found a character that YAML refuses: {reason}'
        raise ConfigError([Problem(source.name, line, '', message)]) from None


def _syntax_message(error: yaml.MarkedYAMLError, text: str) -> str:
    problem = error.problem or 'not readable'
    mark = error.problem_mark
    line = text.splitlines()[mark.line : mark.line + 1] if mark else []
    if line and '\t' in line[0][: len(line[0]) - len(line[0].lstrip())]:
        return 'expected spaces, found a tab; YAML is indented with spaces only'
    context = f' {error.context}' if error.context else ''
    return (
        f'expected YAML, found what is not{context}: {problem}; check the indentation, and quote '
        "a text that begins with one of {[*&!%@` or holds ': ' or ' #'"
    )


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 0


def _refusal(source: Source, event: yaml.Event, message: str) -> ConfigError:
    return ConfigError([Problem(source.name, _line(event), '', message)])


class _Reader:
    """Turns nodes into data, following aliases within the bounds."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.fatal = False
        self._count = 0

    def value(self, node: _Node, path: KeyPath, depth: int) -> Any:
        """Make the data of a node that stands at ``path``."""
        self._count += 1
        if self._count > MAX_VALUES or depth > MAX_DEPTH:
            bound = f'{MAX_VALUES} values' if self._count > MAX_VALUES else f'{MAX_DEPTH} levels'
            message = f'expected at most {bound} with aliases followed, found more'
            raise ConfigError([self.document.problem(path, message)])
        if node.kind == 'mapping':
            return self._mapping(node, path, depth)
        if node.kind == 'sequence':
            items = []
            for index, child in enumerate(node.children):
                here = (*path, index)
                self._mark(here, child)
                items.append(self.value(child, here, depth + 1))
            return items
        try:
            return _scalar(node)
        except ValueError as error:
            self.document.problems.append(self.document.problem(path, str(error)))
            self.fatal = True
            return None

    def _mapping(self, node: _Node, path: KeyPath, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, child in zip(node.children[::2], node.children[1::2], strict=True):
            key = self._key(key_node, path)
            if key is None:
                self.fatal = True
                continue
            here = (*path, key)
            if key in values:
                place = Place(self.document.source, key_node.line, dotted(here))
                self.document.problems.append(
                    place.problem(
                        f'expected each key once, found {key[:60]!r} again; '
                        f'the first one is in line {lines[key]}'
                    )
                )
                continue
            lines[key] = key_node.line
            self._mark(here, key_node)
            values[key] = self.value(child, here, depth + 1)
        return values

    def _mark(self, path: KeyPath, node: _Node) -> None:
        self.document.places[path] = Place(self.document.source, node.line, dotted(path))

    def _key(self, node: _Node, path: KeyPath) -> str | None:
        """Read a key; a refused one is noted and gives ``None``."""
        self._count += 1
        message = ''
        if node.kind != 'scalar':
            message = f'expected a text as key, found a {node.kind}'
        elif node.plain and node.text == '<<':
            message = 'expected no merge key, found <<; write the keys out'
        else:
            try:
                key = _scalar(node)
            except ValueError:
                key = None
            if isinstance(key, str):
                return key
            message = f'expected a text as key, found {node.text[:40]!r}; put it in quotes'
        place = Place(self.document.source, node.line, dotted(path))
        self.document.problems.append(place.problem(message))
        return None


def _scalar(node: _Node) -> Any:
    """Read a scalar by the core schema of YAML 1.2.

    Raises:
        ValueError: A number has more digits than anybody writes.
    """
    text = node.text
    if not node.plain:
        return text
    if text in _NULL:
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if text[0] in '+-.0123456789':
        if text.isdigit() and len(text) > 1000:
            raise ValueError('expected a number of at most 1000 digits, found a longer one')
        for pattern, convert in _NUMBERS:
            if pattern.match(text):
                return convert(text)
    return text
