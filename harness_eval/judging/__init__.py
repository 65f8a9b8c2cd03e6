"""What an evaluator's answer means: the one place where it becomes a verdict, an error or neither.

Pure: no clock, no threads, no files. Whatever is not a well-formed answer is an error; nothing is
read into it. The rules are the same for every kind of evaluator, and they are applied again to
verdicts that evaluators built themselves.
"""

from harness_eval.judging.meaning import doubted, interpret, Thresholds, Unsure
from harness_eval.judging.verdicts import (
    FOREIGN_FAILURE_KINDS,
    MAX_FAILURE_REASON,
    MAX_REPORT_BYTES,
    POST_CONDITION,
)

__all__ = [
    'FOREIGN_FAILURE_KINDS',
    'MAX_FAILURE_REASON',
    'MAX_REPORT_BYTES',
    'POST_CONDITION',
    'Thresholds',
    'Unsure',
    'doubted',
    'interpret',
]
