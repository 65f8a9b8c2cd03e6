"""Small pieces of MJCF text that the parts of the cell are written with."""

from __future__ import annotations

import numpy as np

from harness_eval.demo import layout as at


def text(values: tuple[float, ...]) -> str:
    """Numbers as MJCF writes them."""
    return ' '.join(f'{value:.6g}' for value in values)


def tag(what: str, pos: tuple[float, float, float], tilt: float = 0.0) -> str:
    """A tag seen from -y; ``tilt`` turns it about x, pi/2 makes it lie face up."""
    number, _ = at.MARKERS[what]
    return (
        f'<geom class="seen" type="mesh" mesh="tag_{number}" material="marker_{number}" '
        f'pos="{text(pos)}" euler="{-tilt} 0 0"/>'
    )


def camera_at(
    name: str, pos: tuple[float, float, float], target: tuple[float, float, float], fovy: float
) -> str:
    """A camera that looks at a point, in the frame of its body, with x kept level."""
    forward = np.subtract(target, pos)
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, (0.0, 0.0, 1.0))
    right /= np.linalg.norm(right)
    up = np.cross(right, forward)
    return (
        f'<camera name="{name}" pos="{text(pos)}" fovy="{fovy}" '
        f'xyaxes="{text(tuple(right))} {text(tuple(up))}"/>'
    )
