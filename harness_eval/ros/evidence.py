"""The annotated picture of an outcome as a message that rqt and Foxglove show as it stands."""

from __future__ import annotations

import array

from sensor_msgs.msg import CompressedImage

from harness_eval.contract import Observation
from harness_eval.evidence_picture import PictureCaption, encode_jpeg, evidence_picture
from harness_eval.ros.messages import time_message
from harness_eval.runs import Outcome, OutcomeKind


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
        status = outcome.kind.value
        lines = [
            f'{outcome.error_kind}: {outcome.message}' if outcome.error_kind else outcome.message
        ]
    else:
        status = verdict.status.value
        lines = [verdict.failure_reason] if verdict.failure_reason else []
        lines += verdict.evidence
    if outcome.kind is OutcomeKind.ABSTAINED:
        status = 'abstained'
    return PictureCaption(
        status=status,
        tool=outcome.tool,
        run_id=outcome.run_id,
        segment=outcome.segment,
        lines=tuple(lines),
        score=None if verdict is None else verdict.score,
    )
