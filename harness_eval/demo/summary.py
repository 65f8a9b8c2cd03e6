"""What the demo writes down: every judged segment beside the truth, and whether they agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
import json
from pathlib import Path
from typing import Any, Final

from harness_eval.contract import Status
from harness_eval.demo.faults import Fault
from harness_eval.runs import Outcome, OutcomeKind

Relation = tuple[str, str, str]

NO_JUDGEMENT: Final = (OutcomeKind.ERROR, OutcomeKind.ABSTAINED)
"""What a spoilt view must end in."""


@dataclass(frozen=True)
class Row:
    """One judged segment.

    Attributes:
        number: Of the run in the demo, from 1.
        fault: What the player made go wrong.
        outcome: What the evaluator said.
        truth: What the simulator knows.
        latency: Seconds from the end of the execution to the outcome's arrival at the player.
    """

    number: int
    fault: Fault
    outcome: Outcome
    truth: Status
    latency: float

    @property
    def answer(self) -> str:
        """The status of the verdict, or the kind of outcome that is not one."""
        verdict = self.outcome.verdict
        return self.outcome.kind.value if verdict is None else verdict.status.value

    @property
    def kind(self) -> str:
        """The kind of failure, error or abstention; empty for success and process."""
        verdict = self.outcome.verdict
        return self.outcome.error_kind if verdict is None else verdict.failure_kind

    @property
    def evidence(self) -> tuple[str, ...]:
        """What was seen, or why nothing could be said."""
        verdict = self.outcome.verdict
        return (self.outcome.message,) if verdict is None else verdict.evidence

    @property
    def spread(self) -> float | None:
        """Seconds between the first and the last stamp that was used; None if none was."""
        outcome = self.outcome
        if not outcome.observed_from:
            return None
        return (outcome.observed_to - outcome.observed_from) / 1e9

    @property
    def agrees(self) -> bool:
        """Whether the outcome is what it had to be.

        A run whose views were spoilt must end without a verdict; any other verdict must be the
        truth.
        """
        if self.fault.spoils_view:
            return self.outcome.kind in NO_JUDGEMENT
        verdict = self.outcome.verdict
        return verdict is not None and verdict.status is self.truth

    def as_json(self) -> dict[str, Any]:
        """The row as plain values."""
        spread = self.spread
        return {
            'run_id': self.outcome.run_id,
            'tool': self.outcome.tool,
            'segment': self.outcome.segment,
            'fault': self.fault.value,
            'status': self.answer,
            'kind': self.kind,
            'truth': self.truth.value,
            'agrees': self.agrees,
            'evidence': list(self.evidence),
            'spread': None if spread is None else round(spread, 4),
            'latency': round(1000 * self.latency, 1),
        }


@dataclass(frozen=True)
class GraphEnd:
    """The scene graph when the demo is over.

    Attributes:
        revision: Released updates that it holds.
        nodes: Attributes by name of the node.
        relations: What it says.
        truth: What the simulator knows.
    """

    revision: int
    nodes: dict[str, dict[str, str]]
    relations: frozenset[Relation]
    truth: frozenset[Relation]

    def agrees(self, rows: Iterable[Row]) -> bool:
        """Whether it says what is so, and was changed once by each success and by nothing else."""
        successes = sum(row.answer == Status.SUCCESS.value for row in rows)
        return self.relations == self.truth and self.revision == successes


def agreement(rows: Sequence[Row], graph: GraphEnd) -> dict[str, Any]:
    """How far the evaluator and the truth agree, as plain values."""
    disagreeing = [row for row in rows if not row.agrees]
    return {
        'segments': len(rows),
        'agreeing': len(rows) - len(disagreeing),
        'false_successes': sum(row.answer == Status.SUCCESS.value for row in disagreeing),
        'outcomes': dict(Counter(row.answer for row in rows)),
        'spoilt_views': sum(row.fault.spoils_view for row in rows),
        'scene_graph': graph.agrees(rows),
        'all': not disagreeing and graph.agrees(rows),
    }


def write_summary(
    folder: Path, rows: Sequence[Row], graph: GraphEnd, *, seed: int, seconds: float
) -> Path:
    """Write ``summary.json`` into the folder.

    Args:
        folder: Exists.
        rows: All judged segments, in order.
        graph: The scene graph at the end.
        seed: That the demo was played with.
        seconds: That it took.

    Returns:
        The file.
    """
    path = folder / 'summary.json'
    document = {
        'seed': seed,
        'seconds': round(seconds, 1),
        'runs': [row.as_json() for row in rows],
        'scene_graph': {
            'revision': graph.revision,
            'nodes': graph.nodes,
            'edges': sorted(graph.relations),
            'truth': sorted(graph.truth),
        },
        'agreement': agreement(rows, graph),
        'units': {'spread': 'seconds', 'latency': 'milliseconds'},
    }
    path.write_text(json.dumps(document, indent=2) + '\n', encoding='utf-8')
    return path
