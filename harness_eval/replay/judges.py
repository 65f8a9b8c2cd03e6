"""The evaluators that a replay asks, and those whose recorded answers it gives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from importlib.util import find_spec
from types import TracebackType
from typing import Any

from harness_eval.config import Config
from harness_eval.evaluators import Judges
from harness_eval.judging import Thresholds
from harness_eval.replay.answers import Answers, asks_others, Recorded, RecordedJudge
from harness_eval.reported_calls import Judge


class AskedJudges:
    """The evaluators of some tools; a context manager.

    Answers are never taken from a cache: whoever wants those of then asks for recorded ones.

    Args:
        config: The whole configuration.
        answers: ``recorded``: what asks models or services is not asked.
        tools: The tools; those that are not required need none.

    Attributes:
        by_name: Each evaluator by its name in the configuration.

    Raises:
        EvaluatorError: One of them cannot be made.
    """

    def __init__(self, config: Config, answers: Answers, tools: Collection[str]) -> None:
        evaluation = config.evaluation
        needed = {config.evaluator_of(t) for t in evaluation.required_tools if t in tools}
        thresholds = Thresholds.of(evaluation)
        settings = evaluation.evaluators
        silent = {name for name in needed if answers == 'recorded' and asks_others(name, settings)}
        self._undo = ExitStack()
        self._recorded: list[RecordedJudge] = []
        found: dict[str, Judge] = {}
        with ExitStack() as undo:
            services = None
            if any(_asks_service(name, settings) for name in needed - silent):
                services = _services(undo)
            made = Judges(settings, thresholds, services)
            for name in sorted(needed):
                if name in silent:
                    ref = made.evaluator(name).ref
                    one = RecordedJudge(ref, settings[name], thresholds)
                    self._recorded.append(one)
                    found[name] = one
                else:
                    calls = made.calls(name)
                    undo.callback(calls.close)
                    found[name] = calls
            if services is not None:
                services.start()
            self._undo = undo.pop_all()
        self.by_name: Mapping[str, Judge] = found

    def __enter__(self) -> AskedJudges:
        """Close them at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close them."""
        self._undo.close()

    def know(self, recorded: Iterable[Recorded]) -> None:
        """Give these recorded answers from now on, and no others."""
        known = list(recorded)
        for one in self._recorded:
            one.use(known)


def need_evaluators(config: Config) -> None:
    """Make sure that the evaluators of all tools can be made; nothing is asked or started.

    Raises:
        EvaluatorError: One of them cannot.
    """
    evaluation = config.evaluation
    made = Judges(evaluation.evaluators, Thresholds.of(evaluation))
    for tool in evaluation.required_tools:
        made.evaluator(config.evaluator_of(tool))


def _asks_service(name: str, settings: Mapping[str, Any]) -> bool:
    one = settings[name]
    members = [member for _, names in one.named for member in names]
    return one.kind == 'service' or any(_asks_service(member, settings) for member in members)


def _services(undo: ExitStack) -> Any:
    """What calls ROS 2 services; None without ROS, where asking one is the error ``no_ros``."""
    if find_spec('rclpy') is None:
        return None
    from harness_eval.cli.services import ServicesOfTheShell

    return undo.enter_context(ServicesOfTheShell())
