"""What a tool's success does to the scene graph: ``on_success`` turned into operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TYPE_CHECKING

from harness_eval.scene_graph_ops import Op, OpKind

if TYPE_CHECKING:
    from harness_eval.config.effects import EffectSettings


def effect_ops(effects: Sequence[EffectSettings], arguments: Mapping[str, str]) -> tuple[Op, ...]:
    """Turn a tool's ``on_success`` into operations.

    Do this when the completion arrives: an argument that makes no name is then an error of the
    run, and never of a success already decided.

    Args:
        effects: The effects of the configuration, in order.
        arguments: The declared arguments of the run, for the placeholders in names and values.

    Returns:
        The operations, in order. Numbers and booleans among the values become text as YAML
        writes them: ``3``, ``0.5``, ``true``.

    Raises:
        EvaluationError: An argument is missing or too long.
        ValueError: A name is not valid once its placeholders are filled.
    """
    return tuple(_effect_op(index, effect, arguments) for index, effect in enumerate(effects))


def _effect_op(index: int, effect: EffectSettings, arguments: Mapping[str, str]) -> Op:
    # Here and not above: the scene graph's own node needs none of the configuration's libraries.
    from harness_eval.config.placeholders import fill_placeholders

    names = [fill_placeholders(name, arguments) for name in effect.names]
    subject, predicate, end, *_ = [*names, '', '']
    attributes = tuple(
        (key, fill_placeholders(value, arguments) if isinstance(value, str) else _written(value))
        for key, value in effect.attributes.items()
    )
    try:
        return Op(OpKind(effect.op), subject, predicate, end, attributes)
    except ValueError as error:
        raise ValueError(f'on_success[{index}]: {error}') from None


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return 'true' if value else 'false'
    return repr(value)
