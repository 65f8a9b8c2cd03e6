"""A real HTTP server on loopback that answers as it is told, faults too, and records requests.

:class:`LoopbackServer` knows nothing of what is asked; :func:`completion` and its neighbours make
the answers of a server of the chat completions API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
import json
import socket
import threading
from types import TracebackType
from typing import Any

_PATIENCE = 10.0
"""Seconds after which a connection is given up, so that no test hangs with it."""

_MAX_HEAD = 64 * 1024


@dataclass(frozen=True)
class Received:
    """One request as it came: the header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


class Connection:
    """What an answer may do: send bytes, or wait until the client or the test is done."""

    def __init__(self, raw: socket.socket, closing: threading.Event) -> None:
        self._raw = raw
        self._closing = closing

    def send(self, data: bytes) -> None:
        """Send all of ``data``."""
        self._raw.sendall(data)

    def wait(self, seconds: float = _PATIENCE) -> bool:
        """Do nothing for a while; ``True`` if the server is being closed."""
        return self._closing.wait(seconds)


Answer = Callable[[Received, Connection], None]
"""Answers one request; the connection is closed when it returns."""


class LoopbackServer:
    """Answers each request by the next of ``answers``; the last one answers all that follow.

    Threading model: one thread accepts and one serves each connection, one request each. All
    threads end when the context does. ``requests`` is appended to before the answer begins.

    Args:
        answers: What to answer, in order.

    Attributes:
        requests: What was asked so far.
    """

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._listener = socket.create_server(('127.0.0.1', 0), backlog=128)
        self._threads: list[threading.Thread] = []
        self.requests: list[Received] = []

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f'http://127.0.0.1:{self.port}'

    def answer_with(self, *answers: Answer) -> None:
        """Answer so from now on."""
        with self._lock:
            self._answers = list(answers)

    def __enter__(self) -> LoopbackServer:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        with suppress(OSError):  # wakes accept()
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(_PATIENCE)

    def _start(self, target: Callable[[], None]) -> None:
        thread = threading.Thread(target=target, daemon=True, name='loopback-server')
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                raw, _address = self._listener.accept()
            except OSError:
                return
            raw.settimeout(_PATIENCE)
            self._start(lambda raw=raw: self._serve(raw))  # type: ignore[misc]

    def _serve(self, raw: socket.socket) -> None:
        # A client that has given up closes its end; that is no fault of the server.
        with raw, suppress(OSError):
            received = _read(raw)
            if received is None:
                return
            with self._lock:
                self.requests.append(received)
                answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
            answer(received, Connection(raw, self._closing))


def _read(raw: socket.socket) -> Received | None:
    data = b''
    while b'\r\n\r\n' not in data:
        chunk = raw.recv(65536)
        if not chunk or len(data) > _MAX_HEAD:
            return None
        data += chunk
    head, _, body = data.partition(b'\r\n\r\n')
    first, *lines = head.decode('latin-1').split('\r\n')
    method, path, _version = first.split(' ')
    pairs = (line.split(':', 1) for line in lines)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    length = int(headers.get('content-length', '0'))
    while len(body) < length:
        chunk = raw.recv(65536)
        if not chunk:
            return None
        body += chunk
    return Received(method, path, headers, body)


# Answers that know nothing of what was asked.


def http(
    body: bytes,
    *,
    status: int = 200,
    content_type: str = 'application/json',
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Answer with these bytes."""

    def answer(_received: Received, connection: Connection) -> None:
        connection.send(_head(status, content_type, len(body), headers) + body)

    return answer


def as_json(value: Any, **kwargs: Any) -> Answer:
    """Answer with a value, written as JSON."""
    return http(json.dumps(value).encode(), **kwargs)


def cut(body: bytes, *, after: int, status: int = 200) -> Answer:
    """Announce the whole body, send ``after`` bytes of it and close the connection."""

    def answer(_received: Received, connection: Connection) -> None:
        connection.send(_head(status, 'application/json', len(body), None) + body[:after])

    return answer


def closed() -> Answer:
    """Close the connection without a word."""
    return lambda _received, _connection: None


def hung() -> Answer:
    """Take the request and say nothing until the test is over."""

    def answer(_received: Received, connection: Connection) -> None:
        connection.wait()

    return answer


def dripping(body: bytes, *, every: float) -> Answer:
    """Send a body byte by byte, so that no single read ever waits long."""

    def answer(_received: Received, connection: Connection) -> None:
        connection.send(_head(200, 'application/json', len(body), None))
        for index in range(len(body)):
            if connection.wait(every):
                return
            connection.send(body[index : index + 1])

    return answer


def _head(status: int, content_type: str, length: int, headers: Mapping[str, str] | None) -> bytes:
    lines = [
        f'HTTP/1.1 {status} Status',
        f'Content-Type: {content_type}',
        f'Content-Length: {length}',
        'Connection: close',
        *(f'{name}: {value}' for name, value in (headers or {}).items()),
    ]
    return ('\r\n'.join(lines) + '\r\n\r\n').encode('latin-1')


# Answers of the chat completions API.

USAGE = {
    'prompt_tokens': 812,
    'completion_tokens': 93,
    'total_tokens': 905,
    'prompt_tokens_details': {'cached_tokens': 512},
}


def completion_body(
    content: Any,
    *,
    finish_reason: Any = 'stop',
    model: str = 'judge-1-2026',
    usage: Any = USAGE,
    **message: Any,
) -> dict[str, Any]:
    """The body of a chat completion whose message holds ``content`` and further fields."""
    return {
        'id': 'chatcmpl-1',
        'object': 'chat.completion',
        'created': 1,
        'model': model,
        'choices': [
            {
                'index': 0,
                'finish_reason': finish_reason,
                'message': {'role': 'assistant', 'content': content, **message},
            }
        ],
        'usage': usage,
    }


def completion(content: Any, *, request_id: str = 'req-7', **kwargs: Any) -> Answer:
    """Answer with a chat completion; a ``content`` that is no text is written as JSON."""
    text = content if content is None or isinstance(content, str) else json.dumps(content)
    return as_json(completion_body(text, **kwargs), headers={'x-request-id': request_id})


def refused(
    status: int, message: str, *, headers: Mapping[str, str] | None = None, **error: Any
) -> Answer:
    """Answer with an error as this API writes it."""
    return as_json(
        {'error': {'message': message, 'type': 'error', **error}}, status=status, headers=headers
    )
