"""``harness-eval check-config`` tells a person what is in a file, or what is wrong with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from harness_eval.cli.check_config import check_config, notes
from harness_eval.config import load_config

EXAMPLE = Path(__file__).parents[2] / 'config' / 'example.yaml'
FILE = """\
evaluation:
  required_tools: [pick]
  evaluator: cell
  evaluators: {cell: {kind: checks}}
  post_conditions: {place: "It stands."}
  tools:
    pick:
      checks:
        - marker: {view: front, dictionary: DICT_4X4_50, id: 7}
capture: {views: {front: {topic: image}}}
completions: [{action: go, tool: move}]
scene_graph: {mode: observe}
"""


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()
    made.command('check-config')(check_config)
    return made


def test_a_good_file_is_summed_up_and_ends_with_0(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, [str(EXAMPLE)])
    assert result.exit_code == 0
    assert result.stderr == ''
    for word in (
        'ok example.yaml',
        'pick_object',
        'cell_checks: checks',
        'front: cell/front/image_raw (Image, camera_info, usable)',
        'gripper_opening: joint_states position[name=finger_joint]',
        'tool_completions (ToolCompletion)',
        'gate, order completion, hold 60 s',
    ):
        assert word in result.stdout
    assert '\x1b[' not in result.stdout
    assert '…' not in result.stdout


def test_each_problem_is_a_line_on_stderr_and_the_end_is_2(
    app: typer.Typer, tmp_path: Path
) -> None:
    file = tmp_path / 'cell.yaml'
    file.write_text(FILE.replace('view: front', 'view: fornt').replace('mode: obs', 'mode: Obs'))
    result = CliRunner().invoke(app, [str(file)])
    assert result.exit_code == 2
    assert result.stdout == ''
    lines = result.stderr.splitlines()
    assert [line.partition(': ')[0] for line in lines] == ['cell.yaml:9', 'cell.yaml:12']
    assert lines[0].endswith("found 'fornt', did you mean 'front'?")


@pytest.mark.parametrize('name', ['none.yaml', '.'])
def test_a_file_that_cannot_be_read_ends_with_2(
    app: typer.Typer, tmp_path: Path, name: str
) -> None:
    result = CliRunner().invoke(app, [str(tmp_path / name)])
    assert result.exit_code == 2
    assert 'expected a YAML file, found' in result.stderr


def test_the_schema_is_printed_without_a_file(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ['--schema'])
    assert result.exit_code == 0
    assert json.loads(result.stdout)['properties']['evaluation']


def test_neither_a_file_nor_schema_is_bad_usage(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 2
    assert 'expected a FILE' in result.stderr


def test_what_is_allowed_and_seldom_meant_is_noted(tmp_path: Path) -> None:
    file = tmp_path / 'cell.yaml'
    file.write_text(FILE)
    found = list(notes(load_config(file)))
    assert len(found) == 3
    assert found[0].startswith('mode observe')
    assert found[1].endswith('not required: place')
    assert found[2].startswith('completions of move are ignored')


def test_the_example_gives_no_cause_for_a_note() -> None:
    assert list(notes(load_config(EXAMPLE))) == []


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / 'plugins'
    (folder / 'my_robot').mkdir(parents=True)
    (folder / 'my_robot' / '__init__.py').write_text('raise RuntimeError("was run")')
    (folder / 'my_robot' / 'grading.py').write_text('def grade(request): return 1.0')
    (folder / 'plain_grading.py').write_text('def grade(request): return 1.0')
    (folder / 'starred.py').write_text('from plain_grading import *')
    monkeypatch.syspath_prepend(folder)
    return folder


def by_plugin(folder: Path, ref: str) -> str:
    file = folder / 'cell.yaml'
    kind = f'{{kind: plugin, ref: "{ref}"}}'
    file.write_text(FILE.replace('{cell: {kind: checks}}', f'{{cell: {kind}}}'))
    return str(file)


@pytest.mark.parametrize(
    ('ref', 'words'),
    [
        ('no_such_package.grading:grade', "no module 'no_such_package.grading'"),
        ('my_robot.no_such:grade', "no module 'my_robot.no_such'"),
        ('my_robot.grading:grad', "module 'my_robot.grading' has no 'grad'"),
    ],
)
def test_a_plugin_that_cannot_be_found_is_a_note_and_no_code_of_it_is_run(
    app: typer.Typer, plugins: Path, ref: str, words: str
) -> None:
    result = CliRunner().invoke(app, [by_plugin(plugins, ref)])
    assert result.exit_code == 0
    assert result.stderr.startswith('note: evaluation.evaluators.cell.ref: ')
    assert words in result.stderr
    assert 'was run' not in result.stderr
    assert result.stdout.startswith('ok cell.yaml')


@pytest.mark.parametrize('ref', ['my_robot.grading:grade', 'starred:grade', 'math:sqrt'])
def test_of_a_plugin_that_may_be_there_nothing_is_said(
    app: typer.Typer, plugins: Path, ref: str
) -> None:
    assert CliRunner().invoke(app, [by_plugin(plugins, ref)]).stderr == ''


@pytest.mark.parametrize(
    ('ref', 'words'),
    [
        ('my_robot.grading:grade', 'cannot be imported: RuntimeError: was run'),
        ('starred:no_such', "module 'starred' has no 'no_such'"),
    ],
)
def test_a_plugin_that_cannot_be_imported_is_an_error_when_asked_for(
    app: typer.Typer, plugins: Path, ref: str, words: str
) -> None:
    result = CliRunner().invoke(app, ['--import', by_plugin(plugins, ref)])
    assert result.exit_code == 2
    assert words in result.stderr
    assert result.stderr.startswith('cell.yaml: evaluation.evaluators.cell.ref: ')


def test_a_plugin_that_is_there_can_be_imported(app: typer.Typer, plugins: Path) -> None:
    result = CliRunner().invoke(app, ['--import', by_plugin(plugins, 'starred:grade')])
    assert (result.exit_code, result.stderr) == (0, '')
