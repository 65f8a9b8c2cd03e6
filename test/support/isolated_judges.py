"""Judges that a fresh interpreter can import."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
import subprocess
import sys
import time
from typing import Any

import numpy as np

from harness_eval.contract import Abstention, Answer, EvaluationRequest, Status, Verdict

calls = 0


def brightness(request: EvaluationRequest, *, view: str = 'front') -> float:
    """Score a view by how bright it is."""
    return float(np.mean(request.observation.views[view].image)) / 255.0


def count(request: EvaluationRequest) -> Verdict:
    """Say how often this process was asked, and which process it is."""
    global calls
    calls += 1
    return Verdict(
        Status.SUCCESS, (f'call {calls}',), report={'pid': os.getpid(), 'calls': calls}, score=0.95
    )


def exits(request: EvaluationRequest) -> Answer:
    """End the process as native code does, without a word."""
    os._exit(3)


def segfaults(request: EvaluationRequest) -> Answer:
    """Read from address 0."""
    return bool(ctypes.string_at(0))


def hangs(request: EvaluationRequest, *, pid_file: str) -> Answer:
    """Start a process of its own and never come back."""
    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])
    Path(pid_file).write_text(f'{os.getpid()} {child.pid}', encoding='utf-8')
    while True:
        time.sleep(600)


def leaves(request: EvaluationRequest, *, pid_file: str, escape: bool) -> Answer:
    """End, and leave a process behind that keeps the connection open."""
    pid = os.fork()
    if pid == 0:
        if escape:
            os.setsid()
        time.sleep(600)
    Path(pid_file).write_text(str(pid), encoding='utf-8')
    os._exit(4)


def forks(request: EvaluationRequest) -> Verdict:
    """Come back twice, once in a process of its own."""
    global calls
    calls += 1
    os.fork()
    return Verdict(Status.SUCCESS, (f'call {calls}',), score=0.95)


def prints(request: EvaluationRequest) -> Answer:
    """Print, as judges do."""
    print('chatter of the judge')  # noqa: T201
    return True


def raises(request: EvaluationRequest) -> Answer:
    """Raise."""
    raise RuntimeError('the model fell over')


def abstains(request: EvaluationRequest) -> Answer:
    """Abstain with a kind of its own."""
    raise Abstention('too_dark', 'nothing can be seen', score=0.6)


async def awaits(request: EvaluationRequest) -> Answer:
    """Answer from a coroutine."""
    return 0.2


class Unpicklable:
    """A judge that holds what cannot travel."""

    ref = 'test:unpicklable'

    def __init__(self) -> None:
        self.hook = lambda: None

    def evaluate(self, request: EvaluationRequest) -> Any:
        """Answer."""
        return True
