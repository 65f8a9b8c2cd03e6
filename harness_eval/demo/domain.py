"""A ROS domain of our own: the demo and the robots of the machine must not hear each other."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import os
import socket
from typing import Final

_LOCK_PORT: Final = 32768  # plus the domain; the numbers of ament's domain_coordinator
_DISCOVERY_PORT: Final = 7400  # RTPS 2.2, 9.6.1.1: port base, domain gain, unicast offset
_DOMAIN_GAIN: Final = 250
_FIRST_UNICAST: Final = 10
_DOMAINS: Final = range(1, 101)


def _bound(kind: int, port: int) -> socket.socket | None:
    made = socket.socket(socket.AF_INET, kind)
    try:
        made.bind(('', port))
    except OSError:
        made.close()
        return None
    return made


def _in_use(domain: int) -> bool:
    """Whether a participant is on the domain: the first one holds its first unicast port."""
    port = _DISCOVERY_PORT + _DOMAIN_GAIN * domain + _FIRST_UNICAST
    probe = _bound(socket.SOCK_DGRAM, port)
    if probe is None:
        return True
    probe.close()
    return False


@contextlib.contextmanager
def free_domain() -> Iterator[int]:
    """Hold a domain that nobody is on, for as long as the block lasts.

    Domains are tried from a number that differs between processes.

    Raises:
        RuntimeError: None of 1 to 100 is free.
    """
    start = os.getpid() % len(_DOMAINS)
    for domain in (*_DOMAINS[start:], *_DOMAINS[:start]):
        lock = _bound(socket.SOCK_STREAM, _LOCK_PORT + domain)
        if lock is None:
            continue
        with lock:
            if _in_use(domain):
                continue
            yield domain
            return
    raise RuntimeError('none of the ROS domains 1 to 100 is free; set ROS_DOMAIN_ID yourself')
