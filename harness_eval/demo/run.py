"""The whole demo in one command: ``python -m harness_eval.demo.run``.

Starts the evaluator node and the scene graph node as processes of their own on a free ROS domain,
then the player with the cell, and ends what it started whatever happens.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
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
        '--domain', type=int, help='ROS domain to use; default: ROS_DOMAIN_ID if set, else a free one'
    )
    options = parser.parse_args(arguments)
    output = options.output.resolve()
    # A terminated demo must still end what it started.
    signal.signal(signal.SIGTERM, _interrupted)
    try:
        with _domain(options.domain) as domain:
            print(f'demo: ROS_DOMAIN_ID={domain}, output in {options.output}', flush=True)
            return _demo(output, options.seed, _environment(os.environ, domain))
    except KeyboardInterrupt:
        return EXIT_NOT_PLAYED
    except (OSError, RuntimeError) as error:
        print(f'demo: {error}', file=sys.stderr)
        return EXIT_NOT_PLAYED


def _interrupted(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


@contextlib.contextmanager
def _domain(asked: int | None) -> Iterator[int]:
    if asked is None and os.environ.get('ROS_DOMAIN_ID', '').isdecimal():
        asked = int(os.environ['ROS_DOMAIN_ID'])
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
    environment.setdefault('FASTDDS_DEFAULT_PROFILES_FILE', str(shared_file('fastdds.xml')))
    # Two threads of arithmetic in each of three processes would only be in each other's way.
    environment.setdefault('OMP_NUM_THREADS', '1')
    return environment


def _demo(output: Path, seed: int, environment: Mapping[str, str]) -> int:
    output.mkdir(parents=True, exist_ok=True)
    record = output / 'record'
    shutil.rmtree(record, ignore_errors=True)
    record.mkdir()
    with contextlib.ExitStack() as stack:
        evaluator = stack.enter_context(
            _process(
                'harness_eval.ros.evaluator_node',
                [
                    *('--ros-args', '-p', f'config:={shared_file("demo.yaml")}'),
                    *('-p', 'autostart:=true'),
                    *('-p', f'ledger_url:=sqlite:///{record / "ledger.sqlite3"}'),
                    *('-p', f'evidence_dir:={record / "cases"}'),
                ],
                environment,
                output / 'evaluator.log',
            )
        )
        graph = stack.enter_context(
            _process(
                'harness_eval.ros.scene_graph_node', [], environment, output / 'scene_graph.log'
            )
        )
        player = stack.enter_context(
            _process(
                'harness_eval.demo.play',
                ['--output', str(output), '--seed', str(seed)],
                environment,
                None,
            )
        )
        return _wait(player, {'evaluator': evaluator, 'scene_graph': graph}, output)


def _wait(
    player: subprocess.Popen[bytes], nodes: Mapping[str, subprocess.Popen[bytes]], output: Path
) -> int:
    deadline = time.monotonic() + _LONGEST
    while player.poll() is None:
        for name, node in nodes.items():
            if node.poll() is not None:
                print(
                    f'demo: the {name} node ended with exit code {node.returncode}; the end of '
                    f'{name}.log says:\n{_tail(output / f"{name}.log")}',
                    file=sys.stderr,
                )
                return EXIT_NOT_PLAYED
        if time.monotonic() > deadline:
            print(f'demo: not over after {_LONGEST:g} s, stopped', file=sys.stderr)
            return EXIT_TIMEOUT
        time.sleep(_POLL)
    return player.returncode


def _tail(path: Path, lines: int = 15) -> str:
    return '\n'.join(path.read_text(encoding='utf-8', errors='replace').splitlines()[-lines:])


@contextlib.contextmanager
def _process(
    module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path | None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module in a process of its own; SIGINT, then SIGKILL, when the block ends."""
    with contextlib.ExitStack() as stack:
        sink = None if log is None else stack.enter_context(log.open('wb'))
        process = subprocess.Popen(
            [sys.executable, '-m', module, *arguments],
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
