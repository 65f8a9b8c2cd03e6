"""What a field path selects in a decoded message: numbers, texts and stamps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass, MISSING
import math
from typing import Any
import uuid

import numpy as np

from harness_eval.contract import DecodeError
from harness_eval.field_path import FieldPath, Index, Match, Slice, Step
from harness_eval.times import SECOND

MAX_VALUES = 4096
"""Most values of one reading that nothing reduces: more are a mistake in the path."""

_UUID_BYTES = 16
_TIME_TYPE = 'builtin_interfaces/msg/Time'


def select(message: Any, path: FieldPath) -> list[Any]:
    """Follow a path through a decoded message.

    Returns:
        What it selects, in order: one element unless the path has a slice over messages.

    Raises:
        DecodeError: ``field_absent`` naming what exists there, ``field_ambiguous``.
    """
    nodes = [message]
    for depth, step in enumerate(path.steps):
        where = '.'.join(map(str, path.steps[: depth + 1]))
        nodes = [found for node in nodes for found in _follow(node, step, where)]
    return nodes


def _follow(message: Any, step: Step, where: str) -> list[Any]:
    value = _attribute(message, step.name, where)
    selector = step.selector
    if selector is None:
        return [value]
    if not isinstance(value, (list, np.ndarray)):
        raise DecodeError(
            'field_absent',
            f'{where}: {step.name} is {_describe(value)}, not a sequence; leave out {selector}',
        )
    count = len(value)
    if isinstance(selector, Index):
        if not -count <= selector.index < count:
            raise DecodeError(
                'field_absent', f'{where}: {step.name} has {count} elements, none at {selector}'
            )
        return [value[selector.index]]
    if isinstance(selector, Slice):
        return _cut(value, selector, f'{where}: {step.name}')
    return [value[_matching(message, value, step.name, selector, where)]]


def _cut(value: Any, selector: Slice, where: str) -> list[Any]:
    count = len(value)
    first, last, _ = slice(selector.start, selector.stop).indices(count)
    # Python cuts bounds that do not exist; a shorter scan would silently be another reading.
    inside = all(
        bound is None or -count <= bound <= count for bound in (selector.start, selector.stop)
    )
    if not inside or first >= last:
        raise DecodeError(
            'field_absent', f'{where} has {count} elements, {selector} is not within them'
        )
    chosen = value[first:last]
    return [chosen] if isinstance(chosen, np.ndarray) else list(chosen)


def _matching(message: Any, value: Any, name: str, selector: Match, where: str) -> int:
    if len(value) and is_dataclass(value[0]):
        keys = [_key(element, selector.key, where) for element in value]
    else:
        siblings = message
        for part in selector.key.split('.'):
            siblings = _attribute(siblings, part, where)
        if not isinstance(siblings, (list, np.ndarray)):
            raise DecodeError(
                'field_absent',
                f'{where}: {selector.key} is {_describe(siblings)}, not a sequence of names',
            )
        keys = [_plain_text(element) for element in siblings]
        if len(keys) != len(value):
            raise DecodeError(
                'field_absent',
                f'{where}: {name} has {len(value)} elements and {selector.key} has {len(keys)}, '
                'so they do not belong together',
            )
    hits = [index for index, key in enumerate(keys) if key == selector.value]
    if not hits:
        raise DecodeError(
            'field_absent',
            f'{where}: no {selector.key} is {selector.value!r}; there are: {_listing(keys)}',
        )
    if len(hits) > 1:
        raise DecodeError(
            'field_ambiguous',
            f'{where}: {len(hits)} elements have {selector.key} {selector.value!r}; '
            'choose one by its index',
        )
    return hits[0]


def _key(element: Any, key: str, where: str) -> str | None:
    for part in key.split('.'):
        element = _attribute(element, part, where)
    return _plain_text(element)


def _attribute(message: Any, name: str, where: str) -> Any:
    if not is_dataclass(message):
        raise DecodeError('field_absent', f'{where}: {_describe(message)} has no field {name!r}')
    names = _members(message)
    # The type store writes a field that is a Python keyword with an underscore behind it.
    for spelling in (name, f'{name}_'):
        if spelling in names:
            return getattr(message, spelling)
    raise DecodeError(
        'field_absent',
        f'{where}: {_type_name(message)} has no field {name!r}; there are: {_listing(names)}',
    )


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
    raise DecodeError('not_a_number', f'{path} is {_describe(value)}, not a number')


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
        plain = _plain_text(found[0])
        if plain is not None:
            return plain
    what = _describe(found[0]) if len(found) == 1 else f'{len(found)} elements'
    raise DecodeError(
        'not_a_text', f'{path} is {what}, expected a string, a number, a boolean or a UUID'
    )


def _plain_text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return 'true' if value else 'false'
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if is_dataclass(value) and _members(value) == ['uuid']:
        value = value.uuid  # type: ignore[union-attr]
    if isinstance(value, np.ndarray) and value.dtype.itemsize == 1 and len(value) == _UUID_BYTES:
        return str(uuid.UUID(bytes=value.tobytes()))
    return None


def time_of(message: Any, path: FieldPath) -> int:
    """Take a ``builtin_interfaces/Time`` out of a decoded message.

    Returns:
        Nanoseconds since the epoch.

    Raises:
        DecodeError: ``field_absent``, ``field_ambiguous``, ``not_a_time``, ``malformed_message``.
    """
    found = select(message, path)
    if len(found) != 1 or getattr(found[0], '__msgtype__', '') != _TIME_TYPE:
        what = _describe(found[0]) if len(found) == 1 else f'{len(found)} elements'
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


def empty_sequences(message: Any) -> int:
    """Count the sequences of a decoded message, and of what is in it, that hold nothing."""
    if isinstance(message, (list, np.ndarray)):
        if not len(message):
            return 1
        return sum(map(empty_sequences, message)) if isinstance(message, list) else 0
    if not is_dataclass(message):
        return 0
    return sum(empty_sequences(getattr(message, name)) for name in _members(message))


def _members(message: Any) -> list[str]:
    # The type store keeps constants and the type's name as fields too; only they have defaults.
    return [field.name for field in fields(message) if field.default is MISSING]


def _type_name(message: Any) -> str:
    return str(getattr(message, '__msgtype__', type(message).__name__))


def _describe(value: Any) -> str:
    if isinstance(value, str):
        return f'the text {value[:40]!r}'
    if isinstance(value, np.ndarray):
        return f'a sequence of {len(value)} {value.dtype.name}'
    if isinstance(value, list):
        return f'a sequence of {len(value)} elements'
    if is_dataclass(value):
        return f'a {_type_name(value)} with the fields {_listing(_members(value))}'
    return f'the value {value}'


def _listing(names: Iterable[str | None], most: int = 20) -> str:
    every = [str(name)[:60] for name in names]
    if not every:
        return 'none'
    more = f' and {len(every) - most} more' if len(every) > most else ''
    return ', '.join(every[:most]) + more
