"""The error of a model evaluator: it keeps what the call used, even if nothing came of it."""

from __future__ import annotations

from harness_eval.contract import EvaluatorError
from harness_eval.evaluators.model.usage import Tally
from harness_eval.lines import clean_line, MAX_LINE

MIN_MESSAGE = 200
"""Characters of a message that its tail never takes away."""


class ModelError(EvaluatorError):
    """A model gave no answer that can be used.

    What was used stands at the end of the message too, since of an error only kind and message
    are kept on record.

    Args:
        kind: Machine-readable name.
        message: What was expected, what was found and what to do.
        evaluator: Reference of the evaluator.
        retryable: Whether judging the same evidence again may give an answer.
        tally: What was used until then.
        retry_after: Seconds that the server asked to be left alone, if it did.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        evaluator: str = '',
        retryable: bool = False,
        tally: Tally | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.tally = tally if tally is not None else Tally()
        self.plain = message
        super().__init__(
            kind,
            _with_tail(message, self.tally),
            evaluator=evaluator,
            retryable=retryable,
            retry_after=retry_after,
        )

    def told(self, evaluator: str, tally: Tally, hint: str = '') -> ModelError:
        """The same error with the evaluator's name, all that was used and a further remark."""
        return ModelError(
            self.kind,
            f'{self.plain}{hint}',
            evaluator=evaluator,
            retryable=self.retryable,
            tally=tally,
            retry_after=self.retry_after,
        )


def _with_tail(message: str, tally: Tally) -> str:
    note = clean_line(tally.note(), MAX_LINE - MIN_MESSAGE)
    if not note:
        return clean_line(message)
    return f'{clean_line(message, MAX_LINE - len(note) - 3)} ({note})'
