"""How the C library keeps memory for the threads of a node."""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
"""The parameter of glibc's ``mallopt`` for the number of its pools (malloc.h)."""
_ARENAS = 2


def share_arenas() -> None:
    """Have all threads share two pools of memory; without glibc this does nothing.

    By default each thread takes its pool from eight for each core. Pictures that come on one
    thread and go on another then leave holes in all of them, which cost memory and give nothing,
    since the interpreter runs one thread at a time. Call it before threads are started.
    """
    mallopt = getattr(ctypes.CDLL(None), 'mallopt', None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, _ARENAS)
