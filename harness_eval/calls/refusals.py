"""What is said of a call that comes to nothing without the evaluator's having answered."""

from __future__ import annotations

from harness_eval.calls.back_off import RATE_LIMITED
from harness_eval.contract import EvaluatorError


class Refusals:
    """The errors of calls of one evaluator; each may be judged again later.

    Args:
        evaluator: Reference of the evaluator.
        timeout: Seconds from the beginning of a call to its deadline.
        patience: Seconds that a call waits for its turn.
    """

    def __init__(self, evaluator: str, timeout: float, patience: float) -> None:
        self._evaluator = evaluator
        self._timeout = timeout
        self._patience = patience

    def timeout(self) -> EvaluatorError:
        """The call has passed its deadline."""
        return self._error(
            'judge_timeout', f'no answer within {self._timeout:g} s; the call was given up'
        )

    def quarantined(self, hanging: int) -> EvaluatorError:
        """Too many earlier calls hang."""
        return self._error(
            'quarantined',
            f'{hanging} calls still hang past their deadline of {self._timeout:g} s; '
            'it is called again when one of them comes back, or after a restart',
        )

    def busy(self, under_way: int) -> EvaluatorError:
        """The call has waited for its turn in vain."""
        return self._error(
            'judge_busy',
            f'waited {self._patience:g} s for a turn behind {under_way} calls under way; raise '
            'max_concurrency if the judge bears it, or judge fewer runs at the same time',
        )

    def pausing(self, left: float) -> EvaluatorError:
        """The evaluator is left alone for longer than the call can wait."""
        return self._error(
            RATE_LIMITED,
            f'it asked to be called less often and is left alone for {left:.3g} s more, longer '
            'than this call waits; lower max_concurrency',
            retry_after=left,
        )

    def no_thread(self) -> EvaluatorError:
        """There is no thread to judge on."""
        return self._error(
            'no_thread', 'the system gave no thread to judge on; try again when load is lower'
        )

    def closed(self) -> EvaluatorError:
        """The calls were closed while this one waited."""
        return self._error('judge_closed', 'the node was stopped before the judge was asked')

    def _error(
        self, kind: str, message: str, *, retry_after: float | None = None
    ) -> EvaluatorError:
        return EvaluatorError(
            kind,
            message,
            evaluator=self._evaluator,
            retryable=True,
            retry_after=retry_after,
        )
