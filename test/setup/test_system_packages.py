"""What the system lacks is installed by root, and named in one line to everybody else."""

from __future__ import annotations

from collections.abc import Callable
import ctypes
import os
import shutil
import subprocess
from typing import Any

import pytest
import system_packages


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that were run; none is run really, and each succeeds."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, 'run', run)
    return commands


@pytest.fixture
def bare_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away cmake and EGL; apt-get is there."""

    def no_library(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, 'CDLL', no_library)
    monkeypatch.setattr(
        shutil, 'which', lambda name: None if name == 'cmake' else f'/usr/bin/{name}'
    )


def as_user(number: int) -> Callable[[], int]:
    return lambda: number


def test_root_gets_what_is_missing_from_apt(
    monkeypatch: pytest.MonkeyPatch, bare_system: None, ran: list[list[str]]
) -> None:
    monkeypatch.setattr(os, 'geteuid', as_user(0))
    system_packages.require_system_packages()
    assert [command[:2] for command in ran] == [['apt-get', 'update'], ['apt-get', 'install']]
    assert {'cmake', 'libegl1'} <= set(ran[1])
    assert 'g++' not in ran[1]


def test_others_are_told_in_one_line_what_to_install(
    monkeypatch: pytest.MonkeyPatch, bare_system: None, ran: list[list[str]]
) -> None:
    monkeypatch.setattr(os, 'geteuid', as_user(1000))
    with pytest.raises(SystemExit) as refusal:
        system_packages.require_system_packages()
    line = str(refusal.value)
    assert line.startswith('please install first: sudo apt-get install cmake ')
    assert 'libegl1' in line
    assert '\n' not in line
    assert ran == []


def test_a_complete_system_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, ran: list[list[str]]
) -> None:
    monkeypatch.setattr(system_packages, '_missing', lambda: iter(()))
    system_packages.require_system_packages()
    assert ran == []
