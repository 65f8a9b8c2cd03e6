"""The evaluator node, which kills itself with SIGKILL at a step of a run.

``KILL_STEP`` names what a transaction of the ledger writes (``hold``, ``RECEIVED``, ``CAPTURED``,
``STARTED``, ``decide`` or ``published``), ``KILL_WHEN`` whether the end comes ``before`` or
``after`` its commit. It counts from the first proposal on; the node itself knows nothing of it.
Where the question is ready before the evidence is written, ``CAPTURED`` and ``STARTED`` are one
commit; with the step ``CAPTURED`` the question is late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import os
import signal
import sys
import time
from typing import Any

from harness_eval.ledger import Ledger
from harness_eval.pipeline import Pipeline
from harness_eval.requests import Requests

STEP = os.environ.get('KILL_STEP', '')
WHEN = os.environ.get('KILL_WHEN', 'after')

armed = False
steps: list[str] = []
real_transaction = Ledger.transaction
real_propose = Pipeline.propose
real_prepare = Requests.prepare


def die() -> None:
    """End as a crash does."""
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


@contextmanager
def transaction(ledger: Ledger, **options: Any) -> Iterator[Any]:
    """Die at the chosen moment."""
    steps.clear()
    with real_transaction(ledger, **options) as connection:
        yield connection
        chosen = armed and STEP in steps
        if chosen and WHEN == 'before':
            die()
    if chosen:
        die()


def noted(name: str, step: Callable[..., str]) -> None:
    """Note what a transaction writes."""
    real = getattr(Ledger, name)

    def write(ledger: Ledger, *arguments: Any, **more: Any) -> Any:
        steps.append(step(*arguments))
        return real(ledger, *arguments, **more)

    setattr(Ledger, name, write)


def propose(pipeline: Pipeline, update: Any) -> None:
    """Begin to count."""
    global armed
    armed = True
    real_propose(pipeline, update)


def prepare_late(requests: Requests, *arguments: Any) -> Any:
    """Take longer than the evidence to be written."""
    time.sleep(0.5)
    return real_prepare(requests, *arguments)


if __name__ == '__main__':
    if STEP == 'CAPTURED':
        Requests.prepare = prepare_late  # type: ignore[method-assign]
    Ledger.transaction = transaction  # type: ignore[method-assign]
    Pipeline.propose = propose  # type: ignore[method-assign]
    noted('hold', lambda *_: 'hold')
    noted('add_segment', lambda *_: 'RECEIVED')
    noted('set_state', lambda segment: str(segment.state.value))
    noted('decide', lambda *_: 'decide')
    noted('mark_published', lambda *_: 'published')
    from harness_eval.ros.evaluator_node import main

    sys.exit(main())
