"""Still pictures judged here, as the node would have them judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
import queue
import time
from typing import TYPE_CHECKING, TypeVar

from harness_eval.cli.screen import refuse
from harness_eval.config import Config
from harness_eval.contract import EvaluationError, EvaluationRequest, Verdict
from harness_eval.runs import Completion, Outcome, outcome_of, Segment

if TYPE_CHECKING:
    from harness_eval.config.tool_judging import ReportSettings
    from harness_eval.still import Still

T = TypeVar('T')

Value = float | tuple[float, ...]

RUN_ID = 'try'
"""Name of the run that is made up; no evaluator is told it."""

_USAGE_KINDS = ('missing_argument', 'argument_too_long')
"""Errors of the question that are mistakes in the arguments of the command."""


def judged(
    config: Config,
    evaluator: str,
    tool: str,
    arguments: Mapping[str, str],
    stills: Mapping[str, Still],
    readings: Mapping[str, Value],
) -> tuple[Outcome, EvaluationRequest | None]:
    """Judge still pictures and typed-in readings by one evaluator.

    Args:
        config: The settings.
        evaluator: Name of the evaluator.
        tool: Name of the tool that has ended.
        arguments: What it was asked to do.
        stills: A picture of each view.
        readings: The value of each state.

    Returns:
        What it came to, and the question; no question if none could be made.
    """
    from harness_eval.decode import Decoder
    from harness_eval.requests import Requests
    from harness_eval.still import still_observation

    now = time.time_ns()
    completion = Completion(RUN_ID, tool, 0, now, tuple(arguments.items()))
    requests = Requests(config, Decoder())
    request, ref = None, ''
    answer: Verdict | EvaluationError
    try:
        observation = still_observation(config, stills, readings, now)
        request = _question(lambda: requests.question(completion, observation))
        requests.check_usable(observation)
        ref, answer = _ask(config, evaluator, tool, request)
    except EvaluationError as error:
        answer = error
    outcome = outcome_of(
        answer,
        Segment(completion, order=0, receipt=now),
        decided_at=time.time_ns(),
        max_segments=config.evaluation.max_segments,
        evaluator=ref,
    )
    return outcome, request


def _question(make: Callable[[], T]) -> T:
    try:
        return make()
    except EvaluationError as error:
        if error.kind in _USAGE_KINDS:
            refuse(f'{error.message}; add --arg NAME=VALUE'.replace(_ADVICE, ''))
        raise


_ADVICE = '; report it with the completion'


def _reports(config: Config, tool: str) -> dict[str, ReportSettings]:
    report = config.tool(tool).report
    return {} if report is None else {tool: report}


def _ask(
    config: Config, name: str, tool: str, request: EvaluationRequest
) -> tuple[str, Verdict | EvaluationError]:
    """Ask as the node does: on a thread of its own, with the deadline of the evaluator."""
    from harness_eval.cli.services import ServicesOfTheShell
    from harness_eval.evaluators import Judges
    from harness_eval.judging import Thresholds
    from harness_eval.reported_calls import ReportedCalls

    evaluation = config.evaluation
    thresholds = Thresholds(evaluation.outcome_threshold, evaluation.failure_threshold)
    answers: queue.SimpleQueue[Verdict | EvaluationError] = queue.SimpleQueue()
    with ServicesOfTheShell() as services:
        judge = Judges(evaluation.evaluators, thresholds, services).calls(name)
        services.start()
        try:
            ReportedCalls(_reports(config, tool)).call(tool, judge, request, answers.put)
            return judge.evaluator, answers.get()
        finally:
            judge.close()
