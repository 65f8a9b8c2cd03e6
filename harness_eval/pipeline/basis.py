"""What the judgement of a segment rests on, as digests that tell whether it is still the same.

A segment that waits for its judge while the node is configured anew must not be judged by rules
that did not hold when it was accepted, nor from frames of topics that mean something else now.
"""

from __future__ import annotations

from dataclasses import dataclass
import hashlib
import json
from typing import Any

from harness_eval.config import Config
from harness_eval.contract import EvaluationError
from harness_eval.requests import Requests


@dataclass(frozen=True)
class Basis:
    """What the judgement of a segment rests on.

    Attributes:
        streams: SHA-256 (hex) over the streams that its evidence consists of: names, topics,
            types and where their stamps come from.
        rules: SHA-256 (hex) over all settings that its verdict depends on.
    """

    streams: str = ''
    rules: str = ''


class Bases:
    """The basis of each tool under one configuration.

    Args:
        config: The whole configuration.
        requests: Knows the streams of a tool.
    """

    def __init__(self, config: Config, requests: Requests) -> None:
        self._config = config
        self._requests = requests
        self._known: dict[str, Basis] = {}

    def of(self, tool: str) -> Basis:
        """The basis of a tool; an empty one if it is not in the configuration."""
        known = self._known.get(tool)
        if known is None:
            known = self._known[tool] = self._make(tool)
        return known

    def require(self, tool: str, recorded: Basis) -> None:
        """Make sure that a judgement still rests on what it rested on.

        Args:
            tool: Name of the tool.
            recorded: What is on record of a segment of it.

        Raises:
            EvaluationError: ``configuration_changed``.
        """
        now = self.of(tool)
        if recorded.streams != now.streams:
            raise EvaluationError(
                'configuration_changed',
                f'the views, states or topics of {tool!r} are others than when this evidence was '
                'taken, so it cannot be judged any more; run the tool again under a new run id',
            )
        if recorded.rules != now.rules:
            raise EvaluationError(
                'configuration_changed',
                f'{tool!r} was configured anew while this run waited for its judgement; to judge '
                "it from its evidence by the new rules on purpose, use 'harness-eval judge'",
            )

    def _make(self, tool: str) -> Basis:
        try:
            streams = self._requests.streams_of(tool)
            evaluator = self._config.evaluator_of(tool)
        except (KeyError, EvaluationError):
            return Basis()
        evaluation, capture = self._config.evaluation, self._config.capture
        seen = {*self._config.views_of(tool), *self._config.states_of(tool)}
        rules = {
            # By which metric configurations are compared changes no verdict.
            'tool': self._config.tool(tool).model_dump(mode='json', exclude={'metric'}),
            'evaluator': evaluator,
            'evaluators': {
                name: _plain(evaluation.evaluators[name]) for name in self._asked(tool)
            },
            'thresholds': [evaluation.outcome_threshold, evaluation.failure_threshold],
            'segments': [tool in evaluation.segment_tools, evaluation.max_segments],
            'views': {n: _plain(v) for n, v in capture.views.items() if n in seen},
            'states': {n: _plain(s) for n, s in capture.states.items() if n in seen},
            'capture': [
                capture.settle,
                capture.slop,
                capture.timeout,
                capture.max_clock_skew,
                capture.max_ahead,
            ],
        }
        return Basis(
            _digest([[s.name, s.topic, s.kind.value, s.stamp_source, s.type] for s in streams]),
            _digest(rules),
        )

    def _asked(self, tool: str) -> list[str]:
        """Every evaluator that may be asked about a tool, by whichever other one."""
        found: list[str] = []
        names = [self._config.evaluator_of(tool)]
        while names:
            name = names.pop()
            if name not in found:
                found.append(name)
                settings = self._config.evaluation.evaluators[name]
                names.extend(other for _, others in settings.named for other in others)
        return found


def _plain(settings: Any) -> Any:
    return settings.model_dump(mode='json')


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
