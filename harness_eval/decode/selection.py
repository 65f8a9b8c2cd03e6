"""What a field path selects in a decoded message."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any

import numpy as np

from harness_eval.contract import DecodeError
from harness_eval.decode.values import described, listing, members, plain_text, type_name
from harness_eval.field_path import FieldPath, Index, Match, Slice, Step


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
            f'{where}: {step.name} is {described(value)}, not a sequence; leave out {selector}',
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
                f'{where}: {selector.key} is {described(siblings)}, not a sequence of names',
            )
        keys = [plain_text(element) for element in siblings]
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
            f'{where}: no {selector.key} is {selector.value!r}; there are: {listing(keys)}',
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
    return plain_text(element)


def _attribute(message: Any, name: str, where: str) -> Any:
    if not is_dataclass(message):
        raise DecodeError('field_absent', f'{where}: {described(message)} has no field {name!r}')
    names = members(message)
    # The type store writes a field that is a Python keyword with an underscore behind it.
    for spelling in (name, f'{name}_'):
        if spelling in names:
            return getattr(message, spelling)
    raise DecodeError(
        'field_absent',
        f'{where}: {type_name(message)} has no field {name!r}; there are: {listing(names)}',
    )
