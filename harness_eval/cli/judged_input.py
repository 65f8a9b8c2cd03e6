"""What ``score`` and ``calibrate`` are given: results of a replay, or what is on record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer

from harness_eval.cases import CASE_FILE
from harness_eval.cli.label_input import given_labels, word
from harness_eval.cli.screen import complain_of_each, plain, refuse
from harness_eval.config.errors import did_you_mean
from harness_eval.contract import EvaluationError
from harness_eval.lines import describe
from harness_eval.replay.labels import Contradiction, Label
from harness_eval.replay.results import Replayed, Result, Skipped

RESULTS_SUFFIX = '.json'
"""Of a file of results."""

# typer reads these at run time, on Python 3.10 too.
InputsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar='SOURCE_OR_RESULTS',
        help='Results of `replay --json`, or cases, folders of cases, bags and globs.',
        show_default=False,
    ),
]
ToolOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option('--tool', metavar='TOOL', help='Only this tool.', show_default=False),
]


@dataclass(frozen=True)
class Judged:
    """What was given.

    Attributes:
        results: Results with the truth, where it is known.
        unmatched: Labels that belong to none of them.
        skipped: What could not be read, or was not judged.
    """

    results: tuple[Result, ...]
    unmatched: tuple[Label, ...]
    skipped: tuple[Skipped, ...]


def read_judged(inputs: Sequence[str], labels: Path | None, tool: str | None) -> Judged:
    """Read what was given; what is wrong with it is told, or ends the command.

    Args:
        inputs: Files of results, cases, folders of cases, bags and globs.
        labels: A file of labels; they go before any truth that is on record.
        tool: The only tool whose results are kept; None: all.
    """
    replayed = _read(inputs)
    _refuse_repetitions(replayed.results)
    complain_of_each(
        (f'skipped {one.source}: {one.message}' for one in replayed.skipped), 'skipped'
    )
    given = given_labels(labels)
    matched = given.beside(replayed.results)
    results = matched.results
    if results:
        given.tell_unmatched(matched.unmatched, [one.key for one in results], 'result')
    _tell_contradictions(matched.contradictions)
    if tool is not None:
        tools = sorted({one.completion.tool for one in results})
        if tool not in tools:
            shown = plain(tool, 80)
            refuse(f'no result is of the tool {shown!r}{did_you_mean(shown, tools, what="tools")}')
        results = tuple(one for one in results if one.completion.tool == tool)
    return Judged(results, matched.unmatched, replayed.skipped)


def _read(inputs: Sequence[str]) -> Replayed:
    files = [Path(one) for one in inputs if _is_results(one)]
    sources = [one for one in inputs if not _is_results(one)]
    parts = [read_results(path) for path in files]
    if sources:
        parts.append(_read_recorded(sources))
    return Replayed(
        tuple(result for part in parts for result in part.results),
        tuple(one for part in parts for one in part.skipped),
    )


def _is_results(name: str) -> bool:
    path = Path(name)
    return path.suffix == RESULTS_SUFFIX and path.name != CASE_FILE and not path.is_dir()


def read_results(path: Path) -> Replayed:
    """Read what ``replay --json`` wrote; that it cannot be read ends the command."""
    try:
        return Replayed.from_json(path.read_text('utf-8'), path.parent)
    except OSError as error:
        refuse(f'{path.name} cannot be read: {error.strerror or describe(error)}')
    except UnicodeDecodeError:
        refuse(f'{path.name} is no file of results: it is not UTF-8')
    except EvaluationError as error:
        refuse(f'{path.name}: {error.message}')


def _read_recorded(patterns: Sequence[str]) -> Replayed:
    from harness_eval.replay.recorded import recorded
    from harness_eval.replay.sources import find_sources

    sources, skipped = find_sources(patterns)
    for one in skipped:
        if one.kind in ('no_source', 'not_a_bag'):
            refuse(f'{one.message}; a file of results ends in {RESULTS_SUFFIX}')
    replayed = recorded(sources)
    return Replayed(replayed.results, (*skipped, *replayed.skipped))


def _tell_contradictions(contradictions: Sequence[Contradiction]) -> None:
    complain_of_each(
        (
            f'{one.result.completion.run_id} segment {one.result.completion.segment}: the label '
            f'{word(one.truth.correct)} counts, the '
            f'{one.recorded.source} on record says {word(one.recorded.correct)}'
            for one in contradictions
        ),
        'contradictions',
    )


def _refuse_repetitions(results: Sequence[Result]) -> None:
    seen = set()
    for one in results:
        identity = (one.source, one.completion)
        if identity in seen:
            completion = one.completion
            refuse(
                f'run {plain(completion.run_id, 80)!r} segment {completion.segment} of '
                f'{plain(one.source, 80)!r} is there twice; give each result once'
            )
        seen.add(identity)
