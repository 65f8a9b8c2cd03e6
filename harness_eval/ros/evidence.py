"""The annotated picture of an outcome as a message that rqt and Foxglove show as it stands."""

from __future__ import annotations

import array

from sensor_msgs.msg import CompressedImage

from harness_eval.contract import Observation, Verdict
from harness_eval.evidence_picture import encode_jpeg, evidence_picture, PictureCaption
from harness_eval.ros.messages import time_message
from harness_eval.runs import Outcome


def picture_message(outcome: Outcome, observation: Observation | None) -> CompressedImage:
    """The views side by side with status and evidence; ``frame_id`` is ``run_id/segment``."""
    message = CompressedImage(format='jpeg')
    message.header.stamp = time_message(outcome.decided_at)
    message.header.frame_id = f'{outcome.run_id}/{outcome.segment}'
    picture = encode_jpeg(evidence_picture(caption_of(outcome), observation))
    message.data = array.array('B', picture)
    return message


def caption_of(outcome: Outcome) -> PictureCaption:
    """What is written on the picture of an outcome."""
    verdict = outcome.verdict
    if verdict is None:
        status, kind = outcome.kind.value, outcome.error_kind
        lines = [outcome.message]
    else:
        status, kind = verdict.status.value, verdict.failure_kind
        lines = [*_untold_reason(verdict), *verdict.evidence]
    return PictureCaption(
        status=status,
        tool=outcome.tool,
        run_id=outcome.run_id,
        segment=outcome.segment,
        lines=tuple(lines),
        score=None if verdict is None else verdict.score,
        kind=kind,
    )


def _untold_reason(verdict: Verdict) -> list[str]:
    """The reason of a failure, unless it only repeats lines of the evidence."""
    reason = verdict.failure_reason
    told = all(part in verdict.evidence for part in reason.split('; '))
    return [reason] if reason and not told else []
