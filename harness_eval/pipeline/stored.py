"""Whether stored evidence is what was captured for its segment, and not what lies in its place.

Cases are files: they are copied, restored from backups and edited. What is judged from them again
must be the very frames that were taken after the end of that run.
"""

from __future__ import annotations

import hashlib
import json

from harness_eval.capture import Captured
from harness_eval.capture.intake import Window
from harness_eval.cases import Case, CaseError
from harness_eval.config.observation import CaptureSettings
from harness_eval.contract import EvaluationError
from harness_eval.runs import Segment
from harness_eval.times import nanoseconds, seconds


def evidence_digest(captured: Captured) -> str:
    """SHA-256 (hex) over the chosen frames: streams, topics, types, stamps and data."""
    frames = [
        [
            name,
            frame.topic,
            frame.type,
            frame.stamp,
            frame.receipt,
            frame.stamp_source,
            frame.frame_id,
            frame.payload_offset,
            frame.sha256,
        ]
        for name, frame in sorted(captured.frames.items())
    ]
    return hashlib.sha256(json.dumps([captured.t_end, frames]).encode()).hexdigest()


def check_evidence(case: Case, segment: Segment, settings: CaptureSettings) -> None:
    """Make sure that a case holds what was captured for a segment, and that this is evidence.

    Args:
        case: What was read in the place of its evidence.
        segment: The segment as it is on record.
        settings: The limits that the stamps of evidence keep.

    Raises:
        EvaluationError: ``evidence_altered``: it is not what was captured for that segment.
            ``configuration_changed``: it is, but is no evidence under these settings.
    """
    name = segment.evidence
    if case.completion != segment.completion or case.receipt != segment.receipt:
        raise CaseError(
            'evidence_altered',
            f'the evidence {name} is that of another run or time than the record says; it is not '
            'judged. Put the right folder back, or run the tool again under a new run id',
        )
    captured = case.captured
    same_end = captured.t_end == segment.t_end
    if not same_end or evidence_digest(captured) != segment.evidence_digest:
        raise CaseError(
            'evidence_altered',
            f'the evidence {name} is not what was captured: its frames or stamps were changed; it '
            'is not judged. Put the right folder back, or run the tool again under a new run id',
        )
    _check_stamps(captured, settings)


def _check_stamps(captured: Captured, settings: CaptureSettings) -> None:
    window = Window.after(captured.t_end, settings)
    for name, frame in captured.frames.items():
        offset = frame.stamp - frame.receipt
        if (
            not window.opens <= frame.stamp <= window.closes
            or frame.receipt < captured.t_end
            or not -window.max_behind <= offset <= window.max_ahead
        ):
            raise EvaluationError(
                'configuration_changed',
                f'{name!r} was taken {seconds(frame.stamp - captured.t_end):.3f} s after the end '
                f'and received {-seconds(offset):.3f} s later, which capture (settle, timeout, '
                'max_clock_skew, max_ahead) does not allow any more; run the tool again',
            )
    stamps = [frame.stamp for frame in captured.frames.values()]
    spread = max(stamps, default=0) - min(stamps, default=0)
    if spread > nanoseconds(settings.slop):
        raise EvaluationError(
            'configuration_changed',
            f'the frames lie {seconds(spread):.6f} s apart, more than the {settings.slop:.6f} s '
            'of capture.slop now; run the tool again',
        )
