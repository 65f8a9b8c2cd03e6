"""The evaluator node, with a watch on what a run spends its time on.

Capture, the storage of evidence and the judge are wrapped from outside; the node itself is the
one that is installed. When it is asked to end, it writes a line ``record`` with what it saw as
JSON: lists of intervals in monotonic nanoseconds.
"""

from __future__ import annotations

from collections.abc import Callable
import json
import sys
import time
from typing import Any

from benchmarks.nodes import judge
from harness_eval.capture import Capture, Captured, TopicFacts
from harness_eval.cases import CaseStore
from harness_eval.pipeline import captures as waits
from harness_eval.ros import evaluator_node
from harness_eval.runs import Segment

captures: list[dict[str, int]] = []
stores: list[tuple[int, int]] = []


class ObservedCapture(Capture):
    """Notes when the wait for frames began, when it was over, and what was chosen."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Begin the wait."""
        self._began = time.monotonic_ns()
        super().__init__(*arguments, **options)

    def poll(
        self, ros_now: int, wall_now: float, facts: Callable[[str], TopicFacts]
    ) -> Captured | None:
        """Look whether the observation is complete at this time."""
        return self._note(super().poll(ros_now, wall_now, facts))

    def found(self) -> Captured | None:
        """Look whether the frames alone have completed the observation."""
        return self._note(super().found())

    def _note(self, captured: Captured | None) -> Captured | None:
        if captured is not None:
            captures.append(
                {
                    'began': self._began,
                    'ended': time.monotonic_ns(),
                    'opens': self._window.opens,
                    'decided': time.time_ns(),
                }
            )
        return captured


def _observe_stores() -> None:
    write = CaseStore.write

    def observed(self: CaseStore, segment: Segment, captured: Captured) -> str:
        began = time.monotonic_ns()
        try:
            return write(self, segment, captured)
        finally:
            stores.append((began, time.monotonic_ns()))

    setattr(CaseStore, 'write', observed)  # noqa: B010


def main() -> int:
    """Run the node and say when it became active and, at its end, what was seen."""
    judge.collect = True
    setattr(waits, 'Capture', ObservedCapture)  # noqa: B010 - a name of that module
    _observe_stores()
    activate = evaluator_node.EvaluatorNode._activate

    def observed(node: evaluator_node.EvaluatorNode) -> None:
        activate(node)
        print(f'active {time.monotonic_ns()}', flush=True)

    setattr(evaluator_node.EvaluatorNode, '_activate', observed)  # noqa: B010
    code = evaluator_node.main(sys.argv)
    record = {'captures': captures, 'stores': stores, 'judges': judge.calls}
    print(f'record {json.dumps(record)}', flush=True)
    return code


if __name__ == '__main__':
    sys.exit(main())
