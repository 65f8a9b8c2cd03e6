"""Addresses of servers, and names of environment variables that hold what must not be written."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, Field

MAX_ADDRESS = 2000
"""Characters of an address."""

_SECRET = re.compile(
    r'key|token|secret|passw|pwd|credential|auth|signature|sig$|session|code$', re.IGNORECASE
)
"""Names of query parameters under which people send what nobody else may know."""


def _address(text: str) -> str:
    """Check an address; no message repeats the part that may hold a secret."""
    if len(text) > MAX_ADDRESS:
        raise ValueError(f'expected an address of at most {MAX_ADDRESS} characters')
    if re.search(r'[\s\x00-\x1f\x7f]', text):
        raise ValueError('expected an address without white space, found some')
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise ValueError(
            'expected an address such as http://127.0.0.1:8000/v1, found a malformed one'
        ) from None
    if parts.scheme not in ('http', 'https'):
        found = f'the scheme {parts.scheme!r}' if parts.scheme else 'no scheme'
        raise ValueError(
            f'expected an address that starts with http:// or https://, found {found}'
        )
    if '@' in parts.netloc:
        raise ValueError(
            'expected an address without user and password, found some; secrets come from '
            'environment variables'
        )
    if not parts.hostname or port == 0:
        raise ValueError('expected an address with a host, as http://127.0.0.1:8000, found none')
    if parts.fragment or text.endswith('#'):
        raise ValueError('expected an address without a fragment (#…), found one')
    return text


def _without_secrets(text: str) -> str:
    for name, _ in parse_qsl(urlsplit(text).query, keep_blank_values=True):
        if _SECRET.search(name):
            raise ValueError(
                f'expected no secret in the address, found the parameter {name[:40]!r}; name the '
                'environment variable that holds it in token_env'
            )
    return text


def _without_query(text: str) -> str:
    if '?' in text:
        raise ValueError('expected an address without a query (?…), found one')
    return text


Url = Annotated[
    str,
    Field(json_schema_extra={'pattern': '^https?://[^@\\s]+$'}),
    AfterValidator(_address),
    AfterValidator(_without_secrets),
]
"""An HTTP address without credentials."""

PlainUrl = Annotated[
    str,
    Field(json_schema_extra={'pattern': '^https?://[^@?\\s]+$'}),
    AfterValidator(_address),
    AfterValidator(_without_query),
]
"""An HTTP address without credentials and query."""

EnvironmentVariable = Annotated[str, Field(pattern=r'^[A-Z_][A-Z0-9_]*$', max_length=200)]
"""Name of an environment variable, in capitals: whoever writes the secret itself is refused."""


def check_address(text: str) -> None:
    """Make sure that a text is an HTTP address without credentials.

    Raises:
        ValueError: It is not; the message repeats nothing that may be a secret.
    """
    _without_secrets(_address(text))
