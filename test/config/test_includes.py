"""An included file adds what a package of tools knows, and overrides nothing."""

from __future__ import annotations

from pathlib import Path
import sys

import pytest

from harness_eval.config import Config, ConfigError, load_config, Problem

MAIN = """\
include: [tools.yaml]
evaluation:
  required_tools: [pick]
  evaluator: cell
  evaluators: {cell: {kind: plugin, ref: "a:b"}}
capture: {views: {front: {topic: image}}}
"""
TOOLS = """\
evaluation:
  required_tools: [pick, place]
  segment_tools: [place]
  post_conditions:
    place: "It stands."
  evaluators:
    theirs: {kind: plugin, ref: "c:d"}
  tools:
    pick: {post_condition: "It is held.", evaluator: theirs}
    fly: {post_condition: "It is in the air."}
"""


def load(folder: Path, files: dict[str, str]) -> Config:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return load_config(folder / 'main.yaml')


def refused(folder: Path, files: dict[str, str]) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        load(folder, files)
    assert str(folder) not in str(caught.value)
    return caught.value.problems


def test_an_included_file_contributes_tools_post_conditions_and_evaluators(
    tmp_path: Path,
) -> None:
    config = load(tmp_path, {'main.yaml': MAIN, 'tools.yaml': TOOLS})
    assert config.evaluation.required_tools == ('pick', 'place')
    assert config.evaluation.segment_tools == ('place',)
    assert config.tool('pick').post_condition == 'It is held.'
    assert config.tool('pick').evaluator == 'theirs'
    assert config.tool('place').post_condition == 'It stands.'


def test_a_tool_of_an_included_file_that_nobody_requires_is_left_out(tmp_path: Path) -> None:
    config = load(tmp_path, {'main.yaml': MAIN, 'tools.yaml': TOOLS})
    assert 'fly' not in config.evaluation.tools


@pytest.mark.parametrize(
    ('more', 'key', 'line'),
    [
        ('  tools: {pick: {post_condition: "Mine."}}\n', 'evaluation.tools.pick', 9),
        ('  post_conditions: {place: "Mine."}\n', 'evaluation.post_conditions.place', 5),
    ],
)
def test_the_same_thing_in_two_files_is_refused_naming_both_places(
    tmp_path: Path, more: str, key: str, line: int
) -> None:
    main = MAIN.replace('capture:', more + 'capture:')
    found = refused(tmp_path, {'main.yaml': main, 'tools.yaml': TOOLS})
    assert [(one.file, one.line, one.key) for one in found] == [('tools.yaml', line, key)]
    assert 'main.yaml:6 too' in found[0].message


def test_the_same_evaluator_in_two_files_is_refused_naming_both_places(tmp_path: Path) -> None:
    tools = TOOLS.replace('    theirs: {kind', '    cell: {kind: checks}\n    theirs: {kind')
    found = refused(tmp_path, {'main.yaml': MAIN, 'tools.yaml': tools})
    assert [(one.file, one.line) for one in found] == [('tools.yaml', 7)]
    assert 'main.yaml:5 too' in found[0].message


def test_a_problem_in_an_included_file_is_told_with_that_file_and_line(tmp_path: Path) -> None:
    tools = TOOLS.replace('"It is held."', '"The {target} is held."').replace(
        'segment_tools: [place]', 'segment_tools: [plaice]'
    )
    found = refused(tmp_path, {'main.yaml': MAIN, 'tools.yaml': tools})
    assert [(one.file, one.line, one.key) for one in found] == [
        ('tools.yaml', 3, 'evaluation.segment_tools[0]'),
        ('tools.yaml', 9, 'evaluation.tools.pick.post_condition'),
    ]


@pytest.mark.parametrize(
    ('text', 'key'),
    [
        ('capture: {settle: 9}\n', 'capture'),
        ('scene_graph: {mode: observe}\n', 'scene_graph'),
        ('evaluation: {outcome_threshold: 0.1}\n', 'evaluation.outcome_threshold'),
        ('evaluation: {evaluator: mine}\n', 'evaluation.evaluator'),
    ],
)
def test_an_included_file_may_not_decide_anything_else(
    tmp_path: Path, text: str, key: str
) -> None:
    files = {'main.yaml': MAIN.replace('[tools.yaml]', '[tools.yaml, b.yaml]'),
             'tools.yaml': TOOLS, 'b.yaml': text}  # fmt: skip
    assert [(one.file, one.line, one.key) for one in refused(tmp_path, files)] == [
        ('b.yaml', 1, key)
    ]


def test_includes_that_loop_are_refused_naming_the_loop(tmp_path: Path) -> None:
    found = refused(
        tmp_path,
        {
            'main.yaml': MAIN,
            'tools.yaml': 'include: [again.yaml]\n' + TOOLS,
            'again.yaml': 'include: [./tools.yaml]\n',
        },
    )
    assert [(one.file, one.line, one.key) for one in found] == [('again.yaml', 1, 'include[0]')]
    assert 'tools.yaml includes again.yaml includes tools.yaml' in found[0].message


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    found = refused(tmp_path, {'main.yaml': MAIN.replace('tools.yaml', 'main.yaml')})
    assert 'main.yaml includes main.yaml' in found[0].message


def test_includes_of_too_many_levels_are_refused(tmp_path: Path) -> None:
    files = {f'{n}.yaml': f'include: [{n + 1}.yaml]\n' for n in range(12)}
    found = refused(tmp_path, {'main.yaml': MAIN.replace('tools.yaml', '0.yaml'), **files})
    assert ('7.yaml', 'include[0]') in [(one.file, one.key) for one in found]
    assert any('at most 8 levels' in one.message for one in found)


def test_too_many_included_files_are_refused(tmp_path: Path) -> None:
    names = ', '.join(f'{n}.yaml' for n in range(70))
    files = {f'{n}.yaml': 'evaluation:\n' for n in range(70)}
    found = refused(tmp_path, {'main.yaml': MAIN.replace('tools.yaml', names), **files})
    assert any('at most 64 included files' in one.message for one in found)


def test_a_file_that_is_reached_on_two_ways_contributes_once(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        {
            'main.yaml': MAIN.replace('[tools.yaml]', '[a.yaml, tools.yaml]'),
            'a.yaml': 'include: [tools.yaml]\n',
            'tools.yaml': TOOLS,
        },
    )
    assert config.evaluation.required_tools == ('pick', 'place')


def test_a_path_starts_at_the_folder_of_the_file_that_names_it(tmp_path: Path) -> None:
    tools = TOOLS.replace('"It is held."', '"It is held.", references: {goal: goal.png}')
    config = load(
        tmp_path,
        {
            'main.yaml': MAIN.replace('tools.yaml', 'skills/all.yaml'),
            'skills/all.yaml': 'include: [more/tools.yaml]\n',
            'skills/more/tools.yaml': tools,
            'skills/more/goal.png': '',
        },
    )
    assert config.reference_path('pick', 'goal') == tmp_path / 'skills' / 'more' / 'goal.png'


@pytest.mark.parametrize(
    ('listed', 'words'),
    [
        ('none.yaml', "cannot include 'none.yaml': expected a YAML file, found no such file"),
        ('.', 'found a directory'),
        ('/etc/tools.yaml', 'an absolute path'),
        ('https://tools.yaml', 'relative path or package://'),
        ('package://', 'package://package/path'),
        ('package://only_a_package', 'package://package/path'),
        ('3', 'expected a path, found 3'),
        ('" "', 'one that no file can have'),
    ],
)
def test_an_include_that_cannot_be_followed_is_refused(
    tmp_path: Path, listed: str, words: str
) -> None:
    main = MAIN.replace('[tools.yaml]', f'[tools.yaml, {listed}]')
    found = refused(tmp_path, {'main.yaml': main, 'tools.yaml': TOOLS})
    assert [(one.file, one.line, one.key) for one in found] == [('main.yaml', 1, 'include[1]')]
    assert words in found[0].message


def test_yaml_that_is_wrong_in_an_included_file_is_told_there(tmp_path: Path) -> None:
    found = refused(tmp_path, {'main.yaml': MAIN, 'tools.yaml': TOOLS + 'a: [\n'})
    assert ('tools.yaml', 12) in [(one.file, one.line) for one in found]


def test_a_package_path_is_found_in_the_share_folder_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip('ament_index_python', reason='package:// needs ament_index_python')
    share = tmp_path / 'prefix' / 'share'
    (share / 'ament_index' / 'resource_index' / 'packages').mkdir(parents=True)
    (share / 'ament_index' / 'resource_index' / 'packages' / 'my_skills').touch()
    (share / 'my_skills' / 'config').mkdir(parents=True)
    tools = TOOLS.replace('"It is held."', '"It is held.", references: {goal: goal.png}')
    (share / 'my_skills' / 'config' / 'tools.yaml').write_text(tools)
    (share / 'my_skills' / 'config' / 'goal.png').touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path / 'prefix'))
    main = MAIN.replace('[tools.yaml]', '["package://my_skills/config/tools.yaml"]')
    config = load(tmp_path, {'main.yaml': main})
    assert config.tool('place').post_condition == 'It stands.'
    assert config.reference_path('pick', 'goal') == share / 'my_skills' / 'config' / 'goal.png'


def test_a_package_that_is_not_installed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip('ament_index_python', reason='package:// needs ament_index_python')
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    main = MAIN.replace('[tools.yaml]', '["package://my_skills/tools.yaml"]')
    found = refused(tmp_path, {'main.yaml': main})
    assert "found no 'my_skills'; build it and source its workspace" in found[0].message


def test_a_package_path_without_ros_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, 'ament_index_python', None)
    monkeypatch.setitem(sys.modules, 'ament_index_python.packages', None)
    main = MAIN.replace('[tools.yaml]', '["package://my_skills/tools.yaml"]')
    found = refused(tmp_path, {'main.yaml': main})
    assert 'source a ROS 2 installation first' in found[0].message
