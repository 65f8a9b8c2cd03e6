"""What is to be judged of some sources, divided into tasks for workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
import logging
from pathlib import Path

from harness_eval.contract import EvaluationError
from harness_eval.lines import printable
from harness_eval.replay.bags import (
    completions_from_csv,
    decoder_for,
    open_bag,
    read_completions,
)
from harness_eval.replay.recorded import Key, recorded_outcomes
from harness_eval.replay.results import Skipped
from harness_eval.replay.sources import BagSource, CaseSource, Source
from harness_eval.replay.task import bundles, How, Run, Task
from harness_eval.runs import Completion, INTERNAL_ERROR, internal_error, Outcome

log = logging.getLogger('harness_eval.replay')

TASK_SIZE = 16
"""Segments that a worker gets at a time: making evaluators takes longer than judging a few."""

_MOST_TOOLS = 8
"""Tools that are named in a message."""

_WAY_OUT = 'name the source under completions, or give a file with --completions'
"""What to do about a bag in which nobody says when runs ended."""

Reported = tuple[Completion, int]
"""A completion and its receipt, nanoseconds."""


@dataclass
class Plan:
    """What is to be judged.

    Attributes:
        tasks: In the order of the sources.
        skipped: What cannot be judged, as far as that is known before.
    """

    tasks: list[Task] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def planned(sources: Sequence[Source], how: How, completions: Path | None) -> Plan:
    """Look into the sources, and divide what is to be judged of them.

    Args:
        sources: Cases and bags.
        how: How they are judged.
        completions: CSV file of completions that count in the place of those in the bags.

    Raises:
        EvaluationError: The CSV file cannot be read.
    """
    plan = Plan()
    given = _Given(completions)
    place = 0
    cases: list[tuple[int, CaseSource]] = []
    for source in sources:
        if isinstance(source, CaseSource):
            cases.append((place, source))
            place += 1
            if len(cases) == TASK_SIZE:
                plan.tasks.append(Task(how, cases=tuple(cases)))
                cases = []
            continue
        if cases:
            plan.tasks.append(Task(how, cases=tuple(cases)))
            cases = []
        tasks, notes = _of_bag(source, how, given, place)
        plan.tasks += tasks
        plan.skipped += notes
        place += sum(task.size for task in tasks)
    if cases:
        plan.tasks.append(Task(how, cases=tuple(cases)))
    plan.skipped += given.unused()
    plan.skipped += given.not_required(how.config.evaluation.required_tools)
    return plan


class _Given:
    """Completions from a file, and whether any bag covers them."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._all: list[Reported] = []
        self._used: set[int] = set()
        if path is not None:
            self._all = completions_from_csv(path)

    @property
    def any(self) -> bool:
        """Whether there is a file."""
        return self._path is not None

    def within(self, start: int, end: int) -> list[Reported]:
        """Those that came while a bag was recorded."""
        found = [n for n, (_, receipt) in enumerate(self._all) if start <= receipt <= end]
        self._used.update(found)
        return sorted((self._all[number] for number in found), key=lambda one: one[1])

    def unused(self) -> list[Skipped]:
        """A note of those that no bag covers."""
        left = [one for number, one in enumerate(self._all) if number not in self._used]
        if not left or self._path is None:
            return []
        return [
            Skipped(
                self._path.name,
                'outside_bags',
                f'{len(left)} of {len(self._all)} completions of {self._path.name} came when no '
                f'bag was recorded, the first of them run {left[0][0].run_id!r} at '
                f'{left[0][1] / 1e9:.3f} s since the epoch; times are those at which messages '
                'were received',
            )
        ]

    def not_required(self, required: Collection[str]) -> list[Skipped]:
        """A note of those that are of no tool that is judged: a person meant them to be."""
        tools = Counter(one.tool for one, _ in self._all if one.tool not in required)
        if not tools or self._path is None:
            return []
        said = f'{self._path.name}: {_left_out(tools, required)}'
        return [Skipped(self._path.name, 'not_required', said)]


def _left_out(tools: Mapping[str, int], required: Collection[str]) -> str:
    """Say which completions are not judged; their tools may be misspelt somewhere."""
    count = sum(tools.values())
    named = ', '.join(printable(tool, 80) for tool in sorted(tools)[:_MOST_TOOLS])
    return (
        f'{count} completion{"" if count == 1 else "s"} of {named}'
        f'{", …" if len(tools) > _MOST_TOOLS else ""} not judged: required_tools names '
        f'{", ".join(sorted(required)[:_MOST_TOOLS])}'
        f'{", …" if len(required) > _MOST_TOOLS else ""}'
    )


def _of_bag(
    source: BagSource, how: How, given: _Given, place: int
) -> tuple[list[Task], list[Skipped]]:
    try:
        return _looked_into(source, how, given, place)
    except EvaluationError as error:
        return [], [Skipped(source.name, error.kind, error.message)]
    except Exception as error:
        log.exception('a fault in looking into %s; others go on', source.name)
        return [], [Skipped(source.name, INTERNAL_ERROR, internal_error(error).message)]


def _looked_into(
    source: BagSource, how: How, given: _Given, place: int
) -> tuple[list[Task], list[Skipped]]:
    with open_bag(source) as bag:
        decoder, notes = decoder_for(bag)
        if given.any:
            found = given.within(bag.start, bag.end)
        else:
            found, more = read_completions(bag, how.config, decoder, how.namespace or '')
            # A bag with completions from one source need not have those of all.
            notes += [one for one in more if not found or one.kind != 'no_such_topic']
            if not found:
                notes = [_with_a_way_out(one) for one in notes]
        outcomes = recorded_outcomes(bag, decoder) if found else {}
        notes = [*bag.skipped, *notes]
    required = how.config.evaluation.required_tools
    wanted = [one for one in found if one[0].tool in required]
    if not wanted and (found or not notes):
        notes.append(_nothing(source, how, found, given))
    elif len(wanted) < len(found) and not given.any:
        others = Counter(one.tool for one, _ in found if one.tool not in required)
        log.warning('%s: %s', source.name, _left_out(others, required))
    runs = [
        Run(place + number, completion, receipt)
        for number, (completion, receipt) in enumerate(wanted)
    ]
    return [_task(how, source, part, outcomes) for part in _parts(runs, how)], notes


def _nothing(source: BagSource, how: How, found: Sequence[Reported], given: _Given) -> Skipped:
    if found:
        tools = ', '.join(sorted({one.tool for one, _ in found})[:_MOST_TOOLS])
        return Skipped(
            source.name,
            'not_required',
            f'{source.name}: its completions are of {tools}, and none of these is one of '
            'required_tools',
        )
    if given.any:
        where = 'the file of completions has none of the time in which it was recorded'
    else:
        topics = [one.topic or f'{one.action}/_action/status' for one in how.config.completions]
        where = f'it has no completions on {", ".join(topics)}; {_WAY_OUT}'
    return Skipped(source.name, 'no_completions', f'{source.name}: {where}')


def _with_a_way_out(note: Skipped) -> Skipped:
    if note.kind != 'no_such_topic':
        return note
    return replace(note, message=f'{note.message}; {_WAY_OUT}')


def _parts(runs: Sequence[Run], how: How) -> list[list[Run]]:
    """Runs that belong together, as many at a time as a worker gets."""
    parts: list[list[Run]] = []
    for bundle in bundles(runs, how.config):
        if parts and len(parts[-1]) + len(bundle) <= TASK_SIZE:
            parts[-1] += bundle
        else:
            parts.append(list(bundle))
    return [sorted(part, key=lambda run: run.place) for part in parts]


def _task(how: How, source: BagSource, runs: Sequence[Run], outcomes: dict[Key, Outcome]) -> Task:
    keys = {(run.completion.run_id, run.completion.segment) for run in runs}
    recorded = {key: outcome for key, outcome in outcomes.items() if key in keys}
    return Task(how, bag=source, runs=tuple(runs), recorded=recorded)
