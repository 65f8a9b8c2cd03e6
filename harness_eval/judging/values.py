"""What a value that an evaluator returned says: a boolean, a number, or nothing well-formed."""

from __future__ import annotations

from enum import Enum
from numbers import Number

import numpy as np

from harness_eval.contract import EvaluatorError


def refuse_masked(answer: object, evaluator: str) -> None:
    """Refuse a masked value.

    Raises:
        EvaluatorError: ``malformed_answer``.
    """
    # What a mask hides was not measured, whatever value lies under it.
    if isinstance(answer, np.ma.MaskedArray) and np.ma.getmaskarray(answer).any():
        raise malformed(
            'the evaluator returned a masked value, which says that nothing was measured; return '
            'None to abstain',
            evaluator,
        )


def as_bool(answer: object) -> bool | None:
    """Say what a boolean answers (also a boolean array or tensor of no dimensions)."""
    if isinstance(answer, (bool, np.bool_)):
        return bool(answer)
    if isinstance(answer, type):
        return None
    if getattr(answer, 'shape', None) == () and str(getattr(answer, 'dtype', '')).endswith('bool'):
        return bool(answer)
    return None


def as_score(answer: object, evaluator: str) -> float:
    """Say what a real number is as a float; numbers are not read out of texts or lists."""
    kind = type(answer).__name__
    if not is_real_number(answer):
        raise malformed(
            f'the evaluator returned {with_article(kind)}{_shape(answer)}; '
            'return a Verdict, a bool, a score in [0, 1] or None',
            evaluator,
        )
    try:
        return float(answer)  # type: ignore[arg-type]
    except OverflowError as error:
        raise EvaluatorError(
            'score_out_of_range',
            f'the score, of type {kind}, is far outside [0, 1]',
            evaluator=evaluator,
        ) from error
    except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise malformed(
            f'the evaluator returned {with_article(kind)} that is not a number', evaluator
        ) from error


def is_real_number(answer: object) -> bool:
    """Whether a value is one real number: no text, nothing complex, no array of several."""
    if isinstance(answer, (type, Enum, str, bytes, bytearray, complex, np.complexfloating)):
        return False
    if isinstance(answer, (np.datetime64, np.timedelta64)):
        return False
    if isinstance(answer, Number):
        return hasattr(answer, '__float__')
    # Arrays and tensors of no dimensions: NumPy, torch, jax. float() would take one of a single
    # element too, but a judge that returns a batch may well have judged something else.
    dtype = str(getattr(answer, 'dtype', ''))
    real = any(word in dtype for word in ('float', 'int'))
    return getattr(answer, 'shape', None) == () and real and hasattr(answer, '__float__')


def malformed(message: str, evaluator: str) -> EvaluatorError:
    """The error of an answer that is not well-formed."""
    return EvaluatorError('malformed_answer', message, evaluator=evaluator)


def with_article(noun: str) -> str:
    """Write a noun with ``a`` or ``an`` before it."""
    return f'{"an" if noun[:1].lower() in "aeiou" else "a"} {noun}'


def _shape(answer: object) -> str:
    shape = getattr(answer, 'shape', None)
    return f' of shape {tuple(shape)}' if isinstance(shape, tuple) else ''
