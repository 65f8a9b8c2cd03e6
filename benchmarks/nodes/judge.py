"""A judge that answers at once, so that nothing but the way to it and back is measured."""

from __future__ import annotations

import time
from typing import Any

calls: list[tuple[int, int]] = []
"""Monotonic nanoseconds of the beginning and the end of every call, where somebody collects
them; see :mod:`benchmarks.nodes.observed_evaluator`."""
collect = False


def judge(_request: Any) -> bool:
    """Say that the post-condition holds."""
    began = time.monotonic_ns()
    if collect:
        calls.append((began, time.monotonic_ns()))
    return True
