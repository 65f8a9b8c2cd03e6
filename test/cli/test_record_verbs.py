"""``runs`` and ``show`` read the ledger alone: no ROS, no node."""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import json
import os
from pathlib import Path
import subprocess
import sys
import time

import pytest
from shell import command, in_a_process, ROOT, Shell
import typer

from harness_eval.cli import main, VERBS
from harness_eval.contract import Abstention, EvaluationError, EvaluatorError, Status, Verdict
from harness_eval.ledger import Ledger
from harness_eval.ros.places import default_ledger_url, node_folder, recorded_ledger
from harness_eval.runs import Completion, interruption, outcome_of, Segment, SegmentState
from harness_eval.scene_graph import Op, OpKind, Update

SECOND = 10**9
END = 1_700_000_000 * SECOND
FAILURE = Verdict(
    Status.FAILURE,
    evidence=('front: coverage 0.02, expected 0.9 to 1', 'gripper_opening: 0.031'),
    failure_reason='the bottle is not held',
    failure_kind='missed_grasp',
    score=0.25,
)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    """The ledger that the node would use by default."""
    made = Ledger(default_ledger_url(node_folder(os.environ, '/harness_eval'), simulated=False))
    yield made
    made.close()


def begin(ledger: Ledger, run_id: str, tool: str = 'pick', segment: int = 0) -> Segment:
    """A completion that was received half a second after its stamp."""
    completion = Completion(run_id, tool, segment, END, (('target', 'bottle'),))
    with ledger.transaction():
        return ledger.add_segment(completion, END + SECOND // 2)


def end(
    ledger: Ledger, segment: Segment, answer: Verdict | EvaluationError, attempt: int = 1
) -> Segment:
    """Decide a segment a second after its end."""
    segment = dataclasses.replace(segment, attempt=attempt, evidence='case-0001')
    outcome = outcome_of(
        answer,
        segment,
        decided_at=segment.t_end + SECOND,
        max_segments=8,
        evaluator='checks',
        input_digest='ab' * 32,
        observed=(segment.t_end + SECOND // 4, segment.t_end + SECOND // 2),
    )
    with ledger.transaction():
        ledger.set_state(dataclasses.replace(segment, state=SegmentState.STARTED))
        ledger.decide(segment, outcome)
    return segment


def test_runs_lists_the_newest_first_with_state_and_kind(ledger: Ledger, shell: Shell) -> None:
    end(ledger, begin(ledger, 'run-1'), FAILURE)
    end(ledger, begin(ledger, 'run-2'), EvaluationError('clock_skew', 'front is off by 3 s'))
    end(ledger, begin(ledger, 'run-3'), Verdict(Status.SUCCESS))
    begin(ledger, 'run-4', 'insert')
    ended = shell('runs')
    rows = [line.split() for line in ended.out.splitlines()]
    assert [row[:5] for row in rows if row[0].startswith('run-')] == [
        ['run-4', '0', 'insert', 'RECEIVED', '-'],
        ['run-3', '0', 'pick', 'SUCCESS', '-'],
        ['run-2', '0', 'pick', 'ERROR', 'clock_skew'],
        ['run-1', '0', 'pick', 'FAILURE', 'missed_grasp'],
    ]
    assert ended.code == 0
    assert '\x1b' not in ended.out


def test_runs_can_be_limited_and_read_by_a_program(ledger: Ledger, shell: Shell) -> None:
    for number in range(3):
        end(ledger, begin(ledger, f'run-{number}'), Abstention('view_unusable', 'front is dark'))
    listed = shell('runs', '--limit', 2, '--json').json
    assert [(run['run_id'], run['state'], run['kind']) for run in listed] == [
        ('run-2', 'ABSTAINED', 'view_unusable'),
        ('run-1', 'ABSTAINED', 'view_unusable'),
    ]
    assert set(listed[0]) == {
        'run_id', 'tool', 'segment', 'state', 'kind', 'attempts', 'changed_at',
    }  # fmt: skip
    assert shell('runs', '--limit', 0).code == 2


def test_runs_with_nothing_on_record_says_so(ledger: Ledger, shell: Shell) -> None:
    ended = shell('runs')
    assert (ended.code, ended.out) == (0, '')
    assert 'no run is on record yet' in ended.err
    assert shell('runs', '--json').json == []


def test_a_ledger_that_is_not_there_is_bad_usage_in_one_line(shell: Shell, tmp_path: Path) -> None:
    for arguments in (
        ['runs'],
        ['show', 'run-1'],
        ['runs', '--node', '/arm/harness_eval'],
        ['runs', '--ledger', tmp_path / 'none.sqlite3'],
        ['runs', '--ledger', 'postgresql://robot/ledger'],
    ):
        ended = shell(*arguments)
        assert (ended.code, ended.out, ended.err.count('\n')) == (2, '', 1)
        assert str(tmp_path) not in ended.err


def test_a_file_that_is_no_ledger_is_bad_usage_in_one_line(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / 'notes.sqlite3'
    path.write_text('dear diary, ' * 200)
    ended = shell('runs', '--ledger', path)
    assert (ended.code, ended.err.count('\n')) == (2, 1)
    assert 'cannot read the ledger' in ended.err


@pytest.mark.parametrize('form', ['{path}', 'sqlite:///{path}'])
def test_a_ledger_is_named_by_url_or_by_path(shell: Shell, tmp_path: Path, form: str) -> None:
    path = tmp_path / 'of another.sqlite3'
    other = Ledger(f'sqlite:///{path}')
    end(other, begin(other, 'run-7'), Verdict(Status.SUCCESS))
    other.close()
    ended = shell('show', 'run-7', '--ledger', form.format(path=path))
    assert (ended.code, 'run-7' in ended.out) == (0, True)


def test_the_ledger_of_a_simulation_is_read_when_it_was_written_last(
    ledger: Ledger, shell: Shell
) -> None:
    end(ledger, begin(ledger, 'real'), Verdict(Status.SUCCESS))
    folder = node_folder(os.environ, '/harness_eval')
    simulated = Ledger(default_ledger_url(folder, simulated=True))
    end(simulated, begin(simulated, 'simulated'), Verdict(Status.SUCCESS))
    simulated.close()
    for path in folder.glob('ledger.sqlite3*'):
        os.utime(path, (1.0, 1.0))
    assert [run['run_id'] for run in shell('runs', '--json').json] == ['simulated']
    os.utime(folder / 'ledger.sqlite3', (time.time() + 60, time.time() + 60))
    assert [run['run_id'] for run in shell('runs', '--json').json] == ['real']


def test_without_any_ledger_the_one_that_stays_is_meant(tmp_path: Path) -> None:
    assert recorded_ledger(tmp_path / 'none').name == 'ledger.sqlite3'


@pytest.mark.parametrize(
    ('answer', 'code'),
    [
        (Verdict(Status.SUCCESS), 0),
        (FAILURE, 1),
        (Verdict(Status.PROCESS), 3),
        (EvaluationError('no_frames', 'wrist has no publisher'), 4),
        (Abstention('view_unusable', 'front is covered'), 5),
    ],
)
def test_show_ends_with_the_code_of_the_newest_outcome(
    ledger: Ledger, shell: Shell, answer: Verdict | EvaluationError, code: int
) -> None:
    end(ledger, begin(ledger, 'run-1'), answer)
    assert shell('show', 'run-1').code == code
    assert shell('show', 'run-1', '--json').json['exit_code'] == code


def test_show_of_an_interrupted_run_ends_with_6(ledger: Ledger, shell: Shell) -> None:
    segment = begin(ledger, 'run-1')
    with ledger.transaction():
        ledger.interrupt('run-1', 'operator')
        ledger.decide(segment, interruption(segment, 'operator', END + SECOND))
        ledger.interrupt('run-2', 'operator')
    assert [shell('show', run_id).code for run_id in ('run-1', 'run-2')] == [6, 6]
    assert 'before any completion' in shell('show', 'run-2').out


def test_show_of_a_run_that_is_being_judged_again_has_no_outcome_yet(
    ledger: Ledger, shell: Shell
) -> None:
    segment = end(ledger, begin(ledger, 'run-1'), EvaluationError('judge_timeout', 'slow'))
    with ledger.transaction():
        ledger.set_state(dataclasses.replace(segment, state=SegmentState.STARTED, attempt=2))
    assert shell('show', 'run-1').code == 124


def test_show_tells_everything_about_a_run(ledger: Ledger, shell: Shell) -> None:
    segment = begin(ledger, 'run-1')
    end(ledger, segment, EvaluatorError('judge_timeout', 'no answer', retryable=True))
    end(ledger, segment, FAILURE, attempt=2)
    update = Update('run-1', 'u-1', (Op(OpKind.ADD_EDGE, 'bottle', 'in', 'box'),))
    with ledger.transaction():
        ledger.reject(ledger.hold(update), 'run_failed: no success')
    text = shell('show', 'run-1').out
    assert '\x1b' not in text
    for words in (
        'arguments  target: bottle',
        '2023-11-14 22:13:20.500 UTC (received 0.500 s after its stamp)',
        'case       case-0001',
        'attempt 1  ERROR',
        'judge_timeout (may be judged again)',
        'attempt 2  FAILURE',
        'the bottle is not held',
        'missed_grasp',
        'front: coverage 0.02, expected 0.9 to 1',
        'gripper_opening: 0.031',
        'score      0.25',
        'observed 0.250 to 0.500 s, decided 1.000 s',
        'ab' * 32,
        'u-1, rejected: run_failed: no success',
        'add_edge bottle in box',
    ):
        assert words in text


def test_show_gives_everything_to_a_program(ledger: Ledger, shell: Shell) -> None:
    segment = begin(ledger, 'run-1', 'insert')
    end(ledger, segment, Verdict(Status.PROCESS))
    end(ledger, begin(ledger, 'run-1', 'insert', 1), Verdict(Status.SUCCESS, score=1.0))
    effect = Update('run-1', ':on_success:1', (Op(OpKind.REMOVE_EDGE, 'peg', '', 'table'),))
    with ledger.transaction():
        ledger.release(ledger.hold(effect, effect=True), END)
    run = shell('show', 'run-1', '--json').json
    assert (run['state'], run['tool'], run['interrupted']) == ('SUCCESS', 'insert', False)
    assert [s['state'] for s in run['segments']] == ['PROCESS', 'SUCCESS']
    assert run['segments'][0]['arguments'] == {'target': 'bottle'}
    assert run['segments'][1]['attempts'][0]['score'] == 1.0
    assert run['updates'] == [
        {
            'update_id': ':on_success:1',
            'on_success': True,
            'state': 'released',
            'reason': '',
            'revision': 1,
            'ops': ['remove_edge peg table'],
        }
    ]


def test_show_of_an_unknown_run_is_bad_usage(ledger: Ledger, shell: Shell) -> None:
    ended = shell('show', 'run-1')
    assert (ended.code, ended.out) == (2, '')
    assert "no run 'run-1' on record" in ended.err


def test_show_of_a_run_with_proposals_alone_says_that_it_has_not_ended(
    ledger: Ledger, shell: Shell
) -> None:
    with ledger.transaction():
        ledger.hold(Update('run-1', 'u-1', (Op(OpKind.ADD_NODE, 'box'),)))
    ended = shell('show', 'run-1')
    assert (ended.code, 'no completion of this run came' in ended.out) == (124, True)


HOSTILE = 'run\x1b[31m\n\x07\u202e1'


def test_control_characters_never_reach_the_terminal(ledger: Ledger, shell: Shell) -> None:
    end(
        ledger,
        begin(ledger, HOSTILE, '\x1b]0;owned\x07'),
        Verdict(Status.FAILURE, failure_reason='bad \x1b[2J\r\n', evidence=('\x1b[1A[red]x',)),
    )
    for arguments in (['runs'], ['show', HOSTILE], ['show', '\x1bother'], ['wait', '\x1bother']):
        ended = shell(*arguments)
        written = ended.out + ended.err
        assert written
        assert not set(written) & set('\x1b\x07\r\u202e')
    assert '[red]x' in shell('show', HOSTILE).out
    assert shell('runs', '--json').json[0]['run_id'] == HOSTILE


@pytest.mark.parametrize('verb', ['wait', 'judge', 'interrupt'])
@pytest.mark.parametrize('run_id', ['', 'x' * 300, 'a\nb', '\udcff'])
def test_a_run_id_that_no_run_can_have_is_bad_usage(shell: Shell, verb: str, run_id: str) -> None:
    ended = shell(verb, run_id)
    assert (ended.code, ended.out, ended.err.count('\n')) == (2, '', 1)


@pytest.mark.parametrize('verb', ['wait', 'judge', 'interrupt'])
def test_without_ros_a_verb_that_needs_it_says_so_in_one_line(
    shell: Shell, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'rclpy', None)
    ended = shell(verb, 'run-1')
    assert (ended.code, ended.out, ended.err.count('\n')) == (2, '', 1)
    assert 'needs ROS 2' in ended.err


def test_help_imports_neither_ros_nor_the_core() -> None:
    program = (
        'import sys; from harness_eval.cli import main; assert main(["--help"]) == 0; '
        'heavy = {"rclpy", "sqlalchemy", "pydantic", "numpy", "cv2", "rich"} & set(sys.modules); '
        'assert not heavy, heavy'
    )
    done = subprocess.run(
        [sys.executable, '-c', program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, '')
    assert all(f'  {verb} ' in done.stdout for verb in VERBS)


@pytest.mark.parametrize('verb', VERBS)
def test_every_verb_explains_itself(shell: Shell, verb: str) -> None:
    ended = shell(verb, '--help')
    assert (ended.code, ended.err) == (0, '')
    assert f'harness-eval {verb}' in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80


@pytest.mark.parametrize(
    'arguments',
    [['shw'], ['show'], ['show', 'a', 'b'], ['runs', '--nothing'], ['wait', 'a', '--segment', -1],
     ['wait', 'a', '--segment', 'x'], ['wait', 'a', '--final', '--segment', 1]],
)  # fmt: skip
def test_bad_usage_ends_with_2(shell: Shell, arguments: list[object]) -> None:
    assert shell(*arguments).code == 2


def test_a_fault_of_the_command_is_no_verdict(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('harness_eval.cli.records._url', lambda ledger, node: 1 / 0)
    ended = shell('runs')
    assert (ended.code, ended.out, ended.err.count('\n')) == (70, '', 1)
    assert 'ZeroDivisionError' in ended.err


@pytest.mark.parametrize('fault', [SystemExit('no code'), EOFError(), typer.Abort()])
def test_no_end_that_a_verb_did_not_mean_looks_like_a_verdict(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, fault: BaseException
) -> None:
    def broken(ledger: object, node: object) -> str:
        raise fault

    monkeypatch.setattr('harness_eval.cli.records._url', broken)
    assert shell('show', 'run-1').code == 70


def test_ctrl_c_has_a_code_of_its_own(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(ledger: object, node: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr('harness_eval.cli.records._url', interrupted)
    assert shell('show', 'run-1').code == 130


def test_a_fault_can_be_looked_into(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('harness_eval.cli.records._url', lambda ledger, node: 1 / 0)
    monkeypatch.setenv('HARNESS_EVAL_TRACEBACK', '1')
    ended = shell('runs')
    assert (ended.code, 'Traceback' in ended.err) == (70, True)


def test_closed_streams_change_no_exit_code(ledger: Ledger) -> None:
    end(ledger, begin(ledger, 'run-1'), Verdict(Status.PROCESS))
    line = ['sh', '-c', 'exec "$@" >&- 2>&-', 'sh', *command('show', 'run-1')]
    assert subprocess.run(line, cwd=ROOT, check=False).returncode == 3


def test_a_reader_that_goes_away_changes_no_exit_code(ledger: Ledger) -> None:
    end(ledger, begin(ledger, 'run-1'), Verdict(Status.PROCESS))
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        command('show', 'run-1'), cwd=ROOT, stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (3, b'')


def test_a_terminal_that_knows_ascii_alone_is_enough(ledger: Ledger) -> None:
    end(ledger, begin(ledger, 'run-1', 'öffnen'), Verdict(Status.SUCCESS))
    ended = in_a_process('show', 'run-1', PYTHONIOENCODING='ascii')
    assert (ended.code, '\\xf6ffnen' in ended.out) == (0, True)
    assert json.loads(in_a_process('show', 'run-1', '--json').out)['tool'] == 'öffnen'


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['--version']) == 0
    assert capsys.readouterr().out.startswith('harness_eval ')
