"""The scene graph's node stays level with the released updates on real ROS 2."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
import signal
import threading
from typing import Any

from child_node import ChildNode
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
import pytest
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_world import RosWorld

from harness_eval.initial_graph import InitialGraphError
from harness_eval.ros.scene_graph_messages import match_from_message, update_to_message
from harness_eval.ros.scene_graph_node import SceneGraphNode
from harness_eval.ros.scene_graph_parameters import ParameterError
from harness_eval.scene_graph import Edge, Match, Node, Op, OpKind, Update
from harness_eval_msgs.msg import SceneGraph as SceneGraphMessage
from harness_eval_msgs.msg import SceneGraphOp, SceneGraphUpdate
from harness_eval_msgs.srv import GetUpdates, QuerySceneGraph

Start = Callable[..., ChildNode]

SERVER_LIMIT = 500


def latched(depth: int = 1000) -> QoSProfile:
    return QoSProfile(depth=depth, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def update(revision: int, graph_id: str = 'g') -> Any:
    """Order matters in these: each moves one thing to a place that only it knows."""
    ops = (
        Op(OpKind.REMOVE_NODE, 'thing'),
        Op(OpKind.ADD_EDGE, 'thing', 'on', f'{graph_id} {revision}'),
    )
    return update_to_message(Update('run', f'u{revision}', ops, graph_id, revision))


def unreadable(revision: int, graph_id: str = 'g') -> Any:
    message = update(revision, graph_id)
    message.ops[1].op = 9
    return message


class Evaluator:
    """Stands in for the evaluator's node: it has all updates and publishes those it is told to."""

    def __init__(self, ros: RosWorld, graph_id: str = 'g', *, namespace: str = '') -> None:
        self.graph_id = graph_id
        self.released: list[Any] = []
        self.asked: list[Any] = []
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._ros = ros
        self._node = ros.node(f'evaluator_{graph_id}', namespace=namespace)
        self._executor = ros.spin(self._node)
        self._publisher = self._node.create_publisher(
            SceneGraphUpdate, 'scene_graph/updates', latched()
        )
        self._service: Any = None

    def serve(self) -> Evaluator:
        self._service = self._node.create_service(
            GetUpdates, 'scene_graph/get_updates', self._answer
        )
        return self

    def stop_serving(self) -> None:
        # On the executor's own thread: a service must not vanish under a wait.
        service, self._service = self._service, None
        self._ros.result(
            self._executor.create_task(lambda: self._node.destroy_service(service)),
            what='the service to be destroyed',
        )

    def release(self, count: int) -> Evaluator:
        first = len(self.released) + 1
        self.released += [update(first + i, self.graph_id) for i in range(count)]
        return self

    def publish(self, revisions: Iterable[int]) -> None:
        for revision in revisions:
            self.publish_message(self.released[revision - 1])

    def publish_message(self, message: Any) -> None:
        self._publisher.publish(message)

    def _answer(self, request: Any, response: Any) -> Any:
        self.asked.append(request)
        self.may_answer.wait(20.0)
        response.graph_id = self.graph_id
        response.last_revision = len(self.released)
        if request.graph_id in ('', self.graph_id):
            first = request.after_revision
            response.updates = self.released[first : first + (request.limit or SERVER_LIMIT)]
        return response


class Cell:
    """The node under test and what is heard of it."""

    def __init__(
        self, ros: RosWorld, *, namespace: str = '', threads: int = 1, **parameters: Any
    ) -> None:
        self._ros = ros
        self.node = ros.adopt(
            SceneGraphNode(
                context=ros.context,
                namespace=namespace,
                parameter_overrides=[Parameter(key, value=v) for key, v in parameters.items()],
            )
        )
        self.listener = ros.node('listener', namespace=namespace, spin=True)
        self.snapshots = ros.collect(
            self.listener, SceneGraphMessage, 'scene_graph/snapshot', latched(1)
        )
        self._diagnostics = ros.collect(self.listener, DiagnosticArray, '/diagnostics')
        self._client = self.listener.create_client(QuerySceneGraph, 'scene_graph/query')
        ros.spin(self.node, threads=threads)

    def at(self, graph_id: str, revision: int) -> Match:
        """Wait for the snapshot of a revision and return what it holds."""

        def found() -> bool:
            last = self.snapshots[-1] if self.snapshots else None
            return last is not None and (last.graph_id, last.revision) == (graph_id, revision)

        self._ros.wait(found, what=f'the snapshot of {graph_id} at {revision}')
        return match_from_message(self.snapshots[-1])

    def query(self, subject: str = '', predicate: str = '', end: str = '') -> Any:
        request = QuerySceneGraph.Request(subject=subject, predicate=predicate, object=end)
        return self._ros.call(self._client, request).graph

    def says(self, level: bytes = DiagnosticStatus.OK, **values: object) -> DiagnosticStatus:
        """Wait until the newest diagnostics are at a level and hold some values."""
        expected = {key: str(value) for key, value in values.items()}

        def newest() -> DiagnosticStatus | None:
            own = f'{self.node.get_fully_qualified_name()}: scene graph'
            statuses = [s for array in self._diagnostics for s in array.status if s.name == own]
            if not statuses or statuses[-1].level != level:
                return None
            found = {pair.key: pair.value for pair in statuses[-1].values}
            return statuses[-1] if expected.items() <= found.items() else None

        return self._ros.wait(newest, what=f'diagnostics at {level!r} with {expected}')


def assert_only_change(match: Match, revision: int, graph_id: str = 'g') -> None:
    """The thing is where the revision put it; the places before it are still known."""
    assert match.edges == (Edge('thing', 'on', f'{graph_id} {revision}', ()),)
    places = {f'{graph_id} {i}' for i in range(1, revision + 1)}
    assert {node.name for node in match.nodes} == places | {'thing'}


def test_a_late_start_gets_all_updates_from_the_server(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).serve().release(1203)
    cell = Cell(ros)
    assert_only_change(cell.at('g', 1203), 1203)
    assert [request.after_revision for request in evaluator.asked][:3] == [0, 500, 1000]
    cell.says(revision=1203, server_reachable='true', gaps_healed=0, applied_updates=1203)


def test_a_released_update_changes_the_graph_without_a_question(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).serve().release(1)
    cell = Cell(ros, resync_period=0)
    cell.at('g', 1)
    cell.says(server_reachable='true')
    questions = len(evaluator.asked)
    evaluator.release(1).publish([2])
    assert_only_change(cell.at('g', 2), 2)
    assert len(evaluator.asked) == questions


def test_the_topic_alone_is_enough_from_the_first_update_on(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).release(3)
    evaluator.publish([1, 2, 3])
    cell = Cell(ros)
    assert_only_change(cell.at('g', 3), 3)
    status = cell.says(DiagnosticStatus.WARN, server_reachable='false', revision=3)
    assert 'no answer from /scene_graph/get_updates' in status.message


def test_a_gap_is_filled_by_the_server(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).serve().release(2)
    cell = Cell(ros, resync_period=0)
    cell.at('g', 2)
    evaluator.release(4).publish([6])
    assert_only_change(cell.at('g', 6), 6)
    cell.says(gaps_healed=1, waiting_updates=0)


def test_updates_out_of_order_are_applied_in_order(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).release(5)
    evaluator.publish([4, 2, 5, 1, 3])
    assert_only_change(Cell(ros).at('g', 5), 5)


def test_duplicates_and_old_updates_change_nothing(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).serve().release(3)
    cell = Cell(ros)
    before = cell.at('g', 3)
    evaluator.publish([1, 2, 3, 3])
    cell.says(revision=3, duplicates=4)
    assert cell.at('g', 3) == before


def test_a_new_ledger_replaces_the_graph(ros: RosWorld) -> None:
    old = Evaluator(ros, 'g').serve().release(5)
    cell = Cell(ros, resync_period=0)
    cell.at('g', 5)
    old.stop_serving()
    new = Evaluator(ros, 'h').serve().release(2)
    new.publish([2])
    assert_only_change(cell.at('h', 2), 2, 'h')
    cell.says(graph_id='h', graphs_replaced=1)


def test_a_new_ledger_that_has_released_nothing_empties_the_graph(ros: RosWorld) -> None:
    old = Evaluator(ros, 'g').serve().release(5)
    cell = Cell(ros, resync_period=0.5)
    cell.at('g', 5)
    old.stop_serving()
    Evaluator(ros, 'h').serve()
    assert cell.at('h', 0) == ((), ())


def test_updates_of_another_graph_than_the_servers_are_ignored(ros: RosWorld) -> None:
    evaluator = Evaluator(ros, 'g').serve().release(3)
    cell = Cell(ros, resync_period=0)
    cell.at('g', 3)
    stale = Evaluator(ros, 'stale').release(9)
    stale.publish(range(1, 10))
    ros.wait(lambda: len(evaluator.asked) >= 2, what='the server to be asked about the other')
    evaluator.release(1).publish([4])
    assert_only_change(cell.at('g', 4), 4)
    cell.says(graph_id='g', waiting_updates=0, graphs_replaced=0)


def test_two_cells_in_two_namespaces_keep_two_graphs(ros: RosWorld) -> None:
    cells = {}
    for name, count in {'left': 2, 'right': 3}.items():
        evaluator = Evaluator(ros, name, namespace=name).serve().release(count)
        evaluator.publish(range(1, count + 1))
        cells[name] = Cell(ros, namespace=name)
    assert_only_change(cells['left'].at('left', 2), 2, 'left')
    assert_only_change(cells['right'].at('right', 3), 3, 'right')


def test_updates_wait_for_a_server_that_starts_late(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).release(4)
    cell = Cell(ros)
    evaluator.publish([3, 4])
    cell.says(DiagnosticStatus.WARN, waiting_updates=2, revision=0)
    assert cell.at('', 0) == ((), ())
    evaluator.serve()
    assert_only_change(cell.at('g', 4), 4)
    cell.says(server_reachable='true', waiting_updates=0)


def test_a_server_that_restarts_is_asked_again(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).serve().release(2)
    cell = Cell(ros, resync_period=0)
    cell.at('g', 2)
    evaluator.stop_serving()
    cell.says(DiagnosticStatus.WARN, server_reachable='false')
    # Released while nobody listened, and never published.
    evaluator.release(1).serve()
    assert_only_change(cell.at('g', 3), 3)


def test_a_server_that_answers_too_late_is_asked_again(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).release(2)
    evaluator.may_answer.clear()
    evaluator.serve()
    cell = Cell(ros, reply_timeout=0.2)
    ros.wait(lambda: evaluator.asked, what='the server to be asked')
    cell.says(DiagnosticStatus.WARN, server_reachable='false')
    # The node lives on while it waits.
    assert cell.query().revision == 0
    evaluator.may_answer.set()
    assert_only_change(cell.at('g', 2), 2)
    cell.says(server_reachable='true', exceptions=0)


def test_an_update_that_cannot_be_read_is_passed_over_loudly(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).serve().release(1)
    cell = Cell(ros)
    cell.at('g', 1)
    evaluator.released.append(unreadable(2))
    evaluator.release(1).publish([2, 3])
    match = cell.at('g', 3)
    assert match.edges == (Edge('thing', 'on', 'g 3', ()),)
    assert 'g 2' not in {node.name for node in match.nodes}
    status = cell.says(DiagnosticStatus.ERROR, invalid_updates=1, revision=3)
    assert 'revision 2 could not be read' in status.message
    assert 'unknown operation number 9' in status.message


def test_an_update_that_only_the_topic_spoilt_is_taken_from_the_server(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).serve().release(1)
    cell = Cell(ros, resync_period=0)
    cell.at('g', 1)
    evaluator.release(1).publish_message(unreadable(2))
    assert_only_change(cell.at('g', 2), 2)
    cell.says(invalid_updates=0, unreadable_messages=1)


def test_a_proposal_on_the_wrong_topic_is_refused(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).serve().release(1)
    cell = Cell(ros)
    cell.at('g', 1)
    evaluator.publish_message(update_to_message(Update('r', 'u', ())))
    cell.says(unreadable_messages=1, revision=1)


def test_a_query_gives_matching_edges_with_their_nodes(ros: RosWorld) -> None:
    ops = [
        SceneGraphOp(op=SceneGraphOp.ADD_EDGE, subject='cup', predicate='on', object='table'),
        SceneGraphOp(op=SceneGraphOp.ADD_EDGE, subject='cup', predicate='near', object='arm'),
        SceneGraphOp(op=SceneGraphOp.ADD_NODE, subject='lamp'),
    ]
    evaluator = Evaluator(ros).serve()
    evaluator.released.append(SceneGraphUpdate(graph_id='g', revision=1, ops=ops))
    cell = Cell(ros)
    cell.at('g', 1)
    answer = cell.query(predicate='on')
    assert (answer.graph_id, answer.revision) == ('g', 1)
    assert match_from_message(answer) == (
        (Node('cup', ()), Node('table', ())),
        (Edge('cup', 'on', 'table', ()),),
    )
    assert match_from_message(cell.query('lamp')) == ((Node('lamp', ()),), ())
    assert match_from_message(cell.query()) == cell.at('g', 1)


def test_a_burst_of_updates_gives_few_snapshots_and_the_last_is_whole(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).serve().release(1)
    cell = Cell(ros)
    cell.at('g', 1)
    before = len(cell.snapshots)
    evaluator.release(600).publish(range(2, 602))
    assert_only_change(cell.at('g', 601), 601)
    assert len(cell.snapshots) - before < 200


def test_a_late_subscriber_gets_the_newest_snapshot(ros: RosWorld) -> None:
    Evaluator(ros).serve().release(2)
    Cell(ros).at('g', 2)
    late = ros.node('late', spin=True)
    received = ros.collect(late, SceneGraphMessage, 'scene_graph/snapshot', latched(1))
    ros.wait(lambda: received, what='the latched snapshot')
    assert [message.revision for message in received] == [2]


def test_the_initial_graph_is_revision_0_of_every_graph(ros: RosWorld, tmp_path: Path) -> None:
    path = tmp_path / 'cell.yaml'
    path.write_text('edges: [[cup, on, table]]')
    cell = Cell(ros, initial_graph=str(path))
    cup = Edge('cup', 'on', 'table', ())
    assert cell.at('', 0).edges == (cup,)
    Evaluator(ros).serve().release(1)
    assert cell.at('g', 1).edges == (cup, Edge('thing', 'on', 'g 1', ()))


def test_an_initial_graph_that_cannot_be_used_is_refused(ros: RosWorld, tmp_path: Path) -> None:
    path = tmp_path / 'cell.yaml'
    with pytest.raises(
        InitialGraphError, match=r'^initial_graph: cell.yaml cannot be read: No su'
    ):
        Cell(ros, initial_graph=str(path))
    path.write_text('edges: [[cup, on]]')
    with pytest.raises(InitialGraphError, match=r'^cell\.yaml:1: an edge must be'):
        Cell(ros, initial_graph=str(path))


@pytest.mark.parametrize('value', [-1.0, float('nan'), True, 'soon'])
def test_a_time_that_is_none_is_refused(ros: RosWorld, value: object) -> None:
    with pytest.raises(ParameterError, match='resync_period: expected seconds'):
        Cell(ros, resync_period=value)


def test_a_clock_that_stands_still_stops_nothing(ros: RosWorld) -> None:
    Evaluator(ros).serve().release(2)
    cell = Cell(ros, use_sim_time=True)
    assert_only_change(cell.at('g', 2), 2)
    cell.says(revision=2)


def test_an_exception_in_a_callback_does_not_end_the_node(
    ros: RosWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluator = Evaluator(ros).serve().release(1)
    cell = Cell(ros)
    cell.at('g', 1)

    def broken(*_: Any) -> Any:
        raise RuntimeError('broken on purpose')

    with monkeypatch.context() as patch:
        patch.setattr('harness_eval.ros.scene_graph_node.snapshot_to_message', broken)
        assert cell.query().graph_id == ''
    evaluator.release(1).publish([2])
    cell.at('g', 2)
    cell.says(exceptions=1)


def test_queries_and_updates_share_a_multi_threaded_executor(ros: RosWorld) -> None:
    evaluator = Evaluator(ros).serve().release(700)
    cell = Cell(ros, threads=4)
    evaluator.release(300).publish(range(701, 1001))
    revisions = [cell.query('thing').revision for _ in range(100)]
    assert revisions == sorted(revisions)
    assert_only_change(cell.at('g', 1000), 1000)
    cell.says(exceptions=0, revision=1000)


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_process_cleanly(
    ros: RosWorld, subprocess_node: Start, number: signal.Signals
) -> None:
    Evaluator(ros).serve().release(1)
    listener = ros.node('listener', spin=True)
    snapshots = ros.collect(listener, SceneGraphMessage, 'scene_graph/snapshot', latched(1))
    child = subprocess_node('harness_eval.ros.scene_graph_node')
    ros.wait(lambda: any(s.revision == 1 for s in snapshots), what='the graph of the process')
    child.process.send_signal(number)
    assert child.wait_for_end() == 0, child.log()
    assert 'Traceback' not in child.log()


@pytest.mark.parametrize(
    ('name', 'value', 'problem'),
    [
        ('initial_graph', 'no/such/cell.yaml', 'initial_graph: cell.yaml cannot be read'),
        ('initial_graph', 5, 'initial_graph'),
        ('reply_timeout', -2, 'reply_timeout: expected seconds, 0 or more, found -2'),
    ],
)
def test_a_bad_parameter_ends_the_process_with_code_2_and_one_line(
    subprocess_node: Start, name: str, value: object, problem: str
) -> None:
    child = subprocess_node('harness_eval.ros.scene_graph_node', parameters={name: value})
    assert child.wait_for_end() == 2, child.log()
    assert problem in child.log()
    assert 'Traceback' not in child.log()
