"""How the kernel shares the processors out to the threads of a node."""

from __future__ import annotations

import ctypes
import os
import platform
import struct

SLICE = 200_000
"""Nanoseconds of a turn that are asked for; the kernel takes 0.1 to 100 ms."""

_SCHED_SETATTR = {'x86_64': 314, 'aarch64': 274}
"""The system call's number (asm/unistd.h); the C library has no function for it."""
_ATTRIBUTES = struct.Struct('=IIQiIQQQ')
"""``struct sched_attr`` (sched_setattr(2)): size, policy, flags, nice, priority, runtime, deadline
and period. The slice of an ordinary thread is its runtime."""


def ask_for_short_slices() -> bool:
    """Have this thread and those that it starts wait less for a processor.

    With more to do than processors, a thread that wakes up waits until the turn of another one is
    over: 3 ms by default. Who asks for shorter turns gets no more time, but sooner. It needs no
    privilege, and Linux 6.12 or newer; others take no notice. Real-time policies stay as they are.
    Call it before threads are started. Processes that are started inherit it.

    Returns:
        Whether the system took the request; an older one that takes no notice may say so too.
    """
    number = _SCHED_SETATTR.get(platform.machine())
    if number is None or not hasattr(os, 'sched_getscheduler'):
        return False
    try:
        policy, nice = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
    except OSError:  # a container may forbid the question
        return False
    if policy != os.SCHED_OTHER:
        return False
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, SLICE, 0, 0)
    return bool(ctypes.CDLL(None).syscall(number, 0, attributes, 0) == 0)
