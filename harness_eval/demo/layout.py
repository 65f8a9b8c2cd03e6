"""Where things are in the cell and how big they are. Metres, radians, kilograms, newtons.

The origin is the middle of the table top; x goes right, y away from the front camera, z up.
"""

from __future__ import annotations

from typing import Final

PHYSICS_STEP: Final = 0.002
"""Seconds of one physics step."""

# Markers (DICT_4X4_50) and the edge of the white tag that carries each.
FRONT_CALIBRATION: Final = 0
WRIST_CALIBRATION: Final = 1
MARKERS: Final[dict[str, tuple[int, float]]] = {
    'calibration': (FRONT_CALIBRATION, 0.064),
    'gripper': (WRIST_CALIBRATION, 0.030),
    'bottle': (7, 0.044),
    'bottle_top': (8, 0.034),
    'tin': (9, 0.044),
    'tin_top': (10, 0.034),
    'tray': (12, 0.044),
    'drawer': (15, 0.046),
    'peg': (20, 0.040),
    'peg_top': (21, 0.036),
}

# Objects that the gripper can take. Positions are those of the underside's centre.
BOTTLE_AT: Final = (-0.095, -0.02)
BOTTLE_HALF: Final = 0.025
BOTTLE_HEIGHT: Final = 0.110
BOTTLE_MASS: Final = 0.20
TIN_AT: Final = (0.025, -0.02)
TIN_HALF: Final = 0.025
TIN_HEIGHT: Final = 0.100
TIN_MASS: Final = 0.20
OBJECT_TAG_HEIGHT: Final = 0.046
"""Height of the middle of the front tag above an object's underside."""

TRAY_AT: Final = (0.225, -0.075)
TRAY_HALF: Final = 0.058
TRAY_FLOOR: Final = 0.006

# Cabinet with one drawer; the drawer's joint is 0 when shut and grows as it comes out.
CABINET_AT: Final = (-0.235, 0.165)
CABINET_HALF: Final = (0.085, 0.075, 0.052)
DRAWER_TRAVEL: Final = 0.110
HANDLE_REACH: Final = 0.030
"""How far the middle of the handle stands out in front of the drawer's face."""
HANDLE_HEIGHT: Final = 0.058

# Peg, its rack and the block with the hole.
RACK_AT: Final = (0.090, 0.115)
RACK_HEIGHT: Final = 0.034
HOLE_AT: Final = (0.195, 0.115)
HOLE_BLOCK_HALF: Final = 0.040
HOLE_BLOCK_HEIGHT: Final = 0.055
HOLE_HALF: Final = 0.0102
PEG_SHAFT_HALF: Final = 0.0092
PEG_SHAFT_LENGTH: Final = 0.052
PEG_HEAD_HALF: Final = 0.0215
PEG_HEAD_HEIGHT: Final = 0.044
PEG_MASS: Final = 0.08
CHIP_HEIGHT: Final = 0.030
"""Height of the broken-off stub that blocks the hole in one of the faults."""

# Gantry and gripper. The joints read the position of the finger tips in the world.
GANTRY_RANGE: Final = {'x': (-0.36, 0.36), 'y': (-0.22, 0.24), 'z': (0.004, 0.30)}
HOME: Final = (0.0, 0.10, 0.215)
FINGER_LENGTH: Final = 0.080
FINGER_TRAVEL: Final = 0.042
"""How far one finger moves; the opening is twice that."""
GRIP_STIFFNESS: Final = 900.0
"""Newtons of grip for each metre that a finger is kept from its target."""

PARKED: Final = (0.0, 0.0, -0.8)
"""Below the table, out of sight: where unused things of the faults wait."""

FRONT_CAMERA_AT: Final = (0.0, -0.80, 0.56)
FRONT_CAMERA_LOOKS_AT: Final = (0.0, 0.03, 0.100)
FRONT_CAMERA_FOVY: Final = 33.0
FRONT_CAMERA_SIZE: Final = (640, 480)
WRIST_CAMERA_AT: Final = (0.0, -0.125, 0.165)
WRIST_CAMERA_LOOKS_AT: Final = (0.0, 0.0, 0.048)
WRIST_CAMERA_FOVY: Final = 60.0
WRIST_CAMERA_SIZE: Final = (320, 240)
