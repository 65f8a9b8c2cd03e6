"""The settings of the scene-graph operations that a success brings."""

from __future__ import annotations

from collections.abc import Iterator
import math
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic.config import JsonDict

from harness_eval.config.base import Settings, Text

EffectOp = Literal['add_node', 'remove_node', 'set_attributes', 'add_edge', 'remove_edge']
EFFECT_OPS: tuple[EffectOp, ...] = (
    'add_node',
    'remove_node',
    'set_attributes',
    'add_edge',
    'remove_edge',
)


def _attributes(value: Any) -> None:
    if not isinstance(value, dict) or not value:
        raise ValueError('expected attributes {name: value} as the last element, found none')
    for key, item in value.items():
        if not isinstance(key, str) or not key:
            raise ValueError(f'expected a text as the name of an attribute, found {key!r}')
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError(f'expected a finite number in the attribute {key!r}, found {item}')
        if not isinstance(item, (str, int, float, bool)):
            raise ValueError(
                f'expected a text, a number or true/false in the attribute {key!r}, '
                f'found {type(item).__name__}'
            )


def _shape(names: int, form: str, attributes: Literal['no', 'may', 'must']) -> Any:
    """Make the validator of an operation: so many names, then attributes or not."""
    lengths = {'no': (names,), 'may': (names, names + 1), 'must': (names + 1,)}[attributes]

    def check(value: tuple[Any, ...]) -> tuple[Any, ...]:
        if len(value) not in lengths:
            raise ValueError(f'expected {form}, found {len(value)} elements')
        for name in value[:names]:
            if not isinstance(name, str) or not name.strip():
                raise ValueError(f'expected {form} with texts as names, found {name!r}')
        if len(value) > names:
            _attributes(value[names])
        return value

    return AfterValidator(check)


_ANY_NAMES: JsonDict = {'type': 'array', 'items': {'type': ['string', 'object']}, 'minItems': 1}


class EffectSettings(Settings):
    """One scene-graph operation applied on success, with placeholders; exactly one key is set.

    Attributes:
        add_node: ``[name]`` or ``[name, {attribute: value}]``: the node is there.
        remove_node: ``[name]``: the node and its edges are gone.
        set_attributes: ``[name, {attribute: value}]``: the node has these attributes.
        add_edge: ``[subject, predicate, object]`` or with attributes as a fourth element.
        remove_edge: ``[subject, predicate, object]``: the edge is gone.
    """

    add_node: (
        Annotated[tuple[Any, ...], _shape(1, '[name] or [name, {attribute: value}]', 'may')] | None
    ) = Field(None, json_schema_extra=_ANY_NAMES)
    remove_node: tuple[Text] | None = None
    set_attributes: (
        Annotated[tuple[Any, ...], _shape(1, '[name, {attribute: value}]', 'must')] | None
    ) = Field(None, json_schema_extra=_ANY_NAMES)
    add_edge: (
        Annotated[
            tuple[Any, ...],
            _shape(3, '[subject, predicate, object], or these and {attribute: value}', 'may'),
        ]
        | None
    ) = Field(None, json_schema_extra=_ANY_NAMES)
    remove_edge: tuple[Text, Text, Text] | None = None

    @model_validator(mode='before')
    @classmethod
    def _one_operation(cls, data: Any) -> Any:
        """Ask for one operation before it is looked into; an unknown key is reported as such."""
        if isinstance(data, dict):
            given = [op for op in EFFECT_OPS if data.get(op) is not None]
            mistyped = not given and data.keys() - cls.model_fields.keys()
            if len(given) != 1 and not mistyped:
                found = ' and '.join(given) or 'none'
                raise ValueError(f'expected exactly one of {", ".join(EFFECT_OPS)}, found {found}')
        return data

    @property
    def op(self) -> EffectOp:
        """Which of the operations it is."""
        return next(op for op in EFFECT_OPS if getattr(self, op) is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The name of the node, or subject, predicate and object of the edge."""
        return tuple(item for item in getattr(self, self.op) if isinstance(item, str))

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes; empty if there are none."""
        last = getattr(self, self.op)[-1]
        return dict(last) if isinstance(last, dict) else {}

    def texts(self) -> Iterator[str]:
        """Every text that may hold placeholders: the names and the attributes' values."""
        yield from self.names
        for value in self.attributes.values():
            if isinstance(value, str):
                yield value
