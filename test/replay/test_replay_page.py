"""The commands of ``docs/replay.md`` run as they stand, and show what the page shows."""

from __future__ import annotations

from importlib.metadata import entry_points
import os
from pathlib import Path
import shutil
import sys

from console_page import commands_of, is_shown, run_all
import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / 'docs' / 'replay.md'
PLUGIN = 'harness_eval.replay.pytest_plugin'


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A shell in which the package is installed, whether it is here or not."""
    programs = tmp_path / 'bin'
    programs.mkdir()
    for name, module in (('harness-eval', 'harness_eval.cli'), ('pytest', 'pytest')):
        script = programs / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n')
        script.chmod(0o755)
    installed = entry_points(group='pytest11', name='harness_eval')
    # Only the plugin at hand, so that those of a sourced ROS 2 do not add to what is shown; and no
    # width of a terminal, which whoever runs the tests may have set.
    known = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith('PYTEST_') and name != 'COLUMNS'
    }
    return {
        **known,
        'PATH': f'{programs}:{os.environ["PATH"]}',
        'PYTHONPATH': f'{ROOT}:{os.environ.get("PYTHONPATH", "")}',
        'PYTEST_DISABLE_PLUGIN_AUTOLOAD': '1',
        'PYTEST_ADDOPTS': f'-p {"harness_eval" if installed else PLUGIN}',
    }


@pytest.mark.timeout(300)
def test_the_commands_of_the_page_show_what_it_shows(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    shutil.copytree(ROOT / 'examples' / 'demo_bag', tmp_path / 'examples' / 'demo_bag')
    commands = commands_of(PAGE)
    assert len(commands) > 20
    assert not any('ros2' in command.text for command in commands)
    written = run_all(commands, tmp_path, environment)
    assert len(written) == len(commands)
    wrong = [
        f'{PAGE.name}, line {command.line}: $ {command.text}\n{said}'
        for command, said in zip(commands, written, strict=True)
        if not is_shown(command.shown, said)
    ]
    assert wrong == [], '\n\n'.join(wrong)


@pytest.mark.parametrize(
    ('shown', 'written', 'agrees'),
    [
        (['a', 'b'], 'a\nb\n', True),
        (['a', 'b'], 'a\n\nb\n', False),
        (['a', '...', 'c'], 'a\nb\nb\nc\n', True),
        (['a', '...'], 'a\n', True),
        (['a'], 'a\nb\n', False),
        (['1 passed in ...'], '1 passed in 0.1s\n', True),
        (['1 passed in ...'], '2 passed in 0.1s\n', False),
        ([], '', True),
        ([], 'Traceback\n', False),
    ],
)
def test_an_output_is_shown_or_it_is_not(shown: list[str], written: str, agrees: bool) -> None:
    assert is_shown(shown, written) is agrees
