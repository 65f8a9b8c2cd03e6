"""Small real cases with drawn pictures: a gripper, with or without what it should hold."""

from __future__ import annotations

from pathlib import Path

from capture_streams import T_END
from cdr_messages import IMAGE, image_of
import cv2
import numpy as np
from pipeline_world import DECODER

from harness_eval.capture import Captured, Frame
from harness_eval.cases import CaseStore
from harness_eval.runs import Completion, Segment

VIEWS = ('front', 'wrist')


def picture(view: str, held: bool, size: tuple[int, int] = (64, 48), seed: int = 0) -> np.ndarray:
    """What a view shows, ``HxWx3 uint8, BGR``."""
    width, height = size
    shade = 190 if view == 'front' else 120
    drawn = np.full((height, width, 3), (shade, shade + 8, shade + 14), np.uint8)
    cv2.rectangle(drawn, (0, height * 3 // 4), (width, height), (70, 90, 110), -1)
    middle = width // 2
    for side in (-1, 1):
        x = middle + side * width // 8
        cv2.rectangle(
            drawn, (x - width // 40, 0), (x + width // 40, height // 2), (60, 60, 66), -1
        )
    center = (middle, height * 2 // 5) if held else (middle + width // 4, height * 5 // 6)
    cv2.circle(drawn, center, width // 11, (40, 60 + (seed * 37) % 150, 200), -1, cv2.LINE_AA)
    return drawn


def write_case(
    root: Path, run_id: str, *, held: bool = True, size: tuple[int, int] = (64, 48), seed: int = 0
) -> Path:
    """Keep a case of two views.

    Returns:
        Its folder.
    """
    frames = {}
    for number, view in enumerate(VIEWS):
        stamp = T_END + 300_000_000 + number * 12_000_000
        data = image_of(picture(view, held, size, seed), 'bgr8', stamp=stamp)
        frames[view] = Frame(view, f'cell/{view}', IMAGE, stamp, stamp + 1_000_000, data, view)
    segment = Segment(Completion(run_id, 'pick', 0, T_END), 1, T_END)
    store = CaseStore(root, 10**9, DECODER)
    return root / store.write(segment, Captured(frames, T_END, 0.012, {}))
