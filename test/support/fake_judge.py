"""A plugin of the tests, told what to do through its attribute ``behave``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

behave: Callable[[Any], Any] = lambda request: True  # noqa: E731


def judge(request: Any) -> Any:
    """Do what the test wants."""
    return behave(request)
