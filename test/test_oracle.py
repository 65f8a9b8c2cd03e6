"""Ground truth beside the judge: what an oracle is asked, and what its answer may change."""

from __future__ import annotations

import dataclasses
import json
import logging
from pathlib import Path
from queue import Queue
import sys
import threading
from typing import Any, get_type_hints

from http_world import reply, saying, serving
from hypothesis import given
from hypothesis import strategies as st
from pipeline_world import FAILURE, PROCESS, SUCCESS, World
import pytest

from harness_eval.cases import oracle_of_case
from harness_eval.config.tool_judging import OracleSettings
from harness_eval.contract import Abstention, EvaluationRequest, EvaluatorError, Status, Verdict
from harness_eval.oracle import (
    ask_here,
    build_oracle,
    decided_by,
    OracleAnswer,
    OracleCalls,
    OracleRequest,
    PluginOracle,
)
from harness_eval.runs import Outcome, SegmentState

REQUEST = OracleRequest('run-1', 'pick', 0, {'target': 'bottle'})
CORRECT = OracleAnswer('oracle:sim', True)
WRONG = OracleAnswer('oracle:sim', False)
UNKNOWN = OracleAnswer('oracle:sim')
BROKEN = OracleAnswer('oracle:sim', error='evaluator_raised: no connection')
OUTAGE = EvaluatorError('judge_timeout', 'no answer', evaluator='model:x', retryable=True)


def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str) -> PluginOracle:
    """An oracle of these lines."""
    name = f'truth_{tmp_path.name.replace("-", "_")}'
    monkeypatch.setattr(sys, 'dont_write_bytecode', True)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / f'{name}.py').write_text(source)
    made = build_oracle(OracleSettings(kind='plugin', ref=f'{name}:answer'))
    assert isinstance(made, PluginOracle)
    return made


# --- asking -----------------------------------------------------------------------------------


def test_a_plugin_is_asked_with_run_tool_and_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    oracle = plugin(
        tmp_path,
        monkeypatch,
        'def answer(request):\n'
        '    return (request.run_id, request.tool, request.segment, dict(request.arguments)) == '
        "('run-1', 'pick', 0, {'target': 'bottle'})\n",
    )
    assert ask_here(oracle, REQUEST, 5.0) == OracleAnswer(oracle.ref, True)
    assert oracle.ref.startswith('oracle:plugin:truth_')


@pytest.mark.parametrize(
    ('body', 'expected'),
    [
        ('return True', True),
        ('return False', False),
        ('return None', None),
        ('import numpy; return numpy.bool_(True)', True),
    ],
)
@pytest.mark.parametrize('kind', ['def', 'async def'])
def test_it_may_be_sync_or_async_and_may_not_know(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    body: str,
    expected: bool | None,
) -> None:
    oracle = plugin(tmp_path, monkeypatch, f'{kind} answer(request):\n    {body}\n')
    assert ask_here(oracle, REQUEST, 5.0) == OracleAnswer(oracle.ref, expected)


@pytest.mark.parametrize(
    ('body', 'error'),
    [
        ('return 1', 'malformed_answer: '),
        ('return 1.0', 'malformed_answer: '),
        ('return "true"', 'malformed_answer: '),
        ('return [True]', 'malformed_answer: '),
        ('raise ValueError("no database")', 'evaluator_raised: ValueError: no database'),
        ('raise SystemExit(3)', 'evaluator_raised: SystemExit: 3'),
        ('import socket; raise socket.timeout("db")', 'evaluator_raised: TimeoutError: db'),
    ],
)
def test_whatever_else_it_does_is_an_error_and_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, error: str
) -> None:
    oracle = plugin(tmp_path, monkeypatch, f'def answer(request):\n    {body}\n')
    answer = ask_here(oracle, REQUEST, 5.0)
    assert answer.outcome_correct is None
    assert answer.error.startswith(error)


def test_an_asynchronous_one_is_cancelled_at_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = 'import asyncio\nasync def answer(request):\n    await asyncio.sleep(60)\n'
    answer = ask_here(plugin(tmp_path, monkeypatch, source), REQUEST, 0.1)
    assert answer.error == 'oracle_timeout: no answer within 0.1 s'


def test_a_plugin_that_cannot_be_imported_is_an_error() -> None:
    oracle = build_oracle(OracleSettings(kind='plugin', ref='nowhere:nothing'))
    assert ask_here(oracle, REQUEST, 5.0).error.startswith('plugin_import: ')


@pytest.mark.parametrize('value', [True, False, None])
def test_an_endpoint_is_posted_the_request(
    value: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('TRUTH_TOKEN', 'a-long-token')
    with serving(saying(reply(json.dumps({'outcome_correct': value, 'info': 1})))) as world:
        settings = OracleSettings(kind='endpoint', ref=world.url, token_env='TRUTH_TOKEN')
        oracle = build_oracle(settings)
        assert ask_here(oracle, REQUEST, 5.0) == OracleAnswer(oracle.ref, value)
    assert oracle.ref == f'oracle:endpoint:{world.url}'
    (sent,) = world.requests
    assert sent.json == {
        'run_id': 'run-1', 'tool': 'pick', 'segment': 0, 'arguments': {'target': 'bottle'}
    }  # fmt: skip
    assert sent.headers['authorization'] == 'Bearer a-long-token'


@pytest.mark.parametrize(
    'body',
    ['true', '{}', '{"outcome_correct": 1}', '{"outcome_correct": "true"}',
     '{"outcome_correct": true, "error": "x"}', '<html>', '{"outcome_correct": true'],
)  # fmt: skip
def test_an_endpoint_that_answers_anything_else_has_no_answer(body: str) -> None:
    with serving(saying(reply(body))) as world:
        oracle = build_oracle(OracleSettings(kind='endpoint', ref=world.url))
        answer = ask_here(oracle, REQUEST, 5.0)
    assert answer.outcome_correct is None
    assert answer.error.startswith('malformed_answer: ')


class Gate:
    """An oracle that hangs until the test lets it go."""

    ref = 'oracle:gate'

    def __init__(self) -> None:
        self.open = threading.Event()
        self.asked = threading.Semaphore(0)

    def answer(self, request: OracleRequest) -> bool:
        self.asked.release()
        assert self.open.wait(20.0)
        return True


def test_asking_never_waits_and_the_answer_comes_on_another_thread() -> None:
    gate, answers = Gate(), Queue[Any]()
    calls = OracleCalls(gate, 5.0)
    calls.ask(REQUEST, lambda answer: answers.put((answer, threading.current_thread())))
    assert gate.asked.acquire(timeout=5.0)
    assert answers.empty()
    gate.open.set()
    answer, thread = answers.get(timeout=5.0)
    assert answer == OracleAnswer('oracle:gate', True)
    assert thread is not threading.current_thread()


def test_an_oracle_that_hangs_is_not_asked_until_it_comes_back() -> None:
    gate, answers = Gate(), Queue[OracleAnswer]()
    now = [100.0]
    calls = OracleCalls(gate, 5.0, clock=lambda: now[0])
    for _ in range(4):
        calls.ask(REQUEST, answers.put)
        assert gate.asked.acquire(timeout=5.0)
    now[0] += 5.1
    calls.ask(REQUEST, answers.put)
    assert answers.get(timeout=5.0).error.startswith('oracle_hangs: 4')
    gate.open.set()
    assert [answers.get(timeout=5.0).outcome_correct for _ in range(4)] == [True] * 4
    calls.ask(REQUEST, answers.put)
    assert answers.get(timeout=5.0).outcome_correct is True


def test_what_an_oracle_is_told_fits_nowhere_in_what_a_judge_is_given() -> None:
    told = {field.name for field in dataclasses.fields(OracleRequest)}
    assert told == {'run_id', 'tool', 'segment', 'arguments'}
    assert not issubclass(OracleRequest, EvaluationRequest)
    assert OracleRequest not in get_type_hints(EvaluationRequest).values()


# --- deciding ---------------------------------------------------------------------------------


def test_its_answer_is_the_verdict_and_the_judges_is_kept_beside_it() -> None:
    judged = Verdict(Status.SUCCESS, ('held',), score=0.97, report={'count': 1}, cost=0.2)
    verdict = decided_by(WRONG, judged)
    assert isinstance(verdict, Verdict)
    assert verdict == Verdict(
        Status.FAILURE,
        (
            'oracle:sim says that the outcome is not correct',
            'the judge says success, score 0.97',
            'judge: held',
        ),
        'oracle:sim says that the outcome is not correct',
        'post_condition',
        None,
        {'count': 1},
        'oracle:sim',
        0.2,
    )
    verdict = decided_by(CORRECT, dataclasses.replace(FAILURE, report={'count': 0}))
    assert isinstance(verdict, Verdict)
    assert verdict.status is Status.SUCCESS
    assert verdict.report is None  # it may be one that no success may have
    assert 'the judge says failure: not there' in verdict.evidence


def test_it_decides_where_the_judge_came_to_no_verdict() -> None:
    verdict = decided_by(CORRECT, OUTAGE)
    assert isinstance(verdict, Verdict)
    assert verdict.status is Status.SUCCESS
    assert 'the judge came to no verdict: judge_timeout [model:x]: no answer' in verdict.evidence


@pytest.mark.parametrize('answer', [UNKNOWN, BROKEN])
def test_without_an_answer_the_judges_stands(answer: OracleAnswer) -> None:
    assert decided_by(answer, OUTAGE) is OUTAGE
    verdict = decided_by(answer, FAILURE)
    assert isinstance(verdict, Verdict)
    assert dataclasses.replace(verdict, evidence=FAILURE.evidence) == FAILURE
    assert verdict.evidence[0].startswith('oracle:sim would decide, but ')
    assert verdict.evidence[1:] == FAILURE.evidence


@given(
    st.builds(
        OracleAnswer,
        st.text(max_size=20),
        st.none() | st.booleans(),
        st.text(max_size=20),
    )
)
def test_an_answer_survives_the_case_file(answer: OracleAnswer) -> None:
    assert OracleAnswer.from_plain(json.loads(json.dumps(answer.to_plain()))) == answer


@pytest.mark.parametrize('plain', [None, [], 'x', {}, {'outcome_correct': 'true'}])
def test_what_holds_no_answer_is_read_as_none(plain: Any) -> None:
    read = OracleAnswer.from_plain(plain)
    assert read is None or read.outcome_correct is None


# --- in the pipeline --------------------------------------------------------------------------


class FakeOracle:
    """Stands in for ``OracleCalls``; the test answers."""

    ref = 'oracle:sim'

    def __init__(self, decides: bool = False, timeout: float = 5.0) -> None:
        self.decides = decides
        self.timeout = timeout
        self.asked: list[OracleRequest] = []
        self.waiting: list[Any] = []
        self.fault: Exception | None = None

    def ask(self, request: OracleRequest, on_answer: Any) -> None:
        if self.fault is not None:
            raise self.fault
        self.asked.append(request)
        self.waiting.append(on_answer)

    def answers(self, answer: OracleAnswer) -> None:
        self.waiting.pop(0)(answer)


class OracleWorld(World):
    """A pipeline with an oracle for ``pick`` and ``insert``."""

    def __init__(self, folder: Path, *, decides: bool, **options: Any) -> None:
        self.oracle = FakeOracle(decides)
        super().__init__(folder, **options)

    def oracles(self) -> dict[str, Any]:
        return {'pick': self.oracle, 'insert': self.oracle}

    def captured(self, run_id: str = 'run-1', tool: str = 'pick') -> None:
        """A run has ended and its frames are found."""
        self.end(run_id, tool)
        self.see()
        self.drain()

    def truth(self, run_id: str = 'run-1') -> OracleAnswer | None:
        """What is recorded with the case of a run."""
        run = self.on_record(run_id)
        assert run is not None
        return oracle_of_case(self.evidence, run.segments[-1].evidence)

    def says(self, answer: OracleAnswer) -> None:
        self.oracle.answers(answer)
        self.drain()


@pytest.fixture
def world(tmp_path: Path) -> Any:
    made = OracleWorld(tmp_path, decides=False)
    yield made
    made.close()


@pytest.fixture
def deciding(tmp_path: Path) -> Any:
    made = OracleWorld(tmp_path, decides=True)
    yield made
    made.close()


def test_it_is_asked_when_the_frames_are_found_and_not_before(world: OracleWorld) -> None:
    world.end('run-1', target='bottle', color='red')
    world.wait(0.31)
    assert world.oracle.asked == []
    world.show()
    world.wait(0.03)
    world.show()
    (request,) = world.oracle.asked
    assert request == OracleRequest('run-1', 'pick', 0, {'target': 'bottle', 'color': 'red'})
    world.drain()
    (call,) = world.judge.calls
    assert 'run-1' not in repr(call.request.post_condition)
    assert not any(isinstance(value, OracleAnswer) for value in vars(call.request).values())


def test_a_tool_without_an_oracle_asks_none(world: OracleWorld) -> None:
    world.run('run-1', tool='bare')
    assert world.oracle.asked == []


def test_a_verdict_does_not_wait_for_it_and_its_answer_is_recorded_with_the_case(
    world: OracleWorld,
) -> None:
    world.captured()
    world.judged(SUCCESS)
    assert world.labels() == [('run-1', 'success')]
    assert world.truth() is None
    world.says(WRONG)
    assert world.truth() == WRONG
    run = world.on_record('run-1')
    assert run is not None
    assert run.state is SegmentState.SUCCESS
    case = world.cases.read(run.segments[0].evidence)
    assert case.oracle == WRONG
    assert case.outcome is not None
    assert case.outcome.verdict == SUCCESS
    assert world.pipeline.counts['oracle answers'] == 1


def test_an_answer_that_comes_first_is_recorded_too(world: OracleWorld) -> None:
    world.end('run-1')
    world.see()
    world.oracle.answers(UNKNOWN)  # before the evidence is stored
    world.drain()
    assert world.truth() == UNKNOWN
    world.judged(FAILURE)
    assert world.truth() == UNKNOWN
    assert world.outcomes[-1].verdict == FAILURE


@pytest.mark.parametrize('answer', [CORRECT, WRONG, UNKNOWN, BROKEN])
def test_an_oracle_that_does_not_decide_changes_nothing_else(
    world: OracleWorld, answer: OracleAnswer
) -> None:
    world.captured()
    world.says(answer)
    world.judged(FAILURE)
    (outcome,) = world.outcomes
    assert outcome.verdict == FAILURE
    assert outcome.evaluator == 'judge of the test'


def test_its_failure_is_logged_counted_and_recorded(
    world: OracleWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.captured()
    world.says(BROKEN)
    world.judged(SUCCESS)
    assert world.truth() == BROKEN
    assert world.pipeline.counts['oracle faults'] == 1
    assert 'no connection' in caplog.text
    assert world.outcomes[-1].verdict == SUCCESS


def test_an_oracle_that_cannot_even_be_asked_changes_nothing(
    world: OracleWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.oracle.fault = RuntimeError('boom')
    with caplog.at_level(logging.CRITICAL):
        assert world.run('run-1').verdict == SUCCESS
    truth = world.truth()
    assert truth is not None
    assert truth.error == 'internal_error: RuntimeError'


def test_one_that_hangs_is_given_up_in_time_and_its_late_answer_is_dropped(
    world: OracleWorld,
) -> None:
    world.captured()
    world.judged(SUCCESS)
    due = world.pipeline.wakeup()
    assert due == pytest.approx(world.steady + 5.0, abs=1.0)
    world.wait(5.1)
    world.drain()
    truth = world.truth()
    assert truth is not None
    assert truth.error.startswith('oracle_timeout')
    world.says(WRONG)
    assert world.truth() == truth
    assert world.pipeline.counts['oracle faults'] == 1


def test_where_evidence_is_not_kept_nothing_is_recorded(tmp_path: Path) -> None:
    world = OracleWorld(tmp_path, decides=False, evidence='{keep: none}')
    world.captured()
    world.judged(SUCCESS)
    world.says(WRONG)
    assert list(world.evidence.iterdir()) == []
    world.close()


@pytest.mark.parametrize('oracle_first', [True, False])
def test_one_that_decides_is_waited_for(deciding: OracleWorld, oracle_first: bool) -> None:
    deciding.captured()
    if oracle_first:
        deciding.says(WRONG)
        assert deciding.outcomes == []
        deciding.judged(SUCCESS)
    else:
        deciding.judged(SUCCESS)
        assert deciding.outcomes == []
        deciding.says(WRONG)
    (outcome,) = deciding.outcomes
    assert outcome.verdict is not None
    assert outcome.verdict.status is Status.FAILURE
    assert 'the judge says success' in outcome.verdict.evidence
    assert (outcome.evaluator, outcome.verdict.route) == ('oracle:sim', 'oracle:sim')
    assert deciding.truth() == WRONG
    assert deciding.passed() == []


def test_its_success_releases_what_success_brings(deciding: OracleWorld) -> None:
    deciding.captured()
    deciding.says(CORRECT)
    deciding.judged(FAILURE)
    assert deciding.state('run-1') is SegmentState.SUCCESS
    assert len(deciding.passed()) == 1


@pytest.mark.parametrize('judged', [OUTAGE, Abstention('unsure', 'score 0.7')])
def test_it_decides_where_the_judge_has_no_verdict(deciding: OracleWorld, judged: Any) -> None:
    deciding.captured()
    deciding.judged(judged)
    deciding.says(CORRECT)
    assert deciding.state('run-1') is SegmentState.SUCCESS


@pytest.mark.parametrize('answer', [UNKNOWN, BROKEN])
def test_without_its_answer_the_judges_is_the_outcome(
    deciding: OracleWorld, answer: OracleAnswer
) -> None:
    deciding.captured()
    deciding.judged(FAILURE)
    deciding.says(answer)
    (outcome,) = deciding.outcomes
    assert outcome.verdict is not None
    assert outcome.verdict.failure_reason == 'not there'
    assert outcome.evaluator == 'judge of the test'


def test_it_is_waited_for_no_longer_than_its_own_deadline(deciding: OracleWorld) -> None:
    deciding.captured()
    deciding.judged(SUCCESS)
    deciding.wait(4.0)
    deciding.drain()
    assert deciding.outcomes == []
    deciding.wait(1.5)
    deciding.drain()
    (outcome,) = deciding.outcomes
    assert outcome.verdict is not None
    assert outcome.verdict.status is Status.SUCCESS
    assert any('oracle_timeout' in line for line in outcome.verdict.evidence)
    deciding.says(WRONG)
    assert deciding.outcomes == [outcome]


def test_an_interruption_does_not_wait_for_it(deciding: OracleWorld) -> None:
    deciding.captured()
    deciding.judged(SUCCESS)
    assert deciding.pipeline.interrupt('run-1', 'operator') == (True, 'interrupted')
    deciding.says(CORRECT)
    assert deciding.labels() == [('run-1', 'interrupted')]
    assert deciding.passed() == []


def test_it_decides_nothing_where_nothing_could_be_seen(deciding: OracleWorld) -> None:
    deciding.end('run-1')
    deciding.wait(4.0)  # no frame ever came
    deciding.drain()
    assert deciding.oracle.asked == []
    assert deciding.outcomes[-1].verdict is None


def test_process_of_a_tool_in_segments_stands_while_it_does_not_know(
    deciding: OracleWorld,
) -> None:
    deciding.captured('run-1', 'insert')
    deciding.judged(PROCESS)
    deciding.says(UNKNOWN)
    assert deciding.state('run-1') is SegmentState.PROCESS


def test_after_a_restart_its_recorded_answer_counts_and_it_is_not_asked_again(
    deciding: OracleWorld,
) -> None:
    deciding.captured()
    deciding.says(WRONG)
    deciding.crash()
    deciding.drain()
    assert len(deciding.oracle.asked) == 1
    deciding.judged(SUCCESS)
    assert deciding.state('run-1') is SegmentState.FAILURE


def test_after_a_restart_before_its_answer_the_judges_stands(deciding: OracleWorld) -> None:
    deciding.captured()
    deciding.crash()
    deciding.drain()
    deciding.judged(SUCCESS)
    assert (len(deciding.oracle.asked), deciding.state('run-1')) == (1, SegmentState.SUCCESS)


def test_a_run_that_is_judged_again_gets_the_recorded_answer(world: OracleWorld) -> None:
    world.captured()
    world.judged(OUTAGE)
    world.says(CORRECT)
    world.oracle.decides = True
    assert world.pipeline.judge_again('run-1', 0) == (2, '')
    world.drain()
    world.judged(FAILURE)
    outcome: Outcome = world.outcomes[-1]
    assert outcome.verdict is not None
    assert (outcome.attempt, outcome.verdict.status) == (2, Status.SUCCESS)
    assert world.truth() == CORRECT
