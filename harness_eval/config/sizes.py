"""Amounts of storage as people write them: ``2GiB``, ``500MB`` or a number of bytes."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from harness_eval.config.errors import describe

_PREFIXES = {'': 0, 'k': 1, 'K': 1, 'M': 2, 'G': 3, 'T': 4}
_SIZE = re.compile(
    r'(?P<amount>[0-9]{1,15}(\.[0-9]{1,15})?) ?(?P<prefix>[kKMGT]?)(?P<binary>i?)B\Z'
)
_LARGEST = 2**63 - 1


def parse_size(value: Any) -> int:
    """Read a number of bytes.

    Args:
        value: A whole number above 0, or a text: a number and one of ``B``, ``kB``, ``MB``,
            ``GB``, ``TB`` (powers of 1000), ``KiB``, ``MiB``, ``GiB``, ``TiB`` (of 1024).

    Raises:
        ValueError: It is neither.
    """
    size = None
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str):
        match = _SIZE.match(value)
        if match and not (match['binary'] and not match['prefix']):
            unit = 1024 if match['binary'] else 1000
            size = int(float(match['amount']) * unit ** _PREFIXES[match['prefix']])
    if size is None or not 0 < size <= _LARGEST:
        raise ValueError(
            'expected a number of bytes above 0, or a text such as 2GiB or 500MB, '
            f'found {describe(value)}'
        )
    return size


Size = Annotated[
    int,
    BeforeValidator(parse_size),
    WithJsonSchema(
        {
            'anyOf': [
                {'type': 'integer', 'minimum': 1},
                {'type': 'string', 'pattern': r'^\d+(\.\d+)? ?([kMGT]i?)?B$'},
            ]
        }
    ),
]
"""A number of bytes above 0, or a text such as ``2GiB``."""
