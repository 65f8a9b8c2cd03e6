"""Operations, updates and snapshots survive the way through ROS 2 messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
import pytest
from rclpy.serialization import deserialize_message, serialize_message

from harness_eval.ros.scene_graph_messages import (
    match_from_message,
    snapshot_to_message,
    update_from_message,
    update_to_message,
)
from harness_eval.scene_graph import MAX_REVISION, Op, OpKind, SceneGraph, Update
from harness_eval.times import nanoseconds_of
from harness_eval_msgs.msg import SceneGraphOp, SceneGraphUpdate

MAX_STAMP = 2**31 * 10**9 - 1

names = st.text(st.characters(exclude_categories=('Cc', 'Cs', 'Zl', 'Zp')), min_size=1, max_size=8)
attributes = st.dictionaries(names, names | st.just(''), max_size=3).map(
    lambda plain: tuple(plain.items())
)
operations = st.one_of(
    st.builds(Op, st.just(OpKind.ADD_NODE), names, attributes=attributes),
    st.builds(Op, st.just(OpKind.REMOVE_NODE), names),
    st.builds(Op, st.just(OpKind.SET_ATTRIBUTES), names, names, names, attributes),
    st.builds(Op, st.just(OpKind.ADD_EDGE), names, names, names, attributes),
    st.builds(Op, st.just(OpKind.REMOVE_EDGE), names, names | st.just(''), names),
)
updates = st.builds(
    Update,
    names,
    names,
    st.lists(operations, max_size=5).map(tuple),
    names | st.just(''),
    st.integers(0, MAX_REVISION),
    st.integers(0, MAX_STAMP),
)


@given(updates)
def test_an_update_survives_the_wire(update: Update) -> None:
    wire = serialize_message(update_to_message(update))
    assert update_from_message(deserialize_message(wire, SceneGraphUpdate)) == update


@given(st.lists(operations, max_size=8), st.integers(0, MAX_STAMP))
def test_a_snapshot_survives_the_wire(ops: list[Op], stamp: int) -> None:
    match = SceneGraph(initial=ops).query()
    message = snapshot_to_message('g', 7, match, stamp)
    wire = serialize_message(message)
    back = deserialize_message(wire, type(message))
    assert match_from_message(back) == match
    assert (back.graph_id, back.revision) == ('g', 7)
    assert nanoseconds_of(back.header.stamp) == stamp


@pytest.mark.parametrize(
    ('op', 'problem'),
    [
        (SceneGraphOp(op=9, subject='a'), 'operation 1: unknown operation number 9'),
        (SceneGraphOp(subject='a'), 'operation 1: unknown operation number 0, .*1 add_node'),
        (SceneGraphOp(op=SceneGraphOp.ADD_NODE), 'operation 1: add_node: subject is empty'),
        (
            SceneGraphOp(op=SceneGraphOp.ADD_EDGE, subject='a', object='b'),
            'operation 1: add_edge needs a predicate',
        ),
    ],
)
def test_an_operation_that_cannot_be_read_is_named(op: SceneGraphOp, problem: str) -> None:
    good = SceneGraphOp(op=SceneGraphOp.ADD_NODE, subject='a')
    with pytest.raises(ValueError, match=problem):
        update_from_message(SceneGraphUpdate(ops=[good, op]))
