"""One POST of JSON, bounded in time and in bytes, whose every end is an answer or a typed error.

Asynchronous, so that whoever gives up (a deadline, an interrupted run) cancels it: that closes the
connection at once, whatever it hangs in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from harness_eval import __version__
from harness_eval.contract import EvaluatorError
from harness_eval.evaluators.http_connection import (
    connected,
    http_client,
    PostTarget,
    target_error,
    token_of,
)
from harness_eval.evaluators.http_refusals import refusal, repeats
from harness_eval.lines import clean_line
from harness_eval.strict_json import read_json

MAX_ANSWER_BYTES = 1024 * 1024
"""Bytes of an answer; a verdict with all its evidence has a hundredth of it."""

MAX_REDIRECTS = 3

_GOOD = (200, 201)
_SAME_AGAIN = (307, 308)
"""Redirects that repeat the POST; the others ask for a GET, which carries no question."""

_Got = TypeVar('_Got')


async def post_json(target: PostTarget, body: bytes) -> Any:
    """Post a JSON text and read the JSON text that is answered.

    Args:
        target: Where to.
        body: The text in UTF-8.

    Returns:
        What was answered with status 200 or 201, read by :func:`read_json`.

    Raises:
        EvaluatorError: Anything else; ``docs/endpoint.md`` lists the kinds.
    """
    library = http_client(target)
    token = token_of(target)
    headers = {
        'Content-Type': 'application/json',
        'Accept': 'application/json',
        # Nothing is unpacked: a megabyte on the wire must not become a gigabyte here.
        'Accept-Encoding': 'identity',
        **_headers(token),
    }

    async def exchange() -> Any:
        async with connected(library, target) as client:
            return await _asked(client, target, headers, body, token)

    return await _in_time(target, exchange(), 'no whole answer')


async def reach(target: PostTarget) -> int:
    """Ask what may be asked there (``OPTIONS``), with the token and without a question.

    Args:
        target: Where to.

    Returns:
        The HTTP status of the answer, whatever it is.

    Raises:
        EvaluatorError: There is no answer, or nothing could be asked; as :func:`post_json`.
    """
    library = http_client(target)
    headers = _headers(token_of(target))

    async def exchange() -> int:
        async with (
            connected(library, target) as client,
            client.stream('OPTIONS', target.url, headers=headers) as response,
        ):
            return int(response.status_code)

    return await _in_time(target, exchange(), 'no answer')


def _headers(token: str) -> dict[str, str]:
    headers = {'User-Agent': f'harness_eval/{__version__}', 'Connection': 'close'}
    if token:
        headers['Authorization'] = f'Bearer {token}'
    return headers


async def _in_time(target: PostTarget, exchange: Awaitable[_Got], otherwise: str) -> _Got:
    try:
        return await asyncio.wait_for(exchange, target.timeout)
    except (asyncio.TimeoutError, TimeoutError):
        raise target_error(
            target, 'endpoint_timeout', f'{otherwise} within {target.timeout:g} s', again=True
        ) from None


async def _asked(
    client: Any, target: PostTarget, headers: dict[str, str], body: bytes, token: str
) -> Any:
    url = target.url
    for _ in range(MAX_REDIRECTS + 1):
        async with client.stream('POST', url, content=body, headers=headers) as response:
            if response.status_code in _SAME_AGAIN:
                url = _redirected(target, response)
                continue
            if response.status_code not in _GOOD:
                raise await refusal(response, token, target.token_env, target.ref)
            _check_type(target, response)
            data = await _content(target, response)
        if repeats(data, token):
            raise _malformed(
                target,
                'the answer repeats the token, which gets into no record',
            )
        try:
            return read_json(data)
        except ValueError as error:
            raise _malformed(target, f'the answer is {clean_line(str(error))}') from None
    raise target_error(target, 'endpoint_redirect', f'redirected more than {MAX_REDIRECTS} times')


def _redirected(target: PostTarget, response: Any) -> str:
    try:
        there = response.url.join(response.headers.get('location', ''))
    except Exception:  # whatever the library raises for an address that is none
        raise target_error(
            target, 'endpoint_redirect', 'redirected to something unreadable'
        ) from None
    here = response.url
    if (there.scheme, there.host, there.port) != (here.scheme, here.host, here.port):
        raise target_error(
            target,
            'endpoint_redirect',
            f'redirected to another place ({clean_line(f"{there.scheme}://{there.host}", 100)}); '
            'pictures and token go to no other host than the url names: set the url to that '
            'place if it is the right one',
        )
    return str(there)


def _check_type(target: PostTarget, response: Any) -> None:
    given = response.headers.get('content-type', '')
    kind = given.partition(';')[0].strip().lower()
    if kind != 'application/json' and not (
        kind.startswith('application/') and kind.endswith('+json')
    ):
        raise _malformed(
            target,
            f'expected an answer of type application/json, found '
            f'{clean_line(given, 100) or "none"}; is the url that of the judge?',
        )
    packed = response.headers.get('content-encoding', 'identity').strip().lower()
    if packed not in ('', 'identity'):
        raise _malformed(
            target,
            f'the answer is packed ({clean_line(packed, 60)}), which was not asked for',
        )


async def _content(target: PostTarget, response: Any) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            raise _malformed(target, f'the answer has more than {MAX_ANSWER_BYTES} bytes')
        chunks.append(chunk)
    return b''.join(chunks)


def _malformed(target: PostTarget, message: str) -> EvaluatorError:
    return target_error(target, 'malformed_answer', message)
