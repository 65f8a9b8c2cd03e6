"""What the pipeline says: outcomes of what is not on record, steps, and counts."""

from __future__ import annotations

import logging

from harness_eval.config import Config
from harness_eval.contract import EvaluationError, Verdict
from harness_eval.pipeline.effects import Guarded
from harness_eval.runs import Completion, Outcome, outcome_of, printable, Segment
from harness_eval.stages import Event, Stage

log = logging.getLogger('harness_eval.pipeline')

MAX_COUNTED = 100
"""Most things that are counted apart; the others are counted together."""
MAX_NAME = 256
"""Most characters of a name that is repeated in an answer."""


class Answers:
    """Answers that need no record.

    Args:
        config: The whole configuration.
        effects: The world around.

    Attributes:
        counts: How often what happened, for diagnostics.
    """

    def __init__(self, config: Config, effects: Guarded) -> None:
        self._config = config
        self._effects = effects
        self.counts: dict[str, int] = {}

    def refuse(self, completion: Completion, error: EvaluationError, receipt: int) -> Outcome:
        """Answer a completion that cannot be put on record with an error, and publish that."""
        self.count('refused')
        outcome = self.unrecorded_answer(completion, error, receipt)
        log.warning('run %r: %s: %s', outcome.run_id, error.kind, error.message)
        self._effects.outcome(outcome)
        return outcome

    def unrecorded_answer(
        self, completion: Completion, error: EvaluationError, receipt: int
    ) -> Outcome:
        """The answer to a completion that is not taken."""
        cut = Completion(
            printable(completion.run_id, MAX_NAME),
            printable(completion.tool, MAX_NAME),
            completion.segment,
            completion.stamp,
        )
        return self.outcome(Segment(cut, order=0, receipt=receipt, attempt=0), error)

    def outcome(
        self,
        segment: Segment,
        answer: Verdict | EvaluationError,
        *,
        evaluator: str = '',
        input_digest: str = '',
        observed: tuple[int, int] = (0, 0),
    ) -> Outcome:
        """The outcome of a segment, decided now, from what its evaluation gave."""
        return outcome_of(
            answer,
            segment,
            decided_at=self._effects.ros_now(),
            max_segments=self._config.evaluation.max_segments,
            evaluator=evaluator,
            input_digest=input_digest,
            observed=observed,
        )

    def reject(self, completion: Completion, detail: str) -> None:
        """Show that a completion was not taken."""
        self.count('rejected')
        self._effects.event(
            Event(
                printable(completion.run_id, MAX_NAME),
                printable(completion.tool, MAX_NAME),
                completion.segment,
                Stage.REJECTED,
                self._effects.ros_now(),
                detail,
            )
        )

    def show(self, segment: Segment, stage: Stage, detail: str = '') -> None:
        """Show a step."""
        completion = segment.completion
        self._effects.event(
            Event(
                completion.run_id,
                completion.tool,
                completion.segment,
                stage,
                self._effects.ros_now(),
                detail,
            )
        )

    def count(self, what: str) -> None:
        """Count something for diagnostics."""
        known = what in self.counts or len(self.counts) < MAX_COUNTED
        name = what if known else 'others'  # judges may make up kinds without end
        self.counts[name] = self.counts.get(name, 0) + 1
