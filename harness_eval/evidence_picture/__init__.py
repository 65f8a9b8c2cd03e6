"""One picture of an outcome: what was seen, and what was concluded from it.

Drawn for rqt, Foxglove and the evidence folder. It takes plain values, so that it knows nothing of
runs, ledgers or evaluators.
"""

from harness_eval.evidence_picture.layout import (
    evidence_picture,
    MAX_LINES,
    NO_OBSERVATION,
    PictureCaption,
)
from harness_eval.evidence_picture.pixels import encode_jpeg, visible
from harness_eval.evidence_picture.text import ascii_fold

__all__ = [
    'MAX_LINES',
    'NO_OBSERVATION',
    'PictureCaption',
    'ascii_fold',
    'encode_jpeg',
    'evidence_picture',
    'visible',
]
