"""A judged segment as a test sees it. It is judged when the test first asks what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from harness_eval.contract import EvaluationError, Status, Verdict
from harness_eval.replay.judged_once import JudgedOnce, Listed
from harness_eval.replay.results import Result, Truth
from harness_eval.runs import Outcome, OutcomeKind


class NotJudgedError(EvaluationError):
    """A segment could not be judged at all; the message says why."""


class EvalCase:
    """One segment of a case or bag, judged by the configuration of the project.

    Args:
        judgements: Judges it.
        listed: Which segment it is.
    """

    def __init__(self, judgements: JudgedOnce, listed: Listed) -> None:
        self._judgements = judgements
        self._listed = listed

    def __repr__(self) -> str:
        return f'<EvalCase {self.source} {self._listed.name} {self.tool}>'

    # --- known before it is judged ---------------------------------------------------------------

    @property
    def source(self) -> str:
        """Name of the case or bag, without folders."""
        return self._listed.source.name

    @property
    def run_id(self) -> str:
        """Name of the run."""
        return self._listed.completion.run_id

    @property
    def tool(self) -> str:
        """Name of the tool."""
        return self._listed.completion.tool

    @property
    def segment(self) -> int:
        """Number of the segment, from 0."""
        return self._listed.completion.segment

    @property
    def arguments(self) -> Mapping[str, str]:
        """What the tool was asked to do."""
        return MappingProxyType(dict(self._listed.completion.arguments))

    # --- known afterwards ------------------------------------------------------------------------

    @property
    def result(self) -> Result:
        """All that came of it.

        Raises:
            NotJudgedError: It could not be judged.
        """
        __tracebackhide__ = True
        found = self._judgements.judged(self._listed)
        if isinstance(found, Result):
            return found
        raise NotJudgedError(found.kind, found.message)

    @property
    def outcome(self) -> Outcome:
        """What its evaluation came to: a verdict, an error, an abstention or an interruption."""
        __tracebackhide__ = True
        return self.result.outcome

    @property
    def recorded(self) -> Outcome | None:
        """The outcome on record, if there is one."""
        __tracebackhide__ = True
        return self.result.recorded

    @property
    def truth(self) -> Truth | None:
        """What really happened, by a label or an oracle, if either knows."""
        __tracebackhide__ = True
        return self.result.truth

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None for an error, an abstention or an interruption."""
        __tracebackhide__ = True
        return self.outcome.verdict

    @property
    def status(self) -> Status | None:
        """``success``, ``failure`` or ``process``; None without a verdict."""
        __tracebackhide__ = True
        verdict = self.outcome.verdict
        return None if verdict is None else verdict.status

    @property
    def evidence(self) -> tuple[str, ...]:
        """The lines of evidence of the verdict; none without one."""
        __tracebackhide__ = True
        verdict = self.outcome.verdict
        return () if verdict is None else tuple(verdict.evidence)

    @property
    def failure_kind(self) -> str:
        """Kind of the failure that the verdict names; empty if it names none."""
        __tracebackhide__ = True
        verdict = self.outcome.verdict
        return '' if verdict is None else verdict.failure_kind

    # --- what a test may claim -------------------------------------------------------------------

    def assert_success(self) -> None:
        """Fail unless the verdict is ``success``."""
        __tracebackhide__ = True
        self._assert(self.status is Status.SUCCESS, 'expected success')

    def assert_failure(self, kind: str | None = None) -> None:
        """Fail unless the verdict is ``failure``.

        Args:
            kind: The kind of failure that it has to name; None: any.
        """
        __tracebackhide__ = True
        holds = self.status is Status.FAILURE and kind in (None, self.failure_kind)
        self._assert(holds, 'expected failure' + (f' {kind}' if kind else ''))

    def assert_unchanged(self) -> None:
        """Fail unless the outcome is the one on record: the same verdict, or the same error."""
        __tracebackhide__ = True
        if self.recorded is None:
            raise AssertionError(
                f'{self.source} {self._listed.name} has no outcome on record to compare with'
            )
        self._assert(unchanged(self.result), f'expected {said(self.recorded)}, as on record')

    def assert_correct(self) -> None:
        """Fail unless there is a verdict that does not contradict what really happened."""
        __tracebackhide__ = True
        if self.truth is None:
            raise AssertionError(
                f'nobody knows what really happened in {self.source} {self._listed.name}: '
                'add it to the labels'
            )
        expected = f'expected {truth_in_words(self.truth)}'
        self._assert(self.verdict is not None and not contradicts(self.result), expected)

    def _assert(self, holds: bool, expected: str) -> None:
        __tracebackhide__ = True
        if not holds:
            raise AssertionError(told(self.result, expected))


def unchanged(result: Result) -> bool:
    """Whether the outcome is the one on record: the same verdict, or the same kind of error."""
    now, then = result.outcome, result.recorded
    if then is None or now.kind is not then.kind:
        return False
    if now.verdict is not None and then.verdict is not None:
        return now.verdict.status is then.verdict.status
    return now.error_kind == then.error_kind


def contradicts(result: Result) -> bool:
    """Whether the verdict contradicts the truth; ``process`` contradicts a success only."""
    verdict, truth = result.outcome.verdict, result.truth
    if verdict is None or truth is None:
        return False
    if truth.correct:
        return verdict.status is not Status.SUCCESS
    return verdict.status is Status.SUCCESS


def said(outcome: Outcome) -> str:
    """An outcome in a few words, with the kind of failure."""
    if outcome.verdict is not None and outcome.verdict.failure_kind:
        return f'{outcome.label} {outcome.verdict.failure_kind}'
    return outcome.label


def truth_in_words(truth: Truth) -> str:
    """What really happened, who says so and what was noted beside it."""
    note = f' ({truth.note})' if truth.note else ''
    return f'{"success" if truth.correct else "failure"}, as the {truth.source} says{note}'


def told(result: Result, expected: str) -> str:
    """Why a claim about a result does not hold, in a few lines.

    Args:
        result: The result.
        expected: What was claimed.
    """
    outcome = result.outcome
    lines = [f'{result.completion.tool}: {expected}, found {said(outcome)}']
    if outcome.verdict is None:
        if outcome.kind is not OutcomeKind.INTERRUPTED or outcome.message:
            lines.append(f'  {outcome.message}')
        return '\n'.join(lines)
    if outcome.verdict.failure_reason:
        lines.append(f'  {outcome.verdict.failure_reason}')
    return '\n'.join([*lines, *(f'  - {line}' for line in outcome.verdict.evidence)])
