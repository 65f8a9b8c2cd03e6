"""What an evaluator is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
import hashlib
import json
import math
from typing import Any

from harness_eval.contract.observation import Image, Observation


@dataclass(frozen=True)
class Criterion:
    """One criterion of a rubric.

    Attributes:
        name: How evidence and failure reasons call it.
        text: What must be true for it to be met.
        weight: Share of the score, above 0.
        must: Whether it failing means failure, whatever the score.
    """

    name: str
    text: str
    weight: float = 1.0
    must: bool = False


@dataclass(frozen=True)
class Rubric:
    """What a tool's work is judged by: free text, or criteria with names and weights.

    Attributes:
        text: Markdown; empty if there are criteria.
        criteria: The criteria; empty if there is a text.
        version: What this version of it is called.

    Raises:
        ValueError: Both or none of text and criteria, a name twice, a weight that is not above 0.
    """

    text: str = ''
    criteria: tuple[Criterion, ...] = ()
    version: str = ''

    def __post_init__(self) -> None:
        if bool(self.text.strip()) == bool(self.criteria):
            raise ValueError('a rubric has either a text or criteria')
        if len({criterion.name for criterion in self.criteria}) < len(self.criteria):
            raise ValueError('each criterion of a rubric has a name of its own')
        if not all(0.0 < criterion.weight < math.inf for criterion in self.criteria):
            raise ValueError('the weight of a criterion is a finite number above 0')

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of all it says, its version included."""
        criteria = [[one.name, one.text, one.weight, one.must] for one in self.criteria]
        said = json.dumps([self.version, self.text, criteria], ensure_ascii=True)
        return hashlib.sha256(said.encode('ascii')).hexdigest()


@dataclass(frozen=True)
class ReportOutput:
    """One output of a tool's typed report, as whoever fills it in needs to know it.

    What is accepted is not among it: who knows what is wanted is tempted to see it.

    Attributes:
        key: Its name in the report.
        title: What it means.
        type: ``string``, ``integer``, ``number`` or ``boolean``.
    """

    key: str
    title: str
    type: str


@dataclass(frozen=True)
class PostCondition:
    """What must hold after the tool, with the declared arguments filled in.

    Attributes:
        text: The sentence; empty if only checks are given.
        checks: The tool's checks as plain data, validated by ``harness_eval.config``, in order.
        references: Reference pictures by name, ``HxWx3 uint8, BGR``.
        failure_kinds: What a failure may be called.
        process_allowed: Whether ``process`` is an allowed answer (segment tools only).
        rubric: What a rubric evaluator judges it by, if it has one.
        report: Outputs that the judge fills in beside its verdict.
        regions: The part of a view that an evaluator is shown, ``(x0, y0, x1, y1)`` in fractions
            of width and height, by evaluator and view; whole views where none is named.
    """

    text: str = ''
    checks: tuple[Any, ...] = ()
    references: Mapping[str, Image] = field(default_factory=dict)
    failure_kinds: tuple[str, ...] = ()
    process_allowed: bool = False
    rubric: Rubric | None = None
    report: tuple[ReportOutput, ...] = ()
    regions: Mapping[str, Mapping[str, tuple[float, float, float, float]]] = field(
        default_factory=dict
    )


@dataclass(frozen=True)
class EvaluationRequest:
    """Everything that an evaluator is given.

    Attributes:
        post_condition: What must hold.
        observation: What the world looks like after the end.
        digest: SHA-256 (hex) of both, by which an answer can be kept; empty if it is not known.
    """

    post_condition: PostCondition
    observation: Observation
    digest: str = field(default='', compare=False)
