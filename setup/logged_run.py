"""Run a long command quietly, and show what it said only if it failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
import subprocess

SHOWN_LINES = 40
"""How much of the end of a failed command's output is shown."""


def run_logged(command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
    """Run a command with its output in a file.

    Args:
        command: Program and arguments.
        log: File that takes standard output and error; replaced.
        environment: All its variables.

    Raises:
        SystemExit: It failed; the message holds the end of what it said.
    """
    with log.open('w') as output:
        status = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            check=False,
        ).returncode
    if status:
        end = '\n'.join(log.read_text(errors='replace').splitlines()[-SHOWN_LINES:])
        raise SystemExit(
            f'{end}\nthis failed with status {status}: {" ".join(command)}\nlog: {log}'
        )
