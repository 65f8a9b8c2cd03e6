"""Pydantic's findings in words: what was expected, what was found, what would be right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import re
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from harness_eval.config.errors import describe, did_you_mean
from harness_eval.config.places import KeyPath

LATER_KINDS = ('endpoint', 'service', 'model', 'rubric', 'vote', 'cascade')
"""Kinds of evaluator that are known and not in this version."""

Finding = tuple[KeyPath, str]
"""Where something is wrong in the data, and what."""

_NAME_PATTERN_WORDS = {
    '^[A-Za-z][A-Za-z0-9_]*$': 'a name of letters, digits and underscores that starts with a '
    'letter',
    '^(~/|/)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$': 'a ROS 2 name such as '
    'cell/front/image_raw',
    '^[a-z][a-z0-9_]*/msg/[A-Z][A-Za-z0-9]*$': 'a message type such as sensor_msgs/msg/LaserScan',
}

_EXPECTED = {
    'string_type': 'a text',
    'int_type': 'a whole number',
    'int_from_float': 'a whole number',
    'float_type': 'a number',
    'finite_number': 'a finite number',
    'bool_type': 'true or false',
    'dict_type': 'a mapping',
    'model_type': 'a mapping',
    'model_attributes_type': 'a mapping',
    'tuple_type': 'a list',
    'list_type': 'a list',
}


def findings(error: ValidationError, model: type[BaseModel], data: Any) -> Iterator[Finding]:
    """Translate what pydantic found.

    Args:
        error: What it raised.
        model: The class that was validated.
        data: What was validated, for values that pydantic does not repeat.
    """
    details = error.errors(include_url=False)
    later = {
        path[:-1]
        for path in (_path(detail['loc']) for detail in details)
        if path[-1:] == ('kind',) and _at(data, path) in LATER_KINDS
    }
    told: set[Finding] = set()
    for detail in details:
        path = _path(detail['loc'])
        if path[:-1] in later and path[-1] != 'kind':
            continue  # keys of a kind that is refused anyway
        if detail['type'] == 'missing' and isinstance(path[-1], int):
            path = path[:-1]
        finding = (path, _message(detail, path, model, data))
        if finding not in told:
            told.add(finding)
            yield finding


def _path(loc: tuple[int | str, ...]) -> KeyPath:
    """Pydantic's location without its marks, such as ``[key]`` after a mapping's bad key."""
    return loc[:-1] if loc and loc[-1] == '[key]' else loc


def _at(data: Any, path: KeyPath) -> Any:
    for part in path:
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return None
    return data


def _message(detail: Any, path: KeyPath, model: type[BaseModel], data: Any) -> str:
    kind = detail['type']
    context: Mapping[str, Any] = detail.get('ctx', {})
    value = detail['input']
    if kind == 'missing':
        listed = _at(data, path)
        if isinstance(listed, list):
            found, known = len(listed), _length_at(model, path)
            return f'expected a list of {known}, found {found}'
        return f'expected the key {str(path[-1])!r}, found none'
    if kind == 'extra_forbidden':
        around = _annotation_at(model, path[:-1])
        fields = list(around.model_fields) if _is_model(around) else []
        return 'expected a known key, found an unknown one' + did_you_mean(str(path[-1]), fields)
    if kind == 'value_error':
        return str(context['error'])
    if kind == 'literal_error':
        return _literal_message(value, path, str(context['expected']))
    if kind == 'string_pattern_mismatch':
        words = _NAME_PATTERN_WORDS.get(str(context['pattern']), f'{context["pattern"]}')
        hint = ''
        if isinstance(value, str) and '/msg/' in words and value.count('/') == 1:
            hint = f'; did you mean {value.replace("/", "/msg/")!r}?'
        return f'expected {words}, found {describe(value)}{hint}'
    if kind == 'too_long' and isinstance(value, (list, tuple)):
        return f'expected a list of {context["max_length"]}, found {len(value)}'
    return f'expected {_expected(kind, context)}, found {describe(value)}{_hint(kind, value)}'


def _expected(kind: str, context: Mapping[str, Any]) -> str:
    limits = {
        'greater_than': ('gt', 'a number above {}'),
        'greater_than_equal': ('ge', 'a number of at least {}'),
        'less_than': ('lt', 'a number below {}'),
        'less_than_equal': ('le', 'a number of at most {}'),
        'string_too_short': ('min_length', 'a text of at least {} character'),
        'string_too_long': ('max_length', 'a text of at most {} characters'),
        'too_short': ('min_length', 'at least {} of them'),
    }
    if kind in limits:
        name, words = limits[kind]
        limit = context[name]
        return words.format(int(limit) if float(limit).is_integer() else limit)
    return _EXPECTED.get(kind, f'another value ({kind})')


def _hint(kind: str, value: Any) -> str:
    if kind == 'string_type' and isinstance(value, (bool, int, float)):
        return '; put it in quotes'
    if kind == 'bool_type' and isinstance(value, str):
        word = {'yes': 'true', 'on': 'true', 'y': 'true', 'no': 'false', 'off': 'false'}
        meant = word.get(value.lower())
        return f'; did you mean {meant}?' if meant else ''
    if kind in ('float_type', 'int_type') and isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return ''
        return '; write it without quotes'
    if kind == 'tuple_type' and isinstance(value, str):
        return f'; write [{value[:40]}]'
    return ''


def _literal_message(value: Any, path: KeyPath, expected: str) -> str:
    allowed = re.findall(r"'([^']*)'", expected)
    if path[-1] == 'kind' and value in LATER_KINDS:
        return (
            f'the evaluator kind {value!r} is not in this version; '
            f'this version has {", ".join(allowed)}'
        )
    close = did_you_mean(value, allowed) if isinstance(value, str) else ''
    hint = close if 'did you mean' in close else ''
    return f'expected one of {", ".join(allowed)}, found {describe(value)}{hint}'


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _bare(annotation: Any) -> Any:
    """Take ``Annotated`` and ``None`` off."""
    if get_origin(annotation) is Annotated:
        return _bare(get_args(annotation)[0])
    arguments = [item for item in get_args(annotation) if item is not type(None)]
    if type(None) in get_args(annotation) and len(arguments) == 1:
        return _bare(arguments[0])
    return annotation


def _annotation_at(model: Any, path: KeyPath) -> Any:
    """Find the type of what stands at ``path`` below ``model``; ``None`` if there is none."""
    annotation = _bare(model)
    for part in path:
        arguments = get_args(annotation)
        if _is_model(annotation):
            known = annotation.model_fields.get(part)
            annotation = _bare(known.annotation) if known else None
        elif get_origin(annotation) is dict:
            annotation = _bare(arguments[1])
        elif get_origin(annotation) is tuple:
            annotation = _bare(arguments[0])
        else:
            return None
    return annotation


def _length_at(model: Any, path: KeyPath) -> int:
    return len(get_args(_annotation_at(model, path)))
