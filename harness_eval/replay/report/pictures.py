"""The views of stored cases as small pictures inside a page, within a number of bytes."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness_eval.contract import Image
from harness_eval.lines import clean_line, describe, redact
from harness_eval.times import seconds

if TYPE_CHECKING:
    from harness_eval.capture import Frame
    from harness_eval.decode import Decoder

MAX_PICTURES = 600
"""Pictures on one page; more would make it slow to load on a phone."""

MAX_BYTES = 25_000_000
"""Characters that all pictures of a page take."""

LONGEST_SIDE = 640
"""Pixels of the longer side of a picture."""

_QUALITY = 80
_MAX_JPEG = 120_000


@dataclass(frozen=True)
class Picture:
    """One view.

    Attributes:
        name: Name of the view.
        note: When it was taken.
        url: The picture as a data URL; empty if it cannot be shown.
        width: Pixels; 0 if it cannot be shown.
        height: Pixels; 0 if it cannot be shown.
        fault: Why it cannot be shown; empty if it can.
    """

    name: str
    note: str
    url: str = ''
    width: int = 0
    height: int = 0
    fault: str = ''


@dataclass(frozen=True)
class Album:
    """The pictures of a page.

    Attributes:
        pictures: Those of each folder that has any.
        left_out: How many folders were not looked into, since the page is full.
    """

    pictures: dict[Path, tuple[Picture, ...]]
    left_out: int


def read_pictures(
    folders: Iterable[Path], max_pictures: int = MAX_PICTURES, max_bytes: int = MAX_BYTES
) -> Album:
    """Read the views of cases until the page is full.

    Args:
        folders: Folders of cases, the most important first; one that is there twice counts once.
        max_pictures: Most pictures.
        max_bytes: Most characters that they take together.
    """
    from harness_eval.decode import Decoder

    decoder = Decoder()
    found: dict[Path, tuple[Picture, ...]] = {}
    pictures, size, full, left_out = 0, 0, False, 0
    for folder in dict.fromkeys(folders):
        views = () if full else _views(folder, decoder)
        taken = sum(len(view.url) for view in views)
        if full or pictures + len(views) > max_pictures or size + taken > max_bytes:
            full = True
            left_out += 1
            continue
        pictures, size = pictures + len(views), size + taken
        found[folder] = views
    return Album(found, left_out)


def _views(folder: Path, decoder: Decoder) -> tuple[Picture, ...]:
    from harness_eval.cases import read_case
    from harness_eval.message_types import COMPRESSED_IMAGE, IMAGE

    try:
        captured = read_case(folder, decoder).captured
    except Exception as error:  # a damaged file may raise anything
        return (Picture('views', '', fault=f'the case cannot be read: {describe(error)}'),)
    return tuple(
        _picture(frame, captured.t_end, decoder)
        for frame in captured.frames.values()
        if frame.type in (IMAGE, COMPRESSED_IMAGE)
    )


def _picture(frame: Frame, t_end: int, decoder: Decoder) -> Picture:
    from harness_eval.evidence_picture import encode_jpeg, visible

    name = clean_line(frame.stream)
    note = f'{seconds(frame.stamp - t_end):.3f} s after the end'
    try:
        shown = _small(visible(decoder.image(frame.type, frame.data)))
        data = encode_jpeg(shown, _QUALITY, _MAX_JPEG)
    except Exception as error:  # so may a damaged picture
        return Picture(name, note, fault=clean_line(redact(describe(error))))
    url = 'data:image/jpeg;base64,' + base64.b64encode(data).decode('ascii')
    return Picture(name, note, url, shown.shape[1], shown.shape[0])


def _small(picture: Image) -> Image:
    import cv2
    import numpy as np

    height, width = picture.shape[:2]
    scale = LONGEST_SIDE / max(height, width)
    if scale >= 1.0:
        return picture
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA))


def most_important_first(ranked: Sequence[tuple[int, Path | None]]) -> list[Path]:
    """The folders in the order in which a page that has no room for all takes them.

    Args:
        ranked: Rank, lowest first, and folder of each run; None: it has none.
    """
    return [folder for _, folder in sorted(ranked, key=lambda one: one[0]) if folder is not None]
