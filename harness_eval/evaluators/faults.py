"""Exceptions of foreign code as errors of ours."""

from __future__ import annotations

from collections.abc import Callable
import math
import re

from harness_eval.contract import Abstention, DecodeError, EvaluationError, EvaluatorError
from harness_eval.lines import clean_line, describe, MAX_LINE, redact

__all__ = ['as_evaluation_error', 'describe', 'of_a_plugin']

RAISED = 'evaluator_raised'
"""Kind of the error that an exception of an evaluator becomes."""
_LONGEST = 1e6
"""Seconds of ``retry_after``, more than anybody waits; a larger integer may be no float."""


PLUGIN = 'plugin_'
"""Put before the kinds that plugins make, so that none can pass for one of ours."""

MAX_KIND = 40
"""Characters of a kind that a plugin makes."""

_KIND = re.compile(r'[a-z][a-z0-9_]*')


def as_evaluation_error(error: BaseException, evaluator: str) -> EvaluationError:
    """Turn whatever an evaluator raised into a new error that names the evaluator.

    A new one, because the raised object may be shared between threads, and because its traceback
    would keep the pictures of its request alive. An error class that no evaluator has a right to
    (a capture or ledger error) becomes an :class:`EvaluatorError` of the same kind. Nothing that
    the raised object does when it is read gets out of here.
    """
    return _made(error, evaluator, lambda kind: kind)


def of_a_plugin(error: BaseException, evaluator: str) -> EvaluationError:
    """Turn whatever a plugin raised into an error that cannot pass for one of ours.

    An :class:`Abstention` keeps its kind, and so does a :class:`DecodeError`, which the pictures
    of the request raise. The kind of an :class:`EvaluatorError` gets ``plugin_`` in front. All
    other errors, and those whose kind is not in ``snake_case`` of at most 40 characters, are
    ``evaluator_raised``.
    """
    family = type(error)
    if issubclass(family, (Abstention, DecodeError)):
        return _made(error, evaluator, lambda kind: kind)
    if issubclass(family, EvaluatorError):
        return _made(error, evaluator, lambda kind: PLUGIN + kind)
    return _made(error, evaluator, lambda _: RAISED)


def _made(error: BaseException, evaluator: str, renamed: Callable[[str], str]) -> EvaluationError:
    # By its type: the object itself may say anything about its class, or raise.
    raised = type(error)
    if not issubclass(raised, EvaluationError):
        passing = issubclass(raised, (OSError, MemoryError))  # a network, a disk, a full machine
        return EvaluatorError(RAISED, describe(error), evaluator=evaluator, retryable=passing)
    family: type[EvaluationError] = EvaluatorError
    for known in (Abstention, DecodeError):
        if issubclass(raised, known):
            family = known
    try:
        kind, message, retryable = _read(error)
        later = _seconds(error)
        score = _score(error)
    except BaseException:
        return EvaluatorError(RAISED, describe(error), evaluator=evaluator)
    told = renamed(kind) if kind else RAISED
    if family is Abstention:
        return Abstention(told, message, evaluator=evaluator, retryable=retryable, score=score)
    if family is not EvaluatorError:
        return family(told, message, evaluator=evaluator, retryable=retryable)
    return EvaluatorError(
        told, message, evaluator=evaluator, retryable=retryable, retry_after=later
    )


def _read(error: BaseException) -> tuple[str, str, bool]:
    """Give the kind (empty if it is none), the text and whether to try again."""
    given = getattr(error, 'kind', None)
    kind = str.__str__(given) if isinstance(given, str) else ''
    if len(kind) > MAX_KIND or not _KIND.fullmatch(kind):
        kind = ''
    message = str.__str__(str(getattr(error, 'message', '')))
    retryable = getattr(error, 'retryable', False) is True
    return kind, clean_line(redact(message[: 4 * MAX_LINE])), retryable


def _seconds(error: BaseException) -> float | None:
    """Read ``retry_after``, which foreign code may have set to anything."""
    given = getattr(error, 'retry_after', None)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return None
    return float(min(given, _LONGEST)) if 0.0 <= given < math.inf else None


def _score(error: BaseException) -> float | None:
    """Read the ``score`` of an abstention, which foreign code may have set to anything."""
    given = getattr(error, 'score', None)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return None
    return float(given) if 0.0 <= given <= 1.0 else None
