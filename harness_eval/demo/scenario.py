"""What the demo plays: good runs, bad runs, and runs that nobody can judge.

Until the last five runs nothing that succeeds changes the world for long, and a person puts
everything back in between. Where the scene graph may have learnt something that the person then
undid, a new survey tells it so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from harness_eval.demo.faults import Fault

_BOTTLE: Final[Mapping[str, str]] = MappingProxyType({'target': 'bottle'})


@dataclass(frozen=True)
class Step:
    """One run of the demo.

    Attributes:
        tool: What is run.
        arguments: What it is asked to do.
        fault: What goes wrong.
        reset: Whether a person puts everything back before it.
    """

    tool: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    fault: Fault = Fault.NONE
    reset: bool = False


SCENARIO: Final = (
    Step('survey_cell'),
    Step('pick_object', _BOTTLE, Fault.MISSED_GRASP),
    Step('pick_object', _BOTTLE, Fault.SLIP, reset=True),
    Step('pick_object', _BOTTLE, Fault.WRONG_OBJECT, reset=True),
    Step('pick_object', _BOTTLE, Fault.CAMERA_OCCLUDED, reset=True),
    Step('pick_object', _BOTTLE, Fault.CAMERA_DEAD, reset=True),
    Step('pick_object', _BOTTLE, Fault.CAMERA_FROZEN, reset=True),
    Step('pick_object', _BOTTLE, Fault.CAMERA_CLOCK_WRONG, reset=True),
    Step('open_drawer', fault=Fault.HALF_OPEN, reset=True),
    Step('insert_peg', fault=Fault.PEG_ON_RIM, reset=True),
    Step('insert_peg', fault=Fault.PEG_BLOCKED, reset=True),
    Step('pick_object', _BOTTLE, reset=True),
    Step('place_object', _BOTTLE, Fault.OFF_TARGET),
    Step('survey_cell', reset=True),
    Step('pick_object', _BOTTLE),
    Step('place_object', _BOTTLE, Fault.KNOCKED_OVER),
    Step('survey_cell', reset=True),
    Step('pick_object', _BOTTLE),
    Step('place_object', _BOTTLE),
    Step('open_drawer'),
    Step('insert_peg'),
)
"""In order; each begins in the world that the one before it left, unless a person resets it."""
