"""Meshes of the cell, computed from a few numbers: lofted bodies and flat tags.

MuJoCo reads them as text in the model, so the repository holds no mesh files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
import itertools

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_ROUND_STEPS = 32


@dataclass(frozen=True)
class Section:
    """One horizontal cut of a lofted body.

    Attributes:
        height: Of the cut above the body's origin, metres.
        half_x: Half of its extent along x, metres.
        half_y: Half of its extent along y, metres.
        exponent: Of the superellipse: 2 is an ellipse, 8 nearly a square with soft corners.
    """

    height: float
    half_x: float
    half_y: float
    exponent: float = 8.0


def _ring(section: Section) -> Floats:
    angle = np.linspace(0.0, 2.0 * np.pi, _ROUND_STEPS, endpoint=False) + np.pi / _ROUND_STEPS
    power = 2.0 / section.exponent
    cosine, sine = np.cos(angle), np.sin(angle)
    x = section.half_x * np.sign(cosine) * np.abs(cosine) ** power
    y = section.half_y * np.sign(sine) * np.abs(sine) ** power
    return np.column_stack([x, y, np.full_like(x, section.height)])


def _numbers(values: Iterable[float]) -> str:
    return ' '.join(f'{value:.6g}' for value in values)


def loft(name: str, sections: Sequence[Section]) -> str:
    """A closed body through the sections, bottom to top, as an MJCF ``mesh`` element.

    Each band has vertices of its own, so that edges between bands stay crisp while the
    surface around the body is smooth.
    """
    rings = [_ring(section) for section in sections]
    vertices: list[Floats] = []
    faces: list[tuple[int, int, int]] = []
    count = 0
    for lower, upper in itertools.pairwise(rings):
        vertices += [lower, upper]
        for i in range(_ROUND_STEPS):
            j = (i + 1) % _ROUND_STEPS
            a, b = count + i, count + j
            c, d = a + _ROUND_STEPS, b + _ROUND_STEPS
            faces += [(a, b, d), (a, d, c)]
        count += 2 * _ROUND_STEPS
    for ring, upward in ((rings[0], False), (rings[-1], True)):
        vertices += [ring, ring.mean(axis=0, keepdims=True)]
        centre = count + _ROUND_STEPS
        for i in range(_ROUND_STEPS):
            j = (i + 1) % _ROUND_STEPS
            pair = (count + i, count + j) if upward else (count + j, count + i)
            faces.append((*pair, centre))
        count += _ROUND_STEPS + 1
    points = np.vstack(vertices)
    normals = _normals(points, faces)
    return (
        f'<mesh name="{name}" inertia="shell" vertex="{_numbers(points.ravel())}" '
        f'normal="{_numbers(normals.ravel())}" '
        f'face="{" ".join(str(index) for face in faces for index in face)}"/>'
    )


def _normals(points: Floats, faces: Sequence[tuple[int, int, int]]) -> Floats:
    corners = np.array(faces)
    first, second, third = (points[corners[:, k]] for k in range(3))
    area = np.cross(second - first, third - first)
    normals = np.zeros_like(points)
    for k in range(3):
        np.add.at(normals, corners[:, k], area)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    unit: Floats = normals / np.maximum(length, 1e-12)
    return unit


def tag(name: str, edge: float) -> str:
    """A square of the given edge in the x-z plane, seen from -y, as an MJCF ``mesh`` element.

    Its texture stands upright and is not mirrored when seen from -y with z up.
    """
    half = edge / 2.0
    vertex = f'{-half} 0 {-half}  {half} 0 {-half}  {half} 0 {half}  {-half} 0 {half}'
    return (
        f'<mesh name="{name}" inertia="shell" vertex="{vertex}" '
        'texcoord="0 1  1 1  1 0  0 0" face="0 1 2  0 2 3"/>'
    )
