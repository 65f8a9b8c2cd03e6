"""A node in a process of its own, for tests of crashes, restarts and start-up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
import os
from pathlib import Path
import signal
import subprocess
import sys
import time

POLL_PERIOD = 0.01
"""Seconds between two looks at the process or its log."""

ROOT = Path(__file__).parents[2]


class ChildNode:
    """A running ``python -m module --ros-args …`` on the domain of the test.

    Attributes:
        process: The process; it leads a session of its own, so that ending it ends its children.
    """

    def __init__(
        self,
        module: str,
        *,
        domain_id: int,
        log_path: Path,
        arguments: Sequence[str] = (),
        ros_arguments: Sequence[str] = (),
        parameters: Mapping[str, object] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Start the process.

        Args:
            module: What ``python -m`` runs.
            domain_id: Becomes its ``ROS_DOMAIN_ID``.
            log_path: File that takes its standard output and error.
            arguments: Arguments before ``--ros-args``.
            ros_arguments: Arguments after ``--ros-args``.
            parameters: Node parameters, handed over as ``-p name:=value``.
            env: Variables besides those of this process.
        """
        command = [sys.executable, '-m', module, *arguments]
        settings = [f'{name}:={_yaml(value)}' for name, value in (parameters or {}).items()]
        if settings or ros_arguments:
            command += ['--ros-args', *ros_arguments]
            for setting in settings:
                command += ['-p', setting]
        self._log_path = log_path
        with log_path.open('ab') as log:
            self.process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={
                    **os.environ,
                    'ROS_DOMAIN_ID': str(domain_id),
                    'PYTHONUNBUFFERED': '1',
                    **(env or {}),
                },
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self.process.pid

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def log(self) -> str:
        """What the process has written so far, standard output and error together."""
        return self._log_path.read_text(errors='replace')

    def wait_for_log(self, text: str, timeout: float = 20.0) -> str:
        """Wait until the log contains a text, and return the log.

        Raises:
            AssertionError: The process ended or the time is over without the text.
        """
        deadline = time.monotonic() + timeout
        while True:
            # Asked before the log is read: what a process wrote before its end is in the log.
            alive = self.alive
            log = self.log()
            if text in log:
                return log
            assert alive, f'the process ended before it wrote {text!r}; it wrote:\n{log}'
            assert time.monotonic() < deadline, f'no {text!r} in {timeout:g} s; log:\n{log}'
            time.sleep(POLL_PERIOD)

    def kill9(self) -> None:
        """End it as a crash would, with SIGKILL, and wait for its end."""
        self._signal(signal.SIGKILL)
        self.process.wait(10.0)

    def interrupt(self) -> None:
        """Send it SIGINT, as Ctrl-C and ``ros2 launch`` do."""
        self._signal(signal.SIGINT)

    def wait_for_end(self, timeout: float = 20.0) -> int:
        """Wait for its end and return the exit status (negative: the signal that ended it).

        Raises:
            AssertionError: It still runs when the time is over.
        """
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            message = f'the process still runs after {timeout:g} s; it wrote:\n{self.log()}'
            raise AssertionError(message) from None

    def close(self) -> None:
        """End it in any case, by its id."""
        if self.alive:
            self.kill9()

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            os.killpg(self.process.pid, number)


def _yaml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, Path)):
        # Quoted, since rcl reads the value as YAML: an id like 0123 would become a number.
        return "'" + str(value).replace("'", "''") + "'"
    return str(value)
