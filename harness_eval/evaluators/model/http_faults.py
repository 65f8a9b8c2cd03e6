"""What a server's refusal means: which error, whether it passes, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
import math
import re
import ssl
from typing import Any

from harness_eval.evaluators.model.errors import ModelError
from harness_eval.lines import clean_line

SHOWN = 160
"""Characters of what a server says that are repeated."""

MIN_SECRET = 8
"""Characters from which a key is taken for one."""

_SCHEMA = re.compile(
    r'response_format|json[_ -]?schema|structured[_ -]?output|guided[_ -]?(json|decoding)|schema',
    re.IGNORECASE,
)
_TOKENS = re.compile(r'max_completion_tokens')


class SchemaRefused(Exception):
    """The server does not take the JSON Schema. Carries the error in case words are no way out."""

    def __init__(self, error: ModelError) -> None:
        super().__init__()
        self.error = error


class TokensRenamed(Exception):
    """The server wants ``max_completion_tokens`` in place of ``max_tokens``."""


def status_error(
    status: int, body: Any, headers: Mapping[str, str], *, key_env: str, hide: str, now: float
) -> ModelError:
    """Say what an HTTP status other than 2xx means.

    Args:
        status: The status.
        body: The body as the SDK read it: an error object, a text or ``None``.
        headers: Names in any case.
        key_env: Name of the environment variable of the key.
        hide: The key, which no message may show even if the server repeats it.
        now: Seconds since the epoch, for a ``Retry-After`` that is a date.
    """
    said = _said(body, hide)
    wait = retry_after(headers, now)
    if status in (401, 403):
        # What such a server says may hold a part of the key.
        return ModelError(
            'unauthorized',
            f'HTTP {status}: the key in {key_env} is not accepted for this model; check the key '
            'and what it may use',
        )
    if 300 <= status < 400:
        return ModelError(
            'redirected',
            f'HTTP {status}: the server points to another address; the key and the pictures are '
            'sent to base_url only, so set base_url to that address if it is right',
        )
    if status == 429 and _code(body) == 'insufficient_quota':
        return ModelError('quota_exhausted', f'HTTP 429: the account has no quota left{said}')
    kind, text, again = _meaning(status, body)
    return ModelError(kind, f'HTTP {status}: {text}{said}', retryable=again, retry_after=wait)


def _meaning(status: int, body: Any) -> tuple[str, str, bool]:
    known = {
        404: ('not_found', 'no such model or path; check model and base_url', False),
        405: ('not_found', 'nothing takes a question there; check base_url', False),
        408: ('server_timeout', 'the server gave up waiting', True),
        409: ('conflict', 'the server could not take the question just now', True),
        413: ('request_too_large', 'the question is too large; lower max_total_bytes', False),
        429: ('rate_limited', 'asked too often; lower max_concurrency', True),
    }
    if status in known:
        return known[status]
    if status >= 500:
        return 'server_error', 'the server failed', True
    if 'content' in _code(body) and 'filter' in _code(body):
        return 'content_filtered', 'a content filter refused the question', False
    return 'request_refused', 'the server does not take the question', False


def names_schema(status: int, body: Any) -> bool:
    """Whether a server refuses the question for its JSON Schema, by its own words."""
    return status in (400, 422) and bool(_SCHEMA.search(_text_of(body)))


def names_tokens(status: int, body: Any) -> bool:
    """Whether a server wants the other of the two names of ``max_tokens``."""
    return status in (400, 422) and bool(_TOKENS.search(_text_of(body)))


def connection_error(error: BaseException) -> ModelError:
    """Say what a connection that failed means. Nothing of its text is repeated.

    Args:
        error: What the SDK raised; its causes say which step failed.
    """
    names = []
    cause: BaseException | None = error
    for _ in range(10):
        if cause is None:
            break
        if isinstance(cause, ssl.SSLCertVerificationError):
            return ModelError(
                'tls_failed',
                "the server's certificate is not trusted: "
                f'{clean_line(cause.verify_message or "it cannot be verified", SHOWN)}; point '
                'SSL_CERT_FILE to the certificate of its authority',
            )
        names.append(type(cause).__name__)
        cause = cause.__cause__ or cause.__context__
    if any(name in ('ConnectError', 'ConnectTimeout') for name in names):
        return ModelError(
            'unreachable',
            'no connection to the server; is it running at base_url?',
            retryable=True,
        )
    return ModelError(
        'connection_lost',
        f'the connection broke before the whole answer had come ({names[-1]})',
        retryable=True,
    )


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a server asks to be left alone; ``None`` if it does not say.

    Reads ``retry-after-ms`` and ``retry-after`` (RFC 9110: seconds or a date).
    """
    lowered = {name.lower(): value for name, value in headers.items()}
    milliseconds = _number(lowered.get('retry-after-ms'))
    if milliseconds is not None:
        return milliseconds / 1000.0
    given = lowered.get('retry-after')
    seconds = _number(given)
    if seconds is not None or given is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or '')
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0.0 else None


def hidden(text: str, secret: str) -> str:
    """The text without the secret; a short one is a placeholder for servers that ask for none."""
    return text.replace(secret, '***') if len(secret) >= MIN_SECRET else text


def _code(body: Any) -> str:
    inner = body.get('error', body) if isinstance(body, dict) else None
    code = inner.get('code') if isinstance(inner, dict) else None
    return code if isinstance(code, str) else ''


def _said(body: Any, hide: str) -> str:
    inner = body.get('error', body) if isinstance(body, dict) else body
    text = inner
    if isinstance(inner, dict):
        text = inner.get('message', inner.get('detail', ''))
    if not isinstance(text, str) or text.lstrip().startswith('<'):
        return ''
    shown = clean_line(hidden(text, hide), SHOWN)
    return f'; it says: {shown}' if shown else ''


def _text_of(body: Any) -> str:
    return body if isinstance(body, str) else repr(body)
