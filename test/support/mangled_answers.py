"""Answers of a model, mangled in every way that a generator with a seed can think of.

:func:`spoilt` makes an answer that is certainly not well-formed; :func:`scrambled` changes one
anyhow, so that it may or may not be.
"""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

from model_server import completion_body

Body = tuple[bytes, str]
"""The body of a response, and what was done to it."""

_SCALARS = (None, True, False, 0, 1, -1, 2, 0.5, 1e9, '', '1', 'success', 'true', [], {}, [1])
_JUNK = (
    '```json\n',
    '\n```',
    'Answer: ',
    '\nDone.',
    ' // sure',
    '<think>x</think>',
    '\ufeff',
    ',',
)


def body_of(content: Any, **changes: Any) -> bytes:
    """A response whose message holds this content."""
    return json.dumps(completion_body(content, **changes)).encode()


def _paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [at] if at else []
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        found += _paths(inner, (*at, key))
    return found


def _holder(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path[:-1]:
        value = value[step]
    return value


def _object_path(value: Any, random: Random) -> dict[str, Any]:
    """One of the objects within an answer, itself included."""
    objects = [value]
    for path in _paths(value):
        inner = _holder(value, path)[path[-1]]
        if isinstance(inner, dict):
            objects.append(inner)
    chosen: dict[str, Any] = random.choice(objects)
    return chosen


# What certainly spoils an answer.


def _without_a_key(answer: dict[str, Any], random: Random) -> str:
    chosen = _object_path(answer, random)
    del chosen[random.choice(list(chosen))]
    return json.dumps(answer)


def _with_another_key(answer: dict[str, Any], random: Random) -> str:
    chosen = _object_path(answer, random)
    chosen[random.choice(['note', 'Status', 'status ', 'verdict', 'c99', ''])] = 'success'
    return json.dumps(answer)


def _with_a_key_renamed(answer: dict[str, Any], random: Random) -> str:
    chosen = _object_path(answer, random)
    key = random.choice(list(chosen))
    chosen[random.choice([key.upper() + '_', f' {key}', key[:-1] + '\u0435'])] = chosen.pop(key)
    return json.dumps(answer)


def _with_a_key_twice(answer: dict[str, Any], random: Random) -> str:
    chosen = _object_path(answer, random)
    key = random.choice(list(chosen))
    marked = {**chosen, '@twice@': chosen[key]}
    chosen.clear()
    chosen.update(marked)
    return json.dumps(answer).replace('"@twice@"', json.dumps(key))


def _with_another_type(answer: dict[str, Any], random: Random) -> str:
    path = random.choice(_paths(answer))
    holder, key = _holder(answer, path), path[-1]
    old = holder[key]
    fitting: tuple[type, ...] = (type(old),)
    if isinstance(old, float):
        fitting = (int, float)
    others = [one for one in _SCALARS if isinstance(one, bool) or not isinstance(one, fitting)]
    if isinstance(old, bool):
        others = [one for one in _SCALARS if not isinstance(one, bool)]
    holder[key] = copy.deepcopy(random.choice(others))
    return json.dumps(answer)


def _with_something_around(answer: dict[str, Any], random: Random) -> str:
    text = json.dumps(answer)
    junk = random.choice(_JUNK)
    return junk + text if random.random() < 0.5 else text + junk


def _fenced(answer: dict[str, Any], random: Random) -> str:
    return f'```{random.choice(["json", "", "JSON"])}\n{json.dumps(answer)}\n```'


def _twice(answer: dict[str, Any], random: Random) -> str:
    return random.choice(['', ' ', '\n', ',']).join(2 * [json.dumps(answer)])


def _cut(answer: dict[str, Any], random: Random) -> str:
    text = json.dumps(answer)
    return text[: random.randrange(len(text))]


def _beheaded(answer: dict[str, Any], random: Random) -> str:
    text = json.dumps(answer)
    return text[random.randrange(1, len(text)) :]


def _wrapped(answer: dict[str, Any], random: Random) -> str:
    whole = [[answer], {'answer': answer}, json.dumps(answer), {'verdict': answer, 'ok': True}]
    return json.dumps(random.choice(whole))


def _of_another_view(answer: dict[str, Any], random: Random) -> str:
    answer['observations'][0]['source'] = random.choice(['wrist', 'FRONT', 'front ', 'a', ''])
    return json.dumps(answer)


def _blank(answer: dict[str, Any], random: Random) -> str:
    paths = [path for path in _paths(answer) if path[-1] in ('reasons', 'seen', 'source')]
    path = random.choice(paths)
    _holder(answer, path)[path[-1]] = random.choice(['', ' ', '\n\t', '\u200b', '\u2060\u00a0'])
    return json.dumps(answer)


SPOILERS = (
    _without_a_key,
    _with_another_key,
    _with_a_key_renamed,
    _with_a_key_twice,
    _with_another_type,
    _with_something_around,
    _fenced,
    _twice,
    _cut,
    _beheaded,
    _wrapped,
    _of_another_view,
    _blank,
)


def _in_a_bad_response(answer: dict[str, Any], random: Random) -> Body:
    """A good answer in a response that is none."""
    text = json.dumps(answer)
    kind = random.randrange(10)
    if kind == 0:
        field = random.choice(['reasoning', 'reasoning_content', 'thinking', 'refusal'])
        return body_of(random.choice([None, '', ' ', 'Done.']), **{field: text}), field
    if kind == 1:
        reason = random.choice(['length', 'content_filter', 'tool_calls', None, 'STOP', '', 1])
        return body_of(text, finish_reason=reason), f'finish_reason {reason}'
    if kind == 2:
        return body_of(text, refusal=random.choice(['No.', True, {'a': 1}])), 'refusal'
    if kind == 3:
        return body_of(text, tool_calls=[{'id': 'x'}]), 'tool call'
    if kind == 4:
        return body_of(
            random.choice([answer, [answer], [{'type': 'text', 'text': text}]])
        ), 'parts'
    body = completion_body(text)
    if kind == 5:
        body['choices'] = body['choices'] * random.choice([0, 2, 3])
        return json.dumps(body).encode(), 'choices'
    if kind == 6:
        del body['choices'][0][random.choice(['message', 'finish_reason'])]
        return json.dumps(body).encode(), 'a choice in parts'
    if kind == 7:
        body['choices'][0]['message']['role'] = random.choice(['user', 'system', 1, None])
        return json.dumps(body).encode(), 'role'
    data = json.dumps(body).encode()
    if kind == 8:
        return data[: random.randrange(len(data))], 'cut response'
    return data + random.choice([b'x', b'{}', data]), 'two responses'


def spoilt(answer: dict[str, Any], random: Random) -> Body:
    """A response that does not hold a well-formed answer, made of one that does."""
    answer = copy.deepcopy(answer)
    if random.random() < 0.3:
        return _in_a_bad_response(answer, random)
    spoiler = random.choice(SPOILERS)
    return body_of(spoiler(answer, random)), spoiler.__name__


def scrambled(answer: dict[str, Any], random: Random) -> Body:
    """A response with one to four changes of any kind to its values, its text or its bytes."""
    answer = copy.deepcopy(answer)
    for _ in range(random.randrange(3)):
        path = random.choice(_paths(answer))
        _holder(answer, path)[path[-1]] = copy.deepcopy(random.choice(_SCALARS))
        if not _paths(answer):
            break
    text = json.dumps(answer)
    for _ in range(random.randrange(3)):
        text = _edited(text, random)
    data = body_of(text)
    for _ in range(random.randrange(2)):
        at = random.randrange(len(data))
        data = data[:at] + bytes([random.randrange(256)]) + data[at + random.randrange(2) :]
    return data, 'scrambled'


def _edited(text: str, random: Random) -> str:
    if not text:
        return text
    start = random.randrange(len(text))
    end = min(len(text), start + random.randrange(1, 12))
    piece = text[start:end]
    put = random.choice(['', piece + piece, '"', '}', '{', ',', ':', 'success', '1', 'null', '\\'])
    return text[:start] + put + text[end:]
