"""One POST of JSON, bounded in time and in bytes, whose every end is an answer or a typed error.

Asynchronous, so that whoever gives up (a deadline, an interrupted run) cancels it: that closes the
connection at once, whatever it hangs in. A connection serves one request; a judge takes longer
than a handshake, and a kept connection that the server has closed is one more way to fail.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
import importlib
import os
import ssl
from typing import Any, NoReturn
from urllib.parse import urlsplit

from harness_eval import __version__
from harness_eval.contract import EvaluatorError
from harness_eval.evaluators.faults import describe
from harness_eval.evaluators.http_refusals import refusal, repeats
from harness_eval.lines import clean_line
from harness_eval.strict_json import read_json

MAX_ANSWER_BYTES = 1024 * 1024
"""Bytes of an answer; a verdict with all its evidence has a hundredth of it."""

MAX_REDIRECTS = 3

_GOOD = (200, 201)
_SAME_AGAIN = (307, 308)
"""Redirects that repeat the POST; the others ask for a GET, which carries no question."""
_HTTP_CLIENTS = ('httpx2', 'httpx')
"""The same library under its two names: the maintained one, and the one of older systems."""


@dataclass(frozen=True)
class PostTarget:
    """Where to post.

    Attributes:
        url: The address, ``http`` or ``https``, without user name and password.
        token_env: Name of the environment variable that holds the bearer token; empty: none.
        ca_file: File with the certificates to trust instead of the system's; empty: those.
        timeout: Seconds from the first step of the connection to the last byte of the answer.
        ref: How errors name it.
    """

    url: str
    token_env: str
    ca_file: str
    timeout: float
    ref: str


def reference_of(url: str, name: str = '') -> str:
    """The address as errors and verdicts name it: without credentials and query.

    Raises:
        EvaluatorError: ``endpoint_url``: it is no address that can be posted to.
    """
    try:
        parts = urlsplit(url)
        port = '' if parts.port is None else f':{parts.port}'
    except ValueError:
        raise EvaluatorError(
            'endpoint_url', f'{name}: expected a url such as https://host:8000/judge'
        ) from None
    if parts.scheme not in ('http', 'https') or not parts.hostname:
        raise EvaluatorError(
            'endpoint_url',
            f'{name}: expected a url with http:// or https:// and a host',
        )
    if parts.username is not None or parts.password is not None:
        raise EvaluatorError(
            'endpoint_url',
            f'{name}: the url holds a user name or a password; credentials come from the '
            'environment alone: name a variable with a bearer token as token_env',
        )
    host = f'[{parts.hostname}]' if ':' in parts.hostname else parts.hostname
    return f'endpoint:{parts.scheme}://{host}{port}{parts.path}'


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
    client_library = _http_client(target)
    headers = {
        'Content-Type': 'application/json',
        'Accept': 'application/json',
        # Nothing is unpacked: a megabyte on the wire must not become a gigabyte here.
        'Accept-Encoding': 'identity',
        'User-Agent': f'harness_eval/{__version__}',
        'Connection': 'close',
    }
    token = _token(target)
    if token:
        headers['Authorization'] = f'Bearer {token}'
    try:
        return await asyncio.wait_for(
            _exchange(client_library, target, headers, body, token), target.timeout
        )
    except (asyncio.TimeoutError, TimeoutError):
        raise _error(
            target, 'endpoint_timeout', f'no whole answer within {target.timeout:g} s', again=True
        ) from None


async def reach(target: PostTarget) -> int:
    """Ask what may be asked there (``OPTIONS``), with the token and without a question.

    Args:
        target: Where to.

    Returns:
        The HTTP status of the answer, whatever it is.

    Raises:
        EvaluatorError: There is no answer, or nothing could be asked; as :func:`post_json`.
    """
    library = _http_client(target)
    token = _token(target)
    headers = {'User-Agent': f'harness_eval/{__version__}', 'Connection': 'close'}
    if token:
        headers['Authorization'] = f'Bearer {token}'

    async def asked() -> int:
        async with (
            library.AsyncClient(
                verify=_trust(target), trust_env=False, follow_redirects=False, timeout=None
            ) as client,
            client.stream('OPTIONS', target.url, headers=headers) as response,
        ):
            return int(response.status_code)

    try:
        return await asyncio.wait_for(asked(), target.timeout)
    except (asyncio.TimeoutError, TimeoutError):
        raise _error(
            target, 'endpoint_timeout', f'no answer within {target.timeout:g} s', again=True
        ) from None
    except library.HTTPError as error:
        _raise_for_connection(target, library, error)
    except library.InvalidURL:
        raise _error(target, 'endpoint_url', 'the url cannot be understood') from None


async def _exchange(
    library: Any, target: PostTarget, headers: dict[str, str], body: bytes, token: str
) -> Any:
    try:
        async with library.AsyncClient(
            verify=_trust(target),
            # No proxy, no .netrc: where the pictures go is said in the configuration alone.
            trust_env=False,
            follow_redirects=False,
            timeout=None,
        ) as client:
            return await _asked(client, target, headers, body, token)
    except library.HTTPError as error:
        _raise_for_connection(target, library, error)
    except library.InvalidURL:
        raise _error(target, 'endpoint_url', 'the url cannot be understood') from None


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
    raise _error(target, 'endpoint_redirect', f'redirected more than {MAX_REDIRECTS} times')


def _http_client(target: PostTarget) -> Any:
    for name in _HTTP_CLIENTS:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise _error(
        target,
        'missing_library',
        'an endpoint needs the library httpx2 (or httpx); install it, for example as '
        'harness_eval[endpoint]',
    )


def _token(target: PostTarget) -> str:
    if not target.token_env:
        return ''
    token = os.environ.get(target.token_env, '').strip()
    if not token:
        raise _error(
            target,
            'no_token',
            f'the environment variable {target.token_env} (token_env) is not set or is empty; set '
            'it where this process is started',
        )
    if not token.isascii() or not token.isprintable() or ' ' in token:
        raise _error(
            target,
            'no_token',
            f'the environment variable {target.token_env} (token_env) holds white space or '
            'characters that no bearer token has',
        )
    return token


def _trust(target: PostTarget) -> Any:
    if not target.url.lower().startswith('https:'):
        return True
    try:
        return ssl.create_default_context(cafile=target.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, 'strerror', None) or type(error).__name__
        raise _error(
            target,
            'endpoint_tls',
            f'the certificates of ca_file cannot be read: {reason}; expected a PEM file',
        ) from None


def _redirected(target: PostTarget, response: Any) -> str:
    try:
        there = response.url.join(response.headers.get('location', ''))
    except Exception:  # whatever the library raises for an address that is none
        raise _error(target, 'endpoint_redirect', 'redirected to something unreadable') from None
    here = response.url
    if (there.scheme, there.host, there.port) != (here.scheme, here.host, here.port):
        raise _error(
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


def _raise_for_connection(target: PostTarget, library: Any, error: Exception) -> NoReturn:
    fault = _certificate_fault(error)
    if fault is not None:
        raise _error(
            target,
            'endpoint_tls',
            f'its certificate is not trusted: {clean_line(fault, 200)}; give the certificate of '
            'its authority as ca_file',
        ) from None
    if isinstance(error, library.ConnectError):
        kind, what = 'endpoint_unreachable', 'no connection'
    elif isinstance(error, library.UnsupportedProtocol):
        raise _error(target, 'endpoint_url', 'expected http:// or https://') from None
    else:
        kind, what = 'endpoint_cut', 'the connection broke before a whole answer had come'
    raise _error(target, kind, f'{what}: {describe(error)}', again=True) from None


def _certificate_fault(error: BaseException | None) -> str | None:
    """Look through the causes, since the library wraps what the socket raised."""
    for _ in range(10):
        if error is None:
            return None
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message or 'it cannot be verified'
        if isinstance(error, ssl.SSLError):
            return error.reason or 'the TLS handshake failed'
        error = error.__cause__ or error.__context__
    return None


def _error(target: PostTarget, kind: str, message: str, *, again: bool = False) -> EvaluatorError:
    return EvaluatorError(kind, message, evaluator=target.ref, retryable=again)


def _malformed(target: PostTarget, message: str) -> EvaluatorError:
    return _error(target, 'malformed_answer', message)
