"""Which frames form the observation. Pure: no ROS, no threads, no clock.

:mod:`~harness_eval.capture.choice` chooses by stamps, :mod:`~harness_eval.capture.intake` says
which frames may be chosen, :mod:`~harness_eval.capture.session` is the wait of one run and
:mod:`~harness_eval.capture.explain` says in words why it failed.
"""

from harness_eval.capture.choice import least_valid_set, OnlineChooser, smallest_spread
from harness_eval.capture.frames import (
    Captured,
    Frame,
    StreamKind,
    StreamSpec,
    TopicFacts,
)
from harness_eval.capture.session import Capture

__all__ = [
    'Capture',
    'Captured',
    'Frame',
    'OnlineChooser',
    'StreamKind',
    'StreamSpec',
    'TopicFacts',
    'least_valid_set',
    'smallest_spread',
]
