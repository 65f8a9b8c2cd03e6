"""What a field path selects, as numbers, texts and stamps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness_eval.contract import DecodeError
from harness_eval.decode.selection import select
from harness_eval.decode.values import described, plain_text
from harness_eval.field_path import FieldPath
from harness_eval.times import SECOND

MAX_VALUES = 4096
"""Most values of one reading that nothing reduces: more are a mistake in the path."""

_TIME_TYPE = 'builtin_interfaces/msg/Time'


def reading(message: Any, path: FieldPath, reduce: str | None) -> float | tuple[float, ...]:
    """Take a number, or several, out of a decoded message.

    A reduction leaves out values that are no measurement: NaN always, and the infinity that cannot
    change its result. For ranges +inf means *nothing within reach* and -inf *too close to measure*
    (REP 117), so ``min`` leaves out +inf and refuses -inf, ``max`` the other way round, and
    ``mean`` refuses both. When nothing finite is left, that is an error and never a zero.

    Args:
        message: A decoded message.
        path: Where the reading is.
        reduce: ``min``, ``mean``, ``max``, or None for the values as they are.

    Raises:
        DecodeError: ``field_absent``, ``field_ambiguous``, ``not_a_number``, ``not_finite``,
            ``too_many_values``.
    """
    parts = [_numbers(found, path) for found in select(message, path)]
    many = len(parts) > 1 or any(part.ndim for part in parts)
    values = np.concatenate([np.atleast_1d(part) for part in parts])
    if not len(values):
        raise DecodeError('field_absent', f'{path} is empty: there is nothing to read')
    if reduce is not None:
        return _reduced(values, path, reduce)
    if len(values) > MAX_VALUES:
        raise DecodeError(
            'too_many_values',
            f'{path} selects {len(values)} values, the most is {MAX_VALUES}; '
            'select fewer of them or set reduce',
        )
    finite = np.isfinite(values)
    if not finite.all():
        wrong = float(values[~finite][0])
        raise DecodeError(
            'not_finite',
            f'{path} is {wrong}, not a finite number'
            if len(values) == 1
            else f'{path}: {int((~finite).sum())} of {len(values)} values are not finite '
            f'(the first is {wrong})',
        )
    return tuple(values.tolist()) if many else float(values[0])


def _numbers(value: Any, path: FieldPath) -> np.ndarray[Any, np.dtype[np.float64]]:
    if isinstance(value, np.ndarray) and value.dtype.kind in 'biuf':
        return value.astype(np.float64)
    if isinstance(value, (bool, int, float, np.generic)):
        return np.asarray(value, dtype=np.float64)
    if isinstance(value, list) and not value:
        return np.empty(0)
    raise DecodeError('not_a_number', f'{path} is {described(value)}, not a number')


def _reduced(values: np.ndarray[Any, Any], path: FieldPath, reduce: str) -> float:
    refused = {
        'min': np.isneginf(values),
        'max': np.isposinf(values),
        'mean': np.isinf(values),
    }
    if reduce not in refused:
        raise ValueError(f'reduce must be min, mean or max, not {reduce!r}')
    if refused[reduce].any():
        wrong = float(values[refused[reduce]][0])
        raise DecodeError(
            'not_finite',
            f'{path}: {int(refused[reduce].sum())} of {len(values)} values are {wrong}, '
            f'so the {reduce} cannot be told',
        )
    finite = values[np.isfinite(values)]
    if not len(finite):
        raise DecodeError(
            'not_finite', f'{path}: none of {len(values)} values is finite, there is no {reduce}'
        )
    result = float({'min': finite.min, 'max': finite.max, 'mean': finite.mean}[reduce]())
    if not math.isfinite(result):
        raise DecodeError('not_finite', f'{path}: the {reduce} is {result}')
    return result


def text(message: Any, path: FieldPath) -> str:
    """Take a text out of a decoded message: a string, an integer, a boolean, a number or a UUID.

    Sixteen bytes are given in the usual form of a UUID, ``8-4-4-4-12`` hexadecimal digits;
    booleans as ``true`` and ``false``.

    Raises:
        DecodeError: ``field_absent``, ``field_ambiguous``, ``not_a_text``.
    """
    found = select(message, path)
    if len(found) == 1:
        plain = plain_text(found[0])
        if plain is not None:
            return plain
    what = described(found[0]) if len(found) == 1 else f'{len(found)} elements'
    raise DecodeError(
        'not_a_text', f'{path} is {what}, expected a string, a number, a boolean or a UUID'
    )


def time_of(message: Any, path: FieldPath) -> int:
    """Take a ``builtin_interfaces/Time`` out of a decoded message.

    Returns:
        Nanoseconds since the epoch.

    Raises:
        DecodeError: ``field_absent``, ``field_ambiguous``, ``not_a_time``, ``malformed_message``.
    """
    found = select(message, path)
    if len(found) != 1 or getattr(found[0], '__msgtype__', '') != _TIME_TYPE:
        what = described(found[0]) if len(found) == 1 else f'{len(found)} elements'
        raise DecodeError('not_a_time', f'{path} is {what}, expected a {_TIME_TYPE}')
    return stamp_of(found[0].sec, found[0].nanosec, str(path))


def stamp_of(sec: int, nanosec: int, where: str) -> int:
    """Nanoseconds of a ``builtin_interfaces/Time``.

    Raises:
        DecodeError: ``malformed_message`` for a nanosecond part of a second or more.
    """
    if not 0 <= nanosec < SECOND:
        raise DecodeError(
            'malformed_message',
            f'{where}: nanosec is {nanosec}, it must be less than {SECOND}',
        )
    return sec * SECOND + nanosec
