"""The fiducial marker dictionaries that can be named, so that OpenCV need not be imported."""

from __future__ import annotations

_ARUCO_SIZES = (50, 100, 250, 1000)
_APRILTAG_SIZES = {'16h5': 30, '25h9': 35, '36h10': 2320, '36h11': 587}

DICTIONARY_SIZES: dict[str, int] = {
    **{f'DICT_{bits}X{bits}_{size}': size for bits in (4, 5, 6, 7) for size in _ARUCO_SIZES},
    'DICT_ARUCO_ORIGINAL': 1024,
    **{f'DICT_APRILTAG_{family}': size for family, size in _APRILTAG_SIZES.items()},
    **{f'DICT_APRILTAG_{family.upper()}': size for family, size in _APRILTAG_SIZES.items()},
}
"""How many markers each predefined dictionary has, by its name in ``cv2.aruco``.

The names are those that OpenCV 4.6 and 5 have in common; both spellings of an AprilTag family
(``36h11``, ``36H11``) are OpenCV's own.
"""
