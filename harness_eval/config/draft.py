"""What can be read of a configuration, piece by piece, even where another piece is wrong.

The rules of :mod:`harness_eval.config.rules` look at a draft, so that a file with a mistyped
key and a check on an unknown view gets both problems told at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import ValidationError

from harness_eval.config.base import Settings
from harness_eval.config.errors import did_you_mean
from harness_eval.config.evaluators import EvaluatorSettings, KINDS
from harness_eval.config.models import (
    CaptureSettings,
    CompletionSource,
    EvaluationSettings,
    StateSettings,
    ToolSettings,
    ViewSettings,
)

S = TypeVar('S', bound=Settings)

_UNREADABLE = float('nan')  # compares false with everything, so no rule is broken by it


@dataclass(frozen=True)
class Draft:
    """The pieces.

    Attributes:
        required_tools: Names in the order of the file; empty where there is no text.
        required_known: Whether ``required_tools`` can be read; otherwise nothing can be said of
            a tool that is not among them.
        segment_tools: The same.
        post_conditions: Sentences by tool.
        evaluator: Name of the default evaluator.
        outcome_threshold: NaN if unreadable.
        failure_threshold: NaN if unreadable.
        evaluators: Evaluators by name; here and below ``None`` stands for settings whose shape
            is wrong, which is reported elsewhere.
        tools: Tools by name.
        views: Views by name.
        states: States by name.
        capture: The capture settings without views and states.
        completions: Sources in the order of the file.
    """

    required_tools: tuple[str, ...] = ()
    required_known: bool = True
    segment_tools: tuple[str, ...] = ()
    post_conditions: Mapping[str, str] = field(default_factory=dict)
    evaluator: str | None = None
    outcome_threshold: float = _UNREADABLE
    failure_threshold: float = _UNREADABLE
    evaluators: Mapping[str, EvaluatorSettings | None] = field(default_factory=dict)
    tools: Mapping[str, ToolSettings | None] = field(default_factory=dict)
    views: Mapping[str, ViewSettings | None] = field(default_factory=dict)
    states: Mapping[str, StateSettings | None] = field(default_factory=dict)
    capture: CaptureSettings | None = None
    completions: tuple[CompletionSource | None, ...] = ()

    @property
    def observables(self) -> list[str]:
        """Names of all views and states."""
        return [*self.views, *self.states]

    def unrequired(self, tool: str) -> str:
        """Say what is wrong with the name of a tool that must be a required one; '' if nothing."""
        required = [name for name in self.required_tools if name]
        if tool in required or not self.required_known:
            return ''
        hint = did_you_mean(tool, required, what='required') or '; required_tools is empty'
        return f'expected a tool of evaluation.required_tools, found {tool!r}{hint}'

    def views_of(self, tool: str) -> list[str]:
        """Names of the views that an observation of a tool needs."""
        settings = self.tools.get(tool)
        chosen = settings.views if settings is not None else None
        return [name for name in self.views if chosen is None or name in chosen]

    def asked(self, evaluator: str) -> list[str]:
        """Names of an evaluator and of all that it asks, itself or by others."""
        found = {evaluator: None}
        todo = [evaluator]
        while todo:
            settings = self.evaluators.get(todo.pop())
            for _, names in settings.named if settings is not None else ():
                todo += [name for name in names if name not in found]
                found.update(dict.fromkeys(names))
        return list(found)

    def post_condition(self, tool: str) -> str | None:
        """The sentence of a tool, wherever it is written."""
        settings = self.tools.get(tool)
        if settings is not None and settings.post_condition is not None:
            return settings.post_condition
        return self.post_conditions.get(tool)


def read_draft(data: Mapping[str, Any], default_evaluator: str | None) -> Draft:
    """Read the pieces of a configuration.

    Args:
        data: The file as plain data, includes merged in.
        default_evaluator: Overrides ``evaluation.evaluator``.
    """
    evaluation = _mapping(data.get('evaluation'))
    capture = _mapping(data.get('capture'))
    views = _mapping(capture.get('views'))
    states = _mapping(capture.get('states'))
    timing = {key: value for key, value in capture.items() if key not in ('views', 'states')}
    evaluator = default_evaluator or evaluation.get('evaluator')
    return Draft(
        required_tools=_texts(evaluation.get('required_tools')),
        required_known=_required_known(evaluation),
        segment_tools=_texts(evaluation.get('segment_tools')),
        post_conditions={
            name: text
            for name, text in _mapping(evaluation.get('post_conditions')).items()
            if isinstance(text, str)
        },
        evaluator=evaluator if isinstance(evaluator, str) else None,
        outcome_threshold=_threshold(evaluation, 'outcome_threshold'),
        failure_threshold=_threshold(evaluation, 'failure_threshold'),
        evaluators={
            name: _evaluator(item) for name, item in _mapping(evaluation.get('evaluators')).items()
        },
        tools=_pieces(ToolSettings, evaluation.get('tools')),
        views=_pieces(ViewSettings, views),
        states=_pieces(StateSettings, states),
        capture=_piece(CaptureSettings, timing),
        completions=tuple(
            _piece(CompletionSource, item) for item in _list(data.get('completions'))
        ),
    )


def _required_known(evaluation: Mapping[str, Any]) -> bool:
    listed = evaluation.get('required_tools')
    if listed is not None:
        return isinstance(listed, list) and all(isinstance(name, str) for name in listed)
    unknown = [key for key in evaluation if key not in EvaluationSettings.model_fields]
    return not get_close_matches('required_tools', unknown, n=1)


def _evaluator(data: Any) -> EvaluatorSettings | None:
    kind = KINDS.get(str(_mapping(data).get('kind')))
    return None if kind is None else _piece(kind, data)


def _piece(model: type[S], data: Any) -> S | None:
    """Read one piece; an unknown key in it does not keep the rest from being looked at."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        details = error.errors(include_url=False)
    unknown = {detail['loc'] for detail in details if detail['type'] == 'extra_forbidden'}
    if not unknown:
        return None
    try:
        return model.model_validate(_without(data, unknown, ()))
    except ValidationError:
        return None


def _without(data: Any, unwanted: set[tuple[int | str, ...]], path: tuple[int | str, ...]) -> Any:
    if isinstance(data, dict):
        return {
            key: _without(value, unwanted, (*path, key))
            for key, value in data.items()
            if (*path, key) not in unwanted
        }
    if isinstance(data, list):
        return [_without(value, unwanted, (*path, index)) for index, value in enumerate(data)]
    return data


def _pieces(model: type[S], data: Any) -> dict[str, S | None]:
    return {name: _piece(model, item) for name, item in _mapping(data).items()}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> tuple[str, ...]:
    """Keep the positions: what is not a text becomes an empty one, which no rule looks at."""
    return tuple(item if isinstance(item, str) else '' for item in _list(value))


def _threshold(evaluation: Mapping[str, Any], key: str) -> float:
    value = evaluation.get(key)
    if value is None:
        value = EvaluationSettings.model_fields[key].default
    readable = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if readable else _UNREADABLE
