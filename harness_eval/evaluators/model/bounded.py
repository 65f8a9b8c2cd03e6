"""A response that stays within bounds, whatever a server sends."""

from __future__ import annotations

from collections.abc import AsyncIterator
import importlib
from typing import Any

MAX_BODY = 4 * 1024 * 1024
"""Bytes of a response; a long answer has a hundredth of it."""


class TooLong(Exception):
    """The response has more than :data:`MAX_BODY` bytes."""


class Packed(Exception):
    """The response is compressed, so that nobody knows how much it unpacks to."""


async def bounded(response: Any) -> None:
    """Refuse a response that is packed, and make one that does not end break off.

    An event hook of the HTTP client: called with the headers, before the body is read.

    Raises:
        Packed: At once. :class:`TooLong` comes while the body is read.
    """
    packed = response.headers.get('content-encoding', 'identity').strip().lower()
    if packed not in ('', 'identity'):
        raise Packed
    response.stream = _bounded_stream(response.stream)


def _bounded_stream(stream: Any) -> Any:
    base = importlib.import_module('httpx2').AsyncByteStream

    class Bounded(base):  # type: ignore[misc, valid-type]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in stream:
                size += len(chunk)
                if size > MAX_BODY:
                    raise TooLong
                yield chunk

        async def aclose(self) -> None:
            await stream.aclose()

    return Bounded()
