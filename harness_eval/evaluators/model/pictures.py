"""Pictures as a model is sent them: cut, scaled and encoded to a bounded size, as data URLs.

A picture is encoded anew from its pixels, so that nothing travels with it: no name of a file, no
metadata, no text but what the camera saw.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness_eval.contract import EvaluatorError, Image
from harness_eval.evaluators.checks.pictures import pixel_region
from harness_eval.evaluators.picture_bytes import check_shape, file_of, unsendable

QUALITIES = (92, 85, 75, 65)
"""JPEG qualities that are tried before the picture is made smaller."""

SHRINK = 0.8
"""Factor by which the sides get smaller if no quality is small enough."""

MIN_SIDE = 32
"""Pixels of the longer side below which a picture shows nothing any more."""

DARKEST = 40.0
"""Brightness of the least value of a depth, so that it differs from "no reading"."""

Region = tuple[float, float, float, float]


@dataclass(frozen=True)
class Sent:
    """A picture ready to be sent.

    Attributes:
        url: A ``data:`` URL with a JPEG or a PNG in base64.
        width: Columns, after cutting and scaling.
        height: Rows, after cutting and scaling.
        remark: What was done to it that changes how it is to be read; empty if nothing was.
    """

    url: str
    width: int
    height: int
    remark: str = ''


@dataclass(frozen=True)
class Limits:
    """How large pictures may be.

    Attributes:
        each: Most bytes of one, as the data URL that travels.
        together: Most bytes of all of them.
        side: Longest side in pixels.
    """

    each: int
    together: int
    side: int


@dataclass(frozen=True)
class Original:
    """A picture as it came.

    Attributes:
        name: What errors call it, for example ``view 'front'``.
        picture: ``HxWx3 uint8, BGR`` or ``HxW`` of uint8, uint16 or float32.
        region: The part of it that is sent, in fractions; ``None`` for all of it.
        remark: What was done to it already; see :class:`Sent`.
    """

    name: str
    picture: Image
    region: Region | None = None
    remark: str = ''


def encode_all(originals: Sequence[Original], limits: Limits) -> list[Sent]:
    """Encode pictures so that each of them and all together stay within the limits.

    Pictures that are small by themselves leave their share to the larger ones.

    Raises:
        EvaluatorError: ``unsendable_picture``, ``picture_too_large``: it cannot be made small
            enough to still show something.
    """
    prepared = [_prepared(original, limits.side) for original in originals]
    sent = [_encoded(one, limits.each) for one in prepared]
    if sum(len(one.url) for one in sent) <= limits.together:
        return sent
    left, waiting = limits.together, len(sent)
    for index in sorted(range(len(sent)), key=lambda index: len(sent[index].url)):
        share = left // waiting
        if len(sent[index].url) > share:
            sent[index] = _encoded(prepared[index], share)
        left -= len(sent[index].url)
        waiting -= 1
    return sent


def _prepared(original: Original, side: int) -> Original:
    """Cut, bring to 8 bits and scale."""
    picture, remark = _eight_bits(_cut(original), original.name)
    height, width = picture.shape[:2]
    if max(height, width) > side:
        picture = _scaled(picture, side / max(height, width))
    return replace(original, picture=picture, remark=remark)


def _cut(original: Original) -> Image:
    picture = original.picture
    check_shape(picture, original.name)
    if original.region is None:
        return picture
    height, width = picture.shape[:2]
    return pixel_region(original.region, width, height).of(picture)


def _eight_bits(picture: Image, name: str) -> tuple[Image, str]:
    """Show a depth (or anything else of more than 8 bits) as brightness, and say so."""
    if picture.dtype == np.uint8:
        return picture, ''
    if picture.ndim != 2 or picture.dtype.kind not in 'uf':
        raise unsendable(name, f'it has pixels of {picture.dtype}')
    values = picture.astype(np.float64)
    read = np.isfinite(values) & (values != 0.0)
    if not read.any():
        raise unsendable(name, 'it holds no reading at all')
    low, high = float(values[read].min()), float(values[read].max())
    scale = (high - low) or 1.0
    shown = np.where(read, DARKEST + (255.0 - DARKEST) * (values - low) / scale, 0.0)
    remark = (
        f'values shown as brightness, from {low:.4g} (dark grey) to {high:.4g} (white); '
        'black: no reading'
    )
    return np.rint(shown).astype(np.uint8), remark


def _scaled(picture: Image, factor: float) -> Image:
    import cv2

    height, width = picture.shape[:2]
    size = (max(1, round(width * factor)), max(1, round(height * factor)))
    made: Image = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    return made


def _encoded(prepared: Original, limit: int) -> Sent:
    picture, name = prepared.picture, prepared.name
    while True:
        for url in _urls(picture, name):
            if len(url) <= limit:
                height, width = picture.shape[:2]
                return Sent(url, width, height, prepared.remark)
        if max(picture.shape[:2]) * SHRINK < MIN_SIDE:
            raise EvaluatorError(
                'picture_too_large',
                f'{name} cannot be sent in {limit} bytes; raise max_image_bytes or '
                'max_total_bytes, or send fewer pictures',
            )
        picture = _scaled(picture, SHRINK)


def _urls(picture: Image, name: str) -> Iterator[str]:
    """Encode a picture in all ways that are tried, best first: one of one channel as PNG too."""
    if picture.ndim == 2:
        yield _url(picture, name, 'png', [])
    for quality in QUALITIES:
        yield _url(picture, name, 'jpeg', [_jpeg_quality(), quality])


def _jpeg_quality() -> int:
    import cv2

    return int(cv2.IMWRITE_JPEG_QUALITY)


def _url(picture: Image, name: str, kind: str, options: list[int]) -> str:
    data = base64.b64encode(file_of(picture, name, kind, options))
    return f'data:image/{kind};base64,{data.decode("ascii")}'
