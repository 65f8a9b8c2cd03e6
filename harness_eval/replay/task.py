"""What one worker judges: a few cases, or a few runs of a bag. It can be sent to any process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
import logging
from pathlib import Path

from harness_eval.config import Config
from harness_eval.contract import EvaluationError
from harness_eval.replay.answers import Answers, Recorded
from harness_eval.replay.bags import open_bag
from harness_eval.replay.judges import AskedJudges
from harness_eval.replay.player import Played, Player
from harness_eval.replay.recorded import bag_decoder, Key
from harness_eval.replay.results import Skipped
from harness_eval.replay.sources import BagSource, CaseSource
from harness_eval.replay.stored_cases import read_without_frames, StoredCases
from harness_eval.runs import Completion, INTERNAL_ERROR, internal_error, Outcome, printable
from harness_eval.times import nanoseconds

log = logging.getLogger('harness_eval.replay')


@dataclass(frozen=True)
class How:
    """How sources are judged.

    Attributes:
        config: The whole configuration.
        answers: ``live``: every evaluator is asked; ``recorded``: models and services are not, and
            what they answered then is given again.
        keep: Folder that new cases are kept in; None: none are.
        namespace: Namespace of the node that took the evidence; None: the root for bags,
            whichever it was for cases.
        album: Folder in which the frames of bags are kept if ``keep`` is None, for a report.
        scratch: Folder for what is temporary, which somebody deletes even if a worker is killed.
    """

    config: Config
    answers: Answers = 'live'
    keep: Path | None = None
    namespace: str | None = None
    album: Path | None = None
    scratch: Path | None = None


@dataclass(frozen=True)
class Run:
    """A completion in a bag.

    Attributes:
        place: Where its result belongs among all.
        completion: What was reported.
        receipt: Nanoseconds of its receipt.
    """

    place: int
    completion: Completion
    receipt: int


@dataclass(frozen=True)
class Task:
    """What one worker judges without a pause.

    Attributes:
        how: How it is judged.
        cases: Cases, each with the place of its result.
        bag: The bag of ``runs``.
        runs: Runs of the bag, in order of receipt.
        recorded: Outcomes of these runs that the bag carries.
    """

    how: How
    cases: tuple[tuple[int, CaseSource], ...] = ()
    bag: BagSource | None = None
    runs: tuple[Run, ...] = ()
    recorded: Mapping[Key, Outcome] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many segments it judges."""
        return len(self.cases) + len(self.runs)

    def parts(self) -> list[Task]:
        """The same as tasks that cannot be divided any more: a case, or the segments of a run."""
        cases = [replace(self, cases=(one,), bag=None, runs=()) for one in self.cases]
        bags = [tuple(one) for one in bundles(self.runs, self.how.config, overlapping=False)]
        return cases + [replace(self, cases=(), runs=runs) for runs in bags]

    def skipped(self, kind: str, message: str) -> list[tuple[int, Played]]:
        """Every segment of it as not judged, for a reason that begins with what it is about."""
        found: list[tuple[int, Played]] = [
            (place, Skipped(case.name, kind, f'{case.name}: {message}'))
            for place, case in self.cases
        ]
        source = '' if self.bag is None else self.bag.name
        for run in self.runs:
            name = f'run {printable(run.completion.run_id, 80)!r} of {source}'
            found.append((run.place, Skipped(source, kind, f'{name}: {message}')))
        return found


def bundles(runs: Sequence[Run], config: Config, *, overlapping: bool = True) -> list[list[Run]]:
    """Divide the runs of a bag so that what belongs together stays together.

    Runs whose evidence may overlap are judged in one pass, as live; all segments of a run are too.
    Only the latter need each other: what one run comes to never depends on another one.

    Args:
        runs: In order of receipt.
        config: Says how long evidence is waited for.
        overlapping: Keep runs together whose evidence may overlap.
    """
    wait = nanoseconds(config.capture.settle + config.capture.timeout)
    found: list[tuple[int, set[str], list[Run]]] = []
    for run in runs:
        end = max(run.receipt, run.completion.stamp) + wait
        names = {run.completion.run_id}
        joined = [run]
        rest = []
        for other in found:
            if (overlapping and other[0] >= run.receipt) or other[1] & names:
                end = max(end, other[0])
                names |= other[1]
                joined = other[2] + joined
            else:
                rest.append(other)
        found = [*rest, (end, names, joined)]
    together = [sorted(part, key=lambda run: run.place) for _, _, part in found]
    return sorted(together, key=lambda part: part[0].place)


def judge(task: Task) -> list[tuple[int, Played]]:
    """Judge everything of a task; nothing but a fault of ours is raised."""
    return list(judged(task))


def judged(task: Task) -> Iterator[tuple[int, Played]]:
    """Judge a task; yields the place and what became of it, as soon as it is known.

    Raises:
        EvaluatorError: An evaluator cannot be made.
    """
    how = task.how
    tools = {run.completion.tool for run in task.runs}
    for _, case in task.cases:
        with suppress(EvaluationError):  # it is told when it is read whole
            tools.add(read_without_frames(case.path).completion.tool)
    keep = how.keep if task.bag is None else how.keep or how.album
    with (
        AskedJudges(how.config, how.answers, tools) as judges,
        Player(
            how.config,
            judges.by_name,
            keep=keep,
            namespace=how.namespace,
            scratch=how.scratch,
        ) as player,
    ):
        stored = StoredCases()
        for place, source in task.cases:
            yield place, _case(player, judges, source, stored)
        if task.bag is not None and task.runs:
            yield from _runs(player, judges, task, task.bag)


def _case(player: Player, judges: AskedJudges, source: CaseSource, stored: StoredCases) -> Played:
    try:
        case, decoder = stored.read(source.path)
        judges.know([] if case.outcome is None else [Recorded(case.outcome, case.thresholds)])
        return player.play_case(source.name, source.path, case, decoder)
    except EvaluationError as error:
        return Skipped(source.name, error.kind, error.message)
    except Exception as error:
        log.exception('a fault in judging the case %s; others go on', source.name)
        player.begin_anew()
        return Skipped(source.name, INTERNAL_ERROR, internal_error(error).message)


def _runs(
    player: Player, judges: AskedJudges, task: Task, source: BagSource
) -> Iterator[tuple[int, Played]]:
    judges.know([Recorded(outcome) for outcome in task.recorded.values()])
    left = {run.place: run for run in task.runs}
    fault = None
    try:
        with open_bag(source) as bag:
            completions = [(run.completion, run.receipt) for run in task.runs]
            decoder = bag_decoder(bag)
            for number, played in player.play_bag(
                source.name, bag, completions, decoder, task.recorded
            ):
                place = task.runs[number].place
                yield place, played
                del left[place]
            for note in bag.skipped:
                yield task.runs[-1].place, note
    except EvaluationError as error:
        fault = error.kind, error.message
    except Exception as error:
        log.exception('a fault in replaying %s; others go on', source.name)
        fault = INTERNAL_ERROR, internal_error(error).message
    if fault is not None:
        yield from replace(task, cases=(), runs=tuple(left.values())).skipped(*fault)
