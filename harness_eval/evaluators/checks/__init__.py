"""The ``checks`` evaluator: deterministic checks that stand in the configuration file."""

from __future__ import annotations

import math

from harness_eval.config.checks import (
    ChangeCheck,
    Check,
    ColorCheck,
    MarkerCheck,
    SimilarCheck,
    StateCheck,
)
from harness_eval.contract import EvaluationRequest, EvaluatorError, Status, Verdict
from harness_eval.evaluators.checks.change import measure_change
from harness_eval.evaluators.checks.color import measure_color
from harness_eval.evaluators.checks.fiducials import Fiducials
from harness_eval.evaluators.checks.marker import measure_marker
from harness_eval.evaluators.checks.pictures import reference_named, view_named
from harness_eval.evaluators.checks.result import CheckResult, Measurement
from harness_eval.evaluators.checks.similar import measure_similar
from harness_eval.evaluators.checks.state import measure_state
from harness_eval.judging import Thresholds

__all__ = ['CheckResult', 'ChecksEvaluator', 'run_check']


class ChecksEvaluator:
    """Judges a post-condition by its checks.

    The score is the weighted share of the checks that hold, optional ones included. It is
    ``success`` exactly if every check that is not ``optional`` holds; no score makes up for one
    that does not. Otherwise a tool that may answer ``process`` gets it at a score of at least
    the failure threshold (part of the way is done), and ``failure`` below; any other tool gets
    ``failure``. The failure kind is that of the first failed required check that names one.

    A check that cannot be made (a view that cannot be decoded, a reference of another size) is
    an error of the whole evaluation, whatever the others say.

    Args:
        name: Name of the evaluator in the configuration.
        thresholds: Of these, the failure threshold is used.

    Attributes:
        ref: ``checks:name``.
    """

    score_is_share = True  # required checks decide beside it

    def __init__(self, name: str, thresholds: Thresholds) -> None:
        self.ref = f'checks:{name}'
        self._thresholds = thresholds

    def evaluate(self, request: EvaluationRequest) -> Verdict:
        """Run every check of the post-condition.

        Raises:
            EvaluatorError: ``no_checks`` if nothing is required; else see the single checks.
            DecodeError: A view cannot be decoded.
        """
        checks = _required_checks(request)
        fiducials = Fiducials()
        results = [run_check(check, request, fiducials) for check in checks]
        score = _score(checks, results)
        evidence = tuple(
            f'{result.evidence} (optional)' if check.optional else result.evidence
            for check, result in zip(checks, results, strict=True)
        )
        failed = [
            (check, result)
            for check, result in zip(checks, results, strict=True)
            if not result.holds and not check.optional
        ]
        if not failed:
            return Verdict(Status.SUCCESS, evidence, score=score)
        if request.post_condition.process_allowed and score >= self._thresholds.failure:
            return Verdict(Status.PROCESS, evidence, score=score)
        kinds = [check.failure_kind for check, _result in failed if check.failure_kind]
        return Verdict(
            Status.FAILURE,
            evidence,
            failure_reason='; '.join(result.evidence for _check, result in failed),
            failure_kind=kinds[0] if kinds else 'post_condition',
            score=score,
        )


def run_check(
    check: Check, request: EvaluationRequest, fiducials: Fiducials | None = None
) -> CheckResult:
    """Run one check against an observation.

    Args:
        check: What is checked.
        request: The observation and the reference pictures.
        fiducials: Remembers the markers of views between checks.

    Raises:
        EvaluatorError: The check cannot be made.
        DecodeError: Its view cannot be decoded.
    """
    settings = check.settings
    view = '' if isinstance(settings, StateCheck) else settings.view
    measured = _measure(check, request, fiducials or Fiducials())
    word = 'holds' if measured.holds else 'fails'
    name = check.name or _default_name(check)
    where = f'{name} ({view})' if view and check.name else name
    return CheckResult(name, measured.holds, f'{where}: {measured.found}: {word}', view)


def _measure(check: Check, request: EvaluationRequest, fiducials: Fiducials) -> Measurement:
    settings = check.settings
    if isinstance(settings, StateCheck):
        return measure_state(request, settings)
    view = view_named(request, settings.view)
    if isinstance(settings, MarkerCheck):
        return measure_marker(view, settings, fiducials)
    if isinstance(settings, ColorCheck):
        return measure_color(view, settings)
    reference = reference_named(request, settings.reference)
    if isinstance(settings, ChangeCheck):
        return measure_change(view, reference, settings)
    return measure_similar(view, reference, settings)


def _default_name(check: Check) -> str:
    settings = check.settings
    if isinstance(settings, MarkerCheck):
        return f'marker {settings.id} in {settings.view}'
    if isinstance(settings, StateCheck):
        return f'state {settings.name}'
    if isinstance(settings, ColorCheck):
        lower, upper = (','.join(map(str, ends)) for ends in (settings.lower, settings.upper))
        return f'color {lower}..{upper} in {settings.view}'
    if isinstance(settings, (ChangeCheck, SimilarCheck)):
        return f'{check.kind} against {settings.reference} in {settings.view}'
    raise TypeError(f'unknown kind of check {check.kind!r}')


def _required_checks(request: EvaluationRequest) -> list[Check]:
    checks = list(request.post_condition.checks)
    for check in checks:
        if not isinstance(check, Check):
            raise EvaluatorError(
                'no_checks', f'expected a Check of the configuration, found {type(check).__name__}'
            )
    if all(check.optional for check in checks):
        raise EvaluatorError(
            'no_checks',
            f'of {len(checks)} checks none is required, so nothing could fail; give the tool a '
            'check that is not optional, or another evaluator',
        )
    return checks


def _score(checks: list[Check], results: list[CheckResult]) -> float:
    """Give the weighted share that holds; weights are scaled first, lest their sum overflow."""
    largest = max(check.weight for check in checks)
    weights = [check.weight / largest for check in checks]
    held = [weight for weight, result in zip(weights, results, strict=True) if result.holds]
    return min(math.fsum(held) / math.fsum(weights), 1.0)
