"""The file of the graph that a scene graph begins with is read strictly."""

from __future__ import annotations

import pytest

from harness_eval.initial_graph import InitialGraphError, MAX_CHARACTERS, read_initial_graph
from harness_eval.scene_graph import Edge, Node, SceneGraph


def test_words_that_yaml_takes_for_booleans_and_numbers_stay_text() -> None:
    graph = SceneGraph(
        initial=read_initial_graph(
            'edges: [[bottle, on, table], [no, near, 3, {since: 1}]]\n'
            'nodes: {bottle: {color: red, full: yes}, cup: {}, lamp: }\n',
            'cell.yaml',
        )
    )
    assert graph.nodes() == (
        Node('3', ()),
        Node('bottle', (('color', 'red'), ('full', 'yes'))),
        Node('cup', ()),
        Node('lamp', ()),
        Node('no', ()),
        Node('table', ()),
    )
    assert graph.edges() == (
        Edge('bottle', 'on', 'table', ()),
        Edge('no', 'near', '3', (('since', '1'),)),
    )


@pytest.mark.parametrize('text', ['', '# nothing\n', '{}', 'nodes: {}\nedges: []\n'])
def test_an_empty_file_is_an_empty_graph(text: str) -> None:
    assert read_initial_graph(text, 'cell.yaml') == ()


@pytest.mark.parametrize(
    ('text', 'problem'),
    [
        ('- a', 'cell.yaml:1: the file must be a mapping'),
        ('nodes: {}\nplaces: {}', "cell.yaml:2: unknown key 'places', expected nodes or edges"),
        ('nodes: {}\nnodes: {}', "cell.yaml:2: key 'nodes' is given twice"),
        ('nodes:\n  a: {}\n  a: {}', "cell.yaml:3: key 'a' is given twice"),
        ('nodes: {a: {k: 1, k: 2}}', "cell.yaml:1: key 'k' is given twice"),
        ('nodes: [a]', 'cell.yaml:1: nodes must be a mapping'),
        ('nodes: {a: red}', "the attributes of 'a' must be a mapping"),
        ('nodes: {a: {k: [1]}}', "the attribute 'k' must be text"),
        ('nodes: {[a]: {}}', 'the keys of nodes must be text'),
        ('nodes:\n  "": {}', 'cell.yaml:2: add_node: subject is empty'),
        ('edges: {a: b}', 'edges must be a list'),
        ('edges:\n- [a, on]', r'cell.yaml:2: an edge must be \[subject, predicate, object\]'),
        ('edges: [[a, on, [b]]]', 'an edge must be'),
        ('edges: [[a, "", b]]', 'add_edge needs a predicate and an object'),
        ('nodes: {a: &x {k: v}, b: *x}', 'cell.yaml:1: aliases are not allowed'),
        ('nodes: {a: {}', 'cell.yaml:1: '),
        ('nodes: {}\n---\nnodes: {}', 'cell.yaml:2: '),
        ('nodes: \0', 'cell.yaml: not YAML'),
        ('[' * 10_000 + ']' * 10_000, 'cell.yaml:1: nested too deeply'),
        ('#' * (MAX_CHARACTERS + 1), 'characters, at most'),
    ],
)
def test_a_file_that_is_not_a_graph_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(InitialGraphError, match=problem):
        read_initial_graph(text, 'cell.yaml')
