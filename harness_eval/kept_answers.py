"""What is kept of an answer, and whose it is.

What is read back decides what a robot does, so each text carries a digest of itself, and one that
does not match is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime, timezone
import hashlib
import json
import math
from typing import Any, Protocol

from harness_eval import __version__
from harness_eval.config.evaluators import EvaluatorSettings
from harness_eval.contract import Status, Verdict
from harness_eval.judging import Thresholds

_NOT_PART = {'timeout', 'max_concurrency', 'cache'}
"""Settings that change when an answer comes, not which one."""


class KeptAnswers(Protocol):
    """The kept answers of one evaluator. No method raises."""

    def get(self, digest: str) -> Verdict | None:
        """The answer to the question of a digest, marked as kept; ``None`` if there is none."""
        ...

    def put(self, digest: str, verdict: Verdict) -> None:
        """Keep the answer to the question of a digest."""
        ...


def identity(
    ref: str,
    settings: EvaluatorSettings,
    thresholds: Thresholds,
    members: Mapping[str, str] | None = None,
) -> str:
    """Say who answers, so that another evaluator's answers are never taken for its own.

    Secrets are in no settings: those name environment variables. The code of a plugin, and what
    a server does behind the same address, are not part of it.

    Args:
        ref: The evaluator's reference.
        settings: Its settings.
        thresholds: Where a score becomes a verdict.
        members: Identities of the evaluators that it asks, by name.

    Returns:
        SHA-256, 64 hexadecimal digits.
    """
    said = {
        'version': __version__,
        'ref': ref,
        'settings': settings.model_dump(mode='json', exclude=_NOT_PART),
        'thresholds': asdict(thresholds),
        'members': dict(members or {}),
    }
    text = json.dumps(said, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode('ascii')).hexdigest()


def digest_of(key: str, text: str) -> str:
    """SHA-256 (hex) of a text and of what it is kept under."""
    return hashlib.sha256(f'{key} {text}'.encode()).hexdigest()


def written(verdict: Verdict, now: float) -> str:
    """Write a verdict that was given at a time, in seconds since the epoch."""
    fields = {
        'status': verdict.status.value,
        'evidence': list(verdict.evidence),
        'failure_reason': verdict.failure_reason,
        'failure_kind': verdict.failure_kind,
        'score': verdict.score,
        'report': None if verdict.report is None else dict(verdict.report),
        'route': verdict.route,
    }
    return json.dumps({'at': now, 'verdict': fields}, ensure_ascii=True, allow_nan=False)


def read_kept(key: str, text: str, digest: str) -> Verdict:
    """Read what :func:`written` wrote.

    Args:
        key: Whose answer to which question it is.
        text: The text.
        digest: Its :func:`digest_of`, as it was kept.

    Returns:
        The verdict, which says that it was kept and costs nothing now.

    Raises:
        ValueError, TypeError, KeyError: It is not one that was written here.
    """
    if digest_of(key, text) != digest:
        raise ValueError('the entry does not match its digest')
    data: dict[str, Any] = json.loads(text)
    fields = data['verdict']
    at = float(data['at'])
    if not math.isfinite(at):
        raise ValueError('the entry has no time')
    verdict = Verdict(
        **{**fields, 'status': Status(fields['status']), 'evidence': tuple(fields['evidence'])}
    )
    return _marked(verdict, at)


def _marked(verdict: Verdict, at: float) -> Verdict:
    when = datetime.fromtimestamp(at, timezone.utc).strftime('%Y-%m-%d %H:%M:%S UTC')
    return replace(
        verdict,
        evidence=(f'cached: the answer of {when}', *verdict.evidence),
        route=f'cached ({verdict.route})' if verdict.route else 'cached',
        cost=0.0,
    )
