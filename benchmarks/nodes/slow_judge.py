"""A judge that takes a second, as a model behind a server does."""

from __future__ import annotations

import time
from typing import Any

TAKES = 1.0
"""Seconds."""


def judge(_request: Any) -> bool:
    """Say that the post-condition holds, after a second."""
    time.sleep(TAKES)
    return True
