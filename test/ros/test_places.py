"""Where the node keeps its record when nobody says."""

from __future__ import annotations

from pathlib import Path
import subprocess
import sys

import pytest

from harness_eval.ros import places


def test_the_folder_follows_ros_home_and_the_name_of_the_node(tmp_path: Path) -> None:
    folder = places.node_folder({'ROS_HOME': str(tmp_path)}, '/robot1/harness_eval')
    assert folder == tmp_path / 'harness_eval' / 'robot1-harness_eval'
    assert places.default_ledger_url(folder, simulated=False) == (
        f'sqlite:///{folder}/ledger.sqlite3'
    )
    assert places.default_evidence_dir(folder) == folder / 'evidence'


def test_without_ros_home_it_lies_in_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('HOME', '/home/somebody')
    assert places.home({}) == Path('/home/somebody/.ros')


def test_a_simulation_gets_a_new_ledger_and_the_oldest_are_deleted(tmp_path: Path) -> None:
    for number in range(15):
        path = tmp_path / f'simulated-20260101-0000{number:02}-1.sqlite3'
        path.touch()
        Path(f'{path}-wal').touch()
    (tmp_path / 'ledger.sqlite3').touch()
    url = places.default_ledger_url(tmp_path, simulated=True)
    Path(url.removeprefix('sqlite:///')).touch()
    left = sorted(path.name for path in tmp_path.glob('simulated-*.sqlite3'))
    assert len(left) == places.KEPT_SIMULATIONS
    assert left[0] == 'simulated-20260101-000006-1.sqlite3'
    assert len(list(tmp_path.glob('*-wal'))) == places.KEPT_SIMULATIONS - 1
    assert (tmp_path / 'ledger.sqlite3').exists()


def test_a_node_that_the_same_launch_starts_again_finds_its_ledger(tmp_path: Path) -> None:
    first = places.default_ledger_url(tmp_path, simulated=True, launch='10-500')
    Path(first.removeprefix('sqlite:///')).touch()
    assert places.default_ledger_url(tmp_path, simulated=True, launch='10-500') == first
    assert places.default_ledger_url(tmp_path, simulated=True, launch='10-501') != first
    assert places.default_ledger_url(tmp_path, simulated=True, launch='0-500') != first


PARENT = """
import subprocess, sys
tell = 'from harness_eval.ros.places import launch_key; print(launch_key(), flush=True)'
for _ in range(2):
    subprocess.run([sys.executable, '-c', tell], check=True)
"""


@pytest.mark.parametrize(('program', 'keys'), [('bringup.launch.py', 1), ('shell.py', 2)])
def test_what_a_launch_starts_again_belongs_to_it_and_what_a_shell_starts_does_not(
    tmp_path: Path, program: str, keys: int
) -> None:
    script = tmp_path / program
    script.write_text(PARENT)
    told = [
        subprocess.check_output([sys.executable, str(script)], text=True).split() for _ in range(2)
    ]
    assert [len(lines) for lines in told] == [2, 2]
    assert [len(set(lines)) for lines in told] == [keys, keys]
    assert not set(told[0]) & set(told[1]), 'another launch is another one'
