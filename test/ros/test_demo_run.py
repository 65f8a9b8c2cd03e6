"""The demo in one command: everything is judged and agrees, and nothing is left running."""

from __future__ import annotations

from collections.abc import Iterator
import importlib.util
import json
import os
from pathlib import Path
import signal
import subprocess
import sys
import time

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec('mujoco') is None,
        reason='MuJoCo is not installed: pip install "harness_eval[demo]"',
    ),
]


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, '-m', 'harness_eval.demo.run', '--output', str(tmp_path / 'demo')],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def running(session: int) -> list[str]:
    """Commands of the processes that are still in a session, zombies aside."""
    found = []
    for folder in Path('/proc').iterdir():
        if folder.name.isdecimal():
            try:
                state, _parent, _group, its = (
                    (folder / 'stat').read_text().rpartition(')')[2].split()[:4]
                )
                command = (folder / 'cmdline').read_text().replace('\0', ' ')
            except OSError:
                continue
            if int(its) == session and state != 'Z':
                found.append(command)
    return found


@pytest.mark.timeout(300)
def test_the_whole_demo_agrees_with_the_truth(demo: subprocess.Popen[str], tmp_path: Path) -> None:
    text, _ = demo.communicate()
    assert demo.returncode == 0, text
    summary = json.loads((tmp_path / 'demo' / 'summary.json').read_text(encoding='utf-8'))
    rows = summary['runs']
    assert len({row['run_id'] for row in rows}) >= 12
    assert {'success', 'failure', 'process', 'error', 'abstained'} == {
        row['status'] for row in rows
    }
    assert all(row['agrees'] for row in rows)
    kinds = {row['fault']: row['kind'] for row in rows if row['fault'].startswith('camera')}
    assert kinds['camera occluded'] == 'view_unusable'
    assert kinds['camera frozen'] == 'frozen'
    assert kinds['camera clock wrong'] == 'clock_skew'
    assert kinds['camera dead'] in ('no_frames', 'stale', 'no_publisher')
    graph = summary['scene_graph']
    assert graph['edges'] == graph['truth'] != []
    assert graph['revision'] == sum(row['status'] == 'success' for row in rows)
    assert summary['agreement']['all'] is True
    assert summary['seconds'] < 90
    pictures = list((tmp_path / 'demo' / 'evidence').glob('*.jpg'))
    assert len(pictures) == len(rows)
    assert running(demo.pid) == []


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_demo_that_is_told_to_end_leaves_no_process(
    demo: subprocess.Popen[str], number: signal.Signals
) -> None:
    deadline = time.monotonic() + 60
    # The demo itself, two nodes and the player.
    while len(running(demo.pid)) < 4:
        assert time.monotonic() < deadline, 'the processes of the demo did not come up'
        time.sleep(0.05)
    os.kill(demo.pid, number)
    demo.wait(60)
    assert demo.returncode == 2
    assert running(demo.pid) == []
