"""The command ``harness-eval`` as a shell sees it: in this process, or in one of its own."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
import json
import os
from pathlib import Path
import subprocess
import sys
import threading
from typing import Any

import pytest

from harness_eval.cli import main

ROOT = Path(__file__).parents[2]
TIMEOUT = 40.0
"""Seconds until a command in a process of its own is killed."""


@dataclass(frozen=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The standard output, read as JSON."""
        return json.loads(self.out)


class Shell:
    """Calls the command in this process, which takes milliseconds instead of a second."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ended:
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Ended(code, captured.out, captured.err)


def command(*arguments: object) -> list[str]:
    """The command line of the command in a process of its own."""
    return [sys.executable, '-m', 'harness_eval.cli', *map(str, arguments)]


def in_a_process(*arguments: object, **environment: str) -> Ended:
    """Call the command in a process of its own and wait for its end."""
    return InTheBackground(*arguments, **environment).ended()


class InTheBackground:
    """The command in a process of its own, while the test does something else."""

    def __init__(self, *arguments: object, **environment: str) -> None:
        self._answer: Future[Ended] = Future()
        threading.Thread(
            target=self._run, args=(command(*arguments), environment), daemon=True
        ).start()

    def ended(self) -> Ended:
        """Wait for its end."""
        return self._answer.result(2 * TIMEOUT)

    def _run(self, line: list[str], environment: dict[str, str]) -> None:
        try:
            done = subprocess.run(
                line,
                cwd=ROOT,
                env={**os.environ, **environment},
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
            self._answer.set_result(Ended(done.returncode, done.stdout, done.stderr))
        except BaseException as error:  # raised in the thread of the test
            self._answer.set_exception(error)
