"""The settings of a tool that say what is judged beside its sentence and its checks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from harness_eval.config.addresses import EnvironmentVariable
from harness_eval.config.base import (
    exactly_one,
    Flag,
    Number,
    PositiveSeconds,
    Settings,
    Text,
)
from harness_eval.config.errors import describe

MAX_RUBRIC = 65_536
"""Characters of a rubric."""

MAX_OUTPUTS = 32
"""Outputs of a report."""

RubricText = Annotated[str, Field(min_length=1, max_length=MAX_RUBRIC)]


class CriterionSettings(Settings):
    """One criterion of a rubric.

    Attributes:
        name: How the evidence and the failure's reason call it.
        text: What must be true for it to be met.
        weight: Share of the score, above 0.
        must: Whether it failing means failure, whatever the score.
    """

    name: Annotated[Text, Field(max_length=100)]
    text: RubricText
    weight: Annotated[Number, Field(gt=0.0)] = 1.0
    must: Flag = False


class RubricSettings(Settings):
    """What a rubric says; exactly one of ``text``, ``file`` and ``criteria``.

    After loading there is no ``file``: what it holds stands in ``text`` or ``criteria``.

    Attributes:
        text: Free text, markdown, 1 to 65,536 characters.
        file: A file that holds it: a path relative to the file that names it, or
            ``package://package/path``. One that ends in ``.yaml`` or ``.yml`` holds ``version``
            and ``text`` or ``criteria``; any other is free text.
        criteria: Named, weighted criteria.
        version: What this version of it is called; it enters the ``input_digest``.
    """

    text: RubricText | None = None
    file: Text | None = None
    criteria: Annotated[tuple[CriterionSettings, ...], Field(min_length=1)] | None = None
    version: Annotated[str, Field(max_length=100)] = ''

    @model_validator(mode='after')
    def _one(self) -> RubricSettings:
        exactly_one(self, ('text', 'file', 'criteria'))
        if self.text is not None and not self.text.strip():
            raise ValueError('expected a rubric, found nothing but white space')
        names = [criterion.name for criterion in self.criteria or ()]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f'expected each criterion once, found {name!r} more than once')
        size = sum(len(criterion.text) for criterion in self.criteria or ())
        if size > MAX_RUBRIC:
            raise ValueError(
                f'expected at most {MAX_RUBRIC} characters in all criteria, found {size}'
            )
        return self


def _rubric(value: Any) -> Any:
    return {'text': value} if isinstance(value, str) else value


Rubric = Annotated[RubricSettings, BeforeValidator(_rubric)]
"""A rubric; a text alone is its ``text``."""


class OracleSettings(Settings):
    """Ground truth about the tool's outcome: it is recorded beside the judge and never feeds it.

    Attributes:
        kind: ``plugin`` or ``endpoint``.
        ref: ``module:callable`` of a plugin, or the address of an endpoint.
        decides: Whether its answer, when there is one, is the verdict.
        timeout: Seconds until it is not waited for any more.
        token_env: Name of the environment variable that holds an endpoint's bearer token.
    """

    kind: Literal['plugin', 'endpoint']
    ref: Text
    decides: Flag = False
    timeout: Annotated[PositiveSeconds, Field(le=3600.0)] = 60.0
    token_env: EnvironmentVariable | None = None


OutputType = Literal['string', 'integer', 'number', 'boolean']


class OutputSettings(Settings):
    """One output of a report.

    Attributes:
        key: Its name in the report, in ``snake_case``.
        title: What it means, for whoever fills it in.
        type: ``string``, ``integer``, ``number`` or ``boolean``.
        equals: The truth value that a success needs (booleans).
        between: Lowest and highest value that a success needs, both included (numbers).
        one_of: The texts of which a success needs one (strings).
    """

    key: Annotated[str, Field(pattern=r'^[a-z][a-z0-9]*(_[a-z0-9]+)*$', max_length=64)]
    title: Annotated[Text, Field(max_length=500)]
    type: OutputType
    equals: Flag | None = None
    between: tuple[Number, Number] | None = None
    one_of: Annotated[tuple[str, ...], Field(min_length=1, max_length=100)] | None = None

    @model_validator(mode='after')
    def _acceptance_fits(self) -> OutputSettings:
        fits = {'boolean': 'equals', 'integer': 'between', 'number': 'between', 'string': 'one_of'}
        fitting = fits[self.type]
        for key in ('equals', 'between', 'one_of'):
            if key != fitting and getattr(self, key) is not None:
                raise ValueError(
                    f'expected {fitting!r} or nothing to accept a {self.type} by, found {key!r}'
                )
        if self.between is not None and self.between[0] > self.between[1]:
            raise ValueError(
                f"expected 'between' as [lowest, highest], found {list(self.between)}"
            )
        if self.one_of is not None and len(set(self.one_of)) < len(self.one_of):
            raise ValueError("expected each text of 'one_of' once, found one of them twice")
        return self


class ReportSettings(Settings):
    """What a tool's typed report holds.

    Attributes:
        from: ``module:callable`` of a plugin that fills it in; default: the evaluator does, in
            the call in which it judges.
        outputs: Its outputs, 1 to 32, each key once.
    """

    source: str | None = Field(None, alias='from')
    outputs: Annotated[tuple[OutputSettings, ...], Field(min_length=1, max_length=MAX_OUTPUTS)]

    @model_validator(mode='after')
    def _each_once(self) -> ReportSettings:
        keys = [output.key for output in self.outputs]
        for key in keys:
            if keys.count(key) > 1:
                raise ValueError(f'expected each key once, found {key!r} more than once')
        return self


def _report(value: Any) -> Any:
    if value is not None and not isinstance(value, (list, dict, ReportSettings)):
        raise ValueError(f'expected a list of outputs, found {describe(value)}')
    return {'outputs': value} if isinstance(value, list) else value


Report = Annotated[ReportSettings, BeforeValidator(_report)]
"""A report; a list alone is its ``outputs``."""


class MetricSettings(Settings):
    """The output of the report that tells how well the tool did, for ``harness-eval compare``.

    Attributes:
        name: Key of an output of the tool's ``report``: a number, an integer or a boolean.
        goal: ``maximize``: more is better, or true is; ``minimize``: less is, or false is.
        scale: The difference that counts as much as a wrong verdict put right, in the unit of the
            output, above 0; default: the width of its ``between``. A boolean has none.
    """

    name: Text
    goal: Literal['maximize', 'minimize'] = 'maximize'
    scale: Annotated[Number, Field(gt=0.0)] | None = None


def _metric(value: Any) -> Any:
    return {'name': value} if isinstance(value, str) else value


Metric = Annotated[MetricSettings, BeforeValidator(_metric)]
"""A metric; a text alone is its ``name``."""
