"""The evaluator node, which kills itself with SIGKILL at a transaction of its ledger.

``KILL_AT`` counts transactions from the first proposal on; ``KILL_WHEN`` says ``before`` or
``after``. The node itself knows nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import os
import signal
import sys
from typing import Any

from harness_eval.ledger import Ledger
from harness_eval.pipeline import Pipeline

AT = int(os.environ.get('KILL_AT', '0'))
WHEN = os.environ.get('KILL_WHEN', 'after')

armed = False
seen = 0
real_transaction = Ledger.transaction
real_propose = Pipeline.propose


def die() -> None:
    """End as a crash does."""
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


@contextmanager
def transaction(ledger: Ledger) -> Iterator[Any]:
    """Count, and die at the chosen moment."""
    global seen
    seen += armed
    chosen = armed and seen == AT
    if chosen and WHEN == 'before':
        die()
    with real_transaction(ledger) as connection:
        yield connection
    if chosen:
        die()


def propose(pipeline: Pipeline, update: Any) -> None:
    """Begin to count."""
    global armed
    armed = True
    real_propose(pipeline, update)


if __name__ == '__main__':
    Ledger.transaction = transaction  # type: ignore[method-assign]
    Pipeline.propose = propose  # type: ignore[method-assign]
    from harness_eval.ros.evaluator_node import main

    sys.exit(main())
