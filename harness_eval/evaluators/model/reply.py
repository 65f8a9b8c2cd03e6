"""The text of a chat completion. Whatever is not one whole, finished message is an error.

Pure: from the bytes of a response to a text or an error. Nothing but ``content`` of the one
message is ever taken for the answer; a JSON object elsewhere (in a field with the model's
reasoning, in the arguments of a tool call) is none.
"""

from __future__ import annotations

from typing import Any

from harness_eval.evaluators.model.errors import ModelError
from harness_eval.lines import clean_line
from harness_eval.strict_json import read_json

_SHOWN = 200
_REASONING = ('reasoning', 'reasoning_content', 'thinking')
"""Fields in which servers put what a model thought before its answer."""


def read_body(data: bytes, content_type: str) -> dict[str, Any]:
    """Read the body of a response as one JSON object.

    Args:
        data: The body.
        content_type: Its header, for the error.

    Raises:
        ModelError: ``not_an_api`` for a page or another type of content, ``malformed_response``.
    """
    kind = content_type.partition(';')[0].strip().lower()
    if 'html' in kind or data.lstrip()[:1] == b'<':
        raise ModelError(
            'not_an_api',
            'expected a chat completion as JSON, found a web page; base_url should end as the API '
            'does, usually in /v1, and no login page may stand in between',
        )
    try:
        body = read_json(data)
    except ValueError as error:
        raise ModelError(
            'malformed_response',
            f'expected a chat completion as JSON, found a body of {len(data)} bytes '
            f'({clean_line(content_type, 60) or "no content type"}) that is {error}',
            retryable=True,
        ) from None
    if not isinstance(body, dict):
        raise ModelError(
            'malformed_response',
            f'expected a chat completion, found a JSON {_kind(body)}',
            retryable=True,
        )
    return body


def answer_text(body: dict[str, Any]) -> str:
    """Give the text that the model answered with.

    Args:
        body: The body of a response, from :func:`read_body`.

    Raises:
        ModelError: ``refused``, ``content_filtered``, ``answer_cut``, ``no_choices``,
            ``tool_call``, ``empty_answer``, ``unfinished_answer`` or ``malformed_response``.
    """
    choice = _only_choice(body)
    message = choice.get('message')
    if not isinstance(message, dict):
        raise _malformed(f'its message is {_kind(message)}')
    if message.get('role', 'assistant') != 'assistant':
        raise _malformed('its message is not by the assistant')
    refusal = message.get('refusal')
    if refusal:
        said = clean_line(refusal, _SHOWN) if isinstance(refusal, str) else _kind(refusal)
        raise ModelError('refused', f'the model refused to judge: {said}')
    _check_finished(choice.get('finish_reason'))
    if message.get('tool_calls') or message.get('function_call'):
        raise _tool_call()
    content = message.get('content')
    if content is None or (isinstance(content, str) and not content.strip()):
        raise _empty(message)
    if not isinstance(content, str):
        raise _malformed(f'its content is {_kind(content)}, not a text')
    return content


def _only_choice(body: dict[str, Any]) -> dict[str, Any]:
    choices = body.get('choices')
    if not isinstance(choices, list):
        if body.get('error'):
            # Some gateways answer 200 and put the fault of the server behind them here.
            raise _malformed(f'it holds an error: {clean_line(str(body["error"]), _SHOWN)}')
        raise _malformed(f'choices is {_kind(choices)}')
    if not choices:
        raise ModelError('no_choices', 'the server answered with no choice at all', retryable=True)
    if len(choices) > 1:
        raise _malformed(f'one choice was asked for, {len(choices)} came')
    if not isinstance(choices[0], dict):
        raise _malformed(f'its choice is {_kind(choices[0])}')
    return choices[0]


def _check_finished(reason: Any) -> None:
    if reason == 'stop':
        return
    if reason == 'length':
        raise ModelError(
            'answer_cut',
            'the answer was cut at max_tokens; raise max_tokens of the evaluator, also for what '
            'the model thinks before it answers',
        )
    if reason == 'content_filter':
        raise ModelError('content_filtered', 'a content filter of the server held the answer back')
    if reason in ('tool_calls', 'function_call'):
        raise _tool_call()
    shown = clean_line(reason, 40) if isinstance(reason, str) else _kind(reason)
    raise ModelError(
        'unfinished_answer',
        f"expected an answer that ended by itself (finish_reason 'stop'), found {shown!r}",
        retryable=True,
    )


def _tool_call() -> ModelError:
    return ModelError(
        'tool_call', 'the model called a tool instead of answering; none was offered to it'
    )


def _empty(message: dict[str, Any]) -> ModelError:
    hint = ''
    if any(message.get(name) for name in _REASONING):
        hint = (
            '; there is text in its reasoning field, which is never read as an answer: let the '
            'server put the answer in content, or raise max_tokens'
        )
    return ModelError('empty_answer', f'the model answered nothing{hint}', retryable=True)


def _malformed(what: str) -> ModelError:
    return ModelError(
        'malformed_response', f'expected a chat completion, but {what}', retryable=True
    )


def _kind(value: Any) -> str:
    names = {dict: 'an object', list: 'a list', str: 'a text', bool: 'a truth value'}
    if value is None:
        return 'missing'
    return names.get(type(value), 'a number')
