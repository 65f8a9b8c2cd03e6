"""Operations, updates and snapshots of the scene graph to and from ROS 2 messages.

Reading is strict: what a message holds either becomes valid operations or raises a
``ValueError`` that names the operation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from diagnostic_msgs.msg import KeyValue

from harness_eval.ros.messages import time_message
from harness_eval.scene_graph import Attributes, Edge, Match, Node, Op, OpKind, Update
from harness_eval.times import nanoseconds_of
from harness_eval_msgs.msg import (
    SceneGraph,
    SceneGraphEdge,
    SceneGraphNode,
    SceneGraphOp,
    SceneGraphUpdate,
)

NUMBERS = {
    OpKind.ADD_NODE: SceneGraphOp.ADD_NODE,
    OpKind.REMOVE_NODE: SceneGraphOp.REMOVE_NODE,
    OpKind.SET_ATTRIBUTES: SceneGraphOp.SET_ATTRIBUTES,
    OpKind.ADD_EDGE: SceneGraphOp.ADD_EDGE,
    OpKind.REMOVE_EDGE: SceneGraphOp.REMOVE_EDGE,
}
"""Number of each kind of operation in ``SceneGraphOp.op``."""

KINDS = {number: kind for kind, number in NUMBERS.items()}
"""Kind of operation of each number."""


def op_to_message(op: Op) -> Any:
    """Write an operation as ``SceneGraphOp``."""
    return SceneGraphOp(
        op=NUMBERS[op.kind],
        subject=op.subject,
        predicate=op.predicate,
        object=op.object,
        attributes=_key_values(op.attributes),
    )


def op_from_message(message: Any) -> Op:
    """Read a ``SceneGraphOp``.

    Raises:
        ValueError: Its number is unknown, or the operation is not valid.
    """
    kind = KINDS.get(message.op)
    if kind is None:
        known = ', '.join(f'{number} {kind.value}' for number, kind in sorted(KINDS.items()))
        raise ValueError(f'unknown operation number {message.op}, expected one of {known}')
    return Op(
        kind,
        message.subject,
        message.predicate,
        message.object,
        tuple((pair.key, pair.value) for pair in message.attributes),
    )


def ops_from_messages(messages: Iterable[Any]) -> tuple[Op, ...]:
    """Read the ``ops`` of a ``SceneGraphUpdate``.

    Raises:
        ValueError: One of them is not valid; the text says which, counted from 0.
    """
    return tuple(_numbered_op(index, message) for index, message in enumerate(messages))


def update_to_message(update: Update) -> Any:
    """Write an update, proposed or released, as ``SceneGraphUpdate``."""
    message = SceneGraphUpdate(
        run_id=update.run_id,
        update_id=update.update_id,
        graph_id=update.graph_id,
        revision=update.revision,
        ops=[op_to_message(op) for op in update.ops],
    )
    message.header.stamp = time_message(update.stamp)
    return message


def update_from_message(message: Any) -> Update:
    """Read a ``SceneGraphUpdate``, proposed or released.

    Raises:
        ValueError: One of its operations is not valid.
    """
    return Update(
        run_id=message.run_id,
        update_id=message.update_id,
        ops=ops_from_messages(message.ops),
        graph_id=message.graph_id,
        revision=message.revision,
        stamp=nanoseconds_of(message.header.stamp),
    )


def read_or_pass_over(message: Any) -> tuple[Update, str]:
    """Read a released update; one that cannot be read becomes an empty one, with the reason."""
    try:
        return update_from_message(message), ''
    except ValueError as error:
        empty = Update(message.run_id, message.update_id, (), message.graph_id, message.revision)
        return empty, f'{update_name(message)}: {error}'


def update_name(message: Any) -> str:
    """Name a ``SceneGraphUpdate`` for a person; ids come from outside and are cut and quoted."""
    return (
        f'run {message.run_id[:80]!r}, update {message.update_id[:80]!r}, '
        f'graph {message.graph_id[:80]!r}, revision {message.revision}'
    )


def snapshot_to_message(graph_id: str, revision: int, match: Match, stamp: int) -> Any:
    """Write a whole graph, or what a query found, as ``SceneGraph``.

    Args:
        graph_id: The graph.
        revision: Its last update.
        match: Its nodes and edges.
        stamp: Nanoseconds since the epoch.
    """
    message = SceneGraph(
        graph_id=graph_id,
        revision=revision,
        nodes=[
            SceneGraphNode(name=node.name, attributes=_key_values(node.attributes))
            for node in match.nodes
        ],
        edges=[
            SceneGraphEdge(
                subject=edge.subject,
                predicate=edge.predicate,
                object=edge.object,
                attributes=_key_values(edge.attributes),
            )
            for edge in match.edges
        ],
    )
    message.header.stamp = time_message(stamp)
    return message


def match_from_message(message: Any) -> Match:
    """Read the nodes and edges of a ``SceneGraph``."""
    return Match(
        tuple(Node(node.name, _pairs(node.attributes)) for node in message.nodes),
        tuple(
            Edge(edge.subject, edge.predicate, edge.object, _pairs(edge.attributes))
            for edge in message.edges
        ),
    )


def _numbered_op(index: int, message: Any) -> Op:
    try:
        return op_from_message(message)
    except ValueError as error:
        raise ValueError(f'operation {index}: {error}') from None


def _key_values(attributes: Attributes) -> list[Any]:
    return [KeyValue(key=key, value=value) for key, value in attributes]


def _pairs(key_values: Iterable[Any]) -> Attributes:
    return tuple((pair.key, pair.value) for pair in key_values)
