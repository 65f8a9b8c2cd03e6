"""From the text of an answer to a JSON object of the form that was asked for, or an error.

Pure and strict: exactly one JSON object, each key once, no key too many and none too few, every
value of its type and in its range. Nothing is searched for in a text, cut out of it or mended: a
judge whose answer has to be guessed at has not answered.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar
import unicodedata

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from harness_eval.evaluators.model.errors import ModelError
from harness_eval.lines import clean_line
from harness_eval.strict_json import read_json

MAX_ANSWER = 256 * 1024
"""Characters of an answer; a long one has a hundredth of it."""

MAX_OBSERVATIONS = 32
"""Things seen in one answer; each becomes a line of evidence."""

MAX_TEXT = 10_000

_SHOWN = 80
_REFUSALS = re.compile(
    r"\W*(i'?m sorry|i am sorry|sorry,|i cannot|i can.?t|i am unable|i'?m unable|"
    r"i'?m not able|i am not able|unfortunately|as an ai)",
    re.IGNORECASE,
)


def _visible(text: str) -> str:
    # Neither white space nor control and format characters show anything.
    if all(unicodedata.category(character)[0] in 'ZC' for character in text):
        raise ValueError('expected a text, found nothing that can be seen')
    return text


Words = Annotated[str, Field(min_length=1, max_length=MAX_TEXT), AfterValidator(_visible)]
"""A text that shows something."""

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]
"""A number from 0 to 1."""


class AnswerPart(BaseModel):
    """The base of everything that is read from an answer: no key too many, no type converted."""

    model_config = ConfigDict(extra='forbid', frozen=True, strict=True)


class Seen(AnswerPart):
    """One thing that the model says to have seen.

    Attributes:
        source: Which picture or reading showed it.
        seen: What it showed.
    """

    source: Words
    seen: Words


Observations = Annotated[list[Seen], Field(min_length=1, max_length=MAX_OBSERVATIONS)]

_Part = TypeVar('_Part', bound=AnswerPart)


def read_object(text: str) -> dict[str, Any]:
    """Read a text that is one JSON object and nothing else but white space.

    Raises:
        ModelError: ``refused`` for a refusal in words, ``malformed_answer`` for everything else.
    """
    if len(text) > MAX_ANSWER:
        raise malformed(f'the answer has {len(text)} characters, at most {MAX_ANSWER} are read')
    try:
        value = read_json(text.encode('utf-8'))
    except UnicodeEncodeError:
        raise malformed('the answer holds half a character (a lone surrogate)') from None
    except ValueError as error:
        raise _not_json(text, str(error)) from None
    if not isinstance(value, dict):
        raise malformed(
            f'expected one JSON object, found {"a list" if isinstance(value, list) else "a value"}'
        )
    return value


def validated(part: type[_Part], value: dict[str, Any]) -> _Part:
    """Make ``part`` of what was read.

    Raises:
        ModelError: ``score_out_of_range`` for the score, ``malformed_answer`` for all else; the
            message names the field.
    """
    try:
        return part.model_validate(value)
    except ValidationError as error:
        raise _fault(error) from None
    except RecursionError:
        raise malformed('the answer is nested too deep') from None


def check_sources(observations: list[Seen], sent: tuple[str, ...]) -> None:
    """Insist that every observation is of something that was sent.

    Raises:
        ModelError: ``unknown_view``.
    """
    for seen in observations:
        if seen.source not in sent:
            raise ModelError(
                'unknown_view',
                f'the answer names {clean_line(seen.source, _SHOWN)!r} as what was seen; sent '
                f'were {", ".join(sent)}',
                retryable=True,
            )


def malformed(message: str) -> ModelError:
    """An answer that is not of the form; a model may do better when it is asked again."""
    return ModelError('malformed_answer', message, retryable=True)


def _not_json(text: str, why: str) -> ModelError:
    start = text.lstrip()
    if start.startswith('```'):
        return malformed(
            'expected one JSON object and nothing else, found a fence (```) around it; no answer '
            'is cut out of a text'
        )
    if start.lower().startswith('<think'):
        return malformed(
            'expected one JSON object and nothing else, found the reasoning of the model before '
            'it; let the server keep it apart (a reasoning parser) or switch it off'
        )
    shown = clean_line(text, _SHOWN)
    if _REFUSALS.match(start):
        return ModelError('refused', f'the model refused to judge, in words: {shown!r}')
    if 'Extra data' in why:
        why = f'{why}: something stands after the first object'
    return malformed(f'expected one JSON object, found {shown!r}: {why}')


def _fault(error: ValidationError) -> ModelError:
    # The message of a fault repeats nothing of the answer but names of keys.
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = clean_line('.'.join(str(step) for step in first['loc']), _SHOWN) or 'the answer'
    said = clean_line(first['msg'], 200)
    more = f' (and {error.error_count() - 1} more faults)' if error.error_count() > 1 else ''
    out_of_range = ('greater_than_equal', 'less_than_equal', 'finite_number')
    if first['loc'] == ('score',) and first['type'] in out_of_range:
        return ModelError(
            'score_out_of_range',
            f'expected a score from 0 to 1: {said}{more}; "clamp: true" cuts a finite one',
            retryable=True,
        )
    return malformed(f'{where}: {said}{more}')
