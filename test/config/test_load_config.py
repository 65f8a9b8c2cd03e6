"""A good file becomes settings that have everything that the rest of the package asks for."""

from __future__ import annotations

import copy
import os
from pathlib import Path
import pickle
import re
import time

from pydantic import ValidationError
import pytest

from harness_eval.config import Config, ConfigError, load_config
from harness_eval.config.evaluators import KINDS

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / 'config' / 'example.yaml'

BLOCK = """\
evaluation:
  required_tools:
    - grasp
    - insert
  segment_tools:
    - insert
  max_segments: 5
  post_conditions:
    grasp: The target is visibly held above its original support.
    insert: The peg is in the hole.
    look_around: Nobody asks for this one here.
"""
REST = """\
  evaluator: own
  evaluators: {own: {kind: plugin, ref: "my_robot.grading:grade", options: {grid: [1, 2]}}}
  tools: {grasp: {references: {goal: pictures/goal.png}, views: [grip, front]}}
capture:
  views:
    front: {topic: front/image_raw/compressed}
    side: {topic: side/image_raw}
  states: {grip: {topic: joint_states, field: "position[3]"}}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / 'pictures').mkdir()
    (tmp_path / 'pictures' / 'goal.png').write_bytes(b'')
    file = tmp_path / 'cell.yaml'
    file.write_text(BLOCK + REST)
    return file


def test_the_example_loads_and_has_all_that_it_says() -> None:
    config = load_config(EXAMPLE)
    assert list(config.evaluation.tools) == ['pick_object', 'place_object', 'insert_peg']
    assert config.evaluator_of('pick_object') == 'cell_checks'
    assert config.views_of('insert_peg') == ('front', 'wrist')
    assert config.states_of('insert_peg') == ('peg_height',)
    assert [check.kind for check in config.tool('insert_peg').checks] == ['state', 'color']


def test_a_state_that_a_check_names_is_observed_though_views_lists_only_cameras(
    path: Path,
) -> None:
    text = path.read_text().replace(
        'views: [grip, front]}}',
        'views: [front], checks: [{state: {name: grip, between: [0, 1]}}]}}',
    )
    path.write_text(text)
    config = load_config(path)
    assert (config.views_of('grasp'), config.states_of('grasp')) == (('front',), ('grip',))


def test_loading_the_example_takes_a_small_part_of_the_start_of_the_node() -> None:
    load_config(EXAMPLE)
    begin = time.process_time()
    load_config(EXAMPLE)
    assert time.process_time() - begin < 0.2


def test_a_block_of_thea_needs_an_evaluator_and_views(tmp_path: Path) -> None:
    file = tmp_path / 'thea.yaml'
    file.write_text(BLOCK)
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    messages = [problem.message for problem in caught.value.problems]
    assert [problem.line for problem in caught.value.problems] == [3, 3, 4, 4]
    assert sum('expected an evaluator' in message for message in messages) == 2
    assert sum('expected a view or a state' in message for message in messages) == 2


def test_every_required_tool_has_its_post_condition_and_evaluator_merged_in(path: Path) -> None:
    config = load_config(path)
    assert list(config.evaluation.tools) == ['grasp', 'insert']
    assert config.tool('insert').post_condition == 'The peg is in the hole.'
    assert config.tool('insert').evaluator == 'own'
    assert config.tool('grasp').post_condition is not None
    assert config.evaluation.max_segments == 5
    with pytest.raises(KeyError):
        config.tool('look_around')


def test_views_and_states_are_given_in_the_order_of_the_file(path: Path) -> None:
    config = load_config(path)
    assert config.views_of('insert') == ('front', 'side')
    assert config.views_of('grasp') == ('front',)
    assert config.states_of('grasp') == ('grip',)


def test_the_message_type_of_a_view_follows_its_topic(path: Path) -> None:
    views = load_config(path).capture.views
    assert views['front'].message_type == 'sensor_msgs/msg/CompressedImage'
    assert views['side'].message_type == 'sensor_msgs/msg/Image'


def test_what_the_file_leaves_out_has_its_default(path: Path) -> None:
    config = load_config(path)
    assert config.capture.settle == 0.3
    assert [source.topic for source in config.completions] == ['tool_completions']
    assert config.evidence.max_bytes == 2 * 1024**3
    assert config.scene_graph.mode == 'gate'


def test_a_key_with_nothing_after_it_has_its_default(path: Path) -> None:
    path.write_text(
        BLOCK.replace('max_segments: 5', 'max_segments:') + REST + '  settle:\ncompletions:\n'
    )
    config = load_config(path)
    assert config.evaluation.max_segments == 8
    assert config.capture.settle == 0.3
    assert [source.topic for source in config.completions] == ['tool_completions']


def test_another_default_evaluator_can_be_asked_for_and_must_be_in_the_file(path: Path) -> None:
    path.write_text(path.read_text().replace('evaluators: {own', 'evaluators: {two: {kind: '
                                             'plugin, ref: "a:b"}, own'))  # fmt: skip
    assert load_config(path, evaluator='two').evaluator_of('insert') == 'two'
    with pytest.raises(ConfigError, match='expected the name of an evaluator'):
        load_config(path, evaluator='three')


def test_a_reference_is_found_beside_its_file_and_its_path_is_never_shown(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    config = load_config('cell.yaml')
    found = config.reference_path('grasp', 'goal')
    assert found == path.parent / 'pictures' / 'goal.png'
    for shown in (repr(config), str(config), config.model_dump_json(), str(config.model_dump())):
        assert str(path.parent) not in shown
    with pytest.raises(KeyError):
        config.reference_path('grasp', 'other')


@pytest.mark.skipif(os.geteuid() == 0, reason='root may read every file')
def test_a_reference_that_may_not_be_read_is_refused(path: Path) -> None:
    (path.parent / 'pictures' / 'goal.png').chmod(0)
    with pytest.raises(ConfigError, match='cannot be read'):
        load_config(path)


def test_options_of_a_plugin_arrive_as_they_were_written(path: Path) -> None:
    assert load_config(path).evaluation.evaluators['own'].options == {'grid': [1, 2]}


def test_settings_cannot_be_changed(path: Path) -> None:
    config = load_config(path)
    with pytest.raises(ValidationError, match='frozen'):
        config.capture.settle = 0.0


def test_settings_survive_a_copy_and_another_process(path: Path) -> None:
    config = load_config(path)
    for twin in (copy.deepcopy(config), pickle.loads(pickle.dumps(config))):
        assert isinstance(twin, Config)
        assert twin == config
        assert twin.reference_path('grasp', 'goal').name == 'goal.png'


def test_an_error_survives_another_process(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / 'none.yaml')
    assert pickle.loads(pickle.dumps(caught.value)).problems == caught.value.problems


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (b'', 'an empty file'),
        (b'- a\n- b\n', 'expected a mapping of settings, found a list of 2'),
        (b'just text', "found 'just text'"),
        (b'a: 1\nb: "\xff"\n', 'expected UTF-8, found the byte 0xff in line 2'),
        ('a: 1'.encode('utf-16'), 'expected UTF-8'),
        (b'#' * (1024 * 1024 + 1), 'at most 1048576 bytes'),
    ],
)
def test_what_is_no_configuration_file_is_a_configuration_error(
    tmp_path: Path, content: bytes, words: str
) -> None:
    file = tmp_path / 'cell.yaml'
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load_config(file)
    assert words in str(caught.value)
    assert str(caught.value).startswith('cell.yaml')


def test_a_byte_order_mark_is_not_part_of_the_first_key(path: Path) -> None:
    path.write_bytes(b'\xef\xbb\xbf' + path.read_bytes())
    assert load_config(path).evaluation.max_segments == 5


def test_a_missing_file_a_directory_and_a_pipe_are_configuration_errors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / 'pipe.yaml')
    for name, words in (
        ('none.yaml', 'no such file'),
        ('.', 'a directory'),
        ('pipe.yaml', 'not a regular file'),
    ):
        with pytest.raises(ConfigError, match=words) as caught:
            load_config(tmp_path / name)
        assert caught.value.line == 0
        assert str(tmp_path) not in str(caught.value)


def test_the_evaluators_that_the_example_shows_as_comments_load_too(tmp_path: Path) -> None:
    text = (ROOT / 'config' / 'example.yaml').read_text()
    start, end = text.index('    # Your own code'), text.index('  tools:\n')
    lines = [line.replace('    # ', '    ', 1) for line in text[start:end].splitlines()]
    shown = [line for line in lines if re.match(r' {4}(\w+:( |$)|  \w+: )', line)]
    path = tmp_path / 'example.yaml'
    path.write_text(text[:start] + '\n'.join(shown) + '\n' + text[end:])
    kinds = {one.kind for one in load_config(path).evaluation.evaluators.values()}
    assert kinds == set(KINDS)
