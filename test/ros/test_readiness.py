"""``~/readiness``: an executor knows before it moves whether the end could be judged."""

from __future__ import annotations

from pathlib import Path
import socket
import threading
from typing import Any

from evaluation_world import EvaluationWorld
from fake_cell import cell_yaml
from model_server import as_json, http, LoopbackServer
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile

from harness_eval_msgs.msg import Readiness, RunOutcome
from harness_eval_msgs.srv import Judge

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)

ONE_TOOL = """
evaluation:
  required_tools: [pick]
  evaluator: judge
  evaluators:
    judge: {kind: %s, timeout: 5.0}
  tools: {pick: {post_condition: "It is held."}}
capture:
  views: {front: {topic: cell/front/image_raw}}
  settle: 0.15
  timeout: 1.5
"""


class Readinesses:
    """What was published about the tools, newest last."""

    def __init__(self, ros: Any, world: EvaluationWorld) -> None:
        self._ros = ros
        self.heard = ros.collect(world.node, Readiness, 'harness_eval/readiness', LATCHED)

    def kinds(self, tool: str = 'pick') -> list[str] | None:
        return next(
            (list(t.kinds) for m in self.heard[-1:] for t in m.tools if t.tool == tool), None
        )

    def reasons(self, tool: str = 'pick') -> str:
        return ' '.join(r for t in self.heard[-1].tools if t.tool == tool for r in t.reasons)

    def wait_for(self, *kinds: str, tool: str = 'pick') -> None:
        self._ros.wait(
            lambda: self.kinds(tool) == list(kinds), what=f'{tool}: {kinds or "ready"}', timeout=30
        )


def test_every_tool_of_a_cell_that_is_well_is_ready_and_a_late_joiner_is_told(
    ros: Any, tmp_path: Path
) -> None:
    world = EvaluationWorld(ros, tmp_path)
    first = Readinesses(ros, world)
    ros.wait(lambda: first.heard and first.heard[-1].ready, what='all tools to be ready')
    late = Readinesses(ros, world)
    ros.wait(lambda: late.heard, what='the latched message')
    message = late.heard[0]
    assert message.ready
    assert [(tool.tool, tool.ready, tool.reasons) for tool in message.tools] == [
        ('pick', True, []),
        ('insert', True, []),
        ('plug', True, []),
    ]
    assert message.header.stamp.sec > 0


def test_nothing_is_published_while_nothing_changes(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path)
    told = Readinesses(ros, world)
    told.wait_for()
    count = len(told.heard)
    for number in range(3):
        world.end(f'run-{number}')
        world.outcome(f'run-{number}')
    assert len(told.heard) == count


def test_no_camera_is_heard_once_all_is_well(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path)
    Readinesses(ros, world).wait_for()
    ros.wait(
        lambda: not world.node.count_subscribers('/cell/front/image_raw'),
        what='the subscription to go',
    )


@pytest.mark.parametrize(
    ('fault', 'kind', 'remedy'),
    [
        ({'alive': False}, 'no_frames', 'is it sending?'),
        ({'frozen': True}, 'frozen', 'may_repeat: true'),
        ({'stamp_offset': None}, 'unstamped', 'header.stamp'),
        ({'stamp_offset': 7.0}, 'clock_skew', 'chrony'),
        ({'stamp_offset': -7.0}, 'clock_skew', 'chrony'),
    ],
)
def test_a_camera_that_is_not_well_keeps_the_tool_from_being_ready(
    ros: Any, tmp_path: Path, fault: dict[str, Any], kind: str, remedy: str
) -> None:
    world = EvaluationWorld(ros, tmp_path, cell_yaml().replace('timeout: 1.5', 'timeout: 0.6'))
    told = Readinesses(ros, world)
    told.wait_for()
    for name, value in fault.items():
        setattr(world.cell.cameras['wrist'], name, value)
    world.end('run-1')
    assert world.outcome('run-1').kind == RunOutcome.ERROR
    ros.wait(lambda: told.kinds() == [kind] and remedy in told.reasons(), what=f'{kind}: {remedy}')
    assert "view 'wrist'" in told.reasons()


def test_a_camera_that_came_back_is_heard_again_by_itself(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path)
    told = Readinesses(ros, world)
    told.wait_for()
    world.cell.cameras['wrist'].frozen = True
    world.end('run-1')
    world.outcome('run-1')
    told.wait_for('frozen')
    world.cell.cameras['wrist'].frozen = False
    told.wait_for()


def test_a_topic_without_publisher_or_of_another_type_is_told(ros: Any, tmp_path: Path) -> None:
    yaml = cell_yaml().replace('cell/wrist/image_raw', 'cell/nowhere')
    yaml = yaml.replace('cell/front/image_raw', 'tool_completions')
    world = EvaluationWorld(ros, tmp_path, yaml)
    told = Readinesses(ros, world)
    told.wait_for('wrong_type', 'no_publisher')
    assert 'found harness_eval_msgs/msg/ToolCompletion' in told.reasons()
    assert 'nobody publishes /cell/nowhere' in told.reasons()


def test_a_node_that_is_deactivated_says_so(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path)
    told = Readinesses(ros, world)
    told.wait_for()
    world.evaluator.trigger_deactivate()
    told.wait_for('inactive')
    world.evaluator.trigger_activate()
    told.wait_for()


def test_a_judge_that_is_not_there_is_told_at_the_start_and_when_it_comes(
    ros: Any, tmp_path: Path
) -> None:
    with socket.create_server(('127.0.0.1', 0)) as reserved:
        port = reserved.getsockname()[1]
    kind = f'endpoint, url: "http://127.0.0.1:{port}/judge"'
    world = EvaluationWorld(ros, tmp_path, ONE_TOOL % kind)
    told = Readinesses(ros, world)
    told.wait_for('endpoint_unreachable')
    assert "evaluator 'judge'" in told.reasons()
    with LoopbackServer(http(b'', status=405)) as server:
        # The server of a test takes the port that the system gives it; this one forwards to it.
        with forwarding(port, server.port):
            told.wait_for()
        assert server.requests[0].method == 'OPTIONS'


def test_after_three_errors_in_a_row_a_tool_is_not_ready_until_a_probe_succeeds(
    ros: Any, tmp_path: Path
) -> None:
    with LoopbackServer(http(b'', status=405)) as server:
        kind = f'endpoint, url: "{server.url}/judge"'
        world = EvaluationWorld(ros, tmp_path, ONE_TOOL % kind)
        told = Readinesses(ros, world)
        told.wait_for()
        server.answer_with(http(b'', status=503))
        for number in range(3):
            world.end(f'run-{number}')
            assert world.outcome(f'run-{number}').kind == RunOutcome.ERROR
        told.wait_for('endpoint_failed')
        server.answer_with(as_json({'reward': 1.0}))
        told.wait_for()


def test_a_service_that_comes_and_goes_is_told(ros: Any, tmp_path: Path) -> None:
    world = EvaluationWorld(ros, tmp_path, ONE_TOOL % 'service, service: judge_it')
    told = Readinesses(ros, world)
    told.wait_for('service_absent')
    judge = ros.node('judge_server', spin=True)
    service = judge.create_service(Judge, 'judge_it', lambda request, response: response)
    told.wait_for()
    judge.destroy_service(service)
    told.wait_for('service_absent')


def test_an_evaluator_in_quarantine_keeps_its_tools_from_being_ready(
    ros: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fake_judge

    let_go = threading.Event()
    monkeypatch.setattr(fake_judge, 'judge', lambda request: let_go.wait(60.0))
    yaml = cell_yaml().replace(
        '"fake_judge:judge", timeout: 1.0', '"fake_judge:judge", timeout: 0.3'
    )
    world = EvaluationWorld(ros, tmp_path, yaml)
    told = Readinesses(ros, world)
    told.wait_for(tool='plug')
    try:
        for number in range(4):
            world.end(f'run-{number}', 'plug')
            world.outcome(f'run-{number}')
        told.wait_for('quarantined', tool='plug')
        assert told.kinds('pick') == []
    finally:
        let_go.set()


def forwarding(port: int, to: int) -> Any:
    """Take connections on one port and hand their bytes to another, until the block ends."""
    import contextlib

    @contextlib.contextmanager
    def running() -> Any:
        listener = socket.create_server(('127.0.0.1', port))
        threads = []

        def pump(source: socket.socket, sink: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(65536):
                    sink.sendall(data)
                sink.shutdown(socket.SHUT_WR)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    near, _ = listener.accept()
                    far = socket.create_connection(('127.0.0.1', to))
                    for pair in ((near, far), (far, near)):
                        threads.append(threading.Thread(target=pump, args=pair, daemon=True))
                        threads[-1].start()

        acceptor = threading.Thread(target=accept, daemon=True)
        acceptor.start()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            acceptor.join(10.0)

    return running()
