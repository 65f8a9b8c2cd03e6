"""Reads the graph that a scene graph begins with.

The file is YAML with two optional keys::

    nodes: {bottle: {color: red}, table: {}}
    edges: [[bottle, on, table]]

All values are text: ``on`` is a relation here and not a boolean, ``3`` not a number.
"""

from __future__ import annotations

import yaml

from harness_eval.contract import HarnessEvalError
from harness_eval.scene_graph import Op, OpKind

MAX_CHARACTERS = 4 * 1024 * 1024
"""Most characters of a file; a longer one is refused before it is parsed."""


MAX_DEPTH = 8
"""Most collections inside each other; an edge with attributes needs four."""


class InitialGraphError(HarnessEvalError):
    """The file of the initial graph cannot be used."""


def read_initial_graph(text: str, name: str) -> tuple[Op, ...]:
    """Read an initial graph.

    Args:
        text: The YAML.
        name: What errors call the file; its base name.

    Returns:
        Operations that make the graph from an empty one.

    Raises:
        InitialGraphError: It is not YAML of this form; the text names file, line and key.
    """
    if len(text) > MAX_CHARACTERS:
        raise InitialGraphError(
            f'{name}: {len(text)} characters, at most {MAX_CHARACTERS} are allowed'
        )
    try:
        _refuse_what_costs_much(text, name)
        # The base loader guesses no types: every scalar stays the text that was written.
        return _Reader(name).graph(yaml.compose(text, Loader=yaml.BaseLoader))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise InitialGraphError(f'{name}:{line}: {error.problem}') from None
    except yaml.YAMLError as error:
        raise InitialGraphError(f'{name}: not YAML: {error}') from None


def _refuse_what_costs_much(text: str, name: str) -> None:
    """Refuse aliases, which can make a small file huge, and nesting, whose cost is quadratic."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.BaseLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            raise InitialGraphError(f'{name}:{line}: aliases are not allowed')
        if depth > MAX_DEPTH:
            raise InitialGraphError(
                f'{name}:{line}: nested too deeply, at most {MAX_DEPTH} levels'
            )


class _Reader:
    """Turns the nodes of the YAML into operations; knows the file for its errors."""

    def __init__(self, name: str) -> None:
        self._name = name

    def graph(self, root: yaml.Node | None) -> tuple[Op, ...]:
        if root is None:
            return ()
        ops: list[Op] = []
        for key, value in self._mapping(root, 'the file'):
            if key.value == 'nodes':
                ops += [self._node(*item) for item in self._mapping(value, 'nodes')]
            elif key.value == 'edges':
                ops += [self._edge(item) for item in self._sequence(value, 'edges')]
            else:
                raise self._error(key, f'unknown key {key.value!r}, expected nodes or edges')
        # Nodes first, so that attributes and edges may be written in either order.
        return tuple(sorted(ops, key=lambda op: op.kind is OpKind.ADD_EDGE))

    def _node(self, key: yaml.ScalarNode, value: yaml.Node) -> Op:
        return self._op(key, OpKind.ADD_NODE, [key.value], value)

    def _edge(self, item: yaml.Node) -> Op:
        parts = self._sequence(item, 'an edge')
        attributes = parts.pop() if len(parts) == 4 else None
        if len(parts) != 3 or not all(isinstance(part, yaml.ScalarNode) for part in parts):
            raise self._error(
                item, 'an edge must be [subject, predicate, object], or with {attributes} after it'
            )
        return self._op(item, OpKind.ADD_EDGE, [part.value for part in parts], attributes)

    def _op(
        self, at: yaml.Node, kind: OpKind, names: list[str], attributes: yaml.Node | None
    ) -> Op:
        subject, predicate, end, *_ = [*names, '', '']
        pairs: list[tuple[str, str]] = []
        # ``bottle:`` with nothing after it is a node without attributes.
        empty = isinstance(attributes, yaml.ScalarNode) and attributes.value in ('', '~', 'null')
        if attributes is not None and not empty:
            for key, value in self._mapping(attributes, f'the attributes of {subject!r}'):
                if not isinstance(value, yaml.ScalarNode):
                    raise self._error(value, f'the attribute {key.value!r} must be text')
                pairs.append((key.value, value.value))
        try:
            return Op(kind, subject, predicate, end, tuple(pairs))
        except ValueError as error:
            raise self._error(at, str(error)) from None

    def _mapping(self, node: yaml.Node, what: str) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            raise self._error(node, f'{what} must be a mapping')
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._error(key, f'the keys of {what} must be text')
            if key.value in seen:
                raise self._error(key, f'key {key.value!r} is given twice')
            seen.add(key.value)
        return list(node.value)

    def _sequence(self, node: yaml.Node, what: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            raise self._error(node, f'{what} must be a list')
        return list(node.value)

    def _error(self, node: yaml.Node, text: str) -> InitialGraphError:
        return InitialGraphError(f'{self._name}:{node.start_mark.line + 1}: {text}')
