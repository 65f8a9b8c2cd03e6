"""One call of an evaluator, and what its caller holds of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
import math

from harness_eval.contract import EvaluationError, EvaluationRequest, EvaluatorError, Verdict
from harness_eval.evaluators.running import Stop

Outcome = Verdict | EvaluationError
OnDone = Callable[[Outcome], None]


@dataclass(eq=False)
class Call:
    """A call that waits, is under way or is over. Guarded by the lock of its calls.

    Attributes:
        number: Which call of the evaluator it is.
        on_done: Gets the outcome.
        request: What is judged; ``None`` once that is settled.
        patience: Steady seconds until which it waits for its turn.
        ready: Whether it may begin; not while the answer is looked for in the cache.
        began: Steady seconds at which it first began; ``None``: it waits.
        tried: Steady seconds at which it last began.
        deadline: Steady seconds at which it is given up.
        refusal: What to say if it waits in vain because it was asked to come again later.
        stop: Asks whatever runs it to stop.
        settled: Whether an outcome, or a cancellation, has been decided upon.
        abandoned: Whether it hangs past its deadline.
    """

    number: int
    on_done: OnDone
    request: EvaluationRequest | None
    patience: float
    ready: bool = True
    began: float | None = None
    tried: float = 0.0
    deadline: float = math.inf
    refusal: EvaluatorError | None = None
    stop: Stop = field(default_factory=Stop)
    settled: bool = False
    abandoned: bool = False


class CallHandle:
    """One call under way, or waiting for its turn."""

    def __init__(self, call: Call, cancel: Callable[[Call], bool]) -> None:
        self._call = call
        self._cancel = cancel

    def cancel(self) -> bool:
        """Give up waiting: ``on_done`` is not called after this returned ``True``.

        A call that waits for its turn never begins. An asynchronous judge is cancelled and a
        child process killed; a judge on a thread runs on unheard, and counts as abandoned from
        its deadline on if it still hangs then.

        Returns:
            ``False`` if the call was settled already; ``on_done`` was called or is about to be.
        """
        return self._cancel(self._call)
