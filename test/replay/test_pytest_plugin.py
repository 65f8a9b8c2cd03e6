"""A project's own tests judge its bags and cases, and a project without them notices nothing."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path
import shutil
import sys

import pytest

from harness_eval.config import load_config
from harness_eval.replay.judged_once import JudgedOnce
from harness_eval.replay.results import Result
from harness_eval.replay.task import How, judge, Run, Task

pytest_plugins = ['pytester']

DEMO = Path(__file__).parents[2] / 'examples' / 'demo_bag'
MODULE = 'harness_eval.replay.pytest_plugin'
INSTALLED = bool(entry_points(group='pytest11', name='harness_eval'))
PLUGIN = [] if INSTALLED else ['-p', MODULE]

INI = """
[pytest]
harness_eval_config = cell.yaml
harness_eval_cases = demo_cell
"""
GOOD_PICK = 'demo_cell-12-pick_object'
BAD_PICK = 'demo_cell-02-pick_object'
COVERED_PICK = 'demo_cell-05-pick_object'
DEAD_PICK = 'demo_cell-06-pick_object'


@pytest.fixture(scope='module')
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cases of one run that succeeded and of one that failed, with their outcomes on record."""
    folder = tmp_path_factory.mktemp('kept')
    config = load_config(DEMO / 'cell.yaml')
    judgements = JudgedOnce(config, [str(DEMO / 'demo_cell')], None, 'live')
    runs = tuple(
        Run(one.place, one.completion, one.receipt)
        for one in judgements.listed
        if one.completion.run_id in (GOOD_PICK, BAD_PICK)
    )
    source = judgements.listed[0].source
    found = judge(Task(How(config, keep=folder), bag=source, runs=runs))
    assert all(isinstance(result, Result) for _, result in found)
    assert len(list(folder.iterdir())) == 2
    return folder


class Project:
    """A folder with a bag, a configuration and what tests are written into it."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        self.path = pytester.path
        shutil.copytree(DEMO / 'demo_cell', self.path / 'demo_cell')
        for name in ('cell.yaml', 'labels.csv'):
            shutil.copy(DEMO / name, self.path / name)
        self.ini()

    def ini(self, more: str = '', text: str = INI) -> None:
        """Write ``pytest.ini``."""
        (self.path / 'pytest.ini').write_text(f'{text}{more}\n')

    def write(self, text: str, name: str = 'test_cell.py') -> None:
        """Write a module of tests."""
        (self.path / name).write_text(text)

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest here, in this process."""
        return self._pytester.runpytest_inprocess(
            *PLUGIN, '-p', 'no:randomly', '-p', 'no:cacheprovider', *arguments
        )

    def run_apart(self, *arguments: str) -> pytest.RunResult:
        """Run pytest here in a process of its own, with this plugin and those named."""
        return self._pytester.runpytest_subprocess('-p', MODULE, *arguments)


@pytest.fixture
def project(kept: Path, pytester: pytest.Pytester) -> Project:
    # ``kept`` has judged: pytester has each run forget what it was the first to import, and OpenCV
    # cannot be imported twice.
    return Project(pytester)


def of_runs(*runs: str) -> str:
    return ' or '.join(runs)


# --- the fixture eval_case -----------------------------------------------------------------------

ALL_IT_OFFERS = """
import pytest

@pytest.mark.eval_cases(tool='pick_object', run='demo_cell-12-*')
def test_pick(eval_case):
    assert eval_case.status == 'success'
    assert eval_case.outcome.run_id == eval_case.run_id == 'demo_cell-12-pick_object'
    assert eval_case.verdict.score == pytest.approx(1.0)
    assert any('bottle lifted' in line for line in eval_case.evidence)
    assert eval_case.recorded is None
    assert eval_case.truth.correct
    assert eval_case.truth.source == 'label'
    assert eval_case.failure_kind == ''
    assert eval_case.source == 'demo_cell'
    assert (eval_case.tool, eval_case.segment) == ('pick_object', 0)
    assert dict(eval_case.arguments) == {'target': 'bottle'}
    eval_case.assert_success()
    eval_case.assert_correct()

@pytest.mark.eval_cases(run='demo_cell-02-*')
def test_missed(eval_case):
    eval_case.assert_failure()
    eval_case.assert_failure('not_grasped')
    eval_case.assert_correct()

@pytest.mark.eval_cases(run='demo_cell-06-*')
def test_dead(eval_case):
    assert eval_case.status is None
    assert eval_case.verdict is None
    assert eval_case.outcome.error_kind == 'no_frames'
"""


def test_a_test_function_sees_what_its_segment_came_to(project: Project) -> None:
    project.ini('harness_eval_labels = labels.csv')
    project.write(ALL_IT_OFFERS)
    project.run().assert_outcomes(passed=3)


def test_a_test_function_runs_once_for_each_segment_under_a_readable_name(
    project: Project,
) -> None:
    project.write('def test_any(eval_case): pass\n')
    result = project.run('--collect-only', '-q')
    names = [line for line in result.outlines if '::' in line]
    assert len(names) == 24
    assert f'test_cell.py::test_any[demo_cell:{GOOD_PICK}:0]' in names
    assert 'test_cell.py::test_any[demo_cell:demo_cell-21-insert_peg:2]' in names


@pytest.mark.parametrize(
    ('claim', 'said'),
    [
        ('assert_success()', 'pick_object: expected success, found failure not_grasped'),
        ("assert_failure('dropped')", 'expected failure dropped, found failure not_grasped'),
        ('assert_unchanged()', f'demo_cell {BAD_PICK}:0 has no outcome on record'),
        ('assert_correct()', 'nobody knows what really happened in demo_cell'),
    ],
)
def test_a_claim_that_does_not_hold_is_told_with_the_evidence_and_without_our_internals(
    project: Project, claim: str, said: str
) -> None:
    project.write(f'def test_it(eval_case):\n    eval_case.{claim}\n')
    result = project.run('-k', BAD_PICK)
    result.assert_outcomes(failed=1, deselected=23)
    shown = '\n'.join(result.outlines)
    assert said in shown
    assert 'eval_case.py' not in shown
    assert 'judged_once.py' not in shown
    if 'expected' in said:
        assert 'something between the fingers' in shown


def test_a_mark_that_no_segment_answers_to_fails_and_does_not_pass_silently(
    project: Project,
) -> None:
    project.write(
        'import pytest\n'
        "@pytest.mark.eval_cases(tool='pick_objects')\n"
        'def test_pick(eval_case): eval_case.assert_success()\n'
        "@pytest.mark.eval_cases('pick_object')\n"
        'def test_typo(eval_case): eval_case.assert_success()\n'
        'def test_beside(): pass\n'
    )
    result = project.run('--strict-markers')
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(['*no segment is there for test_pick: *has 24 segments*'])
    result.stdout.fnmatch_lines(['*the mark eval_cases takes tool=* and run=*'])


# --- a test for each segment ---------------------------------------------------------------------


def test_each_segment_is_a_test_that_holds_the_verdict_against_the_truth(
    project: Project,
) -> None:
    project.ini('harness_eval_labels = labels.csv\nharness_eval_collect = true')
    result = project.run('-rs')
    result.assert_outcomes(passed=20, failed=3, skipped=1)
    result.stdout.fnmatch_lines_random(
        [
            '*pick_object: expected a verdict, found error no_frames*',
            '*pick_object: expected a verdict, found error frozen*',
            '*pick_object: expected a verdict, found error clock_skew*',
            "*SKIPPED*abstained view_unusable: view 'front'*",
        ]
    )


def test_a_verdict_that_contradicts_its_label_fails_in_a_few_lines(project: Project) -> None:
    labels = project.path / 'labels.csv'
    text = labels.read_text()
    wrong = f'{GOOD_PICK},0,demo_cell,failure,it slipped at once'
    labels.write_text(text.replace(f'{GOOD_PICK},0,demo_cell,success,', wrong))
    project.ini('harness_eval_labels = labels.csv')
    result = project.run('--harness-eval', '-k', GOOD_PICK)
    result.assert_outcomes(failed=1, deselected=23)
    shown = '\n'.join(result.outlines)
    assert (
        'pick_object: expected failure, as the label says (it slipped at once), found success'
    ) in shown
    assert '  - bottle lifted' in shown
    assert 'Traceback' not in shown
    assert 'pytest_plugin.py' not in shown
    assert 'pytest_session.py' not in shown
    assert str(project.path) not in shown.split('short test summary')[0].split('FAILURES')[1]


def test_a_verdict_that_nothing_is_known_of_is_skipped_and_not_passed(project: Project) -> None:
    result = project.run('--harness-eval', '-k', GOOD_PICK, '-rs')
    result.assert_outcomes(skipped=1, deselected=23)
    result.stdout.fnmatch_lines(['*success, and neither a truth nor a record to hold it against*'])


def test_a_case_without_a_truth_is_held_against_its_record(project: Project, kept: Path) -> None:
    shutil.copytree(kept, project.path / 'cases')
    project.ini(text=INI.replace('demo_cell', 'cases'))
    project.run('--harness-eval').assert_outcomes(passed=2)
    config = project.path / 'cell.yaml'
    text = config.read_text()
    # Fingers that are open count as closed around something.
    config.write_text(text.replace('between: [0.040, 0.060]', 'between: [0.080, 0.090]'))
    result = project.run('--harness-eval')
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ['*pick_object: expected success, as on record, found * not_grasped']
    )


def test_a_case_is_unchanged_or_not(project: Project, kept: Path) -> None:
    shutil.copytree(kept, project.path / 'cases')
    project.ini(text=INI.replace('demo_cell', 'cases'))
    project.write('def test_it(eval_case): eval_case.assert_unchanged()\n')
    project.run().assert_outcomes(passed=2)


def test_segments_can_be_chosen_by_run_and_by_tool(project: Project) -> None:
    found = project.run('--harness-eval', '--collect-only', '-q', '-k', 'open_drawer')
    assert [line.split('::')[-1] for line in found.outlines if '::' in line] == [
        'demo_cell-09-open_drawer:0',
        'demo_cell-20-open_drawer:0',
    ]


def test_what_cannot_be_read_fails_and_the_rest_is_judged(project: Project, kept: Path) -> None:
    shutil.copytree(kept, project.path / 'cases')
    broken = project.path / 'cases' / 'broken'
    broken.mkdir()
    (broken / 'case.json').write_text('{')
    project.ini(text=INI.replace('demo_cell', 'cases'))
    result = project.run('--harness-eval')
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(['evidence_lost: *broken*'])
    project.write('def test_it(eval_case): eval_case.assert_unchanged()\n')
    result = project.run('test_cell.py')
    result.assert_outcomes(passed=2, errors=1)


def test_a_cut_bag_is_told_of_and_not_silently_left_out(project: Project) -> None:
    file = project.path / 'demo_cell' / 'demo_cell.mcap'
    file.write_bytes(b'not a bag at all')
    result = project.run('--harness-eval')
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(['*demo_cell*'])


# --- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('ini', 'said'),
    [
        ('[pytest]\nharness_eval_cases = demo_cell\n', 'harness_eval_config is not set'),
        ('[pytest]\nharness_eval_config = cell.yaml\n', 'harness_eval_cases is not set'),
        (INI + 'harness_eval_answers = perhaps', "recorded or live, not 'perhaps'"),
        (INI + 'harness_eval_labels = nothing.csv', 'the labels cannot be read'),
        (INI.replace('cell.yaml', 'nothing.yaml'), 'nothing.yaml'),
    ],
)
def test_wrong_settings_are_told_without_a_traceback(
    project: Project, ini: str, said: str
) -> None:
    project.ini(text=ini)
    project.write('def test_it(eval_case): pass\ndef test_beside(): pass\n')
    result = project.run()
    result.assert_outcomes(passed=1, errors=1)
    shown = '\n'.join(result.outlines)
    assert said in shown
    assert 'Traceback' not in shown
    assert 'pytest_plugin.py' not in shown
    assert 'pytest_session.py' not in shown


def test_wrong_settings_are_an_error_of_each_source_that_is_collected(
    project: Project, kept: Path
) -> None:
    shutil.copytree(kept, project.path / 'cases')
    project.ini(
        text=INI.replace('= demo_cell', '= demo_cell\n    cases') + 'harness_eval_labels = x'
    )
    result = project.run('--harness-eval')
    result.assert_outcomes(errors=3)
    assert '\n'.join(result.outlines).count('the labels cannot be read') >= 3


def test_a_pattern_that_means_nothing_ends_the_session_as_bad_usage(project: Project) -> None:
    project.ini(text=INI + '    cases/*.mcap\nharness_eval_collect = true')
    result = project.run()
    assert result.ret is pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(['*harness_eval_cases: nothing is called *.mcap*'])


def test_a_source_where_pytest_does_not_look_is_told_of_and_not_silently_left_out(
    project: Project,
) -> None:
    (project.path / 'build').mkdir()
    (project.path / 'demo_cell').rename(project.path / 'build' / 'demo_cell')
    project.ini(text=INI.replace('demo_cell', 'build/demo_cell') + 'harness_eval_collect = true')
    result = project.run()
    assert result.ret is pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(['*demo_cell lies in a folder that norecursedirs leaves out*'])


def test_sources_outside_of_the_tests_are_collected_unless_something_was_asked_for(
    project: Project,
) -> None:
    (project.path / 'tests').mkdir()
    project.write('def test_mine(): pass\n', 'tests/test_mine.py')
    project.ini('testpaths = tests\nharness_eval_collect = true')
    names = [line for line in project.run('--collect-only', '-q').outlines if '::' in line]
    assert len(names) == 25
    assert f'demo_cell/metadata.yaml::{GOOD_PICK}:0' in names
    asked = project.run('--collect-only', '-q', 'tests').outlines
    assert [line for line in asked if '::' in line] == ['tests/test_mine.py::test_mine']
    one = project.run('--collect-only', '-q', f'demo_cell/metadata.yaml::{GOOD_PICK}:0').outlines
    assert len([line for line in one if '::' in line]) == 1


# --- not in the way ------------------------------------------------------------------------------


def test_collecting_judges_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def judging(*arguments: object) -> None:
        raise AssertionError('something was judged')

    monkeypatch.setattr('harness_eval.replay.judged_once.judge', judging)
    project.write('def test_any(eval_case): pass\n')
    result = project.run('--harness-eval', '--collect-only', '-q')
    assert len([line for line in result.outlines if '::' in line]) == 48
    project.run('test_cell.py', '-k', GOOD_PICK).assert_outcomes(passed=1, deselected=23)


def test_each_segment_is_judged_once_however_many_tests_ask(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[int] = []

    def counting(task: Task) -> object:
        judged.append(task.size)
        return judge(task)

    monkeypatch.setattr('harness_eval.replay.judged_once.judge', counting)
    project.write(
        'def test_one(eval_case): assert eval_case.status\n'
        'def test_two(eval_case): assert eval_case.evidence\n'
    )
    chosen = of_runs(GOOD_PICK, 'demo_cell-11')
    project.run('-k', chosen).assert_outcomes(passed=6, deselected=42)
    # One run of one segment, and one of two, which are judged together.
    assert sorted(judged) == [1, 2]


def test_workers_of_xdist_share_the_tests(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The plugins of a sourced ROS 2 would be imported three times.
    monkeypatch.setenv('PYTEST_DISABLE_PLUGIN_AUTOLOAD', '1')
    project.ini('harness_eval_labels = labels.csv')
    chosen = of_runs(GOOD_PICK, BAD_PICK, DEAD_PICK, COVERED_PICK)
    result = project.run_apart('-p', 'xdist.plugin', '--harness-eval', '-n', '2', '-k', chosen)
    result.assert_outcomes(passed=2, failed=1, skipped=1)


def test_a_project_without_it_notices_nothing_and_imports_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('PYTEST_DISABLE_PLUGIN_AUTOLOAD', '1')
    pytester.makeini('[pytest]\naddopts = --strict-markers --strict-config')
    pytester.makepyfile(
        'import sys\n'
        'def test_it():\n'
        "    heavy = {'cv2', 'numpy', 'pydantic', 'rosbags', 'sqlalchemy', 'yaml'}\n"
        '    assert heavy & set(sys.modules) == set()\n'
        "    assert 'harness_eval.replay.pytest_plugin' in sys.modules\n"
    )
    (pytester.path / 'metadata.yaml').write_text('not: a bag')
    pytester.runpytest_subprocess('-p', MODULE).assert_outcomes(passed=1)


def test_the_plugin_is_declared_as_an_entry_point() -> None:
    setup = (Path(__file__).parents[2] / 'setup.py').read_text()
    assert f"'pytest11': ['harness_eval = {MODULE}']" in setup
    assert MODULE in sys.modules or not INSTALLED
