"""The scene graph and the operations that change it.

Pure: no ROS, no threads, no clock. A graph is a set of named nodes and of directed edges
``(subject, predicate, object)``, both with text attributes. It changes only by whole updates
that carry consecutive revisions, so two consumers at one revision hold the same graph.

An :class:`Op` is checked when it is made. A valid one is idempotent and cannot fail on any
graph: what is missing is added, what is already gone stays gone. That is why a batch needs no
way back once it has begun.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from harness_eval.contract import HarnessEvalError

if TYPE_CHECKING:
    from networkx import MultiDiGraph

    from harness_eval.config.models import EffectSettings

MAX_NAME_LENGTH = 256
"""Most characters of a node's name, a predicate or an attribute's key."""

MAX_VALUE_LENGTH = 16_384
"""Most characters of an attribute's value: a pose or a small JSON text fits, a picture does not."""

MAX_REVISION = 2**64 - 1
"""Revisions are ``uint64`` in the messages."""

Attributes = tuple[tuple[str, str], ...]
"""Attributes in the order of their keys."""


class OpKind(str, Enum):
    """What an operation does."""

    ADD_NODE = 'add_node'
    REMOVE_NODE = 'remove_node'
    SET_ATTRIBUTES = 'set_attributes'
    ADD_EDGE = 'add_edge'
    REMOVE_EDGE = 'remove_edge'


@dataclass(frozen=True)
class Op:
    """One idempotent change of a scene graph.

    ========================  ====================================================================
    kind                      effect
    ========================  ====================================================================
    ``add_node``              adds node ``subject``; sets ``attributes`` on it
    ``remove_node``           removes node ``subject`` and its edges
    ``set_attributes``        sets ``attributes`` on node ``subject``, or on the edge when
                              ``predicate`` and ``object`` are given; adds what is missing
    ``add_edge``              adds the edge and its missing end nodes; sets ``attributes`` on it
    ``remove_edge``           removes the edge; an empty ``predicate`` removes every edge from
                              ``subject`` to ``object``
    ========================  ====================================================================

    Attributes:
        kind: What it does.
        subject: Name of a node.
        predicate: Relation, for example ``on`` or ``held_by``.
        object: Name of a node.
        attributes: Key and value of each attribute to set; kept in the order of their keys.

    Raises:
        ValueError: The operation means nothing; the text says what was expected and found.
    """

    kind: OpKind
    subject: str
    predicate: str = ''
    object: str = ''
    attributes: Attributes = ()

    def __post_init__(self) -> None:
        if not isinstance(self.kind, OpKind):
            raise ValueError(f'the kind of an operation must be an OpKind, not {self.kind!r}')
        kind = self.kind.value
        _check_text(f'{kind}: subject', self.subject)
        _check_text(f'{kind}: predicate', self.predicate, may_be_empty=True)
        _check_text(f'{kind}: object', self.object, may_be_empty=True)
        self._check_ends(kind)
        attributes = _sorted_attributes(kind, self.attributes)
        if attributes and self.kind in (OpKind.REMOVE_NODE, OpKind.REMOVE_EDGE):
            raise ValueError(f'{kind} takes no attributes, found {attributes[0][0]!r}')
        object.__setattr__(self, 'attributes', attributes)

    def _check_ends(self, kind: str) -> None:
        given = f'found predicate {self.predicate!r} and object {self.object!r}'
        if self.kind in (OpKind.ADD_NODE, OpKind.REMOVE_NODE):
            if self.predicate or self.object:
                raise ValueError(f'{kind} takes a subject alone, {given}')
        elif self.kind is OpKind.SET_ATTRIBUTES:
            if bool(self.predicate) != bool(self.object):
                raise ValueError(
                    f'{kind} needs predicate and object (an edge) or neither (a node), {given}'
                )
        elif self.kind is OpKind.ADD_EDGE:
            if not (self.predicate and self.object):
                raise ValueError(f'{kind} needs a predicate and an object, {given}')
        elif not self.object:
            raise ValueError(f'{kind} needs an object, {given}')


@dataclass(frozen=True)
class Update:
    """A batch of operations that applies whole or not at all.

    Attributes:
        run_id: The run whose success makes the batch true.
        update_id: Names the batch within its run.
        ops: The operations, in order.
        graph_id: The graph that ``revision`` counts; empty in a proposal.
        revision: 0 in a proposal; 1, 2, 3 … within one ``graph_id``.
        stamp: Nanoseconds since the epoch: when proposed, or when released.

    Raises:
        ValueError: ``revision`` is not in 0 … 2^64-1.
        TypeError: Something in ``ops`` is not an :class:`Op`.
    """

    run_id: str
    update_id: str
    ops: tuple[Op, ...]
    graph_id: str = ''
    revision: int = 0
    stamp: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.revision <= MAX_REVISION:
            raise ValueError(f'revision must be in 0 … 2^64-1, not {self.revision}')
        object.__setattr__(self, 'ops', _checked_ops(self.ops))


class RevisionGap(HarnessEvalError):
    """An update is not the next one of the graph; nothing was changed.

    Args:
        expected: ``(graph_id, revision)`` that would be next.
        found: ``(graph_id, revision)`` of the update.
    """

    def __init__(self, expected: tuple[str, int], found: tuple[str, int]) -> None:
        super().__init__(
            f'expected revision {expected[1]} of graph {expected[0]!r}, '
            f'found revision {found[1]} of graph {found[0]!r}; '
            'ask for the released updates after the last one applied'
        )
        self.expected = expected
        self.found = found


class Node(NamedTuple):
    """One node."""

    name: str
    attributes: Attributes


class Edge(NamedTuple):
    """One directed relation."""

    subject: str
    predicate: str
    object: str
    attributes: Attributes


class Match(NamedTuple):
    """What a query found, both in order of their names."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


class SceneGraph:
    """The graph at one revision.

    Args:
        graph_id: The graph that the revisions count.
        initial: Operations that make the graph at revision 0, of this and of every graph after
            a :meth:`reset`.
    """

    def __init__(self, graph_id: str = '', initial: Iterable[Op] = ()) -> None:
        self._initial = _checked_ops(initial)
        self.reset(graph_id)

    @property
    def graph_id(self) -> str:
        """The graph that :attr:`revision` counts."""
        return self._graph_id

    @property
    def revision(self) -> int:
        """Revision of the last update applied; 0: none."""
        return self._revision

    def reset(self, graph_id: str) -> None:
        """Begin another graph at revision 0.

        Args:
            graph_id: Its name.
        """
        # Here and not above: whoever needs only the operations does not wait 0.2 s for networkx.
        from networkx import MultiDiGraph

        self._graph: MultiDiGraph[str] = MultiDiGraph()
        self._graph_id = graph_id
        self._revision = 0
        for op in self._initial:
            self._apply_op(op)

    def apply(self, update: Update) -> None:
        """Apply the next update, whole or not at all.

        Args:
            update: The update at ``revision + 1`` of this graph.

        Raises:
            RevisionGap: It is of another graph or not the next one.
            TypeError: Something in it is not an :class:`Op`.
        """
        expected = (self._graph_id, self._revision + 1)
        found = (update.graph_id, update.revision)
        if found != expected:
            raise RevisionGap(expected, found)
        # All are looked at before the first is applied; after that nothing can fail.
        for op in _checked_ops(update.ops):
            self._apply_op(op)
        self._revision = update.revision

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, by name."""
        return self._read_nodes(self._graph.nodes)

    def edges(self) -> tuple[Edge, ...]:
        """All edges, by subject, predicate and object."""
        return self.query().edges

    def query(self, subject: str = '', predicate: str = '', object: str = '') -> Match:
        """Find edges and nodes; an empty argument matches everything.

        Args:
            subject: Name of the node where an edge starts.
            predicate: Relation of the edge.
            object: Name of the node where the edge ends.

        Returns:
            The matching edges with their end nodes. Without predicate and object also the node
            ``subject`` (without subject: every node), whether or not it has edges.
        """
        edges = sorted(
            Edge(start, key, end, _frozen(attributes))
            for start, end, key, attributes in self._candidates(subject, object)
            if (not predicate or key == predicate) and (not object or end == object)
        )
        names = {edge.subject for edge in edges} | {edge.object for edge in edges}
        if not predicate and not object:
            names.update([subject] if subject in self._graph else [])
            names.update([] if subject else self._graph)
        return Match(self._read_nodes(names), tuple(edges))

    def _candidates(self, subject: str, object: str) -> Iterator[tuple[str, str, str, Any]]:
        """Edges that may match, found by the index of one end where that is possible."""
        if subject:
            return iter(self._graph.out_edges([subject], keys=True, data=True))
        if object:
            return iter(self._graph.in_edges([object], keys=True, data=True))
        return iter(self._graph.edges(keys=True, data=True))

    def _predicates(self, subject: str, object: str) -> list[str]:
        return list(self._graph.get_edge_data(subject, object, default={}))

    def _read_nodes(self, names: Iterable[str]) -> tuple[Node, ...]:
        return tuple(Node(name, _frozen(self._graph.nodes[name])) for name in sorted(names))

    def _apply_op(self, op: Op) -> None:
        graph = self._graph
        if op.kind is OpKind.REMOVE_NODE:
            # The plural form is the one that accepts what is not there.
            graph.remove_nodes_from([op.subject])
        elif op.kind is OpKind.REMOVE_EDGE:
            keys = [op.predicate] if op.predicate else self._predicates(op.subject, op.object)
            for key in keys:
                if graph.has_edge(op.subject, op.object, key):
                    graph.remove_edge(op.subject, op.object, key)
        elif op.predicate:
            graph.add_edge(op.subject, op.object, key=op.predicate)
            graph.edges[op.subject, op.object, op.predicate].update(op.attributes)
        else:
            graph.add_node(op.subject)
            graph.nodes[op.subject].update(op.attributes)


def ops_to_json(ops: Iterable[Op]) -> str:
    """Write operations as canonical JSON: equal operations give equal text.

    Args:
        ops: The operations, in order.

    Returns:
        A JSON array in ASCII without spaces, keys sorted, empty fields left out.
    """
    return json.dumps([_op_to_plain(op) for op in ops], sort_keys=True, separators=(',', ':'))


def ops_from_json(text: str) -> tuple[Op, ...]:
    """Read what :func:`ops_to_json` wrote.

    Args:
        text: A JSON array of operations.

    Returns:
        The operations, in order.

    Raises:
        ValueError: The text is not JSON of this form; it says where and why.
    """
    try:
        plain = json.loads(text, object_pairs_hook=_object_without_duplicates)
    except RecursionError:
        raise ValueError('operations must be a flat JSON array, found deep nesting') from None
    if not isinstance(plain, list):
        raise ValueError(f'operations must be a JSON array, found {type(plain).__name__}')
    return tuple(_op_from_plain(index, item) for index, item in enumerate(plain))


def effect_ops(effects: Sequence[EffectSettings], arguments: Mapping[str, str]) -> tuple[Op, ...]:
    """Turn a tool's ``on_success`` into operations.

    Do this when the completion arrives: an argument that makes no name is then an error of the
    run, and never of a success already decided.

    Args:
        effects: The effects of the configuration, in order.
        arguments: The declared arguments of the run, for the placeholders.

    Returns:
        The operations, in order.

    Raises:
        ValueError: An effect does not have exactly one operation, has the wrong number of parts,
            or gives an invalid name once its placeholders are filled.
    """
    return tuple(
        _effect_op(f'on_success[{index}]', effect, arguments)
        for index, effect in enumerate(effects)
    )


_NODE_KINDS = (OpKind.ADD_NODE, OpKind.REMOVE_NODE, OpKind.SET_ATTRIBUTES)
_KINDS_WITH_ATTRIBUTES = (OpKind.ADD_NODE, OpKind.SET_ATTRIBUTES, OpKind.ADD_EDGE)


def _effect_op(where: str, effect: EffectSettings, arguments: Mapping[str, str]) -> Op:
    parts_by_kind = {kind: getattr(effect, kind.value) for kind in OpKind}
    given = [kind for kind, parts in parts_by_kind.items() if parts is not None]
    if len(given) != 1:
        found = ', '.join(kind.value for kind in given) or 'none'
        raise ValueError(f'{where}: expected exactly one operation, found {found}')
    kind = given[0]
    where = f'{where}.{kind.value}'
    names = list(parts_by_kind[kind])
    attributes: Any = {}
    if kind in _KINDS_WITH_ATTRIBUTES and names and isinstance(names[-1], Mapping):
        attributes = names.pop()
    count = 1 if kind in _NODE_KINDS else 3
    if len(names) != count:
        form = '[name]' if count == 1 else '[subject, predicate, object]'
        raise ValueError(f'{where}: expected {form}, found {len(names)} names')
    try:
        subject, predicate, end = ([_filled_name(name, arguments) for name in names] + ['', ''])[:3]
        filled = tuple(
            (_filled_name(key, arguments), _filled_value(value, arguments))
            for key, value in attributes.items()
        )
        return Op(kind, subject, predicate, end, filled)
    except ValueError as error:
        raise ValueError(f'{where}: {error}') from None


def _filled_name(template: Any, arguments: Mapping[str, str]) -> str:
    if not isinstance(template, str):
        raise ValueError(
            f'expected a name, found {template!r} '
            '(YAML reads on, off, yes, no and bare numbers as other things than text: quote it)'
        )
    # Here and not above: the scene graph's own node needs none of the configuration's libraries.
    from harness_eval.config.placeholders import fill_placeholders

    return fill_placeholders(template, arguments)


def _filled_value(template: Any, arguments: Mapping[str, str]) -> str:
    if isinstance(template, bool):
        return 'true' if template else 'false'
    if isinstance(template, (int, float)):
        return repr(template)
    return _filled_name(template, arguments)


def _op_to_plain(op: Op) -> dict[str, Any]:
    plain: dict[str, Any] = {'kind': op.kind.value, 'subject': op.subject}
    if op.predicate:
        plain['predicate'] = op.predicate
    if op.object:
        plain['object'] = op.object
    if op.attributes:
        plain['attributes'] = dict(op.attributes)
    return plain


def _op_from_plain(index: int, plain: Any) -> Op:
    where = f'operation {index}'
    if not isinstance(plain, dict):
        raise ValueError(f'{where}: expected an object, found {type(plain).__name__}')
    unknown = plain.keys() - {'kind', 'subject', 'predicate', 'object', 'attributes'}
    if unknown:
        raise ValueError(f'{where}: unknown key {min(unknown)!r}')
    attributes = plain.get('attributes', {})
    if not isinstance(attributes, dict):
        raise ValueError(f'{where}: attributes must be an object')
    try:
        return Op(
            OpKind(plain.get('kind')),
            plain.get('subject', ''),
            plain.get('predicate', ''),
            plain.get('object', ''),
            tuple(attributes.items()),
        )
    except ValueError as error:
        raise ValueError(f'{where}: {error}') from None


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) != len(pairs):
        raise ValueError('a JSON object names a key twice')
    return plain


def _checked_ops(ops: Iterable[Op]) -> tuple[Op, ...]:
    checked = tuple(ops)
    for op in checked:
        if not isinstance(op, Op):
            raise TypeError(f'expected operations of type Op, found {type(op).__name__}')
    return checked


def _sorted_attributes(kind: str, attributes: Iterable[tuple[str, str]]) -> Attributes:
    seen: dict[str, str] = {}
    for key, value in attributes:
        _check_text(f'{kind}: attribute key', key)
        _check_text(
            f'{kind}: value of attribute {key!r}',
            value,
            may_be_empty=True,
            most=MAX_VALUE_LENGTH,
            allowed='\t\n\r',
        )
        if key in seen:
            raise ValueError(f'{kind}: attribute {key!r} is given twice')
        seen[key] = value
    return tuple(sorted(seen.items()))


def _check_text(
    what: str,
    text: str,
    *,
    may_be_empty: bool = False,
    most: int = MAX_NAME_LENGTH,
    allowed: str = '',
) -> None:
    if not isinstance(text, str):
        raise ValueError(f'{what} must be text, not {text!r}')
    if not text and not may_be_empty:
        raise ValueError(f'{what} is empty, expected a name')
    if len(text) > most:
        raise ValueError(f'{what} has {len(text)} characters, at most {most} are allowed')
    for character in text:
        if character not in allowed and unicodedata.category(character) in _UNPRINTABLE:
            raise ValueError(f'{what} holds the control character U+{ord(character):04X}')


# Control characters, lone surrogates (no message can carry them), and the two line separators.
_UNPRINTABLE = frozenset({'Cc', 'Cs', 'Zl', 'Zp'})


def _frozen(attributes: Mapping[str, str]) -> Attributes:
    return tuple(sorted(attributes.items()))
