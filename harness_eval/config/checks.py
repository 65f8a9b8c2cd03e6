"""The settings of deterministic checks, as they are written in the YAML.

A check is a mapping with one key that names its kind (``marker``, ``color``, ``change``,
``similar`` or ``state``) beside the optional keys ``weight``, ``optional``, ``name`` and
``failure_kind``.

A check that cannot fail, whatever the world looks like, is refused: it would be a verdict
without evidence.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from harness_eval.config.base import exactly_one, Flag, Integer, Number, Settings
from harness_eval.config.markers import DICTIONARY_SIZES

CheckKind = Literal['marker', 'color', 'change', 'similar', 'state']
CHECK_KINDS: tuple[CheckKind, ...] = ('marker', 'color', 'change', 'similar', 'state')

Fraction = Annotated[Number, Field(ge=0.0, le=1.0)]
"""A share, 0 to 1."""


def _ordered_region(
    region: tuple[float, float, float, float],
) -> tuple[float, float, float, float]:
    left, top, right, bottom = region
    if left >= right or top >= bottom:
        raise ValueError(
            f'expected [x0, y0, x1, y1] with x0 below x1 and y0 below y1, found {list(region)}'
        )
    return region


def _ordered_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    lowest, highest = bounds
    if lowest > highest:
        raise ValueError(f'expected [lowest, highest], found {list(bounds)}')
    return bounds


def _able_to_fail(share: tuple[float, float]) -> tuple[float, float]:
    if share == (0.0, 1.0):
        raise ValueError('expected bounds that can fail, found [0, 1], which every picture meets')
    return share


def _known_dictionary(name: str) -> str:
    if name not in DICTIONARY_SIZES:
        close = get_close_matches(name.upper(), DICTIONARY_SIZES, n=1)
        hint = f'; did you mean {close[0]!r}?' if close else ', for example DICT_4X4_50'
        raise ValueError(
            f'expected the name of an ArUco or AprilTag dictionary, found {name!r}{hint}'
        )
    return name


Region = Annotated[tuple[Fraction, Fraction, Fraction, Fraction], AfterValidator(_ordered_region)]
"""``[x0, y0, x1, y1]`` in fractions of the image's width and height, origin at the top left."""

Bounds = Annotated[tuple[Number, Number], AfterValidator(_ordered_bounds)]
"""``[lowest, highest]``, both included."""

Share = Annotated[
    tuple[Fraction, Fraction], AfterValidator(_ordered_bounds), AfterValidator(_able_to_fail)
]
"""``[lowest, highest]`` of a share, both included, 0 to 1."""

Dictionary = Annotated[
    str,
    AfterValidator(_known_dictionary),
    Field(json_schema_extra={'enum': sorted(DICTIONARY_SIZES)}),
]
"""Name of a predefined dictionary in ``cv2.aruco``."""

Hue = Annotated[Integer, Field(ge=0, le=179)]
Channel = Annotated[Integer, Field(ge=0, le=255)]
Hsv = tuple[Hue, Channel, Channel]
"""``[hue, saturation, value]`` as OpenCV has them for 8-bit pictures."""


class UsableMarker(Settings):
    """A fiducial marker, without the view that it is looked for in.

    Attributes:
        dictionary: Name of an OpenCV ArUco or AprilTag dictionary, for example ``DICT_4X4_50``.
        id: Number of the marker in its dictionary.
        region: Where the centre of the marker must lie; default: anywhere in the image.
    """

    dictionary: Dictionary
    id: Annotated[Integer, Field(ge=0)]
    region: Region | None = None

    @model_validator(mode='after')
    def _in_dictionary(self) -> UsableMarker:
        size = DICTIONARY_SIZES[self.dictionary]
        if self.id >= size:
            raise ValueError(
                f'expected an id from 0 to {size - 1}, which {self.dictionary} has, '
                f'found {self.id}'
            )
        return self


class MarkerCheck(UsableMarker):
    """A fiducial marker is visible (or absent), in a region, and at a pose.

    Attributes:
        view: Name of the view.
        dictionary: Name of an OpenCV ArUco or AprilTag dictionary, for example ``DICT_4X4_50``.
        id: Number of the marker in its dictionary.
        visible: ``false`` asks that the marker is *not* seen (in the region, if one is given).
        region: Where the centre of the marker must lie; default: anywhere in the image.
        size: Edge length of the marker in metres; needed for ``position``.
        position: Bounds ``[lowest, highest]`` of the marker's centre in the camera's optical
            frame (x right, y down, z forward), metres, by axis; needs ``size`` here and
            ``camera_info`` on the view.
    """

    view: str
    visible: Flag = True
    size: Annotated[Number, Field(gt=0.0)] | None = None
    position: dict[Literal['x', 'y', 'z'], Bounds] | None = Field(None, min_length=1)

    @model_validator(mode='after')
    def _position_needs_size(self) -> MarkerCheck:
        if self.position is not None and self.size is None:
            raise ValueError(
                "expected 'size' (edge length of the marker in metres) beside 'position', "
                'found none'
            )
        if self.position is not None and not self.visible:
            raise ValueError("expected no 'position' where 'visible' is false, found one")
        return self


class UsableColor(Settings):
    """A share of a region has a colour, without the view that it is looked for in.

    Attributes:
        lower: Lowest ``[hue, saturation, value]``; hue in 0..179, the others in 0..255 (OpenCV).
        upper: Highest of the same; a hue range that wraps has ``lower`` hue above ``upper`` hue.
        region: Where to look; default: the whole image.
        coverage: Bounds ``[lowest, highest]`` of the share of pixels in the range, 0 to 1.
    """

    lower: Hsv
    upper: Hsv
    region: Region | None = None
    coverage: Share

    @model_validator(mode='after')
    def _ordered(self) -> UsableColor:
        for index, channel in ((1, 'saturation'), (2, 'value')):
            if self.lower[index] > self.upper[index]:
                raise ValueError(
                    f'expected a {channel} in lower that is at most the one in upper, '
                    f'found {self.lower[index]} above {self.upper[index]}'
                )
        return self


class ColorCheck(UsableColor):
    """A share of a region has a colour.

    Attributes:
        view: Name of the view.
        lower: Lowest ``[hue, saturation, value]``; hue in 0..179, the others in 0..255 (OpenCV).
        upper: Highest of the same; a hue range that wraps has ``lower`` hue above ``upper`` hue.
        region: Where to look; default: the whole image.
        coverage: Bounds ``[lowest, highest]`` of the share of pixels in the range, 0 to 1.
    """

    view: str


class ChangeCheck(Settings):
    """A share of pixels changed against a reference picture.

    Attributes:
        view: Name of the view.
        reference: Name of one of the tool's reference pictures.
        region: Where to look; default: the whole image.
        threshold: Smallest difference of grey levels (0..255) that counts as a change.
        fraction: Bounds ``[lowest, highest]`` of the share of changed pixels, 0 to 1.
    """

    view: str
    reference: str
    region: Region | None = None
    threshold: Annotated[Integer, Field(ge=1, le=255)] = 25
    fraction: Share


class SimilarCheck(Settings):
    """A region looks like a reference picture (zero-mean normalised cross-correlation).

    Attributes:
        view: Name of the view.
        reference: Name of one of the tool's reference pictures.
        region: Where to look, in both pictures; default: the whole image.
        at_least: Lowest correlation, above -1 and at most 1, at which the check holds.
    """

    view: str
    reference: str
    region: Region | None = None
    at_least: Annotated[Number, Field(gt=-1.0, le=1.0)]


class StateCheck(Settings):
    """A reading lies within bounds.

    Attributes:
        name: Name of the state.
        between: Lowest and highest value, both included; every element must lie within.
    """

    name: str
    between: Bounds


CheckSettings = MarkerCheck | ColorCheck | ChangeCheck | SimilarCheck | StateCheck


class Check(Settings):
    """One check of a tool: exactly one kind, and how much it counts.

    Attributes:
        marker: A fiducial marker is visible or absent.
        color: A share of a region has a colour.
        change: A share of pixels changed against a reference picture.
        similar: A region looks like a reference picture.
        state: A reading lies within bounds.
        weight: Share of the score, above 0.
        optional: A check that may fail without failing the post-condition.
        name: How the evidence calls it; default: made from the kind and its target.
        failure_kind: One of the tool's ``failure_kinds`` to report when this check fails.
    """

    marker: MarkerCheck | None = None
    color: ColorCheck | None = None
    change: ChangeCheck | None = None
    similar: SimilarCheck | None = None
    state: StateCheck | None = None
    weight: Annotated[Number, Field(gt=0.0)] = 1.0
    optional: Flag = False
    name: Annotated[str, Field(max_length=100)] = ''
    failure_kind: str = ''

    @model_validator(mode='before')
    @classmethod
    def _one_kind(cls, data: Any) -> Any:
        """Ask for one kind before the kinds are looked into."""
        if isinstance(data, dict):
            given = [kind for kind in CHECK_KINDS if data.get(kind) is not None]
            mistyped = not given and data.keys() - cls.model_fields.keys()
            if len(given) != 1 and not mistyped:  # an unknown key is reported as such
                found = ' and '.join(given) or 'none'
                raise ValueError(
                    f'expected exactly one of {", ".join(CHECK_KINDS)}, found {found}'
                )
        return data

    @property
    def kind(self) -> CheckKind:
        """Which of the kinds it is."""
        return next(kind for kind in CHECK_KINDS if getattr(self, kind) is not None)

    @property
    def settings(self) -> CheckSettings:
        """The settings of its kind."""
        found: CheckSettings = getattr(self, self.kind)
        return found


class UsableCondition(Settings):
    """What must be seen in a view before anything is concluded from it; exactly one of the two.

    A condition that a covered camera meets is refused.

    Attributes:
        marker: A fiducial marker that is always in the picture, for example on the table.
        color: A colour that always covers a share of the picture.
    """

    marker: UsableMarker | None = None
    color: UsableColor | None = None

    @model_validator(mode='after')
    def _one_kind(self) -> UsableCondition:
        exactly_one(self, ('marker', 'color'))
        if self.color is not None and self.color.coverage[0] == 0.0:
            raise ValueError(
                'expected a coverage whose lowest share is above 0, found '
                f'{list(self.color.coverage)}, which a covered camera meets too'
            )
        return self
