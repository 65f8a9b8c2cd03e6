"""``score``, ``calibrate`` and ``label``: numbers, a threshold, and labels within cases."""

from __future__ import annotations

from collections.abc import Callable
import json
from pathlib import Path
import sys

from capture_streams import T_END
from cdr_messages import JOINT_STATE, joint_state
from pipeline_world import DECODER
import pytest
from scored_results import result
from shell import Ended, Shell

from harness_eval.capture import Captured, Frame
from harness_eval.cases import CaseStore
from harness_eval.config import load_config
from harness_eval.contract import Abstention, EvaluationError, Status, Verdict
from harness_eval.oracle import OracleAnswer
from harness_eval.replay.results import Replayed, Result, Skipped
from harness_eval.runs import Completion, outcome_of, Segment

Write = Callable[..., Path]
FAILED = Verdict(Status.FAILURE, failure_reason='empty', score=0.2)
HELD = Verdict(Status.SUCCESS, score=0.95)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv('COLUMNS', '80')
    return Shell(capsys)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes results as ``replay --json`` does."""

    def to(
        *results: Result, name: str = 'results.json', skipped: tuple[Skipped, ...] = ()
    ) -> Path:
        path = tmp_path / name
        path.write_text(Replayed(results, skipped).to_json(tmp_path))
        return path

    return to


def labels_file(folder: Path, **labels: str) -> Path:
    path = folder / 'labels.csv'
    rows = [f'{run_id},{label}' for run_id, label in labels.items()]
    path.write_text('\n'.join(['run_id,label', *rows]))
    return path


def row(ended: Ended, table: str, tool: str) -> list[str]:
    """The cells of a row of a table of ``score``."""
    lines = ended.out[ended.out.index(f'\n{table}') :].splitlines()[2:]
    return next(line for line in lines if line.startswith(tool)).split()


# --- score ---------------------------------------------------------------------------------------


def test_score_tells_each_tool_and_all(shell: Shell, write: Write, tmp_path: Path) -> None:
    results = write(
        *(result('success', True, run_id=f'a{n}', score=0.95, seconds=0.5) for n in range(9)),
        result('failure', True, run_id='b', score=0.1, cost=0.25),
        *(result('failure', False, run_id=f'c{n}', tool='place') for n in range(3)),
        result('success', False, run_id='d', tool='place'),
        result('abstained', True, run_id='e', tool='place'),
        result('success', None, run_id='f', tool='place'),
        result('interrupted', True, run_id='g', tool='place'),
    )
    ended = shell('score', results)
    assert ended.code == 0
    assert ended.err == ''
    assert ended.out.startswith('17 results, 16 labelled, 1 unlabelled, 1 interrupted\n')
    assert row(ended, 'judged', 'pick') == ['pick', '10', '10', '10', '100.0%', '-', '-']
    assert row(ended, 'judged', 'place')[1:5] == ['7', '6', '4', '83.3%']
    assert row(ended, 'judged', 'all')[1:] == ['17', '16', '14', '93.8%', '0.825', '0.650']
    assert row(ended, 'wrong verdicts', 'place')[1:5] == ['1/4', '25.0%', '[4.6,', '69.9]']
    assert row(ended, 'wrong verdicts', 'pick')[-4:] == ['1/10', '10.0%', '[1.8,', '40.4]']
    assert row(ended, 'truth and verdict', 'place')[2:] == ['0', '0', '0', '1', '0']
    assert row(ended, 'scores and truth', 'pick')[1] == '10'
    assert row(ended, 'time and cost', 'pick')[1:5] == ['500', 'ms', '500', 'ms']
    told = ' '.join(ended.out.split())
    assert 'pick: balanced accuracy, kappa: every decided run truly succeeded' in told
    assert max(map(len, ended.out.splitlines())) <= 80
    assert '\x1b' not in ended.out


def test_score_of_one_tool_does_not_repeat_itself_as_all(shell: Shell, write: Write) -> None:
    results = write(
        result('success', True), result('success', False, tool='place', run_id='other')
    )
    ended = shell('score', results, '--tool', 'place')
    assert ended.code == 0
    assert 'pick' not in ended.out
    assert '\nall' not in ended.out
    assert "did you mean 'place'?" in _refused(shell('score', results, '--tool', 'palce'))


def test_score_writes_numbers_for_programs(shell: Shell, write: Write, tmp_path: Path) -> None:
    skipped = (Skipped('broken.mcap', 'bag_damaged', 'it ends early'),)
    results = write(result('success', True), result('error', True, run_id='b'), skipped=skipped)
    labels = labels_file(tmp_path, nobody='success')
    file = tmp_path / 'scores.json'
    ended = shell('score', results, '--labels', labels, '--json', file)
    assert ended.code == 0
    assert 'skipped broken.mcap: it ends early' in ended.err
    data = json.loads(file.read_text())
    assert data['version'] == 1
    assert data['overall']['false_failure']['value'] == 0.0
    assert data['overall']['coverage']['value'] == 0.5
    assert data['per_tool']['pick']['kappa'] == {
        'value': None, 'reason': 'every decided run truly succeeded; it takes failures too',
    }  # fmt: skip
    assert data['unmatched_labels'] == [{'run_id': 'nobody', 'segment': None, 'source': ''}]
    assert data['skipped'][0]['kind'] == 'bag_damaged'
    assert str(tmp_path) not in file.read_text()
    unwritable = shell('score', results, '--json', tmp_path / 'nowhere' / 'scores.json')
    assert 'scores.json cannot be written' in _refused(unwritable)


def test_a_label_goes_before_the_oracle_and_what_differs_is_told(
    shell: Shell, write: Write, tmp_path: Path
) -> None:
    results = write(
        result('success', True, run_id='a', truth_from='oracle'),
        result('failure', False, run_id='b', truth_from='oracle'),
    )
    labels = labels_file(tmp_path, a='failure', b='failure', c='success')
    ended = shell('score', results, '--labels', labels)
    assert ended.code == 0
    assert row(ended, 'wrong verdicts', 'pick')[1:3] == ['1/2', '50.0%']
    assert "labels.csv, line 4 ('c'): no such result" in ended.err
    assert 'a segment 0: the label failure counts, the oracle on record says success' in ended.err


def test_nothing_labelled_is_no_measurement(shell: Shell, write: Write, tmp_path: Path) -> None:
    ended = shell('score', write(result('success')))
    assert ended.code == 4
    assert 'nothing is labelled, so nothing was measured' in ended.err
    assert '1 result, 0 labelled, 1 unlabelled' in ended.out
    ended = shell('score', write(result('error', True)))
    assert ended.code == 4
    assert 'no labelled result has the verdict success or failure' in ended.err
    ended = shell('score', write(), '--labels', labels_file(tmp_path, a='success'))
    assert (ended.code, ended.out) == (4, '')
    assert ended.err == 'harness-eval: there is no result to score\n'


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        (b'', 'no file of results'),
        (b'{}', 'no file of results'),
        (b'[' * 100_000, 'no file of results'),
        (b'\xff\xfe', 'it is not UTF-8'),
        (b'{"version": 99}', 'version 99'),
    ],
)
def test_what_is_no_file_of_results_is_refused(
    shell: Shell, tmp_path: Path, text: bytes, words: str
) -> None:
    path = tmp_path / 'results.json'
    path.write_bytes(text)
    error = _refused(shell('score', path))
    assert error.startswith('harness-eval: results.json')
    assert words in error
    assert str(tmp_path) not in error


def test_what_is_not_there_or_there_twice_is_refused(
    shell: Shell, write: Write, tmp_path: Path
) -> None:
    assert 'cannot be read' in _refused(shell('score', tmp_path / 'missing.json'))
    assert 'nothing is called missing' in _refused(shell('score', tmp_path / 'missing'))
    (tmp_path / 'results.txt').write_text('{}')
    assert 'a file of results ends in .json' in _refused(shell('score', tmp_path / 'results.txt'))
    one, again = write(result('success', True)), write(result('success', True), name='again.json')
    error = _refused(shell('score', one, again))
    assert "run 'run-1' segment 0 of 'bag' is there twice" in error
    assert 'cannot be read' in _refused(shell('score', one, '--labels', tmp_path / 'no.csv'))
    assert shell('score').code == 2


# --- cases ---------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> CaseStore:
    return CaseStore(tmp_path / 'cases', 10**9, DECODER)


def keep(
    store: CaseStore, run_id: str, answer: Verdict | EvaluationError, oracle: bool | None = None
) -> str:
    """Keep a case with its outcome and what its oracle says."""
    segment = Segment(Completion(run_id, 'pick', 0, T_END), 1, T_END)
    frame = Frame(
        'gripper', 'joints', JOINT_STATE, T_END + 4, T_END + 5, joint_state({'finger': 0.02})
    )
    name = store.write(segment, Captured({'gripper': frame}, T_END, 0.0, {'gripper': 1}))
    outcome = outcome_of(answer, segment, decided_at=T_END + 2 * 10**9, max_segments=8)
    store.finish(name, outcome)
    if oracle is not None:
        store.note_oracle(name, OracleAnswer('oracle:sim', oracle))
    return name


def test_cases_are_scored_by_what_is_on_record(
    shell: Shell, store: CaseStore, tmp_path: Path
) -> None:
    keep(store, 'run-1', HELD, oracle=True)
    keep(store, 'run-2', FAILED, oracle=True)
    keep(store, 'run-3', HELD)
    ended = shell('score', tmp_path / 'cases')
    assert ended.code == 0
    assert '3 results, 2 labelled, 1 unlabelled' in ended.out
    assert row(ended, 'wrong verdicts', 'pick')[-4:-2] == ['1/2', '50.0%']
    assert row(ended, 'time of judging', 'pick')[1:3] == ['2', 's']
    assert 'cost' not in ended.out


def test_labels_are_noted_within_cases_and_score_finds_them(
    shell: Shell, store: CaseStore, tmp_path: Path
) -> None:
    first = keep(store, 'run-1', HELD, oracle=True)
    keep(store, 'run-2', FAILED)
    keep(store, 'run-3', FAILED)
    labels = tmp_path / 'labels.csv'
    labels.write_text('run_id,label,note\nrun-1,failure,fell\nrun-2,failure,\nrun-9,success,\n')
    ended = shell('label', tmp_path / 'cases', '--labels', labels)
    assert ended.code == 0
    assert ended.out == '2 of 3 cases labelled; 1 label matched none of them\n'
    assert "labels.csv, line 4 ('run-9'): no such case" in ended.err
    assert f'{first}: the label failure counts, the oracle on record says success' in ended.err
    assert len(store.enforce_bound()) == 0
    bounded = CaseStore(tmp_path / 'cases', 0, DECODER)
    assert len(bounded.enforce_bound()) == 1
    scored = shell('score', tmp_path / 'cases')
    assert scored.out.startswith('2 results, 2 labelled, 0 unlabelled')
    assert row(scored, 'wrong verdicts', 'pick')[1:3] == ['1/2', '50.0%']
    # The outcome of a later attempt leaves the label alone.
    store.finish(first, store.read(first).outcome)  # type: ignore[arg-type]
    label = store.read(first).label
    assert label is not None
    assert (label.correct, label.note) == (False, 'fell')


def test_label_says_what_it_cannot_do(shell: Shell, store: CaseStore, tmp_path: Path) -> None:
    keep(store, 'run-1', HELD)
    cases = tmp_path / 'cases'
    labels = labels_file(tmp_path, nobody='success')
    assert 'no label belongs to a case' in _refused(shell('label', cases, '--labels', labels))
    assert 'nothing is called' in _refused(shell('label', 'nowhere', '--labels', labels))
    labels.write_text('run_id,label\nrun-1,perhaps\n')
    assert 'line 2' in _refused(shell('label', cases, '--labels', labels))
    assert shell('label', cases).code == 2


# --- calibrate -----------------------------------------------------------------------------------


def scored(failed: int, succeeded: int = 20, high: int = 0) -> list[Result]:
    """Labelled results: failed ones at 0.3 or (``high`` of them) at 0.97, good ones at 0.95."""
    model = {'evaluator': 'model:vlm'}
    return [
        *(
            result('failure', False, score=0.3, run_id=f'f{n}', evaluator='model:vlm')
            for n in range(failed - high)
        ),
        *(
            result('success', False, score=0.97, run_id=f'h{n}', **model)  # type: ignore[arg-type]
            for n in range(high)
        ),
        *(
            result('success', True, score=0.95, run_id=f's{n}', evaluator='model:vlm')
            for n in range(succeeded)
        ),
    ]


def test_calibrate_gives_lines_that_a_configuration_takes(
    shell: Shell, write: Write, tmp_path: Path
) -> None:
    out = tmp_path / 'thresholds.yaml'
    ended = shell('calibrate', write(*scored(237, high=1)), '--out', out)
    assert (ended.code, ended.err) == (0, '')
    assert 'threshold      0.5: a score at or above it is success' in ended.out
    assert '1 of 237 failed runs pass; a rate of at most 0.02 with confidence 0.95' in ended.out
    assert '100.0% (20 of 20) of the runs that truly succeeded' in ended.out
    assert out.read_text() in ended.out
    config = load_config(out)
    assert config.evaluation.outcome_threshold == 0.5
    assert config.evaluation.failure_threshold == 0.5
    assert max(map(len, ended.out.splitlines())) <= 80


def test_calibrate_keeps_the_failure_threshold_and_what_lies_between_abstains(
    shell: Shell, write: Write, tmp_path: Path
) -> None:
    results = [*scored(149, high=0), result('abstained', True, score=0.3, run_id='u')]
    out = tmp_path / 'thresholds.yaml'
    path = write(*results)
    ended = shell('calibrate', path, '--failure-threshold', '0.25', '--out', out)
    assert ended.code == 0
    evaluation = load_config(out).evaluation
    assert (evaluation.outcome_threshold, evaluation.failure_threshold) == (0.301, 0.25)
    assert '88.2% (150 of 170) of all, between 0.25 and the threshold' in ended.out


def test_calibrate_refuses_too_few_cases_with_the_number_it_takes(
    shell: Shell, write: Write, tmp_path: Path
) -> None:
    out = tmp_path / 'thresholds.yaml'
    ended = shell('calibrate', write(*scored(40)), '--out', out)
    assert ended.code == 4
    assert ended.out == ''
    assert '40 labelled failed runs with a score are there' in ended.err
    assert 'it takes at least 149' in ended.err
    assert not out.exists()
    ended = shell('calibrate', write(*scored(40)), '--of', 'verdicts')
    assert ended.code == 4
    assert '20 labelled runs at or above a threshold with a score are there' in ended.err


def test_calibrate_says_that_nothing_passes(shell: Shell, write: Write) -> None:
    results = [result('failure', True, score=0.3, run_id=f's{n}') for n in range(9)]
    ended = shell('calibrate', write(*scored(149, succeeded=0), *results))
    assert ended.code == 0
    assert '0.0% (0 of 9) of the runs that truly succeeded' in ended.out
    assert 'no run that truly succeeded passes this threshold' in ended.err
    assert 'no run that truly' not in shell('calibrate', write(*scored(149))).err


def test_calibrate_says_what_was_left_out(shell: Shell, write: Write) -> None:
    results = write(
        *scored(149),
        result('success', None, run_id='a'),
        result('failure', False, run_id='b', score=0.5, evaluator='checks:cell'),
        result('failure', False, run_id='c'),
        result('success', True, run_id='d', score=0.99, tool='place'),
    )
    ended = shell('calibrate', results)
    assert ended.code == 0
    assert '1 left out: not labelled (a)' in ended.err
    assert '1 left out: judged by an evaluator of kind checks' in ended.err
    assert '1 left out: the judge said yes or no, without a score' in ended.err
    assert '1 verdict without a word that a threshold made it' in ended.err
    assert '2 tools are taken together' in ended.err
    assert '# harness-eval calibrate: of pick, place\n' in ended.out


def test_calibrate_takes_a_lost_score_as_the_worst(shell: Shell, write: Write) -> None:
    lost = result('abstained', False, run_id='lost')
    ended = shell('calibrate', write(*scored(149), lost))
    assert ended.code == 4
    assert '1 failed run left the judge unsure with a score that is not on record' in ended.err
    assert shell('calibrate', write(*scored(236), lost)).code == 0


def test_calibrate_reads_the_scores_of_abstentions_from_cases(
    shell: Shell, store: CaseStore, tmp_path: Path
) -> None:
    unsure = Abstention('unsure', 'score 0.7, between', score=0.7)
    for number in range(7):
        keep(store, f'run-{number}', unsure if number % 2 else FAILED, oracle=False)
    ended = shell(
        'calibrate', tmp_path / 'cases', '--max-false-success', '0.4', '--confidence', '0.9'
    )
    assert ended.code == 0
    assert 'outcome_threshold: 0.701\n' in ended.out
    assert '0 of 7 failed runs pass' in ended.out


@pytest.mark.parametrize(
    'options',
    [
        ('--max-false-success', '0'),
        ('--max-false-success', 'nan'),
        ('--confidence', '95'),
        ('--failure-threshold', '1.5'),
        ('--of', 'everything'),
    ],
)
def test_calibrate_refuses_targets_out_of_range(
    shell: Shell, write: Write, options: tuple[str, str]
) -> None:
    ended = shell('calibrate', write(*scored(149)), *options)
    assert ended.code == 2
    assert options[0] in ended.err
    assert ended.out == ''


@pytest.mark.parametrize('verb', ['score', 'calibrate'])
@pytest.mark.parametrize('package', ['sklearn', 'scipy'])
def test_without_the_statistics_it_says_what_to_install(
    shell: Shell, write: Write, monkeypatch: pytest.MonkeyPatch, verb: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    error = _refused(shell(verb, write(result('success', True))))
    assert 'pip install "harness_eval[replay]"' in error


def _refused(ended: Ended) -> str:
    assert ended.code == 2
    assert ended.err.count('harness-eval:') >= 1
    return ended.err
