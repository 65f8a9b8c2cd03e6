"""The settings of deterministic checks, as they are written in the YAML.

A check is a mapping with one key that names its kind (``marker``, ``color``, ``change``,
``similar`` or ``state``) beside the optional keys ``weight``, ``optional`` and ``name``.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from harness_eval.config.base import Settings

Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Region = tuple[Fraction, Fraction, Fraction, Fraction]
"""``[x0, y0, x1, y1]`` in fractions of the image's width and height, origin at the top left."""

Bounds = tuple[float, float]
"""``[lowest, highest]``, both included."""


class MarkerCheck(Settings):
    """A fiducial marker is visible (or absent), in a region, and at a pose.

    Attributes:
        view: Name of the view.
        dictionary: Name of an OpenCV ArUco or AprilTag dictionary, for example ``DICT_4X4_50``.
        id: Number of the marker.
        visible: ``false`` asks that the marker is *not* seen.
        region: Where the centre of the marker must lie.
        size: Edge length of the marker in metres; needed for ``position``.
        position: Bounds of the marker's centre in the camera's optical frame, metres, by axis.
    """

    view: str
    dictionary: str
    id: Annotated[int, Field(ge=0)]
    visible: bool = True
    region: Region | None = None
    size: Annotated[float, Field(gt=0.0)] | None = None
    position: dict[str, Bounds] | None = None


class ColorCheck(Settings):
    """A share of a region has a colour.

    Attributes:
        view: Name of the view.
        lower: Lowest ``[hue, saturation, value]``; hue in 0..179, the others in 0..255 (OpenCV).
        upper: Highest of the same; a hue range that wraps has ``lower`` hue above ``upper`` hue.
        region: Where to look; default: the whole image.
        coverage: Bounds of the share of pixels in the range.
    """

    view: str
    lower: tuple[int, int, int]
    upper: tuple[int, int, int]
    region: Region | None = None
    coverage: tuple[Fraction, Fraction]


class ChangeCheck(Settings):
    """A share of pixels changed against a reference picture.

    Attributes:
        view: Name of the view.
        reference: Name of one of the tool's reference pictures.
        region: Where to look; default: the whole image.
        threshold: Smallest difference of grey levels (0..255) that counts as a change.
        fraction: Bounds of the share of changed pixels.
    """

    view: str
    reference: str
    region: Region | None = None
    threshold: Annotated[int, Field(ge=1, le=255)] = 25
    fraction: tuple[Fraction, Fraction]


class SimilarCheck(Settings):
    """A region looks like a reference picture (zero-mean normalised cross-correlation).

    Attributes:
        view: Name of the view.
        reference: Name of one of the tool's reference pictures.
        region: Where to look, in both pictures; default: the whole image.
        at_least: Lowest correlation, -1..1, at which the check holds.
    """

    view: str
    reference: str
    region: Region | None = None
    at_least: Annotated[float, Field(ge=-1.0, le=1.0)]


class StateCheck(Settings):
    """A reading lies within bounds.

    Attributes:
        name: Name of the state.
        between: Lowest and highest value, both included; every element must lie within.
    """

    name: str
    between: Bounds


class Check(Settings):
    """One check of a tool: exactly one kind, and how much it counts.

    Attributes:
        weight: Share of the score.
        optional: A check that may fail without failing the post-condition.
        name: How the evidence calls it; default: made from the kind and its target.
        failure_kind: One of the tool's ``failure_kinds`` to report when this check fails.
    """

    marker: MarkerCheck | None = None
    color: ColorCheck | None = None
    change: ChangeCheck | None = None
    similar: SimilarCheck | None = None
    state: StateCheck | None = None
    weight: Annotated[float, Field(gt=0.0)] = 1.0
    optional: bool = False
    name: str = ''
    failure_kind: str = ''


class UsableCondition(Settings):
    """What must be seen in a view before anything is concluded from it.

    Exactly one of ``marker`` and ``color``, without ``view`` (it is the view's own).
    The two are finished by the owner of this module.
    """
