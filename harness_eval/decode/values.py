"""What a decoded message is made of, and how errors speak of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass, MISSING
from typing import Any
import uuid

import numpy as np

_UUID_BYTES = 16


def plain_text(value: Any) -> str | None:
    """Write a value that is one text; ``None`` if it is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return 'true' if value else 'false'
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    if is_dataclass(value) and members(value) == ['uuid']:
        value = value.uuid  # type: ignore[union-attr]
    if isinstance(value, np.ndarray) and value.dtype.itemsize == 1 and len(value) == _UUID_BYTES:
        return str(uuid.UUID(bytes=value.tobytes()))
    return None


def empty_sequences(message: Any) -> int:
    """Count the sequences of a decoded message, and of what is in it, that hold nothing."""
    if isinstance(message, (list, np.ndarray)):
        if not len(message):
            return 1
        return sum(map(empty_sequences, message)) if isinstance(message, list) else 0
    if not is_dataclass(message):
        return 0
    return sum(empty_sequences(getattr(message, name)) for name in members(message))


def members(message: Any) -> list[str]:
    """Names of the fields of a decoded message."""
    # The type store keeps constants and the type's name as fields too; only they have defaults.
    return [field.name for field in fields(message) if field.default is MISSING]


def type_name(message: Any) -> str:
    """Type of a decoded message, for errors."""
    return str(getattr(message, '__msgtype__', type(message).__name__))


def described(value: Any) -> str:
    """Say what a value is, for errors."""
    if isinstance(value, str):
        return f'the text {value[:40]!r}'
    if isinstance(value, np.ndarray):
        return f'a sequence of {len(value)} {value.dtype.name}'
    if isinstance(value, list):
        return f'a sequence of {len(value)} elements'
    if is_dataclass(value):
        return f'a {type_name(value)} with the fields {listing(members(value))}'
    return f'the value {value}'


def listing(names: Iterable[str | None], most: int = 20) -> str:
    """Write names beside each other, at most so many."""
    every = [str(name)[:60] for name in names]
    if not every:
        return 'none'
    more = f' and {len(every) - most} more' if len(every) > most else ''
    return ', '.join(every[:most]) + more
