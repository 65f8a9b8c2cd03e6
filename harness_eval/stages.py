"""The steps of an evaluation that are published as events."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Stage(str, Enum):
    """Steps of an evaluation that are published as events."""

    RECEIVED = 'received'
    CAPTURED = 'captured'
    STARTED = 'started'
    COMPLETED = 'completed'
    REJECTED = 'rejected'


@dataclass(frozen=True)
class Event:
    """One step in the evaluation of a segment."""

    run_id: str
    tool: str
    segment: int
    stage: Stage
    stamp: int
    detail: str = ''
