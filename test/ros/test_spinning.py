"""Spinning goes on after a fault of a callback, and ends when the context has ended."""

from __future__ import annotations

from typing import Any

import pytest
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor

from harness_eval.ros.spinning import spin_on


class Faulty(SingleThreadedExecutor):
    """Raises in each look for a callback; shuts its context down first at the last."""

    def __init__(self, context: Any, faults: int) -> None:
        super().__init__(context=context)
        self._faults = faults

    def spin(self) -> None:
        self._faults -= 1
        if self._faults == 0:
            self.context.shutdown()
        raise RuntimeError('the wait set is gone')


def test_a_fault_is_told_and_the_end_of_the_context_is_no_fault(ros: Any) -> None:
    told: list[BaseException] = []
    with pytest.raises(ExternalShutdownException):
        spin_on(Faulty(ros.context, faults=3), told.append)
    assert [str(fault) for fault in told] == ['the wait set is gone'] * 2
