"""What it takes to connect to an HTTP service, and what keeps one from it.

A connection serves one request; a judge takes longer than a handshake, and a kept connection that
the server has closed is one more way to fail.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
import importlib
import os
import ssl
from typing import Any, NoReturn
from urllib.parse import urlsplit

from harness_eval.contract import EvaluatorError
from harness_eval.evaluators.faults import describe
from harness_eval.lines import clean_line

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


def http_client(target: PostTarget) -> Any:
    """The HTTP library.

    Raises:
        EvaluatorError: ``missing_library``.
    """
    for name in _HTTP_CLIENTS:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise target_error(
        target,
        'missing_library',
        'an endpoint needs the library httpx2 (or httpx); install it, for example as '
        'harness_eval[endpoint]',
    )


def token_of(target: PostTarget) -> str:
    """The bearer token from the environment; empty if the target wants none.

    Raises:
        EvaluatorError: ``no_token``.
    """
    if not target.token_env:
        return ''
    token = os.environ.get(target.token_env, '').strip()
    if not token:
        raise target_error(
            target,
            'no_token',
            f'the environment variable {target.token_env} (token_env) is not set or is empty; set '
            'it where this process is started',
        )
    if not token.isascii() or not token.isprintable() or ' ' in token:
        raise target_error(
            target,
            'no_token',
            f'the environment variable {target.token_env} (token_env) holds white space or '
            'characters that no bearer token has',
        )
    return token


@asynccontextmanager
async def connected(library: Any, target: PostTarget) -> AsyncIterator[Any]:
    """A client of the library for one exchange, whose faults become typed errors.

    Args:
        library: What :func:`http_client` found.
        target: Where it will connect to.

    Raises:
        EvaluatorError: ``endpoint_tls``, ``endpoint_unreachable``, ``endpoint_cut`` or
            ``endpoint_url``.
    """
    try:
        async with library.AsyncClient(
            verify=_trust(target),
            # No proxy, no .netrc: where the pictures go is said in the configuration alone.
            trust_env=False,
            follow_redirects=False,
            timeout=None,
        ) as client:
            yield client
    except library.HTTPError as error:
        _raise_for_connection(target, library, error)
    except library.InvalidURL:
        raise target_error(target, 'endpoint_url', 'the url cannot be understood') from None


def _trust(target: PostTarget) -> Any:
    if not target.url.lower().startswith('https:'):
        return True
    try:
        return ssl.create_default_context(cafile=target.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        reason = getattr(error, 'strerror', None) or type(error).__name__
        raise target_error(
            target,
            'endpoint_tls',
            f'the certificates of ca_file cannot be read: {reason}; expected a PEM file',
        ) from None


def _raise_for_connection(target: PostTarget, library: Any, error: Exception) -> NoReturn:
    fault = _certificate_fault(error)
    if fault is not None:
        raise target_error(
            target,
            'endpoint_tls',
            f'its certificate is not trusted: {clean_line(fault, 200)}; give the certificate of '
            'its authority as ca_file',
        ) from None
    if isinstance(error, library.ConnectError):
        kind, what = 'endpoint_unreachable', 'no connection'
    elif isinstance(error, library.UnsupportedProtocol):
        raise target_error(target, 'endpoint_url', 'expected http:// or https://') from None
    else:
        kind, what = 'endpoint_cut', 'the connection broke before a whole answer had come'
    raise target_error(target, kind, f'{what}: {describe(error)}', again=True) from None


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


def target_error(
    target: PostTarget, kind: str, message: str, *, again: bool = False
) -> EvaluatorError:
    """An error that names the target; ``again``: the same question may be answered later."""
    return EvaluatorError(kind, message, evaluator=target.ref, retryable=again)
