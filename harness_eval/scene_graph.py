"""The scene graph: named nodes and directed edges, both with text attributes.

Pure: no ROS, no threads, no clock. The graph changes only by whole updates that carry consecutive
revisions, so two consumers at one revision hold the same graph. The operations, which are
re-exported here, are in :mod:`harness_eval.scene_graph_ops`; the effects of a tool's success in
:mod:`harness_eval.scene_graph_effects`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TYPE_CHECKING

from harness_eval.contract import HarnessEvalError
from harness_eval.scene_graph_effects import effect_ops
from harness_eval.scene_graph_ops import (
    Attributes,
    checked_ops,
    MAX_NAME_LENGTH,
    MAX_REVISION,
    MAX_VALUE_LENGTH,
    Op,
    OpKind,
    ops_from_json,
    ops_to_json,
    Update,
)

if TYPE_CHECKING:
    from networkx import MultiDiGraph

__all__ = [
    'MAX_NAME_LENGTH',
    'MAX_REVISION',
    'MAX_VALUE_LENGTH',
    'Attributes',
    'Edge',
    'Match',
    'Node',
    'Op',
    'OpKind',
    'RevisionGap',
    'SceneGraph',
    'Update',
    'effect_ops',
    'ops_from_json',
    'ops_to_json',
]


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
        self._initial = checked_ops(initial)
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
        for op in checked_ops(update.ops):
            self._apply_op(op)
        self._revision = update.revision

    def nodes(self) -> tuple[Node, ...]:
        """All nodes, by name."""
        return self._read_nodes(self._graph.nodes)

    def edges(self) -> tuple[Edge, ...]:
        """All edges, by subject, predicate and object."""
        return self.query().edges

    def query(
        self,
        subject: str = '',
        predicate: str = '',
        object: str = '',  # noqa: A002 - named as in the messages
    ) -> Match:
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

    def _candidates(self, subject: str, end: str) -> Iterator[tuple[str, str, str, Any]]:
        """Edges that may match, found by the index of one end where that is possible."""
        if subject:
            return iter(self._graph.out_edges([subject], keys=True, data=True))
        if end:
            return iter(self._graph.in_edges([end], keys=True, data=True))
        return iter(self._graph.edges(keys=True, data=True))

    def _predicates(self, subject: str, end: str) -> list[str]:
        edges = self._graph.out_edges([subject], keys=True)
        return [key for _, found, key in edges if found == end]

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


def _frozen(attributes: Mapping[str, str]) -> Attributes:
    return tuple(sorted(attributes.items()))
