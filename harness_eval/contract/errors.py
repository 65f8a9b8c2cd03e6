"""The errors. An error is never a verdict."""

from __future__ import annotations

from typing import Any


class HarnessEvalError(Exception):
    """Base class of every error that this package raises on purpose.

    It can be pickled whatever its constructor takes: a worker in another process may raise it.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        """What makes an equal one, by its attributes and not by its constructor."""
        return _made_again, (type(self), self.args, self.__dict__)


class EvaluationError(HarnessEvalError):
    """The evaluation could not be done. It is never a verdict.

    Args:
        kind: Machine-readable name in ``snake_case``, for example ``clock_skew``.
        message: What was expected, what was found, where, and what to do.
        evaluator: Reference of the evaluator concerned, without credentials; empty if none.
        retryable: Whether judging the same evidence again may give an answer.
    """

    def __init__(
        self, kind: str, message: str, *, evaluator: str = '', retryable: bool = False
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.evaluator = evaluator
        self.retryable = retryable

    def __str__(self) -> str:
        where = f' [{self.evaluator}]' if self.evaluator else ''
        return f'{self.kind}{where}: {self.message}'


class CaptureError(EvaluationError):
    """The observation could not be made (rules 4 and 5)."""


class DecodeError(EvaluationError):
    """A message could not be turned into a picture or a reading."""


class EvaluatorError(EvaluationError):
    """The evaluator raised, hung, answered nonsense or is quarantined.

    Args:
        kind: Machine-readable name; ``rate_limited`` for an evaluator that is called too often.
        message: What was expected, what was found, where, and what to do.
        evaluator: Reference of the evaluator concerned, without credentials; empty if none.
        retryable: Whether judging the same evidence again may give an answer.
        retry_after: Seconds for which the evaluator asks to be left alone, if it does; all its
            calls are held back for so long.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        evaluator: str = '',
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(kind, message, evaluator=evaluator, retryable=retryable)
        self.retry_after = retry_after


class LedgerError(EvaluationError):
    """The durable record could not be read or written."""


class Abstention(EvaluationError):
    """Nobody can tell from this observation; for example a view that is not usable.

    Args:
        kind: Machine-readable name in ``snake_case``, for example ``unsure``.
        message: What was seen, and why it does not suffice.
        evaluator: Reference of the evaluator concerned, without credentials; empty if none.
        retryable: Whether judging the same evidence again may give an answer.
        score: The score in [0, 1] that was not sure enough, if there is one; it is kept so that
            thresholds can be chosen from what is on record.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        evaluator: str = '',
        retryable: bool = False,
        score: float | None = None,
    ) -> None:
        super().__init__(kind, message, evaluator=evaluator, retryable=retryable)
        self.score = score


def _made_again(
    kind: type[HarnessEvalError], args: tuple[Any, ...], attributes: dict[str, Any]
) -> HarnessEvalError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error
