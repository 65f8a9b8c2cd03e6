"""What the system must have: a compiler for the messages, and EGL for rendering the demo cell."""

from __future__ import annotations

from collections.abc import Iterator
import ctypes
import importlib.util
import os
from pathlib import Path
import shutil
import subprocess
import sysconfig

DRIVERS = (
    'usr/lib/*/dri/*_dri.so',
    'usr/lib/dri/*_dri.so',
    'usr/lib64/dri/*_dri.so',
    'usr/share/glvnd/egl_vendor.d/*nvidia*.json',
)
"""Below the root; any of these can render: Mesa, also without a GPU, or a vendor's driver."""


def require_system_packages() -> None:
    """Install with apt what is missing if that is allowed, else say what to install.

    Raises:
        SystemExit: Something is missing and cannot be installed from here.
    """
    missing = sorted(set(_missing()))
    if not missing:
        return
    names = ' '.join(missing)
    if os.geteuid() != 0 or shutil.which('apt-get') is None:
        raise SystemExit(f'please install first: sudo apt-get install {names}')
    print(f'installing system packages: {names}', flush=True)
    environment = {**os.environ, 'DEBIAN_FRONTEND': 'noninteractive'}
    install = ['apt-get', 'install', '-y', '-qq', '--no-install-recommends', *missing]
    for command in (['apt-get', 'update', '-qq'], install):
        if subprocess.run(command, stdin=subprocess.DEVNULL, env=environment).returncode:
            raise SystemExit(f'`{" ".join(command)}` failed; please install {names} by hand')


def _missing() -> Iterator[str]:
    """Yield the Debian packages of what is not there."""
    for command, package in {'g++': 'g++', 'cmake': 'cmake', 'make': 'make'}.items():
        if shutil.which(command) is None:
            yield package
    if importlib.util.find_spec('ensurepip') is None:
        yield 'python3-venv'
    if not (Path(sysconfig.get_paths()['include']) / 'Python.h').is_file():
        yield 'python3-dev'
    try:
        ctypes.CDLL('libEGL.so.1')
    except OSError:
        yield 'libegl1'
    if not any(any(Path('/').glob(pattern)) for pattern in DRIVERS):
        yield 'libgl1-mesa-dri'
