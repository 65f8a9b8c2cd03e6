"""The operations that change a scene graph, and the batches that they travel in.

Pure: no ROS, no threads, no clock. An :class:`Op` is checked when it is made. A valid one is
idempotent and cannot fail on any graph: what is missing is added, what is already gone stays gone.
That is why a batch needs no way back once it has begun.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
import json
from typing import Any
import unicodedata

from harness_eval.lines import INVISIBLE
from harness_eval.strict_json import read_json

MAX_NAME_LENGTH = 256
"""Most characters of a node's name, a predicate or an attribute's key."""

MAX_VALUE_LENGTH = 16_384
"""Most characters of an attribute's value: a pose or a short text fits, a picture does not."""

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
        object.__setattr__(self, 'ops', checked_ops(self.ops))


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
        plain = read_json(text.encode('utf-8'))
    except ValueError as error:
        raise ValueError(f'operations must be a JSON array: {error}') from None
    if not isinstance(plain, list):
        raise ValueError(f'operations must be a JSON array, found {type(plain).__name__}')
    return tuple(_op_from_plain(index, item) for index, item in enumerate(plain))


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


def checked_ops(ops: Iterable[Op]) -> tuple[Op, ...]:
    """Make a tuple of operations.

    Raises:
        TypeError: Something in it is not an :class:`Op`.
    """
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


# Names of things may hold joiners, which words of some scripts need.
_UNPRINTABLE = INVISIBLE - {'Cf'}
