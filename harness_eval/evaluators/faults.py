"""Exceptions of foreign code as one line, and as errors of ours."""

from __future__ import annotations

import math
from pathlib import Path
import re

from harness_eval.contract import Abstention, DecodeError, EvaluationError, EvaluatorError
from harness_eval.lines import clean_line, MAX_LINE

_PATH = re.compile(r'(?<![\w:/.])/([^\s/\'":,;]+)(?:/[^\s/\'":,;]+)+/?')
_USERINFO = re.compile(r'(\w+://)[^\s/@]+@')
_QUERY = re.compile(r'(\w+://[^\s?\'"]*)\?[^\s\'"]*')

_LONGEST = 1e6
"""Seconds of ``retry_after``, more than anybody waits; a larger integer may be no float."""


def describe(error: BaseException) -> str:
    """Write an exception as ``TypeName: text``, at most 500 characters on one line.

    Paths of this machine are reduced to their last part, and user names, passwords and queries of
    URLs are left out: the line is stored and published. No line of a traceback is in it.
    """
    name = type(error).__name__
    try:
        text = str(error)
    except BaseException:  # an exception whose __str__ raises; its name is all there is
        text = '(its text cannot be read)'
    text = _USERINFO.sub(r'\1', text[: 4 * MAX_LINE])
    text = _QUERY.sub(r'\1?…', text)
    text = _PATH.sub(_base_name, text)
    return clean_line(f'{name}: {text}' if text else name)


def _base_name(match: re.Match[str]) -> str:
    # A topic such as /cell/front looks like a path; it is one only if its first folder exists.
    if Path('/', match.group(1)).is_dir():
        return Path(match.group(0)).name
    return match.group(0)


def as_evaluation_error(error: BaseException, evaluator: str) -> EvaluationError:
    """Turn whatever an evaluator raised into a new error that names the evaluator.

    A new one, because the raised object may be shared between threads, and because its traceback
    would keep the pictures of its request alive. An error class that no evaluator has a right to
    (a capture or ledger error) becomes an :class:`EvaluatorError` of the same kind.
    """
    if not isinstance(error, EvaluationError):
        passing = isinstance(error, (OSError, MemoryError))  # a network, a disk, a full machine
        return EvaluatorError(
            'evaluator_raised', describe(error), evaluator=evaluator, retryable=passing
        )
    kind = clean_line(str(error.kind), 100) or 'evaluator_raised'
    message, again = clean_line(str(error.message)), bool(error.retryable)
    for family in (Abstention, DecodeError):
        if isinstance(error, family):
            return family(kind, message, evaluator=evaluator, retryable=again)
    return EvaluatorError(
        kind, message, evaluator=evaluator, retryable=again, retry_after=_seconds(error)
    )


def _seconds(error: EvaluationError) -> float | None:
    """Read ``retry_after``, which foreign code may have set to anything."""
    given = getattr(error, 'retry_after', None)
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return None
    return float(min(given, _LONGEST)) if 0.0 <= given < math.inf else None
