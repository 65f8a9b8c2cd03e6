"""The environment is made from a Python that the ROS 2 in use exists for."""

from __future__ import annotations

import os
from pathlib import Path
import platform
import shutil
import sys

import interpreter
from interpreter import use_supported_interpreter
import pytest
from ros_source import RosSource

WHEELS = RosSource('jazzy', Path('ros-jazzy.txt'), 'wheels')
SOURCED = RosSource('jazzy', None, 'sourced')


class StartedAgainError(Exception):
    """Stands for the process having been replaced."""


@pytest.fixture(autouse=True)
def _in_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this process look like a Python of the system, on a machine that has wheels."""

    def execv(path: str, arguments: list[str]) -> None:
        raise StartedAgainError(path)

    monkeypatch.setattr(os, 'execv', execv)
    monkeypatch.setattr(sys, 'prefix', sys.base_prefix)
    monkeypatch.setattr(platform, 'machine', lambda: 'x86_64')
    monkeypatch.setattr(sys, 'version_info', (3, 12, 3, 'final', 0))


@pytest.mark.parametrize('source', [WHEELS, SOURCED])
def test_a_supported_python_of_the_system_is_used_as_it_is(source: RosSource) -> None:
    use_supported_interpreter(source)


@pytest.mark.parametrize('source', [WHEELS, SOURCED])
def test_within_an_environment_its_base_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, source: RosSource
) -> None:
    base = tmp_path / 'python3.12'
    base.touch()
    (tmp_path / 'python').symlink_to(base)
    monkeypatch.setattr(sys, 'prefix', str(tmp_path))
    monkeypatch.setattr(sys, 'executable', str(tmp_path / 'python'))
    with pytest.raises(StartedAgainError, match=str(base)):
        use_supported_interpreter(source)


def test_a_python_without_wheels_starts_one_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, 'version_info', (3, 14, 0, 'final', 0))
    there = {'python3.12': '/usr/bin/python3.12', 'python3.13': '/broken/python3.13'}
    monkeypatch.setattr(shutil, 'which', there.get)
    monkeypatch.setattr(
        interpreter, '_version', lambda path: (3, 12) if path == '/usr/bin/python3.12' else ()
    )
    with pytest.raises(StartedAgainError, match=r'/usr/bin/python3\.12'):
        use_supported_interpreter(WHEELS)


def test_without_any_supported_python_it_is_said_which_ones_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, 'version_info', (3, 14, 0, 'final', 0))
    monkeypatch.setattr(shutil, 'which', lambda name: None)
    with pytest.raises(SystemExit, match=r'exist for Python 3\.10, 3\.11, 3\.12, 3\.13, found'):
        use_supported_interpreter(WHEELS)


def test_another_machine_is_told_to_source_an_installed_ros(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, 'machine', lambda: 'aarch64')
    with pytest.raises(SystemExit, match='x86_64, this is linux on aarch64: install ROS 2 jazzy'):
        use_supported_interpreter(WHEELS)
    use_supported_interpreter(SOURCED)
