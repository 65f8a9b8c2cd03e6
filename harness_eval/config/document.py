"""YAML text to plain data with the line of every key, under strict rules.

The subset is meant to be read by a human in one way only:

- scalars follow the core schema of YAML 1.2.2 (https://yaml.org/spec/1.2.2/, chapter 10.3): only
  ``true`` and ``false`` are truth values, ``on``, ``yes`` and ``1:30`` are texts;
- every key is a text and stands once in its mapping; tags, merge keys and further documents are
  refused;
- aliases are followed within a bound on depth and on the number of values, so that a file of a
  few lines cannot become gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
import re
from typing import Any

from harness_eval.config.errors import ConfigError, Problem
from harness_eval.config.nodes import compose, glued_key, MAX_DEPTH, MAX_VALUES, Node
from harness_eval.config.places import dotted, KeyPath, Place, Source

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


def read_document(text: str, source: Source) -> Document:
    """Read one YAML document.

    Args:
        text: The text of the file.
        source: What errors call it.

    Raises:
        ConfigError: It is not YAML, or not within the rules of this module.
    """
    root = compose(text, source)
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


class _Reader:
    """Turns nodes into data, following aliases within the bounds."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.fatal = False
        self._count = 0

    def value(self, node: Node, path: KeyPath, depth: int) -> Any:
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

    def _mapping(self, node: Node, path: KeyPath, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key_node, child in zip(node.children[::2], node.children[1::2], strict=True):
            key = self._key(key_node, path)
            if key is None:
                self.fatal = True
                continue
            empty = child.kind == 'scalar' and child.plain and not child.text
            glued = glued_key(key) if key_node.plain and empty else None
            if glued is not None:  # read on as it was meant, so that this is told alone
                place = Place(self.document.source, key_node.line, dotted((*path, glued[0])))
                self.document.problems.append(place.problem(glued[2]))
                key, child = glued[0], Node('scalar', key_node.line, glued[1], open=False)
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

    def _mark(self, path: KeyPath, node: Node) -> None:
        self.document.places[path] = Place(self.document.source, node.line, dotted(path))

    def _key(self, node: Node, path: KeyPath) -> str | None:
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


def _scalar(node: Node) -> Any:
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
