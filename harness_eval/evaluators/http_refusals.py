"""What an HTTP status other than success means: which error, and whether to ask again."""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
import math
import time
from typing import Any

from harness_eval.contract import EvaluatorError
from harness_eval.lines import clean_line

LONGEST_REFUSAL = 64 * 1024
"""Bytes of the text of a refusal; a longer one is not looked at."""
SHOWN_OF_A_REFUSAL = 200
"""Characters of a refusal's text that are repeated in the error."""


async def refusal(response: Any, token: str, token_env: str, ref: str) -> EvaluatorError:
    """Say what a status means.

    Args:
        response: The response of the library; its body is not read yet.
        token: The bearer token that was sent, which no text may hold; empty: none.
        token_env: Name of its environment variable.
        ref: How errors name the service.
    """
    status = int(response.status_code)
    kind, again, remedy = _meaning(status, token_env)
    said = '' if 300 <= status < 400 else await _said(response, token)
    return EvaluatorError(
        kind,
        f'HTTP {status}{remedy}{said}',
        evaluator=ref,
        retryable=again,
        retry_after=_retry_after(response.headers, time.time()) if again else None,
    )


def _meaning(status: int, token_env: str) -> tuple[str, bool, str]:
    if status in (401, 403, 407):
        what = f'the token in {token_env}' if token_env else 'no token: set token_env'
        return 'endpoint_unauthorized', False, f': it does not accept {what}'
    if status in (404, 405, 410):
        return 'endpoint_not_found', False, ': there is nothing to POST to; check the url'
    if status == 429:
        return 'rate_limited', True, ': it asks to be called less often; set max_concurrency'
    if status in (408, 409, 425) or status >= 500:
        return 'endpoint_failed', True, ': it could not answer now'
    if 300 <= status < 400:
        return 'endpoint_redirect', False, ': a redirect that repeats no POST; correct the url'
    if status == 413:
        return 'endpoint_refused', False, ': the question is too large for it'
    if status >= 400:
        return 'endpoint_refused', False, ': it does not take the question'
    return 'endpoint_status', False, ': expected 200 with an answer'


async def _said(response: Any, token: str) -> str:
    """What a refusal says, if it is a short text; never one that repeats the token."""
    kind = response.headers.get('content-type', '')
    if not kind.startswith(('application/json', 'text/plain', 'application/problem+json')):
        return ''
    data = b''
    try:
        async for chunk in response.aiter_raw():
            data += chunk
            if len(data) > LONGEST_REFUSAL:
                return ''
    except Exception:  # the status is what counts
        return ''
    if repeats(data, token):
        return ''
    shown = clean_line(data.decode('utf-8', 'replace'), SHOWN_OF_A_REFUSAL)
    return f'; it says: {shown}' if shown else ''


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Read ``Retry-After`` (RFC 9110): seconds or a date; None if there is none to be read."""
    given = headers.get('retry-after', '').strip()
    try:
        seconds = (
            float(given) if given.isdigit() else parsedate_to_datetime(given).timestamp() - now
        )
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def repeats(data: bytes, token: str) -> bool:
    r"""Whether a text of the server's holds the token (JSON may write a slash as ``\/``)."""
    return bool(token) and token.encode() in data.replace(b'\\/', b'/')
