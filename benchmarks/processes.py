"""Child processes of a benchmark, and what Linux says about them."""

from __future__ import annotations

from collections.abc import Sequence
import os
from pathlib import Path
import signal
import subprocess
import sys
import time

ROOT = Path(__file__).parents[1]
POLL_PERIOD = 0.005
"""Seconds between two looks at the log of a child."""
PATIENCE = 30.0
"""Seconds until a child that says nothing counts as broken."""

_PROCESS_CLOCK = 2
"""``CPUCLOCK_SCHED`` of the kernel: the sum over all threads, those that ended included."""


class ChildError(RuntimeError):
    """A child ended, or said nothing in time; the message holds the end of its log."""


class Child:
    """A running ``python -m module`` whose output goes to a file.

    Attributes:
        started: Monotonic nanoseconds just before it was started.
    """

    def __init__(self, module: str, arguments: Sequence[str], log: Path) -> None:
        """Start it with the environment of a new shell."""
        self._log = log
        self._module = module
        environment = dict(os.environ)
        # The wheels start Python a second time to find their libraries; so they do for a user.
        environment.pop('_ROS_WHEELS_BOOTSTRAP_COMPLETE', None)
        # Compiled modules are kept, as they are on every machine but a developer's odd one.
        environment.pop('PYTHONDONTWRITEBYTECODE', None)
        environment['PYTHONUNBUFFERED'] = '1'
        with log.open('wb') as output:
            self.started = time.monotonic_ns()
            self._process = subprocess.Popen(
                [sys.executable, '-m', module, *arguments],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def wait_for(self, word: str) -> str:
        """Wait for a line that begins with a word, and return the rest of the line.

        Raises:
            ChildError: It ended before, or takes too long.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            ended = self._process.poll() is not None
            text = self._log.read_text(errors='replace')
            for line in text.splitlines():
                first, _, rest = line.partition(' ')
                if first == word:
                    return rest
            if ended or time.monotonic() > deadline:
                happened = 'ended' if ended else f'has run for {PATIENCE:g} s'
                raise ChildError(
                    f'{self._module} {happened} and did not say {word!r}: {text[-2000:]}'
                )
            time.sleep(POLL_PERIOD)

    def cpu_seconds(self) -> float:
        """CPU time of all its threads so far, in seconds, to the nanosecond."""
        return time.clock_gettime((~self.pid << 3) | _PROCESS_CLOCK)

    def memory(self) -> float:
        """Resident memory in MB (10^6 bytes), shared pages included."""
        return self._status('VmRSS')

    def peak_memory(self) -> float:
        """Greatest resident memory so far in MB."""
        return self._status('VmHWM')

    def _status(self, field: str) -> float:
        for line in Path(f'/proc/{self.pid}/status').read_text().splitlines():
            name, _, value = line.partition(':')
            if name == field:
                return int(value.split()[0]) * 1024 / 1e6
        raise ChildError(f'{self._module} has ended; there is no {field} of it')

    def close(self) -> None:
        """Ask it to end as Ctrl-C does, and make it end if it does not."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(10.0)
            except subprocess.TimeoutExpired:
                os.killpg(self.pid, signal.SIGKILL)
                self._process.wait(10.0)
