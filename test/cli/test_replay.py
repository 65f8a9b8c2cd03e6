"""``harness-eval replay`` as a shell sees it."""

from __future__ import annotations

import json
import os
from pathlib import Path
import signal
import subprocess
import sys
import time
from xml.etree import ElementTree

import pytest
from replayed_cell import RecordedCell, write_bag, write_config
from shell import command, ROOT, Shell

from harness_eval.replay.results import Replayed

WITHOUT_ROS = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in ('rclpy', 'harness_eval_msgs', 'rosidl_runtime_py'):
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)

sys.meta_path.insert(0, Absent())
sys.path[:] = [path for path in sys.path if '/install/' not in path]
from harness_eval.cli import main
sys.exit(main())
"""


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.setenv('COLUMNS', '200')
    return Shell(capsys)


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A live cell's bag and cases, and its configuration."""
    cell = RecordedCell(tmp_path_factory.mktemp('cell'))
    cell.whole_run('a')
    cell.whole_run('b', finger=0.02)
    cell.whole_run('c', finger=0.7)
    cell.close()
    write_bag(cell.folder / 'bag', cell.recorded)
    (cell.folder / 'labels.csv').write_text(
        'run_id,label,note\na,failure,slipped later\nb,failure,\nc,success,\n'
    )
    return cell.folder


def row(out: str, run_id: str) -> list[str]:
    """The cells of a run in the table."""
    return next(cells for line in out.split('\n') if run_id in (cells := line.split())[1:2])


def test_everything_judged_ends_with_0_whatever_the_verdicts(shell: Shell, folder: Path) -> None:
    ended = shell('replay', folder / 'evidence', '--config', folder / 'cell.yaml')
    assert ended.code == 0
    assert ended.err == ''
    assert row(ended.out, 'a') == ['pick', 'a', '0', 'SUCCESS', 'SUCCESS']
    assert row(ended.out, 'b')[:5] == ['pick', 'b', '0', 'FAILURE', 'FAILURE']
    assert 'below the failure threshold 0.5' in ended.out
    assert ended.out.rstrip().split('\n')[-1] == (
        '3 judged: 1 success, 1 failure, 1 abstained; 0 other than recorded; 0 skipped'
    )


def test_what_is_other_than_recorded_is_marked(shell: Shell, folder: Path) -> None:
    config = write_config(folder / 'low.yaml', outcome=0.6)
    ended = shell('replay', folder / 'evidence', '--config', config)
    assert ended.code == 0
    assert row(ended.out, 'c')[3:6] == ['SUCCESS', 'ABSTAINED', 'differs']
    assert 'differs' not in row(ended.out, 'a')
    assert '; 1 other than recorded; ' in ended.out


def test_labels_come_beside_the_outcomes(shell: Shell, folder: Path) -> None:
    ended = shell(
        *('replay', folder / 'bag', '--config', folder / 'cell.yaml'),
        *('--labels', folder / 'labels.csv'),
    )
    assert ended.code == 0
    assert row(ended.out, 'a')[3:] == ['SUCCESS', 'FAILURE', 'wrong', 'label:', 'slipped', 'later']
    assert row(ended.out, 'b')[3:5] == ['FAILURE', 'FAILURE']
    assert row(ended.out, 'b')[5] != 'wrong'
    assert row(ended.out, 'c')[3:5] == ['ABSTAINED', 'SUCCESS']
    # An abstention is neither right nor wrong: three are labelled, two verdicts are measured.
    assert '; 1 of 2 verdicts with a known truth wrong; ' in ended.out


def test_in_a_narrow_terminal_a_reason_stands_beneath_its_row(
    shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('COLUMNS', '60')
    lines = shell('replay', folder / 'bag', '--config', folder / 'cell.yaml').out.split('\n')
    assert max(map(len, lines[:-2])) <= 60
    place = next(n for n, line in enumerate(lines) if line.split()[1:2] == ['b'])
    assert lines[place].split() == ['pick', 'b', '0', 'FAILURE']
    assert lines[place + 1].startswith('    ')
    assert 'below the failure threshold 0.5' in ' '.join(lines[place + 1].split())


def test_no_cell_is_cut_however_narrow_the_terminal(
    shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('COLUMNS', '30')
    ended = shell('replay', folder / 'evidence', '--config', folder / 'cell.yaml')
    assert row(ended.out, 'c') == ['pick', 'c', '0', 'ABSTAINED', 'ABSTAINED']


def test_a_bag_without_completions_is_told_the_ways_out(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    config = write_config(tmp_path / 'elsewhere.yaml')
    config.write_text(config.read_text().replace('topic: tool_completions', 'topic: skills/done'))
    ended = shell('replay', folder / 'bag', '--config', config)
    assert ended.code == 4
    assert ended.err.count('\n') == 1
    assert '/skills/done is not in the bag' in ended.err
    assert ended.err.endswith('or give a file with --completions\n')


def test_in_a_pipe_a_run_is_one_line_that_can_be_read(
    shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv('COLUMNS')
    config = write_config(folder / 'other_topic.yaml')
    config.write_text(config.read_text().replace('topic: cell/front', 'topic: elsewhere'))
    ended = shell('replay', folder / 'bag', '--config', config)
    lines = ended.out.split('\n')
    assert [line.split()[3] for line in lines[1:4]] == ['ERROR'] * 3
    assert max(map(len, lines)) < 200
    assert 'no_publisher: /elsewhere is not in the bag; the topics of the type' in lines[1]


def test_tools_that_are_not_judged_are_told(shell: Shell, folder: Path, tmp_path: Path) -> None:
    table = tmp_path / 'ends.csv'
    table.write_text('time,tool\n1000.5,pikc\n')
    ended = shell(
        *('replay', folder / 'bag', '--config', folder / 'cell.yaml', '--completions', table)
    )
    assert ended.code == 4
    assert 'ends.csv: not_required: 1 completion of pikc not judged' in ended.err
    assert 'required_tools names bare, insert, pick' in ended.err


def test_runs_of_a_bag_that_are_not_judged_are_told_and_no_error(
    shell: Shell, tmp_path: Path
) -> None:
    cell = RecordedCell(tmp_path)
    cell.whole_run('a')
    cell.whole_run('x', tool='bare')
    cell.close()
    write_bag(tmp_path / 'bag', cell.recorded)
    config = write_config(tmp_path / 'cell.yaml')
    kept = [line for line in config.read_text().split('\n') if '    bare: ' not in line]
    config.write_text('\n'.join(kept).replace('[pick, insert, bare]', '[pick, insert]'))
    ended = shell('replay', tmp_path / 'bag', '--config', config)
    assert (ended.code, row(ended.out, 'a')[3]) == (0, 'SUCCESS')
    assert ended.err == (
        'harness-eval: bag: 1 completion of bare not judged: required_tools names insert, pick\n'
    )


def test_a_label_that_names_another_source_is_told_what_is_there(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    labels = tmp_path / 'labels.csv'
    labels.write_text('run_id,segment,source,label\na,0,monday.mcap,success\na,7,,failure\n')
    ended = shell(
        *('replay', folder / 'bag', '--config', folder / 'cell.yaml', '--labels', labels)
    )
    monday, seventh = ended.err.rstrip().split('\n')
    assert monday.endswith("there is segment 0 of 'bag'; the column source may be empty")
    assert seventh.endswith("no such result; of that run there is segment 0 of 'bag'")


def test_a_label_of_nothing_is_told(shell: Shell, folder: Path, tmp_path: Path) -> None:
    labels = tmp_path / 'labels.csv'
    labels.write_text('run_id,label\nnobody,success\n')
    ended = shell(
        *('replay', folder / 'bag', '--config', folder / 'cell.yaml', '--labels', labels)
    )
    assert ended.code == 0
    assert "'nobody'" in ended.err


def test_an_error_or_something_skipped_ends_with_4(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / 'broken.mcap').write_bytes(b'\x89MCAP0\r\n')
    both = (folder / 'bag', tmp_path / 'broken.mcap')
    ended = shell('replay', *both, '--config', folder / 'cell.yaml')
    assert ended.code == 4
    assert 'skipped broken.mcap: ' in ended.err
    assert '; 0 skipped' not in ended.out
    config = write_config(folder / 'tight.yaml', slop=0.0, timeout=0.3)
    config.write_text(config.read_text().replace('settle: 0.3', 'settle: 0.9'))
    labels = ('--labels', folder / 'labels.csv')
    ended = shell('replay', folder / 'bag', '--config', config, *labels)
    assert ended.code == 4
    assert 'wrong' not in ended.out  # no verdict, and so none that could be
    assert '3 error' in ended.out
    assert ended.err == ''


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        (('{f}/nothing', '--config', '{f}/cell.yaml'), 'nothing'),
        (('{f}/bag', '--config', '{f}/nowhere.yaml'), 'nowhere.yaml'),
        (('{f}/bag', '--config', '{f}/labels.csv'), 'labels.csv'),
        (('{f}/bag', '--config', '{f}/cell.yaml', '--labels', '{f}/cell.yaml'), 'cell.yaml'),
        (('{f}/bag', '--config', '{f}/cell.yaml', '--completions', '{f}/x.csv'), 'x.csv'),
        (('{f}/bag', '--config', '{f}/cell.yaml', '--json', '{f}/no/r.json'), 'r.json'),
        (('{f}/bag', '--config', '{f}/cell.yaml', '--html', '{f}'), 'it is a folder'),
        (('{f}/bag', '--config', '{f}/cell.yaml', '--jobs', '0'), '--jobs'),
        (
            ('{f}/bag', '--config', '{f}/cell.yaml', '--jobs', '2', '--dask', 'tcp://127.0.0.1:9'),
            'exclude each other',
        ),
        (('{f}/bag', '--config', '{f}/cell.yaml', '--answers', 'guessed'), '--answers'),
        (('{f}/bag',), '--config'),
    ],
)
def test_bad_usage_ends_with_2(
    shell: Shell, folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    ended = shell('replay', *(one.replace('{f}', str(folder)) for one in arguments))
    assert ended.code == 2
    assert said in ended.err
    assert ended.out == ''


def test_a_scheduler_that_is_not_there_is_bad_usage(
    shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip('distributed')
    monkeypatch.setattr('harness_eval.cli.workers.DASK_TIMEOUT', '0.2s')
    ended = shell(
        *('replay', folder / 'bag', '--config', folder / 'cell.yaml'),
        *('--dask', 'tcp://127.0.0.1:9'),
    )
    assert ended.code == 2
    assert 'no Dask scheduler answers at tcp://127.0.0.1:9' in ended.err


def test_a_cluster_that_is_there_does_the_work(shell: Shell, folder: Path) -> None:
    distributed = pytest.importorskip('distributed')
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, protocol='tcp'
    ) as cluster:
        ended = shell(
            *('replay', folder / 'bag', '--config', folder / 'cell.yaml', '--quiet'),
            *('--dask', cluster.scheduler_address),
        )
    assert ended.code == 0
    assert ended.out == '3 judged: 1 success, 1 failure, 1 abstained; 0 skipped\n'


def test_results_are_written_in_every_form_and_tell_no_path(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    pytest.importorskip('jinja2')
    files = {kind: tmp_path / f'results.{kind}' for kind in ('json', 'xml', 'html')}
    ended = shell(
        *('replay', folder / 'bag', '--config', folder / 'cell.yaml', '--quiet'),
        *('--json', files['json'], '--junit', files['xml'], '--html', files['html']),
        *('--cases', tmp_path / 'cases', '--labels', folder / 'labels.csv'),
    )
    assert ended.code == 0
    assert ended.out.count('\n') == 1
    results = Replayed.from_json(files['json'].read_text(), tmp_path)
    assert [one.outcome.label for one in results.results] == [
        'success',
        'failure',
        'abstained unsure',
    ]
    assert results.config == 'cell.yaml'
    for one in results.results:
        assert one.case is not None
        assert one.case.parent == tmp_path / 'cases'
        assert (one.case / 'case.json').is_file()
    assert ElementTree.parse(files['xml']).getroot().tag == 'testsuites'
    assert 'data:image' in files['html'].read_text()
    for path in (*files.values(), *(tmp_path / 'cases').rglob('*.json')):
        assert str(folder) not in path.read_text()
        assert str(tmp_path) not in path.read_text()


def test_a_page_has_the_pictures_of_a_bag_without_keeping_cases(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    pytest.importorskip('jinja2')
    ended = shell(
        *('replay', folder / 'bag', '--config', folder / 'cell.yaml', '--quiet'),
        *('--html', tmp_path / 'page.html', '--json', tmp_path / 'results.json'),
    )
    assert ended.code == 0
    assert 'data:image' in (tmp_path / 'page.html').read_text()
    results = json.loads((tmp_path / 'results.json').read_text())['results']
    assert [one['case'] for one in results] == [None, None, None]
    assert sorted(path.name for path in tmp_path.iterdir()) == ['page.html', 'results.json']


def test_completions_and_a_namespace_can_be_given(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    import dataclasses

    results = tmp_path / 'results.json'
    shell('replay', folder / 'bag', '--config', folder / 'cell.yaml', '--json', results, '-q')
    first = Replayed.from_json(results.read_text(), tmp_path).results[0]
    table = tmp_path / 'ends.csv'
    table.write_text(
        f'time,tool,run_id,argument.target\n{first.outcome.completed_at / 1e9:.9f},pick,x,cup\n'
    )
    ended = shell(
        *('replay', folder / 'bag', '--config', folder / 'cell.yaml', '--completions', table)
    )
    assert row(ended.out, 'x')[3] == 'SUCCESS'
    ended = shell(
        *('replay', folder / 'bag', '--config', folder / 'cell.yaml', '--namespace', '/left')
    )
    assert ended.code == 4
    assert '/left/tool_completions' in ended.err
    assert dataclasses.is_dataclass(first)


def test_recorded_answers_can_be_asked_for(shell: Shell, folder: Path) -> None:
    config = write_config(folder / 'remote.yaml', evaluator='remote')
    ended = shell('replay', folder / 'bag', '--config', config, '--answers', 'recorded')
    assert ended.code == 4
    assert ended.out.count('no_recorded_answer') == 3


def test_several_processes_come_to_the_same(shell: Shell, folder: Path) -> None:
    arguments = ('replay', folder / 'bag', folder / 'evidence', '--config', folder / 'cell.yaml')
    alone, together = shell(*arguments), shell(*arguments, '--jobs', 2)
    assert together == alone


def test_neither_ros_nor_its_messages_are_needed(folder: Path, tmp_path: Path) -> None:
    kept = {'PATH', 'HOME', 'LANG', 'TMPDIR', 'VIRTUAL_ENV'}
    environment = {name: value for name, value in os.environ.items() if name in kept}
    environment['PYTHONPATH'] = os.pathsep.join(map(str, (ROOT, ROOT / 'test' / 'support')))
    done = subprocess.run(
        [
            *(sys.executable, '-c', WITHOUT_ROS, 'replay', folder / 'bag', folder / 'evidence'),
            *('--config', folder / 'cell.yaml', '--cases', tmp_path / 'cases', '--quiet'),
        ],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ''
    assert done.returncode == 0
    assert done.stdout.startswith('6 judged: 2 success, 2 failure, 2 abstained;')
    assert len(list((tmp_path / 'cases').iterdir())) == 3  # the bag and the cases are one


@pytest.mark.parametrize(
    ('number', 'code', 'tidy'),
    [
        (signal.SIGINT, 130, True),
        (signal.SIGTERM, 143, True),
        (signal.SIGKILL, -signal.SIGKILL, False),
    ],
    ids=['control-c', 'terminated', 'killed'],
)
def test_no_worker_outlives_a_command_that_was_ended(
    folder: Path, tmp_path: Path, number: signal.Signals, code: int, tidy: bool
) -> None:
    config = write_config(folder / 'slow.yaml', evaluator='slow')
    config.write_text(
        config.read_text().replace(
            '    checked:', '    slow: {kind: plugin, ref: "replay_judge:slow"}\n    checked:'
        )
    )
    begun, scratch = tmp_path / 'begun', tmp_path / 'scratch'
    scratch.mkdir()
    process = subprocess.Popen(
        command('replay', folder / 'bag', '--config', config, '--jobs', 2),
        env={
            **os.environ,
            'PYTHONPATH': os.pathsep.join(
                [*map(str, (ROOT, ROOT / 'test' / 'support')), os.environ.get('PYTHONPATH', '')]
            ),
            'REPLAY_JUDGE_BEGUN': str(begun),
            'TMPDIR': str(scratch),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 40
        while not begun.exists() and time.monotonic() < until and process.poll() is None:
            time.sleep(0.05)
        assert begun.exists()
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == code
    assert 'Traceback' not in err
    worker = int(begun.read_text())
    until = time.monotonic() + 10
    while _is_alive(worker) and time.monotonic() < until:
        time.sleep(0.05)
    assert not _is_alive(worker)
    assert not tidy or not list(scratch.iterdir())


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]
    except FileNotFoundError:
        return False
    return state != 'Z'


def test_the_help_names_every_option(shell: Shell) -> None:
    ended = shell('replay', '--help')
    assert ended.code == 0
    for option in (
        *('--config', '--answers', '--completions', '--jobs', '--dask', '--cases', '--labels'),
        *('--json', '--junit', '--html', '--namespace', '--quiet'),
    ):
        assert option in ended.out
    assert 'columns time and tool' in ended.out
    assert 'columns run_id and label' in ended.out
