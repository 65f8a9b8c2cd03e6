"""The parameters of the scene graph's node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rcl_interfaces.msg import ParameterDescriptor

from harness_eval.contract import HarnessEvalError
from harness_eval.initial_graph import InitialGraphError, read_initial_graph
from harness_eval.scene_graph import Op

LONGEST = 1e9
"""Seconds; a longer time is a mistake of units."""


class ParameterError(HarnessEvalError):
    """A parameter has a value that means nothing."""


def initial_graph(node: Any) -> tuple[Op, ...]:
    """Declare ``initial_graph`` and read the file that it names.

    Args:
        node: The node that gets the parameter.

    Returns:
        Operations that make the graph at revision 0.

    Raises:
        InitialGraphError: The file cannot be read or is no graph.
    """
    descriptor = ParameterDescriptor(
        description='Path of a YAML file with the nodes and edges of every graph at revision 0; '
        'empty: none',
        read_only=True,
    )
    path = node.declare_parameter('initial_graph', '', descriptor).value
    if not path:
        return ()
    name = Path(path).name
    try:
        text = Path(path).expanduser().read_text(encoding='utf-8')
    except (OSError, ValueError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else 'it is not UTF-8 text'
        raise InitialGraphError(f'initial_graph: {name} cannot be read: {why}') from None
    return read_initial_graph(text, name)


def asking_seconds(node: Any, name: str, default: float, what: str) -> float:
    """Declare a time about the questions to ``scene_graph/get_updates``.

    Args:
        node: The node that gets the parameter.
        name: Its name.
        default: Seconds.
        what: What the time is, for the description.

    Raises:
        ParameterError: It is not a number of seconds, 0 or more.
    """
    descriptor = ParameterDescriptor(
        description=f'Asking scene_graph/get_updates: seconds {what}',
        read_only=True,
        # So that 5 is as good as 5.0.
        dynamic_typing=True,
    )
    value = node.declare_parameter(name, default, descriptor).value
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0.0 <= value <= LONGEST:
        raise ParameterError(f'{name}: expected seconds, 0 or more, found {value!r}')
    return float(value)
