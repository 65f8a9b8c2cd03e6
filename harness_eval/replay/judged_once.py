"""The segments of cases and bags: listed at once, judged when somebody first asks for one.

Listing reads completions and no picture. Judging one segment judges what has to be judged with it
(segments of its run, runs whose evidence may overlap) and nothing else; what was judged is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
import json
from pathlib import Path

from harness_eval.cases import CASE_FILE
from harness_eval.config import Config
from harness_eval.contract import EvaluationError
from harness_eval.lines import clean_line, describe
from harness_eval.replay.answers import Answers
from harness_eval.replay.bags import decoder_for, open_bag, read_completions
from harness_eval.replay.case_labels import read_labelled_case
from harness_eval.replay.label_file import read_labels
from harness_eval.replay.labels import assign
from harness_eval.replay.recorded import recorded_outcomes
from harness_eval.replay.results import Result, Skipped, Truth
from harness_eval.replay.sources import BagSource, CaseSource, find_sources, Source
from harness_eval.replay.task import bundles, How, judge, Run, Task
from harness_eval.runs import Completion, printable

_SHOWN = 80
"""Characters of a run id in a name."""


@dataclass(frozen=True)
class Listed:
    """A segment that can be judged.

    Attributes:
        source: Where it comes from.
        completion: What was reported.
        name: Names it within its source, in one printable line.
        place: Its place among all that is listed.
        receipt: Nanoseconds of the receipt of the completion; 0 for a case.
        truth: What really happened, if somebody knows.
    """

    source: Source
    completion: Completion
    name: str
    place: int
    receipt: int = 0
    truth: Truth | None = None


@dataclass(frozen=True)
class Unlisted:
    """A source, or something of one, that cannot be read.

    Attributes:
        source: Where it comes from; None: nothing was found.
        name: Names it within its source.
        kind: Machine-readable name of the reason.
        message: For a person.
    """

    source: Source | None
    name: str
    kind: str
    message: str


class JudgedOnce:
    """Segments with their truth, each judged at most once.

    Args:
        config: What they are judged by.
        sources: Cases and bags, each a path or a glob.
        labels: CSV file of labels; None: there is none.
        answers: ``recorded``: models and services are not asked again; ``live``: they are.

    Attributes:
        listed: The segments, in order of the sources and of their completions.
        unlisted: What cannot be read.

    Raises:
        EvaluationError: The labels cannot be used.
    """

    def __init__(
        self, config: Config, sources: Sequence[str], labels: Path | None, answers: Answers
    ) -> None:
        self._how = How(config, answers=answers)
        self._judged: dict[int, Result | Skipped] = {}
        self._tasks: dict[int, Task] = {}
        found, skipped = find_sources(sources)
        self.unlisted = [Unlisted(None, one.source, one.kind, one.message) for one in skipped]
        self.listed: list[Listed] = []
        for source in found:
            try:
                self.listed += self._list(source)
            except EvaluationError as error:
                self.unlisted.append(Unlisted(source, 'unreadable', error.kind, error.message))
        if labels is not None:
            self._label(labels)

    def judged(self, one: Listed) -> Result | Skipped:
        """What a segment came to; it is judged now unless it was before."""
        if one.place not in self._judged:
            self._judged.update(judge(self._task(one)))
        found = self._judged.setdefault(
            one.place,
            Skipped(one.source.name, 'not_judged', f'nothing came of judging {one.name}'),
        )
        if isinstance(found, Result) and one.truth is not None:
            return replace(found, truth=one.truth)
        return found

    def _task(self, one: Listed) -> Task:
        if isinstance(one.source, CaseSource):
            return Task(self._how, cases=((one.place, one.source),))
        if one.place not in self._tasks:
            self._divide(one.source)
        return self._tasks[one.place]

    def _divide(self, source: BagSource) -> None:
        """Find what has to be judged together in a bag."""
        runs = [
            Run(one.place, one.completion, one.receipt)
            for one in self.listed
            if one.source == source
        ]
        with open_bag(source) as bag:
            recorded = recorded_outcomes(bag, decoder_for(bag)[0])
        for bundle in bundles(runs, self._how.config):
            task = Task(self._how, bag=source, runs=tuple(bundle), recorded=recorded)
            self._tasks.update((run.place, task) for run in bundle)

    def _list(self, source: Source) -> Iterator[Listed]:
        completions = (
            [_completion_of(source)]
            if isinstance(source, CaseSource)
            else list(self._completions(source))
        )
        required = self._how.config.evaluation.required_tools
        names: Counter[str] = Counter()
        place = len(self.listed)
        for completion, receipt, truth in completions:
            if completion.tool not in required:
                continue
            name = f'{printable(completion.run_id, _SHOWN)}:{completion.segment}'
            names[name] += 1
            if names[name] > 1:
                name = f'{name}#{names[name]}'
            yield Listed(source, completion, name, place, receipt, truth)
            place += 1

    def _completions(self, source: BagSource) -> Iterator[tuple[Completion, int, Truth | None]]:
        try:
            with open_bag(source) as bag:
                decoder, _ = decoder_for(bag)
                found, notes = read_completions(bag, self._how.config, decoder)
                notes = [*bag.skipped, *notes]
        except EvaluationError:
            raise
        except Exception as error:  # a bag may be broken in ways that nobody has thought of
            raise EvaluationError('bag_damaged', clean_line(describe(error), 200)) from error
        if not found:
            said = (
                '; '.join(note.message for note in notes) or 'nothing in it says that a run ended'
            )
            raise EvaluationError('no_completions', f'{source.name} has no completions: {said}')
        # One bag need not hold every source of completions that the configuration knows.
        notes = [note for note in notes if note.kind != 'no_such_topic']
        for number, note in enumerate(notes, start=1):
            name = f'{note.kind}#{number}' if number > 1 else note.kind
            self.unlisted.append(Unlisted(source, name, note.kind, note.message))
        seen: set[tuple[str, int, str]] = set()
        for completion, receipt in found:
            identity = completion.run_id, completion.segment, completion.fingerprint
            if identity not in seen:  # the same again gets the same answer
                seen.add(identity)
                yield completion, receipt, None

    def _label(self, path: Path) -> None:
        keys = [
            (one.source.name, one.completion.run_id, one.completion.segment) for one in self.listed
        ]
        found, _ = assign(read_labels(path), keys)
        self.listed = [
            replace(one, truth=found[place].truth) if place in found else one
            for place, one in enumerate(self.listed)
        ]


def _completion_of(source: CaseSource) -> tuple[Completion, int, Truth | None]:
    """The completion and the truth of a case; its frames are not looked at."""
    truth = read_labelled_case(source.path).truth
    try:
        data = json.loads((source.path / CASE_FILE).read_text('utf-8'))['completion']
        arguments = tuple((str(name), str(value)) for name, value in data['arguments'])
        return Completion(**{**data, 'arguments': arguments}), 0, truth
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EvaluationError(
            'evidence_lost', f'{CASE_FILE} of {source.name} is damaged: {describe(error)}'
        ) from error
