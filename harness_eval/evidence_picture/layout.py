"""How the picture of an outcome is laid out: header, views in rows, evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import math

import numpy as np

from harness_eval.contract import DecodeError, Image, Observation, View
from harness_eval.evidence_picture.pixels import visible
from harness_eval.evidence_picture.text import ascii_fold, shortened, text_width, wrapped, write

MAX_LINES = 12
"""Most lines of evidence that are drawn; the rest is counted."""

NO_OBSERVATION = 'no complete observation'
"""What stands where the views would be."""

_VIEW_HEIGHT = 320
_MIN_WIDTH = 720
_MAX_WIDTH = 1600
_VIEWS_A_ROW = 4
_WIDEST = 3.0
"""Largest ratio of width to height that a view is drawn with; a panorama is drawn less high."""

_MARGIN = 16
_HEADER_HEIGHT = 72
_STRIP_HEIGHT = 32
_LINE_HEIGHT = 25
_TEXT_SCALE = 0.52
_SMALL_SCALE = 0.48
_TITLE_SCALE = 0.95
_SUBTITLE_SCALE = 0.62

_BACKGROUND = (34, 29, 26)
_PANEL = (52, 45, 40)
_HATCH = (84, 74, 67)
_TEXT = (236, 232, 228)
_DIM = (178, 168, 158)
_HOLDS = (96, 190, 70)
_FAILS = (80, 80, 235)
_WHITE = (255, 255, 255)
_COLORS = {
    'success': (75, 142, 46),
    'failure': (52, 48, 196),
    'process': (184, 108, 38),
    'error': (18, 130, 214),
    'abstained': (120, 116, 112),
    'interrupted': (66, 58, 52),
}


@dataclass(frozen=True)
class PictureCaption:
    """What is written on the picture.

    Attributes:
        status: ``success``, ``failure``, ``process``, ``error``, ``abstained`` or ``interrupted``;
            it gives the colour of the header.
        tool: Name of the tool.
        run_id: Identity of the run.
        segment: Number of the segment.
        lines: Evidence or reason, one thought each.
        score: Confidence in [0, 1], if there is one.
        kind: Kind of failure, error or abstention, if there is one.
    """

    status: str
    tool: str
    run_id: str
    segment: int
    lines: Sequence[str]
    score: float | None = None
    kind: str = ''


@dataclass(frozen=True)
class _Panel:
    """One view, scaled, or the reason why there is none."""

    name: str
    note: str
    picture: Image


def evidence_picture(
    caption: PictureCaption,
    observation: Observation | None,
    missing: Mapping[str, str] | None = None,
) -> Image:
    """Draw the views side by side, the outcome above and the evidence below them.

    Args:
        caption: What to write.
        observation: Its views are drawn, in their order; None if there is none.
        missing: Why a view is not there, by its name; drawn as a hatched box.

    Returns:
        ``HxWx3 uint8, BGR``, at most 1600 pixels wide. A view that does not decode is drawn as a
        hatched box with the reason; nothing is raised.
    """
    panels = [_panel(view) for view in observation.views.values()] if observation else []
    panels += [_hatched(name, reason) for name, reason in (missing or {}).items()]
    if not panels:
        return np.concatenate(
            [
                _header(caption, _MIN_WIDTH),
                _nothing_seen(_MIN_WIDTH),
                _evidence(caption.lines, _MIN_WIDTH),
            ]
        )
    rows = [
        _row(panels[first : first + _VIEWS_A_ROW]) for first in range(0, len(panels), _VIEWS_A_ROW)
    ]
    width = max(_MIN_WIDTH, *(row.shape[1] for row in rows))
    parts = [_header(caption, width)]
    parts += [_widened(row, width) for row in rows]
    parts.append(_evidence(caption.lines, width))
    return np.concatenate(parts)


def _panel(view: View) -> _Panel:
    import cv2

    try:
        picture = view.image
    except DecodeError as error:
        return _hatched(view.name, str(error))
    height, width = picture.shape[:2]
    scale = min(_VIEW_HEIGHT / height, _VIEW_HEIGHT * _WIDEST / width)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST
    if picture.dtype == np.float32:
        # Averages over pixels without a value have none either, so none are taken.
        method = cv2.INTER_NEAREST
    scaled = visible(np.asarray(cv2.resize(picture, size, interpolation=method)))
    framed = np.full((_VIEW_HEIGHT, size[0], 3), _PANEL, np.uint8)
    top = (_VIEW_HEIGHT - size[1]) // 2
    framed[top : top + size[1]] = scaled
    receipt = ', stamped on receipt' if view.stamp_source == 'receipt' else ''
    return _Panel(view.name, f'{view.age:.3f} s after the end{receipt}', framed)


def _nothing_seen(width: int) -> Image:
    """A low box across the picture: there is nothing to show, and the text below says why."""
    box = _box(NO_OBSERVATION, width - 2 * _MARGIN, 3 * _LINE_HEIGHT)
    row = np.full((box.shape[0] + 2 * _MARGIN, width, 3), _BACKGROUND, np.uint8)
    row[_MARGIN:-_MARGIN, _MARGIN:-_MARGIN] = box
    return row


def _hatched(name: str, reason: str) -> _Panel:
    return _Panel(name, '', _box(reason, _VIEW_HEIGHT * 4 // 3, _VIEW_HEIGHT))


def _box(reason: str, width: int, whole: int) -> Image:
    """A hatched box of so many pixels with a text in its middle."""
    import cv2

    box = np.full((whole, width, 3), _PANEL, np.uint8)
    for start in range(-whole, width, 22):
        cv2.line(box, (start, whole), (start + whole, 0), _HATCH, 2, cv2.LINE_AA)
    cv2.rectangle(box, (0, 0), (width - 1, whole - 1), _HATCH, 2)
    lines = wrapped(reason, width - 4 * _MARGIN, _TEXT_SCALE)[:9]
    height = len(lines) * _LINE_HEIGHT + _MARGIN
    top = (whole - height) // 2
    box[top : top + height, _MARGIN : width - _MARGIN] = _PANEL
    for index, line in enumerate(lines):
        left = (width - text_width(line, _TEXT_SCALE)) // 2
        write(box, line, (left, top + 24 + index * _LINE_HEIGHT), _TEXT_SCALE, _TEXT)
    return box


def _row(panels: Sequence[_Panel]) -> Image:
    """Put panels beside each other, with their names below, no wider than allowed."""
    import cv2

    room = _MAX_WIDTH - _MARGIN * (len(panels) + 1)
    scale = min(1.0, room / sum(panel.picture.shape[1] for panel in panels))
    pictures = [
        panel.picture
        if scale == 1.0
        else np.asarray(
            cv2.resize(
                panel.picture,
                (
                    max(1, int(panel.picture.shape[1] * scale)),
                    max(1, int(panel.picture.shape[0] * scale)),
                ),
                interpolation=cv2.INTER_AREA,
            )
        )
        for panel in panels
    ]
    height = max(picture.shape[0] for picture in pictures)
    width = sum(picture.shape[1] for picture in pictures) + _MARGIN * (len(pictures) + 1)
    row = np.full((height + _MARGIN + _STRIP_HEIGHT, width, 3), _BACKGROUND, np.uint8)
    left = _MARGIN
    for panel, picture in zip(panels, pictures, strict=True):
        shown_height, shown_width = picture.shape[:2]
        row[_MARGIN : _MARGIN + shown_height, left : left + shown_width] = picture
        base = _MARGIN + shown_height + 21
        name = shortened(panel.name, shown_width, _TEXT_SCALE)
        write(row, name, (left, base), _TEXT_SCALE, _WHITE)
        used = text_width(name, _TEXT_SCALE) + 14
        note = shortened(panel.note, shown_width - used, _SMALL_SCALE)
        write(row, note, (left + used, base), _SMALL_SCALE, _DIM)
        left += shown_width + _MARGIN
    return row


def _widened(row: Image, width: int) -> Image:
    wide = np.full((row.shape[0], width, 3), _BACKGROUND, np.uint8)
    wide[:, : row.shape[1]] = row
    return wide


def _header(caption: PictureCaption, width: int) -> Image:
    color = _COLORS.get(caption.status.lower(), _COLORS['abstained'])
    bar = np.full((_HEADER_HEIGHT, width, 3), color, np.uint8)
    status = ascii_fold(caption.status).upper()
    write(bar, status, (_MARGIN, 46), _TITLE_SCALE, _WHITE, 2)
    right = width - _MARGIN
    if caption.score is not None and math.isfinite(caption.score):
        score = f'score {caption.score:.2f}'
        right -= text_width(score, _SUBTITLE_SCALE)
        write(bar, score, (right, 44), _SUBTITLE_SCALE, _WHITE)
        right -= _MARGIN
    left = _MARGIN + text_width(status, _TITLE_SCALE, 2) + 24
    what = f'{caption.tool}: {caption.kind}' if caption.kind else caption.tool
    tool = shortened(what, right - left, _SUBTITLE_SCALE)
    write(bar, tool, (left, 31), _SUBTITLE_SCALE, _WHITE)
    run = f'run {caption.run_id}   segment {caption.segment}'
    if text_width(ascii_fold(run), _SMALL_SCALE) > right - left:
        run = f'segment {caption.segment}   run {caption.run_id}'
    write(bar, shortened(run, right - left, _SMALL_SCALE), (left, 56), _SMALL_SCALE, _WHITE)
    return bar


def _evidence(lines: Sequence[str], width: int) -> Image:
    shown: list[tuple[str, tuple[int, int, int] | None]] = []
    for line in lines:
        parts = wrapped(line, width - 3 * _MARGIN - 8, _TEXT_SCALE)
        shown += [(part, None if index else _bullet(line)) for index, part in enumerate(parts)]
    if len(shown) > MAX_LINES:
        left_out = sum(bullet is not None for _, bullet in shown[MAX_LINES - 1 :])
        cut = shown[: MAX_LINES - 1]
        note = f'+{left_out} more' if left_out else '...'
        shown = [*cut, (note, None)]
    panel = np.full((len(shown) * _LINE_HEIGHT + _MARGIN, width, 3), _BACKGROUND, np.uint8)
    for index, (line, bullet) in enumerate(shown):
        base = 18 + index * _LINE_HEIGHT
        if bullet is not None:
            panel[base - 9 : base - 1, _MARGIN : _MARGIN + 8] = bullet
        write(panel, line, (_MARGIN + 16, base), _TEXT_SCALE, _TEXT)
    return panel


def _bullet(line: str) -> tuple[int, int, int]:
    """Colour of the mark before a line: what holds and what fails is seen at a glance."""
    for end, color in ((': holds', _HOLDS), (': fails', _FAILS)):
        if line.endswith(end):
            return color
    return _DIM
