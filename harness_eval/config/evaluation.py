"""The settings of the ``evaluation:`` block: which tools are judged, by what, and for what."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from harness_eval.config.base import Integer, Name, Names, Settings, Text
from harness_eval.config.checks import Check, Fraction
from harness_eval.config.effects import EffectSettings
from harness_eval.config.evaluators import AnyEvaluator
from harness_eval.config.tool_judging import Metric, OracleSettings, Report, Rubric

RESERVED_FAILURE_KINDS = ('post_condition', 'segment_budget', 'stalled')
"""Failure kinds that the package gives itself."""


class ToolSettings(Settings):
    """One tool.

    Attributes:
        arguments: The only arguments that may reach a post-condition.
        views: Views and states that its observation needs; default: all. States that its checks
            name belong to it in any case.
        references: Reference pictures by name; paths relative to the file that names them, or
            ``package://package/path`` in the share folder of a ROS 2 package.
        failure_kinds: What its failures may be called.
        evaluator: Name of its evaluator; default: ``evaluation.evaluator``.
        post_condition: The sentence; the same as an entry in ``evaluation.post_conditions``.
        checks: Its deterministic checks; at least one of them is not ``optional``.
        rubric: What a ``rubric`` evaluator judges it by: a text, ``{file: path}`` or
            ``{criteria: […]}``.
        report: What its judge reports beside the verdict: a list of outputs, or
            ``{from: module:callable, outputs: […]}``.
        metric: The output of its report that ``harness-eval compare`` goes by where no truth is
            known: a name, or ``{name: …, goal: …, scale: …}``. No verdict depends on it.
        oracle: Ground truth of a simulator, a benchmark or a database about it.
        on_success: Operations on the scene graph that its success brings, in order.
    """

    arguments: Names = ()
    views: tuple[str, ...] | None = None
    references: dict[Name, Text] = Field(default_factory=dict)
    failure_kinds: Names = ()
    evaluator: str | None = None
    post_condition: Text | None = None
    checks: tuple[Check, ...] = ()
    rubric: Rubric | None = None
    report: Report | None = None
    metric: Metric | None = None
    oracle: OracleSettings | None = None
    on_success: tuple[EffectSettings, ...] = ()

    @property
    def checked_states(self) -> tuple[str, ...]:
        """Names of the states that its checks look at."""
        return tuple(check.state.name for check in self.checks if check.state is not None)

    @field_validator('views')
    @classmethod
    def _once(cls, views: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if views is not None and len(set(views)) < len(views):
            raise ValueError('expected each view and state once, found one of them twice')
        return views

    @field_validator('failure_kinds')
    @classmethod
    def _not_reserved(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        for kind in kinds:
            if kind in RESERVED_FAILURE_KINDS:
                raise ValueError(f"expected the tool's own words, found the reserved {kind!r}")
        return kinds

    @field_validator('post_condition')
    @classmethod
    def _not_blank(cls, text: str | None) -> str | None:
        if text is not None and not text.strip():
            raise ValueError('expected a sentence, found nothing but white space')
        return text


class EvaluationSettings(Settings):
    """The ``evaluation:`` block. After loading, ``tools`` has an entry for every required tool.

    Attributes:
        required_tools: Tools whose runs are judged; the completions of others are ignored.
        segment_tools: Required tools that run in segments: only they may be answered ``process``.
        max_segments: Most segments of one run; at the last one ``process`` becomes ``failure``.
        outcome_threshold: A score at or above it is ``success``.
        failure_threshold: A score below it is ``failure``; between the two, ``process`` (segment
            tools) or abstention.
        post_conditions: The sentence that must hold after each tool, by tool.
        evaluator: Name of the evaluator of every tool that names no other.
        evaluators: What judges, by name.
        tools: What else belongs to a tool, by tool.
    """

    required_tools: Names = ()
    segment_tools: Names = ()
    max_segments: Annotated[Integer, Field(ge=1, le=10_000)] = 8
    # A threshold of 0 would call every score a success.
    outcome_threshold: Annotated[Fraction, Field(gt=0.0)] = 0.9
    failure_threshold: Fraction = 0.5
    post_conditions: dict[Name, Text] = Field(default_factory=dict)
    evaluator: str | None = None
    evaluators: dict[Name, AnyEvaluator] = Field(default_factory=dict)
    tools: dict[Name, ToolSettings] = Field(default_factory=dict)
