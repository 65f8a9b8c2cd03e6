"""A real HTTP server on loopback that answers as a test wants, byte by byte where it must."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
import json
from pathlib import Path
import socket
import ssl
import subprocess
import threading
from typing import Any

STOP_TIMEOUT = 5.0
"""Seconds that a connection's thread has to end after the server was closed."""


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, which is JSON."""
        return json.loads(self.body)


Handler = Callable[[socket.socket, Request], object]
"""Answers a request on its socket; what it does not say stays unsaid until the socket closes."""


@dataclass
class HttpWorld:
    """A server that is up.

    Attributes:
        url: Its address, with a path.
        requests: What was sent so far.
        closing: Set when the server ends; a handler that hangs must wait for it.
        cut: Set by a handler when the client went away.
    """

    url: str
    requests: list[Request] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    cut: threading.Event = field(default_factory=threading.Event)


def reply(
    body: bytes | str = b'',
    *,
    status: str = '200 OK',
    kind: str | None = 'application/json',
    headers: tuple[str, ...] = (),
) -> bytes:
    """An HTTP/1.1 answer as bytes."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f'HTTP/1.1 {status}', f'Content-Length: {len(data)}', 'Connection: close', *headers]
    if kind is not None:
        lines.append(f'Content-Type: {kind}')
    return '\r\n'.join([*lines, '', '']).encode() + data


def saying(*answers: bytes) -> Handler:
    """Give these answers in turn; the last one again and again."""
    left = list(answers)

    def handle(connection: socket.socket, request: Request) -> None:
        connection.sendall(left.pop(0) if len(left) > 1 else left[0])

    return handle


@contextmanager
def serving(
    handler: Handler, *, path: str = '/judge', tls: ssl.SSLContext | None = None
) -> Iterator[HttpWorld]:
    """Serve on a free port of 127.0.0.1 until the block ends."""
    listener = socket.create_server(('127.0.0.1', 0))
    scheme, host = ('http', '127.0.0.1') if tls is None else ('https', 'localhost')
    world = HttpWorld(f'{scheme}://{host}:{listener.getsockname()[1]}{path}')
    threads: list[threading.Thread] = []

    def converse(connection: socket.socket) -> None:
        connection.settimeout(STOP_TIMEOUT)
        with connection:
            try:
                if tls is not None:
                    connection = tls.wrap_socket(connection, server_side=True)
                request = _read(connection)
                if request is not None:
                    world.requests.append(request)
                    handler(connection, request)
            except OSError:
                world.cut.set()
            finally:
                connection.close()

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=converse, args=(connection,), daemon=True)
            threads.append(thread)
            thread.start()

    server = threading.Thread(target=accept, daemon=True)
    server.start()
    try:
        yield world
    finally:
        world.closing.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in [server, *threads]:
            thread.join(2 * STOP_TIMEOUT)
            assert not thread.is_alive()


def _read(connection: socket.socket) -> Request | None:
    data = b''
    while b'\r\n\r\n' not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return None
        data += chunk
    head, _, body = data.partition(b'\r\n\r\n')
    line, *lines = head.decode('latin-1').split('\r\n')
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(':') for x in lines)}
    while len(body) < int(headers.get('content-length', 0)):
        body += connection.recv(65536)
    return Request(line, headers, body)


def own_certificate(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's TLS context for ``localhost`` and the certificate that trusts it."""
    key, certificate = folder / 'key.pem', folder / 'certificate.pem'
    subprocess.run(
        [
            *('openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256'),
            *('-nodes', '-days', '2', '-subj', '/CN=localhost'),
            *('-addext', 'subjectAltName=DNS:localhost'),
            *('-keyout', str(key), '-out', str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate
