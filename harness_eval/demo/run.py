"""The whole demo in one command: ``python -m harness_eval.demo.run``.

Starts the evaluator node and the scene graph node as processes of their own on a free ROS domain,
then the player with the cell, and ends what it started whatever happens.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
import contextlib
import os
from pathlib import Path
import shutil
import signal
import subprocess
import sys
import time
from typing import Final

from harness_eval.demo.domain import free_domain

EXIT_NOT_PLAYED: Final = 2
EXIT_TIMEOUT: Final = 124

_PATIENCE: Final = 8.0  # s from SIGINT to SIGKILL
_LONGEST: Final = 300.0  # s; a demo that hangs must not hang whoever waits for it
_POLL: Final = 0.2


def main(arguments: list[str] | None = None) -> int:
    """Run the demo.

    Returns:
        What the player returned: 0 if everything agrees, 1 if not; 2 if it could not be played,
        124 if it hung.
    """
    parser = argparse.ArgumentParser(prog='harness_eval.demo.run', description=__doc__)
    parser.add_argument('--output', type=Path, default=Path('demo-output'))
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument(
        '--domain', type=int, help='ROS domain to use; default: one that nobody is on'
    )
    parser.add_argument(
        '--sim-time', action='store_true', help='let the cell publish /clock and live by it'
    )
    options = parser.parse_args(arguments)
    output = options.output.resolve()
    # A demo that is told to end must still end what it started.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    try:
        with _domain(options.domain) as domain:
            _say(f'ROS_DOMAIN_ID={domain}, output in {options.output}')
            environment = _environment(os.environ, domain)
            return _demo(output, options.seed, options.sim_time, environment)
    except KeyboardInterrupt:
        return EXIT_NOT_PLAYED
    except (OSError, RuntimeError) as error:
        _say(str(error))
        return EXIT_NOT_PLAYED


def _say(text: str) -> None:
    sys.stderr.write(f'demo: {text}\n')
    sys.stderr.flush()


def _interrupted(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _domain(asked: int | None) -> Iterator[int]:
    # ROS_DOMAIN_ID is left alone: a robot may be on it, and the cell publishes joint_states.
    if asked is not None:
        yield asked
        return
    with free_domain() as domain:
        yield domain


def shared_file(name: str) -> Path:
    """A file of ``config/``, in the source tree or where the package is installed.

    Raises:
        FileNotFoundError: It is in neither.
    """
    path = Path(__file__).resolve().parents[2] / 'config' / name
    if path.is_file():
        return path
    # Without a sourced workspace the index has nothing to look in, which is an EnvironmentError.
    with contextlib.suppress(ImportError, LookupError, OSError):
        from ament_index_python.packages import get_package_share_directory

        path = Path(get_package_share_directory('harness_eval')) / 'config' / name
        if path.is_file():
            return path
    raise FileNotFoundError(
        f'config/{name} is neither in the source tree nor in the share folder of harness_eval; '
        'install the package again'
    )


def _environment(base: Mapping[str, str], domain: int) -> dict[str, str]:
    environment = dict(base)
    environment['ROS_DOMAIN_ID'] = str(domain)
    environment.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    environment.setdefault('MUJOCO_GL', 'egl')
    # Fast DDS 2 (Jazzy) knows the file by the first name, Fast DDS 3 (Kilted) by the second.
    for variable in ('FASTRTPS_DEFAULT_PROFILES_FILE', 'FASTDDS_DEFAULT_PROFILES_FILE'):
        environment.setdefault(variable, str(shared_file('fastdds.xml')))
    # Two threads of arithmetic in each of three processes would only be in each other's way.
    environment.setdefault('OMP_NUM_THREADS', '1')
    return environment


def _demo(output: Path, seed: int, sim_time: bool, environment: Mapping[str, str]) -> int:
    output.mkdir(parents=True, exist_ok=True)
    record = output / 'record'
    shutil.rmtree(record, ignore_errors=True)
    record.mkdir()
    clock = {'use_sim_time': 'true'} if sim_time else {}
    judging = {
        'config': shared_file('demo.yaml'),
        'autostart': 'true',
        'ledger_url': f'sqlite:///{record / "ledger.sqlite3"}',
        'evidence_dir': record / 'cases',
    }
    playing = {**clock, 'publish_clock': 'true'} if sim_time else {}
    commands: Mapping[str, list[str]] = {
        'evaluator': ['harness_eval.ros.evaluator_node', *_parameters({**judging, **clock})],
        'scene_graph': ['harness_eval.ros.scene_graph_node', *_parameters(clock)],
    }
    play = ['harness_eval.demo.play', '--output', str(output), '--seed', str(seed)]
    with contextlib.ExitStack() as stack:
        nodes = {
            name: stack.enter_context(_process(command, environment, output / f'{name}.log'))
            for name, command in commands.items()
        }
        player = stack.enter_context(_process([*play, *_parameters(playing)], environment, None))
        return _wait(player, nodes, output)


def _parameters(values: Mapping[str, object]) -> list[str]:
    pairs = [word for name, value in values.items() for word in ('-p', f'{name}:={value}')]
    return ['--ros-args', *pairs] if pairs else []


def _wait(
    player: subprocess.Popen[bytes], nodes: Mapping[str, subprocess.Popen[bytes]], output: Path
) -> int:
    deadline = time.monotonic() + _LONGEST
    while player.poll() is None:
        for name, node in nodes.items():
            if node.poll() is not None:
                _say(
                    f'the {name} node ended with exit code {node.returncode}; the end of '
                    f'{name}.log says:\n{_tail(output / f"{name}.log")}'
                )
                return EXIT_NOT_PLAYED
        if time.monotonic() > deadline:
            _say(f'not over after {_LONGEST:g} s, stopped')
            return EXIT_TIMEOUT
        time.sleep(_POLL)
    return player.returncode


def _tail(path: Path, lines: int = 15) -> str:
    return '\n'.join(path.read_text(encoding='utf-8', errors='replace').splitlines()[-lines:])


@contextlib.contextmanager
def _process(
    command: Sequence[str], environment: Mapping[str, str], log: Path | None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module in a process of its own; SIGINT, then SIGKILL, when the block ends."""
    with contextlib.ExitStack() as stack:
        sink = None if log is None else stack.enter_context(log.open('wb'))
        process = subprocess.Popen(
            [sys.executable, '-m', *command],
            env=dict(environment),
            stdout=sink,
            stderr=None if sink is None else subprocess.STDOUT,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


if __name__ == '__main__':
    sys.exit(main())
