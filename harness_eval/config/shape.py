"""Pydantic's findings in words: what was expected, what was found, what would be right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import re
from types import UnionType
from typing import Annotated, Any, get_args, get_origin, Union

from pydantic import BaseModel, ValidationError

from harness_eval.config.errors import describe, did_you_mean
from harness_eval.config.evaluators import EvaluatorSettings, KINDS
from harness_eval.config.places import KeyPath

EVALUATORS = ('evaluation', 'evaluators')
"""Where the evaluators stand."""

Finding = tuple[KeyPath, str]
"""Where something is wrong in the data, and what."""

_NAME_PATTERN_WORDS = {
    '^[A-Za-z][A-Za-z0-9_]*$': 'a name of letters, digits and underscores that starts with a '
    'letter',
    '^(~/|/)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$': 'a ROS 2 name such as '
    'cell/front/image_raw',
    '^[a-z][a-z0-9]*(_[a-z0-9]+)*$': 'a key in snake_case',
    '^[a-z][a-z0-9_]*/msg/[A-Z][A-Za-z0-9]*$': 'a message type such as sensor_msgs/msg/LaserScan',
}

_SECRET_NAME = '^[A-Z_][A-Z0-9_]*$'
"""Pattern of the name of an environment variable that holds a secret."""

_LISTS = {2: '[lowest, highest]', 3: '[hue, saturation, value]', 4: '[x0, y0, x1, y1]'}
"""What the lists of a fixed length hold, by their length."""

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
    told: set[Finding] = set()
    for detail in error.errors(include_url=False):
        path = _path(detail, data)
        if _said_of_its_elements(detail):
            continue
        if detail['type'] == 'missing' and isinstance(path[-1], int):
            path = path[:-1]
        finding = (path, _message(detail, path, model, data))
        if finding not in told:
            told.add(finding)
            yield finding


def _said_of_its_elements(detail: Any) -> bool:
    """Tell a list that is too short only because its elements are refused, each by itself."""
    if detail['type'] != 'too_short':
        return False
    found: int = len(detail['input'])
    return found >= int(detail['ctx']['min_length'])


def _path(detail: Any, data: Any) -> KeyPath:
    """Pydantic's location as the file has it.

    Without the kind by which it tells evaluators apart, without the key that a shorthand stands
    for (a list for its ``outputs``), without marks such as ``[key]`` after a mapping's bad key.
    """
    loc = detail['loc']
    if loc[:2] == EVALUATORS:
        loc = (*loc[:3], *loc[4:])
    if detail['type'] in ('union_tag_invalid', 'union_tag_not_found'):
        loc = (*loc, 'kind')
    path: list[int | str] = []
    around = data
    for part in loc:
        if part == '[key]' or (isinstance(part, str) and isinstance(around, (str, list))):
            continue
        path.append(part)
        around = _at(around, (part,))
    return tuple(path)


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
    if kind == 'union_tag_not_found':
        return "expected the key 'kind', found none; " + f'kinds: {", ".join(KINDS)}'
    if kind == 'union_tag_invalid':
        return _literal_message(_at(data, path), str(context['expected_tags']))
    if kind == 'missing':
        listed = _at(data, path)
        if isinstance(listed, list):
            return f'expected {_list_at(model, path, data)}, found a list of {len(listed)}'
        return f'expected the key {str(path[-1])!r}, found none'
    if kind == 'extra_forbidden':
        return _unknown_key(str(path[-1]), _annotation_at(model, path[:-1], data))
    if kind == 'value_error':
        return str(context['error'])
    if kind == 'literal_error':
        return _literal_message(value, str(context['expected']))
    if kind == 'string_pattern_mismatch' and context['pattern'] == _SECRET_NAME:
        # Not repeated: it may be the secret itself.
        return (
            'expected the name of an environment variable in capitals, found '
            f'{"something else" if value else "nothing"}; the secret itself stands in no file'
        )
    if kind == 'string_pattern_mismatch':
        words = _NAME_PATTERN_WORDS.get(str(context['pattern']), f'{context["pattern"]}')
        hint = ''
        if isinstance(value, str) and '/msg/' in words and value.count('/') == 1:
            hint = f'; did you mean {value.replace("/", "/msg/")!r}?'
        return f'expected {words}, found {describe(value)}{hint}'
    if kind == 'too_long' and isinstance(value, (list, tuple)):
        words = _list_at(model, path, data) or f'a list of at most {context["max_length"]}'
        return f'expected {words}, found a list of {len(value)}'
    if kind == 'tuple_type' and (words := _list_at(model, path, data)):
        return f'expected {words}, found {describe(value)}{_hint(kind, value)}'
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
    if kind in ('dict_type', 'model_type', 'model_attributes_type') and value is None:
        return '; indent what belongs to it deeper than the key'
    if kind == 'tuple_type' and isinstance(value, str):
        return f'; write [{value[:40]}]'
    return ''


def _unknown_key(key: str, around: Any) -> str:
    """Say which keys there are, or to which kind of evaluator this one belongs."""
    if not _is_model(around):
        return 'expected a known key, found an unknown one'
    if issubclass(around, EvaluatorSettings):
        kind = next(name for name, settings in KINDS.items() if settings is around)
        others = [name for name, settings in KINDS.items() if key in settings.model_fields]
        if others:
            return (
                f'expected no {key!r} for the kind {kind!r}, found one; '
                f'it belongs to the kind {" and ".join(others)}'
            )
    fields = [field.alias or name for name, field in around.model_fields.items()]
    return 'expected a known key, found an unknown one' + did_you_mean(key, fields)


def _literal_message(value: Any, expected: str) -> str:
    allowed = re.findall(r"'([^']*)'", expected)
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


def _annotation_at(model: Any, path: KeyPath, data: Any) -> Any:
    """Find the type of what stands at ``path`` below ``model``; ``None`` if there is none."""
    annotation = _bare(model)
    around = data
    for part in path:
        around = _at(around, (part,))
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
        if get_origin(annotation) in (Union, UnionType):  # of evaluators; told apart by kind
            annotation = KINDS.get(str(_at(around, ('kind',))))
    return annotation


def _list_at(model: Any, path: KeyPath, data: Any) -> str:
    """What a list of a fixed length at ``path`` holds; '' where any length is right."""
    annotation = _annotation_at(model, path, data)
    parts = get_args(annotation)
    if get_origin(annotation) is not tuple or Ellipsis in parts:
        return ''
    return _LISTS.get(len(parts), f'a list of {len(parts)}')
