"""Prepare everything that `make` needs, once: ``python3 setup/prepare.py --distro jazzy``.

Everything lands in ``.envs/DISTRO``. The work has three stages, each with a stamp that holds a
hash of what went into it (and of the stage before it). A stage whose stamp fits is skipped, so
that a second run takes a fraction of a second; a stamp is removed before its stage starts and
written after its end, so that an interrupted set-up is taken up again. Needs nothing but Python.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
import contextlib
import fcntl
import os
from pathlib import Path
import shutil
import sys
import time

from heartbeat import heartbeat
from interpreter import use_supported_interpreter
from logged_run import run_logged
from python_environment import make_environment
from ros_source import find_ros, RosSource, without_ros
from stamp import fingerprint, Stamp
from system_packages import require_system_packages

ROOT = Path(__file__).resolve().parents[1]
SETUP = Path(__file__).resolve().parent


def main() -> int:
    """Run the stages whose inputs changed; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--distro', required=True, help='ROS 2 distribution, for example jazzy')
    distro = parser.parse_args().distro
    source = find_ros(distro, SETUP)
    use_supported_interpreter(source)
    require_system_packages()

    home = ROOT / '.envs' / distro
    home.mkdir(parents=True, exist_ok=True)
    with _locked(home / 'lock'):
        _run_stages(home, source)
    return 0


def _run_stages(home: Path, source: RosSource) -> None:
    """Bring the environment, the messages and the package up to date, in this order."""
    environment = _stage(
        home,
        'python',
        [source.key, sys.version, os.path.realpath(sys.executable), str(ROOT)],
        [
            SETUP / 'python_environment.py',
            SETUP / 'requirements.txt',
            *([source.pins] if source.pins else []),
        ],
        lambda: make_environment(home, source, SETUP),
    )
    messages = _stage(
        home,
        'messages',
        [environment],
        [*_files(ROOT / 'harness_eval_msgs'), SETUP / 'prepare.py'],
        lambda: _colcon(
            *(home, source, 'harness_eval_msgs', '--cmake-args'),
            f'-DPython3_EXECUTABLE={home}/venv/bin/python',
            '-DBUILD_TESTING=OFF',
        ),
    )
    # Modules, launch files and configuration are linked, not copied: their names count, and not
    # what is in them.
    linked = sorted(path for name in ('launch', 'config') for path in _files(ROOT / name))
    _stage(
        home,
        'package',
        [messages, *(str(path.relative_to(ROOT)) for path in linked)],
        [ROOT / name for name in ('package.xml', 'setup.py', 'setup.cfg', 'bin/harness-eval')],
        lambda: _colcon(home, source, 'harness_eval', '--symlink-install'),
    )


def _stage(
    home: Path, name: str, values: list[str], files: list[Path], work: Callable[[], None]
) -> str:
    """Do one stage unless its stamp fits; return the hash of its inputs."""
    inputs = fingerprint(values, files, ROOT)
    stamp = Stamp(home / 'stamps' / name)
    if stamp.fits(inputs):
        return inputs
    stamp.remove()
    start = time.monotonic()
    what = f'set-up of {home.name}: {name}'
    _say(f'{what} ...')
    with heartbeat(what, _say):
        work()
    stamp.write(inputs)
    _say(f'{what} took {time.monotonic() - start:.0f} s')
    return inputs


def _say(line: str) -> None:
    print(line, flush=True)


def _colcon(home: Path, source: RosSource, package: str, *options: str) -> None:
    """Build and install one package from scratch with colcon."""
    for folder in ('build', 'install'):
        shutil.rmtree(home / folder / package, ignore_errors=True)
    environment = without_ros(os.environ) if source.pins else dict(os.environ)
    venv = home / 'venv'
    environment['PATH'] = os.pathsep.join([str(venv / 'bin'), environment['PATH']])
    # Without this colcon hands make a load limit, and a busy machine builds with one core.
    environment['MAKEFLAGS'] = f'-j{os.cpu_count() or 1}'
    if source.pins:
        environment['AMENT_PREFIX_PATH'] = environment['CMAKE_PREFIX_PATH'] = str(venv)
    command = [
        *(str(venv / 'bin' / 'python'), '-m', 'colcon', '--log-base', str(home / 'log'), 'build'),
        # The message package lies inside this one, and colcon stops at the first package.xml.
        *('--base-paths', str(ROOT), str(ROOT / 'harness_eval_msgs')),
        *('--build-base', str(home / 'build'), '--install-base', str(home / 'install')),
        *('--packages-select', package, *options),
    ]
    run_logged(command, home / f'{package}.log', environment)


def _files(folder: Path) -> list[Path]:
    """List the files under a folder, without hidden ones and caches."""
    return [
        path
        for path in folder.rglob('*')
        if path.is_file()
        and not any(p.startswith(('.', '__')) for p in path.relative_to(folder).parts)
    ]


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let a second `make` wait until the first one has done the set-up."""
    with path.open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == '__main__':
    sys.exit(main())
