"""What an evaluator is made with besides its own settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TYPE_CHECKING

from harness_eval.contract import Evaluator, EvaluatorError
from harness_eval.judging import Thresholds

if TYPE_CHECKING:
    from harness_eval.calls import JudgeCalls

DEFAULT_THRESHOLDS = Thresholds()

RosService = Callable[..., Any]
"""How a ROS 2 service is called; only a node can hand one in."""


def _nobody(name: str) -> Any:
    raise EvaluatorError(
        'unknown_evaluator', f'there is no evaluator {name!r} beside the one that names it'
    )


@dataclass(frozen=True)
class EvaluatorContext:
    """What the builder of an evaluator may use.

    Attributes:
        thresholds: Where a score becomes a verdict.
        member: The evaluator of a name, as it is: nothing limits a call to it.
        calls: The same behind its calls: with its own deadline, limits and settings, which all
            that ask it share.
        ros_service: Calls a ROS 2 service; ``None`` where there is no node.
    """

    thresholds: Thresholds = DEFAULT_THRESHOLDS
    member: Callable[[str], Evaluator] = _nobody
    calls: Callable[[str], JudgeCalls] = _nobody
    ros_service: RosService | None = None
