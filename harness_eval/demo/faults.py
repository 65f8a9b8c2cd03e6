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
