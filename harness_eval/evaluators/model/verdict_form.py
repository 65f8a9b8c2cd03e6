"""The answer that a model is asked for: its JSON Schema, and how it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
import math
from typing import Any, Literal

from pydantic import create_model

from harness_eval.contract import Status
from harness_eval.evaluators.model.errors import ModelError
from harness_eval.evaluators.model.parse import (
    AnswerPart,
    check_sources,
    malformed,
    Observations,
    read_object,
    Seen,
    Share,
    validated,
    Words,
)
from harness_eval.judging import FOREIGN_FAILURE_KINDS, POST_CONDITION

CANNOT_TELL = 'cannot_tell'
REPORT_WORDS = '- report: the values to report, as described with them.\n'


class VerdictAnswer(AnswerPart):
    """What every answer holds, in the order in which it is written.

    Attributes:
        observations: What was seen, and in which picture or reading.
        reasons: Why that means the status.
        status: ``success``, ``failure``, ``process`` or ``cannot_tell``.
        score: How sure it is that the post-condition holds.
    """

    observations: Observations
    reasons: Words
    status: Literal['success', 'failure', 'process', 'cannot_tell']
    score: Share


@dataclass(frozen=True)
class ReadVerdict:
    """An answer that is well-formed.

    Attributes:
        observations: What was seen.
        reasons: Why.
        status: One of the four.
        score: 0 to 1.
        failure_kind: Which of the tool's kinds of failure; ``None`` if it is none of them.
        applies: Whether the rubric can apply at all; always true if that was not asked.
        report: What the typed report holds; ``None`` if none was asked for.
        remarks: What was done to it.
    """

    observations: tuple[Seen, ...]
    reasons: str
    status: str
    score: float
    failure_kind: str | None = None
    applies: bool = True
    report: Mapping[str, Any] | None = None
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class VerdictForm:
    """Which answer is asked for.

    Attributes:
        sources: Names of the views, readings and references that are sent.
        process_allowed: Whether ``process`` may be answered.
        failure_kinds: What a failure may be called.
        outputs: Key and JSON type of each output of the typed report.
        rubric: Whether the answer may be that the rubric cannot apply.
        clamp: Whether a finite score outside [0, 1] is cut.
    """

    sources: tuple[str, ...]
    process_allowed: bool = False
    failure_kinds: tuple[str, ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    rubric: bool = False
    clamp: bool = False

    name = 'verdict'

    @property
    def statuses(self) -> tuple[str, ...]:
        """The statuses that may be answered."""
        process = (Status.PROCESS.value,) if self.process_allowed else ()
        return (Status.SUCCESS.value, Status.FAILURE.value, *process, CANNOT_TELL)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the answer, observations and reasons first.

        Only keywords that every server with structured output knows are in it; lengths and
        ranges are checked afterwards.
        """
        properties: dict[str, Any] = {
            'observations': observations_schema(self.sources),
            'reasons': {'type': 'string'},
        }
        if self.outputs:
            properties['report'] = report_schema(self.outputs)
        if self.rubric:
            properties['applies'] = {'type': 'boolean'}
        if self.failure_kinds:
            kinds = [*self.failure_kinds, POST_CONDITION]
            properties['failure_kind'] = {
                'anyOf': [{'type': 'string', 'enum': kinds}, {'type': 'null'}]
            }
        properties['status'] = {'type': 'string', 'enum': list(self.statuses)}
        properties['score'] = {'type': 'number'}
        return closed_object(properties)

    def words(self) -> str:
        """What each key means, for the model."""
        lines = [
            '- observations: what you see, one entry each: source (which picture or reading, by '
            'its name) and seen (what it shows). At least one.',
            '- reasons: what follows from that for the post-condition.',
        ]
        if self.outputs:
            lines.append(REPORT_WORDS.rstrip())
        if self.rubric:
            lines.append(
                '- applies: false if the rubric is about something else than what is to be '
                'judged, so that it cannot be applied to it at all; otherwise true.'
            )
        if self.failure_kinds:
            lines.append(
                '- failure_kind: only with the status failure, the kind that fits; '
                f'{POST_CONDITION} if none does. With any other status: null.'
            )
        lines.append('- status: success if the post-condition holds now, failure if it does not,')
        if self.process_allowed:
            lines.append('  process if the work is visibly under way but not done,')
        lines.append('  cannot_tell if the pictures and readings do not show it.')
        lines.append(
            '- score: how sure you are that the post-condition holds, from 0.0 (surely not) to '
            '1.0 (surely). A failure has a low score.'
        )
        return '\n'.join(lines)

    def read(self, text: str) -> ReadVerdict:
        """Read an answer.

        Raises:
            ModelError: It is not of the form: ``refused``, ``malformed_answer``,
                ``score_out_of_range``, ``process_not_allowed``, ``unknown_failure_kind`` or
                ``unknown_view``.
        """
        value = read_object(text)
        remarks: tuple[str, ...] = ()
        if self.clamp:
            value, remarks = _clamped(value)
        part = _answer_model(bool(self.failure_kinds), self.rubric, bool(self.outputs))
        answer = validated(part, value)
        found = ReadVerdict(
            observations=tuple(answer.observations),
            reasons=answer.reasons,
            status=answer.status,
            score=abs(answer.score),  # -0.0 is 0.0
            failure_kind=getattr(answer, 'failure_kind', None),
            applies=getattr(answer, 'applies', True),
            report=getattr(answer, 'report', None),
            remarks=remarks,
        )
        self._check(found)
        return found

    def _check(self, found: ReadVerdict) -> None:
        check_sources(list(found.observations), self.sources)
        if found.status not in self.statuses:
            raise ModelError(
                'process_not_allowed',
                'the model answered process for a tool that is not one of the segment_tools',
                retryable=True,
            )
        if found.failure_kind is not None:
            if found.status != Status.FAILURE.value:
                raise malformed(f'a failure_kind stands beside the status {found.status}')
            if found.failure_kind not in (*FOREIGN_FAILURE_KINDS, *self.failure_kinds):
                raise ModelError(
                    'unknown_failure_kind',
                    f'failure_kind is none of {", ".join(self.failure_kinds)}, {POST_CONDITION}',
                    retryable=True,
                )


@lru_cache(maxsize=8)
def _answer_model(kinds: bool, rubric: bool, report: bool) -> type[VerdictAnswer]:
    fields: dict[str, Any] = {}
    if kinds:
        fields['failure_kind'] = (str | None, ...)
    if rubric:
        fields['applies'] = (bool, ...)
    if report:
        fields['report'] = (dict[str, Any], ...)
    return create_model('Answer', __base__=VerdictAnswer, **fields)


def _clamped(value: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    score = value.get('score')
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        return value, ()
    try:
        finite = math.isfinite(float(score))
    except OverflowError:  # a whole number of hundreds of digits
        finite = False
    if 0.0 <= score <= 1.0 or not finite:
        return value, ()
    cut = 0.0 if score < 0.0 else 1.0
    remark = f'warning: the score {score:.6g} was outside [0, 1] and was cut to {cut:g}'
    return {**value, 'score': cut}, (remark,)


def observations_schema(sources: tuple[str, ...]) -> dict[str, Any]:
    """JSON Schema of what was seen, each of one of ``sources``."""
    source = {'type': 'string', 'enum': list(sources)}
    entry = closed_object({'source': source, 'seen': {'type': 'string'}})
    return {'type': 'array', 'items': entry}


def report_schema(outputs: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """JSON Schema of a typed report; :mod:`harness_eval.reports` looks into what comes of it."""
    return closed_object({key: {'type': kind} for key, kind in outputs})


def closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    """JSON Schema of an object with exactly these keys."""
    return {
        'type': 'object',
        'properties': properties,
        'required': list(properties),
        'additionalProperties': False,
    }
