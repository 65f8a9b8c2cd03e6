"""Nothing that a node publishes, logs or keeps names a folder of its machine, or a secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from evaluation_world import EvaluationWorld
import pytest

from harness_eval.contract import Abstention, EvaluatorError, Status, Verdict
from harness_eval_msgs.msg import RunOutcome

SECRET = 'https://me:hunter2@host/v1?token=abc123'


def test_no_folder_and_no_secret_leaves_the_node(
    ros: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    world = EvaluationWorld(ros, tmp_path)
    diagnostics = ros.collect(world.node, DiagnosticArray, '/diagnostics')
    text = f'see {tmp_path}/my judges/model.onnx and {SECRET}'
    verdicts = [
        Verdict(Status.SUCCESS, (text,), report={'a': [text]}, route=text),
        Verdict(Status.FAILURE, (text,), failure_reason=text),
    ]
    faults = [RuntimeError(text), EvaluatorError('no_gpu', text), Abstention('too_dark', text)]

    def leak(what: Any) -> Any:
        if isinstance(what, Exception):
            raise what
        return what

    for number, what in enumerate([*verdicts, *faults]):
        monkeypatch.setattr('fake_judge.behave', lambda request, what=what: leak(what))
        world.end(f'run-{number}', tool='plug')
        outcome = world.outcome(f'run-{number}')
        assert (outcome.kind == RunOutcome.VERDICT) == (what in verdicts)

    def broken(*arguments: Any) -> Any:
        raise RuntimeError(text)

    monkeypatch.setattr('harness_eval.requests.Requests.check_usable', broken)
    world.end('broken', tool='plug')
    assert world.outcome('broken').error_kind == 'internal_error'
    heard = len(diagnostics)
    ros.wait(lambda: len(diagnostics) > heard, what='diagnostics')

    published = [*world.outcomes, *world.verdicts, *world.events, *diagnostics]
    said = [str(message) for message in published]
    cases = [path.read_text() for path in world.evidence.rglob('case.json')]
    assert len(cases) == 6
    log = ''.join(capfd.readouterr())
    assert 'Traceback' in log
    secrets = (str(tmp_path), 'my judges', 'hunter2', 'abc123', str(Path(__file__).parent))
    for place in (*said, *cases, log):
        assert [secret for secret in secrets if secret in place] == []
    assert 'model.onnx' in ''.join(said)
