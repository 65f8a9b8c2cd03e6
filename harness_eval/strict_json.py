"""JSON as RFC 8259 has it and no laxer: what two readers could understand differently is refused.

Python's own reader takes ``NaN``, keeps the last of two equal keys and makes ``inf`` of ``1e999``.
An answer that says ``"reward"`` twice says nothing.
"""

from __future__ import annotations

import json
import math
from typing import Any

MAX_DIGITS = 400
"""Most characters of one number: a double has fewer, and long ones take ages to convert."""


def read_json(data: bytes) -> Any:
    """Read a JSON text in UTF-8.

    Args:
        data: The bytes; a byte order mark is not taken, as RFC 8259 says of senders.

    Raises:
        ValueError: It is not JSON, has a key twice in one object, a number beyond those of a
            double, or is nested too deep. The text says which, and repeats nothing of the data
            but names of keys.
    """
    try:
        text = data.decode('utf-8')
    except UnicodeDecodeError as error:
        raise ValueError(f'not UTF-8 at byte {error.start}') from None
    try:
        return json.loads(
            text,
            object_pairs_hook=_once,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f'not JSON at character {error.pos}: {error.msg}') from None
    except RecursionError:
        raise ValueError('nested too deep') from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f'the key {name[:60]!r} stands twice in one object')
        found[name] = value
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f'{name} is no JSON number')


def _bounded(text: str) -> str:
    if len(text) > MAX_DIGITS:
        raise ValueError(f'a number of {len(text)} characters')
    return text


def _integer(text: str) -> int:
    return int(_bounded(text))


def _finite(text: str) -> float:
    number = float(_bounded(text))
    if not math.isfinite(number):
        raise ValueError(f'the number {text[:40]} is beyond what a double holds')
    return number
