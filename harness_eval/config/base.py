"""The base of every settings class: strict, immutable, unknown keys refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""A finite number; a whole number will do, a text or a truth value will not."""

Integer = Annotated[int, Field(strict=True)]
"""A whole number; neither a text, nor a truth value, nor a number with a fraction."""

Flag = Annotated[bool, Field(strict=True)]
"""``true`` or ``false``."""

Text = Annotated[str, Field(min_length=1)]
"""A text with at least one character."""

Name = Annotated[str, Field(pattern=r'^[A-Za-z][A-Za-z0-9_]*$', max_length=100)]
"""Letters, digits and underscores, starting with a letter."""

Seconds = Annotated[Number, Field(ge=0.0)]
"""A duration in seconds, 0 included."""

PositiveSeconds = Annotated[Number, Field(gt=0.0, le=86_400.0)]
"""A duration in seconds, above 0 and at most a day."""

Topic = Annotated[
    str,
    Field(pattern=r'^(~/|/)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$', max_length=255),
]
"""A ROS 2 name: absolute, relative or private."""

MessageType = Annotated[str, Field(pattern=r'^[a-z][a-z0-9_]*/msg/[A-Z][A-Za-z0-9]*$')]
"""A ROS 2 message type, for example ``sensor_msgs/msg/JointState``."""


def _refuse_repeats(values: tuple[str, ...]) -> tuple[str, ...]:
    repeated = [value for value, count in Counter(values).items() if count > 1]
    if repeated:
        raise ValueError(f'expected each name once, found {repeated[0]!r} more than once')
    return values


Names = Annotated[tuple[Name, ...], AfterValidator(_refuse_repeats)]
"""Names, each of them once."""


class Settings(BaseModel):
    """Validated settings: unknown keys are refused and nothing can be changed afterwards."""

    model_config = ConfigDict(extra='forbid', frozen=True, strict=False)

    @model_validator(mode='before')
    @classmethod
    def _blank_means_default(cls, data: Any) -> Any:
        """Take ``key:`` with nothing after it as if the key were not there.

        An unknown key stays, so that it is refused whatever its value.
        """
        if not isinstance(data, dict):
            return data
        return {
            key: value
            for key, value in data.items()
            if value is not None or key not in cls.model_fields
        }


def exactly_one(settings: Settings, keys: Sequence[str]) -> str:
    """Tell which one of ``keys`` is set.

    Raises:
        ValueError: None or several of them are set.
    """
    given = [key for key in keys if getattr(settings, key) is not None]
    if len(given) != 1:
        found = ' and '.join(given) or 'none'
        raise ValueError(f'expected exactly one of {", ".join(keys)}, found {found}')
    return given[0]
