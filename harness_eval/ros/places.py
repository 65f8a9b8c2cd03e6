"""Where the node keeps its ledger and its evidence when nobody says: below ``ROS_HOME``."""

from __future__ import annotations

from collections.abc import Mapping
import contextlib
import os
from pathlib import Path
import re
import time

KEPT_SIMULATIONS = 10
"""How many ledgers of earlier simulations are kept; each launch makes a new one."""
_SIMULATED = 'simulated-'
_NAMED = 3
"""Arguments of a process among which its program is: ``python3 /opt/.../ros2 launch``."""
_STARTED = 19
"""Place of a process's start time (ticks since boot) after its name in ``/proc/<pid>/stat``."""


def home(environment: Mapping[str, str]) -> Path:
    """The folder of ROS, as ``ROS_HOME`` or ``~/.ros``."""
    named = environment.get('ROS_HOME', '')
    return Path(named) if named else Path.home() / '.ros'


def node_folder(environment: Mapping[str, str], node: str) -> Path:
    """The folder of one node.

    Args:
        environment: The environment of the process.
        node: Fully qualified name of the node, so that two robots do not share a record.
    """
    name = re.sub(r'[^A-Za-z0-9_]+', '-', node).strip('-') or 'node'
    return home(environment) / 'harness_eval' / name


def launch_key() -> str:
    """Name of the launch that this process belongs to.

    A node that is started again by the same launch (``respawn``) has the same one: that of its
    parent, with the time at which that began, since numbers of processes come again. Any other
    parent, such as the shell of a terminal, outlives many simulations; then each process is a
    launch of its own.
    """
    parent = Path(f'/proc/{os.getppid()}')
    try:
        arguments = (parent / 'cmdline').read_text(errors='replace').split('\0')
        # The name of the program, in parentheses, may hold spaces and parentheses of its own.
        fields = (parent / 'stat').read_text(errors='replace').rpartition(')')[2].split()
        if any('launch' in Path(argument).name for argument in arguments[:_NAMED]):
            return f'{parent.name}-{fields[_STARTED]}'
    except (OSError, IndexError):  # it ended just now, or there is no /proc here
        pass
    return str(os.getpid())


def default_ledger_url(folder: Path, *, simulated: bool, launch: str = '') -> str:
    """URL of the ledger: one that stays, or under simulated time one for each launch.

    Simulated time starts at zero again and again, so that stamps and run ids of one launch mean
    nothing in the next. Ledgers of the oldest simulations are deleted.

    Args:
        folder: The folder of the node.
        simulated: The node follows simulated time.
        launch: Name of the launch; default: :func:`launch_key`.
    """
    if not simulated:
        return f'sqlite:///{folder / "ledger.sqlite3"}'
    launch = launch or launch_key()
    old = sorted(folder.glob(f'{_SIMULATED}*.sqlite3'))
    same = [path for path in old if path.name.endswith(f'-{launch}.sqlite3')]
    if same:
        return f'sqlite:///{same[-1]}'
    for path in old[: max(0, len(old) - KEPT_SIMULATIONS + 1)]:
        for companion in folder.glob(f'{path.name}*'):
            companion.unlink(missing_ok=True)
    stamp = time.strftime('%Y%m%d-%H%M%S', time.gmtime())
    return f'sqlite:///{folder / f"{_SIMULATED}{stamp}-{launch}.sqlite3"}'


def recorded_ledger(folder: Path) -> Path:
    """The ledger of a folder that was written last, for those who only read.

    That is the one that stays, or that of a simulation. Without any it is the name of the one
    that stays.
    """
    found = [*folder.glob('ledger.sqlite3'), *folder.glob(f'{_SIMULATED}*.sqlite3')]
    return max(found, key=_written, default=folder / 'ledger.sqlite3')


def _written(ledger: Path) -> float:
    """Seconds since the epoch of the last write, which goes to the log beside the file."""
    times = [0.0]
    for path in (ledger, ledger.with_name(f'{ledger.name}-wal')):
        with contextlib.suppress(OSError):  # it may be deleted at this very moment
            times.append(path.stat().st_mtime)
    return max(times)


def default_evidence_dir(folder: Path) -> Path:
    """Folder of the evidence."""
    return folder / 'evidence'
