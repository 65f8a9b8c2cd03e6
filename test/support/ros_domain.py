"""A ROS domain that no other test of this machine uses, so that no two tests hear each other."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import socket

PORT_BASE = 32768
"""A domain is taken by binding this port plus its id, as ament's ``domain_coordinator`` does.

The same numbers are used on purpose: tests of other packages that use the coordinator keep off our
domains, and we off theirs. The coordinator itself is not packaged for every distribution.
"""

DOMAINS = 100
"""Ids 1 to 100 are valid on every platform; above 101 the ports reach into the ephemeral range."""

_next = os.getpid()


@contextlib.contextmanager
def own_domain() -> Iterator[int]:
    """Reserve a domain id from 1 to 100 until the block ends.

    Ids are taken in turn from a start that differs from process to process, because a child killed
    with ``kill -9`` stays visible as a ghost in its domain until its lease of 20 s has run out.

    Raises:
        RuntimeError: All hundred are taken.
    """
    global _next
    for _ in range(DOMAINS):
        domain = _next % DOMAINS + 1
        _next += 1
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as lock:
            try:
                lock.bind(('', PORT_BASE + domain))
            except OSError:
                continue
            yield domain
            return
    raise RuntimeError(f'expected a free ROS domain among 1 to {DOMAINS}, found all taken')
