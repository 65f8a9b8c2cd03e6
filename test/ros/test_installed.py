"""The package as colcon installed it: found by ``ros2 run``, by launch and on the PATH."""

from __future__ import annotations

import os
from pathlib import Path
import shutil
import subprocess

from ament_index_python.packages import get_package_prefix, PackageNotFoundError
import pytest


@pytest.fixture(scope='module')
def prefix() -> Path:
    """Where harness_eval is installed."""
    try:
        return Path(get_package_prefix('harness_eval'))
    except PackageNotFoundError:
        if os.environ.get('HARNESS_EVAL_REQUIRE_ROS') == '1':
            raise
        pytest.skip('harness_eval is not installed in a sourced workspace: `make build` does it')


def test_ros2_run_finds_every_command(prefix: Path) -> None:
    folder = prefix / 'lib' / 'harness_eval'
    commands = {path.name for path in folder.iterdir() if os.access(path, os.X_OK)}
    assert commands == {'evaluator_node', 'scene_graph_node', 'harness-eval', 'demo_cell'}


def test_harness_eval_is_on_the_path_after_sourcing(prefix: Path) -> None:
    command = shutil.which('harness-eval')
    assert command is not None
    done = subprocess.run([command, '--help'], capture_output=True, text=True, timeout=60.0)
    assert (done.returncode, done.stderr) == (0, '')
    assert 'check-config' in done.stdout


def test_launch_and_configuration_files_are_in_the_share_folder(prefix: Path) -> None:
    share = prefix / 'share' / 'harness_eval'
    assert (share / 'launch' / 'harness_eval.launch.py').is_file()
    assert (share / 'launch' / 'demo.launch.py').is_file()
    assert (share / 'config' / 'demo.yaml').is_file()
    assert (share / 'config' / 'fastdds.xml').is_file()
