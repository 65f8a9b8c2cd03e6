"""The ways in which a run of the demo can go wrong."""

from __future__ import annotations

from enum import Enum


class Fault(str, Enum):
    """One way to go wrong: of a tool, of a camera, or none."""

    NONE = 'none'
    MISSED_GRASP = 'missed grasp'
    SLIP = 'slip while lifting'
    WRONG_OBJECT = 'wrong object'
    OFF_TARGET = 'placed off target'
    KNOCKED_OVER = 'knocked over'
    HALF_OPEN = 'drawer half open'
    PEG_ON_RIM = 'peg on the rim'
    PEG_BLOCKED = 'peg blocked'
    CAMERA_OCCLUDED = 'camera occluded'
    CAMERA_DEAD = 'camera dead'
    CAMERA_FROZEN = 'camera frozen'
    CAMERA_CLOCK_WRONG = 'camera clock wrong'

    @property
    def spoils_view(self) -> bool:
        """Whether nobody can judge the run from the pictures, however well it went."""
        return self.name.startswith('CAMERA')


class Mishap(str, Enum):
    """One thing that befalls the cell beside its tools, or none.

    A fault of a tool ends far from success. A mishap ends anywhere near the line between success
    and failure, on both sides of it, so that a judge shows how it draws that line.
    """

    NONE = 'none'
    THING_DISPLACED = 'thing displaced'
    THING_TOPPLED = 'thing toppled'
    DRAWER_LEFT_OPEN = 'drawer left open'
    HELD_LOW = 'held low'
    NUDGED = 'nudged on the tray'
    PUSHED_BACK = 'drawer pushed back'
    DRAWN_OUT = 'peg drawn out'

    @property
    def comes_first(self) -> bool:
        """Whether the tool finds it so; otherwise it happens just before the tool's end."""
        return self in (
            Mishap.THING_DISPLACED,
            Mishap.THING_TOPPLED,
            Mishap.DRAWER_LEFT_OPEN,
        )
