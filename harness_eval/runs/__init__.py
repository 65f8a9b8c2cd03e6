"""The run state machine: what a completion means for what is already on record. Pure.

A run is one execution of a tool; a segmented tool's run has segments 0, 1, 2 and so on. Each
segment goes ``RECEIVED``, ``CAPTURED``, ``STARTED`` and then to ``SUCCESS``, ``FAILURE``,
``PROCESS`` or ``INTERRUPTED`` (final), or to ``ERROR`` or ``ABSTAINED`` (open again). Functions
here take what is on record and return what is to be done; nothing is changed in place.
"""

from harness_eval.lines import printable
from harness_eval.runs.admission import (
    Admission,
    admit,
    Arrival,
    completion_problem,
    MAX_ARGUMENT_BYTES,
    MAX_ARGUMENTS,
    MAX_SEGMENT,
    MAX_STAMP,
    REPEAT_SECONDS,
    REPEAT_WINDOW,
    Ruling,
    screen,
)
from harness_eval.runs.names import (
    id_problem,
    MAX_ID_LENGTH,
)
from harness_eval.runs.outcomes import (
    INTERNAL_ERROR,
    internal_error,
    interruption,
    MAX_REASON,
    outcome_of,
    SEGMENT_BUDGET,
    settle_budget,
)
from harness_eval.runs.records import (
    CLOSED,
    Completion,
    Key,
    OPEN_AGAIN,
    Outcome,
    OutcomeKind,
    PENDING,
    Run,
    Segment,
    SegmentState,
)

__all__ = [
    'CLOSED',
    'INTERNAL_ERROR',
    'MAX_ARGUMENTS',
    'MAX_ARGUMENT_BYTES',
    'MAX_ID_LENGTH',
    'MAX_REASON',
    'MAX_SEGMENT',
    'MAX_STAMP',
    'OPEN_AGAIN',
    'PENDING',
    'REPEAT_SECONDS',
    'REPEAT_WINDOW',
    'SEGMENT_BUDGET',
    'Admission',
    'Arrival',
    'Completion',
    'Key',
    'Outcome',
    'OutcomeKind',
    'Ruling',
    'Run',
    'Segment',
    'SegmentState',
    'admit',
    'completion_problem',
    'id_problem',
    'internal_error',
    'interruption',
    'outcome_of',
    'printable',
    'screen',
    'settle_budget',
]
