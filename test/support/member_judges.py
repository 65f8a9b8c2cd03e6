"""Evaluators made of functions, behind their calls, for those that ask other evaluators."""

from __future__ import annotations

from collections.abc import Callable
from queue import Queue
import threading
from typing import Any

from harness_eval.calls import JudgeCalls, Outcome
from harness_eval.config.evaluators import EvaluatorSettings, PluginSettings
from harness_eval.contract import EvaluationRequest, Evaluator
from harness_eval.evaluators import EvaluatorContext
from harness_eval.judging import Thresholds

PATIENCE = 20.0
"""Seconds that a test waits for what must happen; the machine may be busy."""

Answers = Callable[[EvaluationRequest], Any]


class FunctionJudge:
    """An evaluator made of a function, which counts how often it is asked."""

    def __init__(self, name: str, function: Answers) -> None:
        self.ref = f'test:{name}'
        self.asked = 0
        self._function = function

    def evaluate(self, request: EvaluationRequest) -> Any:
        self.asked += 1
        return self._function(request)


class Members:
    """Judges by name, each behind calls of its own."""

    def __init__(self, **answers: Any) -> None:
        self.judges = {
            name: FunctionJudge(name, answer if callable(answer) else _always(answer))
            for name, answer in answers.items()
        }
        self.calls: dict[str, JudgeCalls] = {}
        self.settings: dict[str, dict[str, Any]] = {}
        self.context = EvaluatorContext(calls=self._calls_of)

    def set(self, name: str, **settings: Any) -> Members:
        """Give a member settings."""
        self.settings[name] = settings
        return self

    def asked(self) -> list[str]:
        """Who was asked."""
        return [name for name, judge in self.judges.items() if judge.asked]

    def _calls_of(self, name: str) -> JudgeCalls:
        own = {'kind': 'plugin', 'ref': 'a:b', 'timeout': PATIENCE, **self.settings.get(name, {})}
        settings = PluginSettings.model_validate(own)
        made = JudgeCalls(self.judges[name], settings, Thresholds())
        return self.calls.setdefault(name, made)


def outcome_of(
    evaluator: Evaluator, settings: EvaluatorSettings, request: EvaluationRequest
) -> Outcome:
    """Call an evaluator as the pipeline does, and wait for what it comes to."""
    done: Queue[Outcome] = Queue()
    JudgeCalls(evaluator, settings, Thresholds()).call(request, done.put)
    return done.get(timeout=2 * PATIENCE)


def raises(error: Exception) -> Answers:
    """A judge that raises."""

    def judge(request: EvaluationRequest) -> Any:
        raise error

    return judge


def waits_for(event: threading.Event, answer: Any = True) -> Answers:
    """A judge that hangs until an event."""

    def judge(request: EvaluationRequest) -> Any:
        event.wait(PATIENCE)
        return answer

    return judge


def _always(answer: Any) -> Answers:
    return lambda request: answer
