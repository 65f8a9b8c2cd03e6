"""A segment under evaluation, and the steps that spawned threads do for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness_eval.capture import Capture, StreamSpec
from harness_eval.contract import EvaluationError, EvaluationRequest, Observation
from harness_eval.pipeline.effects import Guarded
from harness_eval.pipeline.oracles import Question
from harness_eval.reported_calls import Cancellable
from harness_eval.runs import Key, Segment
from harness_eval.scene_graph import Op

STEP_TIMEOUT = 30.0
"""Seconds until a step on a spawned thread counts as hanging (a disk that does not answer)."""


def _hanging(kind: str, what: str) -> EvaluationError:
    return EvaluationError(
        kind,
        f'{what} has taken more than {STEP_TIMEOUT:g} s; is the disk of evidence_dir alive?',
        retryable=True,
    )


WRITING = _hanging('evidence_not_stored', 'writing the evidence')
READING = _hanging('evidence_not_read', 'reading the stored evidence')
PREPARING = _hanging('question_not_made', 'making the question from the evidence')


@dataclass(eq=False)
class Step:
    """Work for a segment on a spawned thread. Times are steady seconds.

    Attributes:
        error: What the segment ends in if the thread does not come back.
        asked: When it was asked for.
        begun: When a thread began with it; None: it waits for one.
    """

    error: EvaluationError
    asked: float
    begun: float | None = None


@dataclass(eq=False)
class Active:
    """A segment under evaluation. Its identity tells late answers from current ones.

    ``step`` is what it waits for on a spawned thread, and ``preparing`` the making of the question
    meanwhile. ``question`` is what the judge is to be asked, and ``ending`` what its making led to
    instead; both wait until the evidence is written, since without that no judge is asked.
    """

    segment: Segment
    effects: tuple[Op, ...] = ()
    capture: Capture | None = None
    streams: tuple[StreamSpec, ...] = ()
    step: Step | None = None
    preparing: Step | None = None
    question: EvaluationRequest | None = None
    ending: EvaluationError | None = None
    call: Cancellable | None = None
    evaluator: str = ''
    digest: str = ''
    observed: tuple[int, int] = (0, 0)
    observation: Observation | None = None
    oracle: Question | None = None

    @property
    def key(self) -> Key:
        """Its run id and number."""
        return self.segment.completion.key

    @property
    def is_being_written(self) -> bool:
        """Whether a thread is writing its evidence."""
        return self.step is not None and self.step.error is WRITING


class Steps:
    """Has threads do steps, and knows which of them hang.

    Args:
        effects: The world around.
    """

    def __init__(self, effects: Guarded) -> None:
        self._effects = effects
        self._moved = 0.0  # steady seconds when a thread last began or ended a step

    def spawn(self, error: EvaluationError, work: Callable[[], None]) -> Step:
        """Have a thread do a step, which is given up if it hangs."""
        step = Step(error, self._effects.steady_now())

        def run() -> None:
            step.begun = self._moved = self._effects.steady_now()
            try:
                work()
            finally:
                self._moved = self._effects.steady_now()

        self._effects.spawn(run)
        return step

    def deadline(self, step: Step) -> float:
        """Steady seconds when a step counts as hanging.

        One that waits for a thread does not, as long as other steps go on: after a burst of runs
        the last of them wait for longer than each takes.
        """
        since = max(step.asked, self._moved) if step.begun is None else step.begun
        return since + STEP_TIMEOUT
