"""``isolation: process``: a judge in a child process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import os
from pathlib import Path
from queue import Queue
import signal
import subprocess
import sys
import threading
from typing import Any

from isolated_judges import Unpicklable
from judged_world import make_request, make_view, noise, plain
import pytest

from harness_eval.calls import JudgeCalls, Outcome
from harness_eval.config.evaluators import ChecksSettings, PluginSettings
from harness_eval.contract import (
    Abstention,
    DecodeError,
    EvaluationRequest,
    EvaluatorError,
    Status,
    Verdict,
)
from harness_eval.evaluators import build_evaluator
from harness_eval.judging import Thresholds

PATIENCE = 60.0
"""Seconds to wait for a new interpreter on a busy machine."""

Start = Callable[..., JudgeCalls]


@pytest.fixture
def isolated() -> Iterator[Start]:
    """Call a judge of ``isolated_judges`` in a process."""
    made: list[JudgeCalls] = []

    def start(name: str, *, timeout: float = PATIENCE, **options: Any) -> JudgeCalls:
        settings = PluginSettings(
            kind='plugin', ref=f'isolated_judges:{name}', options=options, timeout=timeout,
            isolation='process',
        )  # fmt: skip
        calls = JudgeCalls(build_evaluator('grader', settings), settings, Thresholds())
        made.append(calls)
        return calls

    yield start
    for calls in made:
        calls.close()


def answer(calls: JudgeCalls, request: EvaluationRequest | None = None) -> Outcome:
    done: Queue[Outcome] = Queue()
    calls.call(request or make_request(), done.put)
    return done.get(timeout=2 * PATIENCE)


def fault(calls: JudgeCalls, request: EvaluationRequest | None = None) -> EvaluatorError:
    outcome = answer(calls, request)
    assert isinstance(outcome, EvaluatorError)
    return outcome


def alive(pid: int) -> bool:
    """Whether a process runs (one that ended and was not waited for does not)."""
    try:
        state = Path(f'/proc/{pid}/stat').read_text(encoding='utf-8').rpartition(')')[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in 'ZX'


def wait_until_gone(pid: int) -> None:
    limit = threading.Event()
    timer = threading.Timer(PATIENCE, limit.set)
    timer.start()
    try:
        while alive(pid):
            assert not limit.wait(0.01), f'process {pid} still runs'
    finally:
        timer.cancel()


def test_a_picture_is_judged_in_another_process(isolated: Start) -> None:
    outcome = answer(isolated('brightness'), make_request(make_view('front', plain(51))))
    assert isinstance(outcome, Verdict)
    assert (outcome.status, outcome.score) == (Status.FAILURE, 0.2)


def test_a_large_picture_travels_whole(isolated: Start) -> None:
    picture = noise(1, 1920, 1080)
    outcome = answer(isolated('brightness'), make_request(make_view('front', picture)))
    assert isinstance(outcome, Abstention)
    assert f'{picture.mean() / 255:.4g}' in outcome.message


def test_the_process_is_kept_so_that_a_model_is_loaded_once(isolated: Start) -> None:
    calls = isolated('count')
    reports = []
    for _ in range(2):
        outcome = answer(calls)
        assert isinstance(outcome, Verdict)
        reports.append(outcome.report)
    first, second = reports
    assert first is not None
    assert second is not None
    assert second == {'pid': first['pid'], 'calls': 2}
    assert first['pid'] != os.getpid()


def test_close_ends_the_idle_process(isolated: Start) -> None:
    calls = isolated('count')
    outcome = answer(calls)
    assert isinstance(outcome, Verdict)
    assert outcome.report is not None
    calls.close()
    wait_until_gone(outcome.report['pid'])


ORPHAN = """
import os, queue, signal, sys
from judged_world import make_request
from harness_eval.calls import JudgeCalls
from harness_eval.config.evaluators import PluginSettings
from harness_eval.evaluators import build_evaluator
from harness_eval.judging import Thresholds

settings = PluginSettings(kind='plugin', ref='isolated_judges:count', isolation='process')
calls = JudgeCalls(build_evaluator('grader', settings), settings, Thresholds())
done = queue.Queue()
calls.call(make_request(), done.put)
print(done.get().report['pid'], flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_process_does_not_outlive_a_parent_that_is_killed() -> None:
    parent = subprocess.run(
        [sys.executable, '-c', ORPHAN],
        env={**os.environ, 'PYTHONPATH': os.pathsep.join(sys.path)},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert parent.returncode == -signal.SIGKILL, parent.stderr
    wait_until_gone(int(parent.stdout))


def test_a_process_that_exits_is_an_error_with_its_code(isolated: Start) -> None:
    error = fault(isolated('exits'))
    assert (error.kind, error.evaluator) == ('evaluator_crashed', 'plugin:isolated_judges:exits')
    assert error.message == 'its process ended with exit code 3 before it answered'


def test_a_process_that_crashes_is_an_error_with_its_signal_and_the_next_call_has_a_new_one(
    isolated: Start,
) -> None:
    calls = isolated('segfaults')
    for _ in range(2):
        error = fault(calls)
        assert error.kind == 'evaluator_crashed'
        assert 'signal 11 (SIGSEGV)' in error.message


def test_a_process_that_hangs_is_killed_at_the_deadline_with_all_it_started(
    isolated: Start, tmp_path: Path
) -> None:
    pid_file = tmp_path / 'pid'
    calls = isolated('hangs', timeout=5.0, pid_file=str(pid_file))
    assert fault(calls).kind == 'judge_timeout'
    for pid in pid_file.read_text(encoding='utf-8').split():
        wait_until_gone(int(pid))
    assert not calls.quarantined


@pytest.mark.parametrize('escape', [False, True])
def test_a_process_that_left_another_behind_is_an_error_at_once(
    isolated: Start, tmp_path: Path, escape: bool
) -> None:
    pid_file = tmp_path / 'pid'
    error = fault(isolated('leaves', pid_file=str(pid_file), escape=escape))
    assert error.kind == 'evaluator_crashed'
    assert 'with exit code 4' in error.message
    left = int(pid_file.read_text(encoding='utf-8'))
    if escape:  # out of the group that is killed
        os.kill(left, signal.SIGKILL)
    wait_until_gone(left)


def test_of_a_judge_that_forks_and_comes_back_twice_one_answer_counts(isolated: Start) -> None:
    calls = isolated('forks')
    for number in range(1, 4):
        outcome = answer(calls)
        assert isinstance(outcome, Verdict)
        assert outcome.evidence == (f'call {number}',)


def test_cancelling_kills_the_process(isolated: Start, tmp_path: Path) -> None:
    pid_file = tmp_path / 'pid'
    calls = isolated('hangs', pid_file=str(pid_file))
    handle = calls.call(make_request(), lambda outcome: None)
    limit = threading.Event()
    while not (pid_file.exists() and len(pid_file.read_text(encoding='utf-8').split()) == 2):
        assert not limit.wait(0.01)
    assert handle.cancel()
    for pid in pid_file.read_text(encoding='utf-8').split():
        wait_until_gone(int(pid))


def test_what_a_judge_prints_does_not_mix_with_our_output(
    isolated: Start, capfd: pytest.CaptureFixture[str]
) -> None:
    assert isinstance(answer(isolated('prints')), Verdict)
    assert capfd.readouterr().out == ''


def test_what_it_raises_is_the_same_error_as_on_a_thread(isolated: Start) -> None:
    error = fault(isolated('raises'))
    assert (error.kind, error.message) == (
        'evaluator_raised', 'RuntimeError: the model fell over',
    )  # fmt: skip


def test_an_abstention_comes_back_as_one(isolated: Start) -> None:
    outcome = answer(isolated('abstains'))
    assert isinstance(outcome, Abstention)
    assert (outcome.kind, outcome.message) == ('too_dark', 'nothing can be seen')
    assert outcome.score == 0.6


def test_an_asynchronous_judge_is_awaited_there(isolated: Start) -> None:
    outcome = answer(isolated('awaits'))
    assert isinstance(outcome, Verdict)
    assert outcome.score == 0.2


def test_a_picture_that_cannot_be_decoded_is_an_error_only_if_it_is_asked_for(
    isolated: Start,
) -> None:
    broken = make_view('front', DecodeError('truncated_image', 'half a JPEG'))
    outcome = answer(isolated('brightness'), make_request(broken))
    assert isinstance(outcome, DecodeError)
    assert (outcome.kind, outcome.message) == ('truncated_image', 'half a JPEG')
    assert isinstance(answer(isolated('count'), make_request(broken)), Verdict)


def test_a_judge_that_cannot_travel_is_an_error() -> None:
    settings = PluginSettings(kind='plugin', ref='a:b', isolation='process')
    error = fault(JudgeCalls(Unpicklable(), settings, Thresholds()))
    assert error.kind == 'not_picklable'


def test_the_checks_run_in_a_process_too() -> None:
    settings = ChecksSettings(kind='checks', isolation='process')
    calls = JudgeCalls(build_evaluator('cell', settings), settings, Thresholds())
    check = {
        'color': {
            'view': 'front', 'lower': [0, 0, 0], 'upper': [179, 0, 10], 'coverage': [0.9, 1.0]
        }
    }  # fmt: skip
    outcome = answer(calls, make_request(make_view('front', plain((0, 0, 0))), checks=(check,)))
    calls.close()
    assert isinstance(outcome, Verdict)
    assert (outcome.status, outcome.score) == (Status.SUCCESS, 1.0)
