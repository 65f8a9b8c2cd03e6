"""What judges in other processes have in common: checks as they travel, and an abstention told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness_eval.contract import Abstention
from harness_eval.lines import clean_line

_LINES_SHOWN = 5
_LINE_LENGTH = 200


def plain_check(check: Any) -> dict[str, Any]:
    """A check of the post-condition as plain JSON values; what is not set is left out."""
    dump = getattr(check, 'model_dump', None)
    plain: dict[str, Any] = dump(mode='json', exclude_none=True) if callable(dump) else dict(check)
    return plain


def told_abstention(evidence: Sequence[str], ref: str) -> Abstention:
    """The abstention of a judge that says that it cannot tell.

    Args:
        evidence: What it saw, one line each.
        ref: How errors name the judge.
    """
    lines = (clean_line(line, _LINE_LENGTH) for line in evidence[:_LINES_SHOWN])
    seen = clean_line('; '.join(filter(None, lines)))
    return Abstention('judge_abstained', seen or 'the judge cannot tell', evaluator=ref)
