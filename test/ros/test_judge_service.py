"""A judge behind a ROS 2 service, in a process of its own: asked, absent, late, killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
import json
import math
import os
from pathlib import Path
from queue import Queue
import threading
from typing import Any

import cv2
from evaluation_world import EvaluationWorld
from fake_cell import cell_yaml
from judged_world import make_request, make_state, make_view, noise, plain
import numpy as np
import pytest
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from shell import in_a_process

from harness_eval.calls import JudgeCalls
from harness_eval.config.evaluators import ServiceSettings
from harness_eval.contract import Abstention, EvaluationRequest, EvaluatorError, Status, Verdict
from harness_eval.evaluators import build_evaluator, EvaluatorContext, service
from harness_eval.evaluators.running import judge_here, Stop
from harness_eval.judging import Thresholds
from harness_eval.ros import judge_service
from harness_eval.ros.judge_service import JudgeServices
from harness_eval_msgs.srv import Judge

SUPPORT = Path(__file__).parents[1] / 'support'
Start = Callable[..., Any]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give discovery the time that it takes on a busy machine."""
    monkeypatch.setattr(judge_service, 'PATIENCE', 30.0)


@pytest.fixture
def node(ros: Any) -> Node:
    made: Node = ros.node('asker', spin=True)
    return made


@pytest.fixture
def services(node: Node) -> Any:
    made = JudgeServices(node, ReentrantCallbackGroup())
    yield made
    made.close()


def judge_of(services: Any, timeout: float = 40.0) -> tuple[Any, ServiceSettings]:
    settings = ServiceSettings(kind='service', service='judge', timeout=timeout)
    context = EvaluatorContext(ros_service=services)
    return build_evaluator('remote', settings, context), settings


def ask(services: Any, request: EvaluationRequest | None = None, timeout: float = 40.0) -> Verdict:
    judge, _ = judge_of(services, timeout)
    asked = request or make_request()
    return judge_here(judge, asked, Thresholds(), clamp=False, stop=Stop())


def fault(services: Any, timeout: float = 40.0) -> EvaluatorError:
    with pytest.raises(EvaluatorError) as caught:
        ask(services, timeout=timeout)
    assert caught.value.evaluator == 'service:judge'
    assert caught.value.retryable
    return caught.value


def odd_judge(start: Start, answer: dict[str, Any], delay: float = 0.0) -> Any:
    """A server in a process of its own that answers so."""
    paths = os.pathsep.join([str(SUPPORT), os.environ.get('PYTHONPATH', '')])
    child = start(
        'odd_judge',
        parameters={'answer': json.dumps(answer), 'delay': delay},
        env={'PYTHONPATH': paths},
    )
    child.wait_for_log('ready')
    return child


def offer(ros: Any, answer: Callable[[Any, Any], Any], name: str = 'judge') -> Node:
    """A server in this process, on an executor of its own."""
    server: Node = ros.node('server')
    server.create_service(Judge, name, answer)
    ros.spin(server)
    return server


# --- what is sent -----------------------------------------------------------------------------


def test_the_service_is_given_all_that_an_evaluator_is_given_and_nothing_else(
    ros: Any, services: Any
) -> None:
    heard: list[Any] = []

    def answer(request: Any, response: Any) -> Any:
        heard.append(request)
        response.status, response.score, response.cost = response.SUCCESS, math.nan, math.nan
        response.evidence = ['seen']
        return response

    offer(ros, answer)
    depth = np.array([[1.0, np.nan]], np.float32)
    verdict = ask(
        services,
        make_request(
            make_view('front', noise(1)),
            make_view('depth', depth),
            make_state('gripper', 0.03),
            make_state('scan', (1.0, math.inf)),
            checks=({'state': {'name': 'gripper', 'between': [0.0, 0.06]}},),
            references={'goal': noise(2)},
            failure_kinds=('dropped',),
            process_allowed=True,
        ),
    )
    assert verdict == Verdict(Status.SUCCESS, ('seen',))
    (request,) = heard
    assert request.post_condition == 'The part is in its place.'
    assert json.loads(request.checks_json)[0]['state']['name'] == 'gripper'
    assert request.failure_kinds == ['dropped']
    assert request.process_allowed
    front, depth_view = request.views
    assert (front.name, front.age, front.image.header.frame_id) == ('front', 0.4, 'camera')
    assert front.image.header.stamp.sec == 1000
    assert front.image.header.stamp.nanosec == 400_000_000
    assert front.image.format == 'bgr8; png compressed bgr8'
    assert np.array_equal(pixels(front.image), noise(1))
    assert depth_view.image.format == '16UC1; png compressed 16UC1'
    assert pixels(depth_view.image).tolist() == [[1000, 0]]
    assert [(s.name, list(s.values)) for s in request.states] == [
        ('gripper', [0.03]),
        ('scan', [1.0, math.inf]),
    ]
    (goal,) = request.references
    assert goal.name == 'goal'
    assert math.isnan(goal.age)
    assert np.array_equal(pixels(goal.image), noise(2))
    assert len(request.input_digest) == 64


def test_the_digest_is_the_same_for_the_same_question_alone() -> None:
    def digest(*parts: Any, **more: Any) -> str:
        return service.question_of(make_request(*parts, **more)).digest

    view, state = make_view('front', noise(1)), make_state('gripper', 0.03)
    assert digest(view, state) == digest(make_view('front', noise(1)), state)
    others = {
        digest(view, state),
        digest(make_view('front', noise(2)), state),
        digest(view, make_state('gripper', 0.04)),
        digest(view, state, references={'goal': noise(1)}),
        digest(view, state, references={'aim': noise(1)}),
        digest(view, state, process_allowed=True),
        digest(view, state, failure_kinds=('dropped',)),
    }
    assert len(others) == 7


def pixels(image: Any) -> Any:
    return cv2.imdecode(np.frombuffer(image.data, np.uint8), cv2.IMREAD_UNCHANGED)


def test_the_statuses_are_those_of_the_interface() -> None:
    names = ('UNSET', 'PROCESS', 'SUCCESS', 'FAILURE', 'ABSTAIN')
    assert {n: getattr(service, n) for n in names} == {
        n: getattr(Judge.Response, n) for n in names
    }


# --- what is answered -------------------------------------------------------------------------


def test_the_example_judges_in_a_process_of_its_own(services: Any, subprocess_node: Start) -> None:
    subprocess_node(
        'examples.judge_server', parameters={'view': 'front', 'state': 'gripper'}
    ).wait_for_log('ready')
    bright, dark = make_view('front', plain((90, 90, 90))), make_view('front', plain((0, 0, 0)))
    held, empty = make_state('gripper', 0.03), make_state('gripper', 0.001)
    verdict = ask(services, make_request(bright, held))
    assert verdict.status is Status.SUCCESS
    assert verdict.evidence == (
        'front has a mean brightness of 90.0',
        'gripper is 0.0300 m',
    )
    verdict = ask(services, make_request(bright, empty))
    assert (verdict.status, verdict.failure_reason) == (
        Status.FAILURE,
        'the fingers touch: 0.0010 m',
    )
    with pytest.raises(Abstention) as caught:
        ask(services, make_request(dark, held))
    assert caught.value.kind == 'judge_abstained'
    with pytest.raises(EvaluatorError) as error:
        ask(services, make_request(bright))
    assert error.value.kind == 'service_error'
    assert "I need the view 'front'" in error.value.message


def test_the_text_of_a_service_that_could_not_judge_is_the_error(
    services: Any, subprocess_node: Start
) -> None:
    odd_judge(subprocess_node, {'status': 2, 'score': 1.0, 'error': 'no GPU\x1b[2J today'})
    error = fault(services)
    assert (error.kind, error.message) == ('service_error', 'no GPU[2J today')


def test_a_response_that_nobody_filled_in_is_not_a_failure(ros: Any, services: Any) -> None:
    offer(ros, lambda request, response: response)
    with pytest.raises(EvaluatorError) as caught:
        ask(services)
    assert (caught.value.kind, caught.value.retryable) == ('malformed_answer', False)


# --- faults -----------------------------------------------------------------------------------


def test_a_service_that_nobody_offers_is_an_error(
    services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge_service, 'PATIENCE', 0.3)
    error = fault(services)
    assert error.kind == 'service_absent'
    assert '/judge' in error.message


def test_a_service_that_comes_up_while_it_is_waited_for_is_asked(ros: Any, services: Any) -> None:
    judge, settings = judge_of(services)
    calls = JudgeCalls(judge, settings, Thresholds())
    answers: Queue[Any] = Queue()
    calls.call(make_request(), answers.put)

    def answer(request: Any, response: Any) -> Any:
        response.score, response.cost = 0.95, math.nan
        return response

    offer(ros, answer)
    assert answers.get(timeout=20.0).status is Status.SUCCESS


def test_two_servers_of_one_name_are_an_error_since_the_quicker_would_decide(
    ros: Any, node: Node, services: Any
) -> None:
    for _ in range(2):
        offer(ros, lambda request, response: response)
    ros.wait(lambda: node.count_services('/judge') == 2)
    assert fault(services).kind == 'service_ambiguous'


def test_a_late_answer_is_an_error_and_is_never_taken_for_the_next_one(
    services: Any, subprocess_node: Start
) -> None:
    child = odd_judge(subprocess_node, {'status': 2}, delay=1.0)
    ask(services)  # the first question waits for discovery
    assert fault(services, timeout=0.4).kind == 'service_timeout'
    assert ask(services).status is Status.SUCCESS
    assert child.log().count('asked') == 3


def test_a_service_that_is_killed_during_the_call_is_an_error(
    services: Any, subprocess_node: Start
) -> None:
    child = odd_judge(subprocess_node, {}, delay=-1.0)
    judge, settings = judge_of(services, timeout=6.0)
    calls = JudgeCalls(judge, settings, Thresholds())
    answers: Queue[Any] = Queue()
    calls.call(make_request(), answers.put)
    child.wait_for_log('asked')
    child.kill9()
    error = answers.get(timeout=10.0)
    assert isinstance(error, EvaluatorError)
    # After kill -9 it stays visible until its lease runs out, which is longer than the deadline.
    assert error.kind in ('judge_timeout', 'service_timeout', 'service_gone')
    assert error.retryable
    assert not calls.quarantined


def test_a_service_that_ends_during_the_call_is_an_error_before_the_deadline(
    ros: Any, node: Node, services: Any, subprocess_node: Start
) -> None:
    child = odd_judge(subprocess_node, {}, delay=-1.0)
    judge, settings = judge_of(services, timeout=100.0)
    calls = JudgeCalls(judge, settings, Thresholds())
    answers: Queue[Any] = Queue()
    calls.call(make_request(), answers.put)
    child.wait_for_log('asked')
    child.interrupt()  # its context is shut down, which takes the service off the graph
    error = answers.get(timeout=20.0)
    assert (error.kind, error.retryable) == ('service_gone', True)


def test_an_answer_to_a_call_that_was_given_up_wakes_nobody(
    ros: Any, node: Node, services: Any
) -> None:
    asked, go = threading.Event(), threading.Event()

    def answer(request: Any, response: Any) -> Any:
        asked.set()
        assert go.wait(10.0)
        response.score = 1.0
        return response

    offer(ros, answer)
    judge, settings = judge_of(services)
    calls = JudgeCalls(judge, settings, Thresholds())
    answers: Queue[Any] = Queue()
    handle = calls.call(make_request(), answers.put)
    assert asked.wait(10.0)
    assert handle.cancel()
    ros.wait(lambda: calls.health().running == 0, what='the end of the cancelled call')
    go.set()
    assert ask(services).status is Status.SUCCESS  # the executor is alive
    assert answers.empty()


def test_an_executor_that_does_not_spin_costs_the_call_its_deadline_and_nothing_else(
    ros: Any,
) -> None:
    offer(ros, lambda request, response: response)
    still = JudgeServices(ros.node('still'), ReentrantCallbackGroup())
    assert fault(still, timeout=3.0).kind == 'service_timeout'
    still.close()


def test_closing_ends_a_call_that_waits(ros: Any, node: Node) -> None:
    asked, go = threading.Event(), threading.Event()

    def answer(request: Any, response: Any) -> Any:
        asked.set()
        go.wait(20.0)
        return response

    offer(ros, answer)
    services = JudgeServices(node, ReentrantCallbackGroup())
    judge, settings = judge_of(services, timeout=60.0)
    answers: Queue[Any] = Queue()
    JudgeCalls(judge, settings, Thresholds()).call(make_request(), answers.put)
    assert asked.wait(10.0)
    services.close()
    assert answers.get(timeout=10.0).kind == 'service_failed'
    go.set()


def test_many_questions_at_the_same_time_get_each_its_own_answer(ros: Any, services: Any) -> None:
    def answer(request: Any, response: Any) -> Any:
        response.status, response.score = response.SUCCESS, math.nan
        response.cost, response.evidence = math.nan, [str(request.states[0].values[0])]
        return response

    offer(ros, answer)
    judge, settings = judge_of(services, timeout=20.0)
    calls = JudgeCalls(judge, settings, Thresholds())
    answers: Queue[tuple[float, Any]] = Queue()

    def call(number: float) -> None:
        request = make_request(make_state('number', number))
        calls.call(request, lambda answer: answers.put((number, answer)))

    for number in range(40):
        call(float(number))
    got = dict(answers.get(timeout=20.0) for _ in range(40))
    assert {number: verdict.evidence for number, verdict in got.items()} == {
        float(n): (str(float(n)),) for n in range(40)
    }


# --- in the node ------------------------------------------------------------------------------


def test_a_run_is_judged_by_a_service(ros: Any, tmp_path: Path, subprocess_node: Start) -> None:
    odd_judge(subprocess_node, {'status': 3, 'failure_reason': 'nothing is held'})
    yaml = cell_yaml(evaluators='remote: {kind: service, service: judge, timeout: 20.0}')
    yaml = yaml.replace('evaluator: cell_checks', 'evaluator: remote')
    world = EvaluationWorld(ros, tmp_path, yaml)
    world.end('one')
    outcome = world.outcome('one')
    assert outcome.kind == outcome.VERDICT
    assert outcome.verdict.failure_reason == 'nothing is held'
    assert outcome.evaluator == 'service:judge'


def test_still_pictures_are_judged_by_a_service_from_the_shell(
    tmp_path: Path, subprocess_node: Start
) -> None:
    odd_judge(subprocess_node, {'status': 3, 'failure_reason': 'nothing is held'})
    config, still = tmp_path / 'evaluation.yaml', tmp_path / 'a.png'
    cv2.imwrite(str(still), noise(1))
    yaml = cell_yaml(evaluators='remote: {kind: service, service: judge, timeout: 20.0}')
    config.write_text(yaml.replace('evaluator: cell_checks', 'evaluator: remote'))
    ended = in_a_process(
        *('try', config, '--tool', 'insert', '--state', 'gripper=0.03'),
        *('--image', f'front={still}', '--image', f'wrist={still}'),
    )
    assert ended.code == 1, ended.err
    assert 'nothing is held' in ended.out


def test_a_loop_of_its_own_is_all_that_asking_needs(ros: Any, services: Any) -> None:
    def answer(request: Any, response: Any) -> Any:
        response.score = 1.0
        return response

    offer(ros, answer)
    judge, _ = judge_of(services)
    verdict = asyncio.run(_awaited(judge.evaluate(make_request())))
    assert verdict.status is Status.SUCCESS


async def _awaited(answer: Any) -> Any:
    return await answer
