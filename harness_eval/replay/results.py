"""What a replay gives, and what numbers, comparisons and reports are made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
import json
import os
from pathlib import Path
from typing import Any

from harness_eval.contract import EvaluationError
from harness_eval.runs import Completion, Outcome

RESULTS_VERSION = 1


class ResultsError(EvaluationError):
    """A file of results cannot be read."""


@dataclass(frozen=True)
class Truth:
    """Whether a segment really achieved what it was asked to do.

    Attributes:
        correct: It did.
        source: Who says so: ``label`` (a person) or ``oracle``.
        note: What the person wrote beside it.
    """

    correct: bool
    source: str
    note: str = ''


@dataclass(frozen=True)
class Result:
    """One judged segment.

    Attributes:
        source: Name of the case or bag that it comes from, without more folders than tell it
            apart from the others.
        completion: What was reported.
        outcome: What its evaluation came to, this time.
        recorded: The outcome on record in the source, if there is one.
        truth: What really happened, if somebody knows.
        seconds: Wall-clock seconds that judging it took; NaN: it was not judged, only read.
        case: Folder of the case with its frames; None: they were not kept.
    """

    source: str
    completion: Completion
    outcome: Outcome
    recorded: Outcome | None = None
    truth: Truth | None = None
    seconds: float = float('nan')
    case: Path | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        """What makes it the same segment in two replays: source, run id, number."""
        return self.source, self.completion.run_id, self.completion.segment


@dataclass(frozen=True)
class Skipped:
    """A source, or a part of one, that could not be judged.

    Attributes:
        source: Its name, as of a :class:`Result`.
        kind: Machine-readable name of the reason.
        message: For a person: what was found, and what to do.
    """

    source: str
    kind: str
    message: str


@dataclass(frozen=True)
class Metric:
    """The output of a tool's report that tells how well the tool did.

    Attributes:
        name: Key of the output.
        goal: ``maximize`` or ``minimize``; a boolean counts as 1 and 0.
        scale: The difference that counts as 1, above 0, in the unit of the output.
    """

    name: str
    goal: str = 'maximize'
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.goal not in ('maximize', 'minimize') or not 0.0 < self.scale < float('inf'):
            raise ValueError(f'goal {self.goal!r} with scale {self.scale!r} is no metric')


@dataclass(frozen=True)
class Replayed:
    """All that came of a replay, in order of the sources and of their completions.

    Attributes:
        results: The judged segments.
        skipped: What could not be judged.
        config: Base name of the configuration; empty: outcomes as they were recorded.
        metrics: By which output of its report each tool is compared, of those that name one.
    """

    results: tuple[Result, ...]
    skipped: tuple[Skipped, ...] = ()
    config: str = ''
    versions: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)

    def to_json(self, folder: Path) -> str:
        """The results as JSON.

        Args:
            folder: Where the text will lie; cases are named relative to it, so that the whole can
                be moved and no path of the machine is told.
        """
        data = {
            'version': RESULTS_VERSION,
            'config': self.config,
            'versions': dict(self.versions),
            'metrics': {tool: asdict(metric) for tool, metric in self.metrics.items()},
            'results': [_plain(result, folder) for result in self.results],
            'skipped': [asdict(one) for one in self.skipped],
        }
        return json.dumps(data, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str, folder: Path) -> Replayed:
        """The results that :meth:`to_json` wrote.

        Args:
            text: The JSON.
            folder: Where it lies.

        Raises:
            ResultsError: It is none of ours.
        """
        try:
            data = json.loads(text)
            if data['version'] != RESULTS_VERSION:
                raise ValueError(f'version {data["version"]!r}, {RESULTS_VERSION} is known')
            return cls(
                results=tuple(_result(one, folder) for one in data['results']),
                skipped=tuple(Skipped(**one) for one in data['skipped']),
                config=str(data['config']),
                versions=dict(data['versions']),
                metrics={tool: Metric(**one) for tool, one in data.get('metrics', {}).items()},
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ResultsError(
                'not_results', f'this is no file of results of harness-eval replay: {error}'
            ) from error


def _plain(result: Result, folder: Path) -> dict[str, Any]:
    known = result.seconds == result.seconds
    return {
        'source': result.source,
        'completion': asdict(result.completion),
        'outcome': json.loads(result.outcome.to_json()),
        'recorded': None if result.recorded is None else json.loads(result.recorded.to_json()),
        'truth': None if result.truth is None else asdict(result.truth),
        'seconds': result.seconds if known else None,
        'case': None if result.case is None else os.path.relpath(result.case, folder),
    }


def _result(data: Mapping[str, Any], folder: Path) -> Result:
    completion = dict(data['completion'])
    completion['arguments'] = tuple((name, value) for name, value in completion['arguments'])
    recorded = data['recorded']
    return Result(
        source=str(data['source']),
        completion=Completion(**completion),
        outcome=Outcome.from_json(json.dumps(data['outcome'])),
        recorded=None if recorded is None else Outcome.from_json(json.dumps(recorded)),
        truth=None if data['truth'] is None else Truth(**data['truth']),
        seconds=float('nan') if data['seconds'] is None else float(data['seconds']),
        case=None if data['case'] is None else folder / data['case'],
    )


def count_verdicts(results: Iterable[Result]) -> dict[str, int]:
    """How many results came to what: ``success``, ``failure``, ``process``, ``error`` …."""
    counts: dict[str, int] = {}
    for result in results:
        verdict = result.outcome.verdict
        name = result.outcome.kind.value if verdict is None else verdict.status.value
        counts[name] = counts.get(name, 0) + 1
    return counts
