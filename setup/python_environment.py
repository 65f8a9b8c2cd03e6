"""The virtual environment with the pinned packages."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

from logged_run import run_logged
from ros_source import RosSource, without_ros

SYSTEM_OWNED = ('numpy', 'opencv-python-headless')
"""Taken from the system beside an installed ROS 2, whose compiled modules are bound to them."""


def make_environment(home: Path, source: RosSource, setup: Path) -> None:
    """Make ``home/venv`` anew.

    Args:
        home: Folder of the distribution.
        source: The ROS 2 to use.
        setup: Folder with the pins.

    Raises:
        SystemExit: pip failed, or the system lacks a package that must be its own.
    """
    # Anew and not over the old one: a removed pin or an interrupted pip would leave remains, and
    # what was built against the old one does not fit any more.
    for folder in ('venv', 'build', 'install', 'log'):
        shutil.rmtree(home / folder, ignore_errors=True)
    venv = home / 'venv'
    if source.pins is None:
        _make_beside_ros(home, venv, setup / 'requirements.txt')
    else:
        environment = without_ros(os.environ)
        run_logged([sys.executable, '-m', 'venv', str(venv)], home / 'venv.log', environment)
        pins = ['-r', str(setup / 'requirements.txt'), '-r', str(source.pins)]
        run_logged(_pip(venv, *pins), home / 'pip.log', environment)
        _repair_cmake_files(venv)
    (home / 'mode').write_text('sourced\n' if source.pins is None else 'wheels\n')


def _make_beside_ros(home: Path, venv: Path, requirements: Path) -> None:
    """Make an environment that sees the system's packages, and leave to it those it must own."""
    for module, package in {'numpy': 'python3-numpy', 'cv2': 'python3-opencv'}.items():
        if importlib.util.find_spec(module) is None:
            raise SystemExit(f'please install first: sudo apt-get install {package}')
    environment = dict(os.environ)
    run_logged(
        [sys.executable, '-m', 'venv', '--system-site-packages', str(venv)],
        home / 'venv.log',
        environment,
    )
    kept = [
        line
        for line in requirements.read_text().splitlines()
        if line and not line.startswith((*SYSTEM_OWNED, '#'))
    ]
    chosen = venv / 'requirements.txt'
    chosen.write_text('\n'.join(kept) + '\n')
    run_logged(_pip(venv, '-r', str(chosen)), home / 'pip.log', environment)
    python = str(venv / 'bin' / 'python')
    done = subprocess.run(
        [python, '-c', 'import rclpy'], stderr=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(
            f'{done.stderr}\nthe sourced ROS 2 does not fit Python {sys.version.split()[0]}: '
            'name the one that it was built for, for example PYTHON=/usr/bin/python3 make test'
        )


def _pip(venv: Path, *arguments: str) -> list[str]:
    """Return a pip command that asks nothing and leaves compiling to the first import."""
    options = ['--disable-pip-version-check', '--no-input', '--no-compile', '--quiet']
    return [str(venv / 'bin' / 'python'), '-m', 'pip', 'install', *options, *arguments]


def _repair_cmake_files(venv: Path) -> None:
    """Put this machine's include folders where the wheels name those of their build machine.

    The exported CMake files of the message packages hold absolute paths of the Python and the
    NumPy that they were built with; without this CMake refuses a package that builds on them.
    """
    code = (
        'import sysconfig, numpy; print(sysconfig.get_paths()["include"]); '
        'print(numpy.get_include())'
    )
    printed = subprocess.run(
        [str(venv / 'bin' / 'python'), '-c', code],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=without_ros(os.environ),
    ).stdout
    python_include, numpy_include = printed.split('\n')[:2]
    foreign_python = re.compile(r'/opt/python/[^;"]*include/python3\.[0-9]+')
    foreign_numpy = re.compile(r'/[^;"]*numpy/_core/include')
    for path in (venv / 'share').rglob('*.cmake'):
        text = path.read_text()
        new = foreign_python.sub(lambda _: python_include, text)
        new = foreign_numpy.sub(lambda _: numpy_include, new)
        if new != text:
            path.write_text(new)
