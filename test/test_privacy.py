"""No path of the machine and no secret gets out, whatever a judge or a fault writes."""

from __future__ import annotations

from collections.abc import Callable
import errno
import json
import logging
from pathlib import Path
from queue import Queue

from judged_world import make_request
from pipeline_world import DECODER
import pytest

from harness_eval.calls import JudgeCalls
from harness_eval.calls import Outcome as Answered
from harness_eval.cases import CaseError, CaseStore
from harness_eval.config.evaluators import PluginSettings
from harness_eval.evaluators import build_evaluator
from harness_eval.judging import Thresholds
from harness_eval.ros.logs import bridge_logging
from harness_eval.runs import Completion, internal_error, outcome_of, Segment

PATIENCE = 30.0
SECRET = 'https://me:hunter2@host/v1?token=abc123'

LEAK = """
from harness_eval.contract import *
HERE = __file__
SECRET = {secret!r}
def grade(request):
    {body}
"""


@pytest.fixture
def leaking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Answered]:
    """Ask a plugin in a folder with a space in its name."""
    folder = tmp_path / 'my judges'
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def ask(body: str) -> Answered:
        name = f'leak_{abs(hash((body, str(tmp_path))))}'
        (folder / f'{name}.py').write_text(LEAK.format(body=body, secret=SECRET), 'utf-8')
        settings = PluginSettings(kind='plugin', ref=f'{name}:grade', timeout=PATIENCE)
        calls = JudgeCalls(build_evaluator('grader', settings), settings, Thresholds())
        done: Queue[Answered] = Queue()
        calls.call(make_request(), done.put)
        return done.get(timeout=PATIENCE)

    return ask


@pytest.mark.parametrize(
    'body',
    [
        "return Verdict(Status.SUCCESS, (f'saw {HERE}', SECRET), report={'a': [HERE, SECRET]})",
        "return Verdict(Status.FAILURE, failure_reason=f'see {HERE} and {SECRET}', route=HERE)",
        "raise EvaluatorError('no_gpu', f'see {HERE} and {SECRET}', evaluator=HERE)",
        "raise Abstention('too_dark', f'see {HERE} and {SECRET}')",
        "raise EvaluatorError(HERE, 'x')",
        "raise RuntimeError(f'see {HERE} and {SECRET}')",
        'open(HERE + "/nothing")',
    ],
)
def test_a_judge_publishes_no_path_and_no_secret(
    leaking: Callable[[str], Answered], tmp_path: Path, body: str
) -> None:
    answered = leaking(body)
    completion = Completion(run_id='r', tool='pick', segment=0, stamp=1, arguments=())
    segment = Segment(completion, order=1, receipt=2)
    outcome = outcome_of(answered, segment, decided_at=3, max_segments=8)
    said = outcome.to_json()
    for secret in (str(tmp_path), tmp_path.name, 'my judges', 'hunter2', 'abc123'):
        assert secret not in said
    assert json.loads(said)['run_id'] == 'r'


def test_a_case_that_cannot_be_kept_names_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = CaseStore(tmp_path / 'cases', 10**9, DECODER)

    def full(*arguments: object) -> None:
        raise RuntimeError(f'cannot write {tmp_path / "cases" / "x.mcap"}: {errno.ENOSPC}')

    monkeypatch.setattr('harness_eval.cases.write_bag', full)
    completion = Completion(run_id='r', tool='pick', segment=0, stamp=1, arguments=())
    with pytest.raises(CaseError) as caught:
        store.write(Segment(completion, order=1, receipt=2), None)  # type: ignore[arg-type]
    assert str(tmp_path.parent) not in caught.value.message
    assert 'x.mcap' in caught.value.message


def test_an_internal_error_names_files_by_base_name(tmp_path: Path) -> None:
    message = internal_error(ValueError(f'in {tmp_path / "x.yaml"}')).message
    assert message.startswith('ValueError: in x.yaml;')


def test_a_traceback_in_the_log_names_files_by_base_name(tmp_path: Path) -> None:
    written: list[str] = []

    class Log:
        error = warning = info = debug = written.append

    log = logging.getLogger('harness_eval')
    before = (list(log.handlers), log.level, log.propagate)
    try:
        bridge_logging(Log())
        try:
            exec(compile('1 / 0', str(tmp_path / 'my judges' / 'x.py'), 'exec'))
        except ZeroDivisionError:
            log.exception('a fault beside %s', tmp_path / 'y')
    finally:
        log.handlers[:], log.level, log.propagate = before[0], before[1], before[2]
    assert 'File "x.py", line 1' in written[0]
    assert 'ZeroDivisionError' in written[0]
    assert str(tmp_path.parent) not in written[0]
    assert str(Path(__file__).parent) not in written[0]
