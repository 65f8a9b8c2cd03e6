"""The answer about some criteria of a rubric: its JSON Schema, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pydantic import create_model

from harness_eval.contract import Criterion
from harness_eval.evaluators.model.parse import (
    AnswerPart,
    check_sources,
    Observations,
    read_object,
    Seen,
    validated,
    Words,
)
from harness_eval.evaluators.model.verdict_form import (
    closed_object,
    observations_schema,
    report_schema,
    REPORT_WORDS,
)

MET, NOT_MET, CANNOT_TELL = 'met', 'not_met', 'cannot_tell'


class CriterionAnswer(AnswerPart):
    """What is said about one criterion, the reasons first.

    Attributes:
        reasons: Why it is met or not.
        answer: ``met``, ``not_met`` or ``cannot_tell``.
    """

    reasons: Words
    answer: Literal['met', 'not_met', 'cannot_tell']


class CriteriaAnswer(AnswerPart):
    """What every answer holds besides the criteria.

    Attributes:
        observations: What was seen, and in which picture or reading.
        reasons: Whether the rubric is about this at all.
        applies: Whether it can be applied.
    """

    observations: Observations
    reasons: Words
    applies: bool


@dataclass(frozen=True)
class Judged:
    """One criterion and what was said about it."""

    criterion: Criterion
    answer: str
    reasons: str


@dataclass(frozen=True)
class ReadCriteria:
    """An answer that is well-formed: something about every criterion that was asked about."""

    observations: tuple[Seen, ...]
    reasons: str
    applies: bool
    judged: tuple[Judged, ...]
    report: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class CriteriaForm:
    """Which answer is asked for: one entry for each criterion, by number.

    Numbers are the keys, since the names are texts of others, and a key stands in our own words.

    Attributes:
        criteria: The criteria that are asked about.
        first: Number of the first of them in the rubric.
        sources: Names of the views, readings and references that are sent.
        outputs: Key and JSON type of each output of the typed report.
    """

    criteria: tuple[Criterion, ...]
    first: int
    sources: tuple[str, ...]
    outputs: tuple[tuple[str, str], ...] = ()

    name = 'criteria'

    @property
    def keys(self) -> tuple[str, ...]:
        """The key of each criterion."""
        return tuple(f'c{self.first + index}' for index in range(len(self.criteria)))

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the answer, observations and reasons first."""
        entry = closed_object(
            {
                'reasons': {'type': 'string'},
                'answer': {'type': 'string', 'enum': [MET, NOT_MET, CANNOT_TELL]},
            }
        )
        report = {'report': report_schema(self.outputs)} if self.outputs else {}
        return closed_object(
            {
                'observations': observations_schema(self.sources),
                'reasons': {'type': 'string'},
                **report,
                'applies': {'type': 'boolean'},
                'criteria': closed_object(dict.fromkeys(self.keys, entry)),
            }
        )

    def words(self) -> str:
        """What each key means, for the model."""
        return (
            '- observations: what you see, one entry each: source (which picture or reading, by '
            'its name) and seen (what it shows). At least one.\n'
            '- reasons: whether the criteria are about what is to be judged.\n'
            f'{REPORT_WORDS if self.outputs else ""}'
            '- applies: false if they are about something else, so that they cannot be applied '
            'to it at all; otherwise true, also if none is met.\n'
            f'- criteria: an object with one entry for each of {", ".join(self.keys)}: reasons '
            '(what follows from what you see for this criterion), then answer: '
            f'{MET}, {NOT_MET}, or {CANNOT_TELL} if the pictures and readings do not show it.'
        )

    def text(self) -> str:
        """The criteria as they are sent, as data."""
        lines = []
        for key, criterion in zip(self.keys, self.criteria, strict=True):
            lines.append(f'{key} ({criterion.name}): {criterion.text}')
        return '\n'.join(lines)

    def read(self, text: str) -> ReadCriteria:
        """Read an answer.

        Raises:
            ModelError: It is not of the form: ``refused``, ``malformed_answer`` or
                ``unknown_view``.
        """
        part = _answer_model(self.keys, bool(self.outputs))
        answer: Any = validated(part, read_object(text))
        check_sources(answer.observations, self.sources)
        report = getattr(answer, 'report', None)
        judged = [
            Judged(criterion, said.answer, said.reasons)
            for criterion, said in zip(
                self.criteria, (getattr(answer.criteria, key) for key in self.keys), strict=True
            )
        ]
        return ReadCriteria(
            tuple(answer.observations), answer.reasons, answer.applies, tuple(judged), report
        )


@lru_cache(maxsize=64)
def _answer_model(keys: tuple[str, ...], report: bool) -> type[CriteriaAnswer]:
    fields: dict[str, Any] = dict.fromkeys(keys, (CriterionAnswer, ...))
    entries = create_model('Criteria', __base__=AnswerPart, **fields)
    extra: dict[str, Any] = {'criteria': (entries, ...)}
    if report:
        extra['report'] = (dict[str, Any], ...)
    return create_model('CriteriaOfAnswer', __base__=CriteriaAnswer, **extra)
