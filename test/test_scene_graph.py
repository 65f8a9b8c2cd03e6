"""The scene graph: operations, batches, queries, and what a success does to it."""

from __future__ import annotations

from collections.abc import Sequence
import string
import subprocess
import sys
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import pytest

from harness_eval.config.effects import EffectSettings
from harness_eval.contract import EvaluationError
from harness_eval.scene_graph import (
    Edge,
    effect_ops,
    MAX_NAME_LENGTH,
    MAX_VALUE_LENGTH,
    Node,
    Op,
    OpKind,
    ops_from_json,
    ops_to_json,
    RevisionGap,
    SceneGraph,
    Update,
)

# Few names, so that operations meet each other.
names = st.sampled_from(['bottle', 'table', 'gripper', 'bottle ä', 'x'])
predicates = st.sampled_from(['on', 'held_by', 'near'])
attributes = st.dictionaries(
    st.sampled_from(['color', 'pose', 'add_node']), st.text(string.printable[:95], max_size=4)
).map(lambda plain: tuple(plain.items()))
operations = st.one_of(
    st.builds(Op, st.just(OpKind.ADD_NODE), names, attributes=attributes),
    st.builds(Op, st.just(OpKind.REMOVE_NODE), names),
    st.builds(Op, st.just(OpKind.SET_ATTRIBUTES), names, attributes=attributes),
    st.builds(Op, st.just(OpKind.SET_ATTRIBUTES), names, predicates, names, attributes),
    st.builds(Op, st.just(OpKind.ADD_EDGE), names, predicates, names, attributes),
    st.builds(Op, st.just(OpKind.REMOVE_EDGE), names, predicates, names),
    st.builds(Op, st.just(OpKind.REMOVE_EDGE), names, st.just(''), names),
)
batches = st.lists(operations, max_size=12)


def graph_of(*ops: Op) -> SceneGraph:
    return SceneGraph('g', ops)


def contents(graph: SceneGraph) -> tuple[Any, Any]:
    return graph.nodes(), graph.edges()


def add_edge(subject: str, predicate: str, end: str, **values: str) -> Op:
    return Op(OpKind.ADD_EDGE, subject, predicate, end, tuple(values.items()))


class Model:
    """The meaning of the operations, written down a second time with plain dictionaries."""

    def __init__(self) -> None:
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: dict[tuple[str, str, str], dict[str, str]] = {}

    def apply(self, op: Op) -> None:
        edge = (op.subject, op.predicate, op.object)
        if op.kind is OpKind.REMOVE_NODE:
            self.nodes.pop(op.subject, None)
            self.edges = {
                key: value for key, value in self.edges.items() if op.subject not in key[::2]
            }
        elif op.kind is OpKind.REMOVE_EDGE:
            self.edges = {
                key: value
                for key, value in self.edges.items()
                if key[::2] != edge[::2] or op.predicate not in ('', key[1])
            }
        elif op.predicate:
            self.nodes.setdefault(op.subject, {})
            self.nodes.setdefault(op.object, {})
            self.edges.setdefault(edge, {}).update(op.attributes)
        else:
            self.nodes.setdefault(op.subject, {}).update(op.attributes)

    def contents(self) -> tuple[Any, Any]:
        nodes = sorted((name, tuple(sorted(v.items()))) for name, v in self.nodes.items())
        edges = sorted((*key, tuple(sorted(v.items()))) for key, v in self.edges.items())
        return tuple(nodes), tuple(edges)


@given(batches)
def test_every_operation_does_what_its_message_says(ops: list[Op]) -> None:
    model = Model()
    for op in ops:
        model.apply(op)
    assert contents(graph_of(*ops)) == model.contents()


@given(batches, operations)
def test_an_operation_applied_twice_is_the_same_as_once(ops: list[Op], op: Op) -> None:
    assert contents(graph_of(*ops, op, op)) == contents(graph_of(*ops, op))


@given(batches, names)
def test_removing_a_node_drops_its_edges_and_nothing_else(ops: list[Op], name: str) -> None:
    before = graph_of(*ops)
    after = graph_of(*ops, Op(OpKind.REMOVE_NODE, name))
    assert after.nodes() == tuple(node for node in before.nodes() if node.name != name)
    assert after.edges() == tuple(
        edge for edge in before.edges() if name not in (edge.subject, edge.object)
    )


@given(batches)
def test_both_ends_of_every_edge_are_nodes(ops: list[Op]) -> None:
    graph = graph_of(*ops)
    known = {node.name for node in graph.nodes()}
    assert all({edge.subject, edge.object} <= known for edge in graph.edges())


@given(batches, st.just('') | names, st.just('') | predicates, st.just('') | names)
def test_a_query_finds_what_a_look_at_everything_finds(
    ops: list[Op], subject: str, predicate: str, end: str
) -> None:
    graph = graph_of(*ops)
    edges = tuple(
        edge
        for edge in graph.edges()
        if subject in ('', edge.subject)
        and predicate in ('', edge.predicate)
        and end in ('', edge.object)
    )
    ends = {edge.subject for edge in edges} | {edge.object for edge in edges}
    alone = not predicate and not end
    nodes = tuple(
        node
        for node in graph.nodes()
        if node.name in ends or (alone and subject in ('', node.name))
    )
    assert graph.query(subject, predicate, end) == (nodes, edges)


def test_two_relations_between_the_same_nodes_are_apart() -> None:
    graph = graph_of(
        add_edge('bottle', 'on', 'table', since='1'),
        add_edge('bottle', 'near', 'table'),
        Op(OpKind.REMOVE_EDGE, 'bottle', 'near', 'table'),
    )
    assert graph.edges() == (Edge('bottle', 'on', 'table', (('since', '1'),)),)


def test_a_removed_edge_forgets_its_attributes() -> None:
    graph = graph_of(
        add_edge('bottle', 'on', 'table', since='1'),
        Op(OpKind.REMOVE_EDGE, 'bottle', 'on', 'table'),
        add_edge('bottle', 'on', 'table'),
    )
    assert graph.edges() == (Edge('bottle', 'on', 'table', ()),)


def test_a_query_for_an_unknown_node_finds_nothing() -> None:
    assert graph_of(add_edge('bottle', 'on', 'table')).query('cup') == ((), ())


def test_an_update_moves_the_graph_one_revision_on() -> None:
    graph = SceneGraph('g')
    graph.apply(Update('r', 'u', (add_edge('bottle', 'on', 'table'),), 'g', 1))
    graph.apply(Update('r', 'v', (), 'g', 2))
    assert (graph.graph_id, graph.revision) == ('g', 2)
    assert graph.nodes() == (Node('bottle', ()), Node('table', ()))


@pytest.mark.parametrize(('graph_id', 'revision'), [('g', 0), ('g', 1), ('g', 3), ('h', 2)])
def test_an_update_that_is_not_the_next_one_changes_nothing(graph_id: str, revision: int) -> None:
    graph = SceneGraph('g')
    graph.apply(Update('r', 'u', (add_edge('bottle', 'on', 'table'),), 'g', 1))
    before = contents(graph)
    with pytest.raises(RevisionGap) as caught:
        graph.apply(Update('r', 'u', (Op(OpKind.REMOVE_NODE, 'table'),), graph_id, revision))
    assert (caught.value.expected, caught.value.found) == (('g', 2), (graph_id, revision))
    assert contents(graph) == before
    assert graph.revision == 1


@given(batches, batches)
def test_a_batch_with_an_invalid_operation_changes_nothing(
    ops: list[Op], more: Sequence[Op]
) -> None:
    graph = graph_of(*ops)
    before = contents(graph)
    update = Update('r', 'u', tuple(more), 'g', 1)
    # The type refuses this when the update is made; the graph does not rely on it.
    object.__setattr__(update, 'ops', (*more, 'not an operation'))
    with pytest.raises(TypeError, match='found str'):
        graph.apply(update)
    assert contents(graph) == before
    assert graph.revision == 0


def test_an_update_takes_nothing_but_operations() -> None:
    with pytest.raises(TypeError, match='expected operations of type Op, found str'):
        Update('r', 'u', ('add_node',))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='revision must be in'):
        Update('r', 'u', (), 'g', -1)


@given(batches)
def test_a_reset_brings_the_initial_graph_back(ops: list[Op]) -> None:
    graph = graph_of(*ops)
    before = contents(graph)
    graph.apply(Update('r', 'u', (Op(OpKind.ADD_NODE, 'new', attributes=(('a', 'b'),)),), 'g', 1))
    graph.reset('h')
    assert (graph.graph_id, graph.revision) == ('h', 0)
    assert contents(graph) == before


@given(batches)
def test_operations_survive_json_exactly(ops: list[Op]) -> None:
    text = ops_to_json(ops)
    assert ops_from_json(text) == tuple(ops)
    assert ops_to_json(ops_from_json(text)) == text
    assert text.isascii()


def test_equal_operations_give_equal_json() -> None:
    one = Op(OpKind.ADD_NODE, 'bottle', attributes=(('b', '1'), ('a', 'ä')))
    other = Op(OpKind.ADD_NODE, 'bottle', attributes=(('a', 'ä'), ('b', '1')))
    assert one == other
    assert ops_to_json([one]) == ops_to_json([other])
    assert ops_to_json([one]) == (
        '[{"attributes":{"a":"\\u00e4","b":"1"},"kind":"add_node","subject":"bottle"}]'
    )


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('{}', 'must be a JSON array, found dict'),
        ('[1]', 'operation 0: expected an object, found int'),
        ('[{"kind":"add_node","subject":"a"},{"kind":"fly","subject":"a"}]', 'operation 1: .*fly'),
        ('[{"kind":[],"subject":"a"}]', 'operation 0: .*OpKind'),
        ('[{"subject":"a"}]', 'operation 0: None is not a valid OpKind'),
        ('[{"kind":"add_node","subject":3}]', 'operation 0: add_node: subject must be text'),
        ('[{"kind":"add_node","subject":"a","speed":1}]', "operation 0: unknown key 'speed'"),
        ('[{"kind":"add_node","subject":"a","subject":"b"}]', 'stands twice in one object'),
        ('[{"kind":"add_node","subject":"a","attributes":[]}]', 'attributes must be an object'),
        ('[' * 100_000, 'nested too deep'),
        ('[', 'Expecting value'),
    ],
)
def test_json_that_holds_no_operations_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ops_from_json(text)


@pytest.mark.parametrize(
    ('arguments', 'problem'),
    [
        (('add_node', 'a'), "must be an OpKind, not 'add_node'"),
        ((OpKind.ADD_NODE, ''), 'subject is empty'),
        ((OpKind.ADD_NODE, None), 'subject must be text, not None'),
        ((OpKind.ADD_NODE, 'a', 'on', 'b'), "takes a subject alone, found predicate 'on'"),
        ((OpKind.REMOVE_NODE, 'a', '', 'b'), 'takes a subject alone'),
        ((OpKind.ADD_EDGE, 'a', 'on'), 'needs a predicate and an object'),
        ((OpKind.ADD_EDGE, 'a', '', 'b'), 'needs a predicate and an object'),
        ((OpKind.REMOVE_EDGE, 'a', 'on'), 'needs an object'),
        ((OpKind.SET_ATTRIBUTES, 'a', 'on'), r'predicate and object \(an edge\) or neither'),
        ((OpKind.SET_ATTRIBUTES, 'a', '', 'b'), 'or neither'),
        ((OpKind.ADD_NODE, 'a' * (MAX_NAME_LENGTH + 1)), 'has 257 characters, at most 256'),
        ((OpKind.ADD_EDGE, 'a', 'on\n', 'b'), r'predicate holds the control character U\+000A'),
        ((OpKind.ADD_EDGE, 'a', 'on', 'b\x7f'), r'object holds the control character U\+007F'),
        ((OpKind.ADD_NODE, '\ud800'), r'U\+D800'),
        ((OpKind.ADD_NODE, 'a\u2028'), r'U\+2028'),
        ((OpKind.ADD_NODE, 'a', '', '', (('k', '1'), ('k', '2'))), "'k' is given twice"),
        ((OpKind.ADD_NODE, 'a', '', '', (('', '1'),)), 'attribute key is empty'),
        ((OpKind.ADD_NODE, 'a', '', '', (('k', '\0'),)), r"value of attribute 'k'.*U\+0000"),
        ((OpKind.ADD_NODE, 'a', '', '', (('k', 1),)), 'must be text, not 1'),
        (
            (OpKind.ADD_NODE, 'a', '', '', (('k', 'v' * (MAX_VALUE_LENGTH + 1)),)),
            'at most 16384',
        ),
        ((OpKind.REMOVE_NODE, 'a', '', '', (('k', '1'),)), 'takes no attributes'),
        ((OpKind.REMOVE_EDGE, 'a', 'on', 'b', (('k', '1'),)), 'takes no attributes'),
    ],
)
def test_an_operation_that_means_nothing_cannot_be_made(
    arguments: tuple[Any, ...], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        Op(*arguments)


def test_an_operation_may_use_all_of_its_limits() -> None:
    op = Op(
        OpKind.ADD_NODE,
        'a' * MAX_NAME_LENGTH,
        attributes=(('k' * MAX_NAME_LENGTH, 'a\tb\r\n'.ljust(MAX_VALUE_LENGTH, 'v')),),
    )
    assert graph_of(op).nodes() == (Node(op.subject, op.attributes),)


def test_effects_become_operations_with_their_placeholders_filled() -> None:
    effects = [
        EffectSettings(remove_edge=('{target}', 'on', 'table')),
        EffectSettings(add_edge=('{target}', 'held_by', 'gripper', {'by': '{arm} arm'})),
        EffectSettings(add_node=('{target}', {'mass': 0.5, 'count': 3, 'full': True})),
        EffectSettings(set_attributes=('{target}', {'state': '{{held}}'})),
        EffectSettings(remove_node=('ghost of {target}',)),
    ]
    assert effect_ops(effects, {'target': 'red bottle', 'arm': 'left', 'other': 'x'}) == (
        Op(OpKind.REMOVE_EDGE, 'red bottle', 'on', 'table'),
        add_edge('red bottle', 'held_by', 'gripper', by='left arm'),
        Op(
            OpKind.ADD_NODE,
            'red bottle',
            attributes=(('mass', '0.5'), ('count', '3'), ('full', 'true')),
        ),
        Op(OpKind.SET_ATTRIBUTES, 'red bottle', attributes=(('state', '{held}'),)),
        Op(OpKind.REMOVE_NODE, 'ghost of red bottle'),
    )


def test_an_effect_that_gives_no_valid_name_says_which_one_it_is() -> None:
    effects = [EffectSettings(add_node=('a',)), EffectSettings(add_node=('{x}{x}',))]
    with pytest.raises(ValueError, match=r'on_success\[1\]: add_node: subject has 400 characters'):
        effect_ops(effects, {'x': 'y' * 200})


def test_an_effect_without_its_argument_is_an_error_of_the_run() -> None:
    with pytest.raises(EvaluationError) as caught:
        effect_ops([EffectSettings(add_node=('{target}',))], {})
    assert caught.value.kind == 'missing_argument'


def test_a_node_that_only_holds_updates_does_not_load_networkx() -> None:
    code = (
        'import sys\n'
        'from harness_eval.scene_graph import Op, OpKind, Update, ops_to_json\n'
        "ops_to_json(Update('r', 'u', (Op(OpKind.ADD_NODE, 'a'),)).ops)\n"
        "print('networkx' in sys.modules, 'pydantic' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout == 'False False\n'
