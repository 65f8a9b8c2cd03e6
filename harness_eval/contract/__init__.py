"""What crosses the evaluator boundary: the request, the observation, the verdict and the errors.

This package imports nothing else of ours. Times are integers in nanoseconds since the
epoch of the ROS clock in use; durations are floats in seconds unless the name ends in ``_ns``.

An evaluator is given an :class:`EvaluationRequest` and nothing more. The type has no place for a
run id, for a claim of success or for the reasoning of the agent, so none of them can reach it.
"""

from harness_eval.contract.errors import (
    Abstention,
    CaptureError,
    DecodeError,
    EvaluationError,
    EvaluatorError,
    HarnessEvalError,
    LedgerError,
)
from harness_eval.contract.observation import CameraInfo, frozen, Image, Observation, State, View
from harness_eval.contract.question import (
    Criterion,
    EvaluationRequest,
    PostCondition,
    ReportOutput,
    Rubric,
)
from harness_eval.contract.verdict import Answer, Evaluator, Status, Verdict

__all__ = [
    'Abstention',
    'Answer',
    'CameraInfo',
    'CaptureError',
    'Criterion',
    'DecodeError',
    'EvaluationError',
    'EvaluationRequest',
    'Evaluator',
    'EvaluatorError',
    'HarnessEvalError',
    'Image',
    'LedgerError',
    'Observation',
    'PostCondition',
    'ReportOutput',
    'Rubric',
    'State',
    'Status',
    'Verdict',
    'View',
    'frozen',
]
