"""What ``score`` and ``calibrate`` are given: results of a replay, or what is on record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
import importlib
import json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from harness_eval.cases import CASE_FILE
from harness_eval.cli.screen import complain, plain, refuse
from harness_eval.config.errors import did_you_mean
from harness_eval.contract import EvaluationError
from harness_eval.lines import describe
from harness_eval.replay.label_file import read_labels
from harness_eval.replay.labels import Key, Label, match_labels, Matched
from harness_eval.replay.results import Replayed, Result, Skipped

MOST_TOLD = 20
"""Lines of one kind on the standard error."""

_MOST_NAMED = 3
"""Segments that are named in a line."""
_RESULTS_SUFFIX = '.json'

# typer reads these at run time, on Python 3.10 too.
InputsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar='SOURCE_OR_RESULTS',
        help='Results of `replay --json`, or cases, folders of cases, bags and globs.',
        show_default=False,
    ),
]
LabelsOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option('--labels', metavar='FILE', help='A CSV file of labels.', show_default=False),
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
    tell((f'skipped {one.source}: {one.message}' for one in replayed.skipped), 'skipped')
    matched = _matched(replayed.results, labels)
    results = matched.results
    if tool is not None:
        tools = sorted({one.completion.tool for one in results})
        if tool not in tools:
            shown = plain(tool, 80)
            refuse(f'no result is of the tool {shown!r}{did_you_mean(shown, tools, what="tools")}')
        results = tuple(one for one in results if one.completion.tool == tool)
    return Judged(results, matched.unmatched, replayed.skipped)


def need_statistics() -> None:
    """End the command, with what to do, unless scikit-learn and SciPy can be imported."""
    _need('scikit-learn and SciPy', 'sklearn', 'scipy')


def need_page() -> None:
    """End the command, with what to do, unless what writes a page can be imported."""
    _need('Jinja2, Matplotlib, scikit-learn and SciPy', 'jinja2', 'matplotlib', 'sklearn', 'scipy')


def _need(names: str, *packages: str) -> None:
    for package in packages:
        try:
            importlib.import_module(package)
        except ImportError as error:
            refuse(f'this needs {names}: pip install "harness_eval[replay]" ({describe(error)})')


def need_writable(*paths: Path | None) -> None:
    """End the command before the work, unless these files can be written after it."""
    for path in paths:
        if path is None:
            continue
        if not path.absolute().parent.is_dir():
            refuse(f'{path.name} cannot be written: its folder does not exist')
        if path.is_dir():
            refuse(f'{path.resolve().name} cannot be written: it is a folder')


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a file of JSON; that it cannot be written ends the command."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + '\n')


def write_text(path: Path, text: str) -> None:
    """Write a file; that it cannot be written ends the command."""
    try:
        path.write_text(text, 'utf-8')
    except OSError as error:
        refuse(f'{path.name} cannot be written: {error.strerror or describe(error)}')


def tell(lines: Iterable[str], what: str) -> None:
    """Complain of each line, up to a number of them.

    Args:
        lines: What is wrong.
        what: What they are, in the plural.
    """
    every = list(lines)
    for line in every[:MOST_TOLD]:
        complain(line)
    if len(every) > MOST_TOLD:
        complain(f'and {len(every) - MOST_TOLD} more {what}')


def tell_unmatched(path: Path, labels: Iterable[Label], keys: Iterable[Key], what: str) -> None:
    """Complain of labels that belong to nothing, and say what they may have meant.

    Args:
        path: The file of labels.
        labels: Those that belong to nothing.
        keys: What they could have belonged to.
        what: What that is, in the singular.
    """
    runs: dict[str, list[Key]] = {}
    for key in keys:
        runs.setdefault(key[1].strip(), []).append(key)
    tell((_unmatched(path, one, runs.get(one.run_id, ()), what) for one in labels), 'labels')


def _unmatched(path: Path, label: Label, keys: Sequence[Key], what: str) -> str:
    said = f'{path.name}, {label}: no such {what}'
    if not keys:
        return said
    there = ', '.join(
        f'segment {segment} of {plain(source, 80)!r}' for source, _, segment in keys[:_MOST_NAMED]
    )
    more = ', …' if len(keys) > _MOST_NAMED else ''
    advice = '; the column source may be empty' if label.source else ''
    return f'{said}; of that run there is {there}{more}{advice}'


def word(correct: bool) -> str:
    """What a person would write as a label."""
    return 'success' if correct else 'failure'


def many(count: int, noun: str) -> str:
    """A number of things: ``1 result``, ``2 results``."""
    return f'{count} {noun}' if count == 1 else f'{count} {noun}s'


def _read(inputs: Sequence[str]) -> Replayed:
    files = [Path(one) for one in inputs if _is_results(one)]
    sources = [one for one in inputs if not _is_results(one)]
    parts = [_read_results(path) for path in files]
    if sources:
        parts.append(_read_recorded(sources))
    return Replayed(
        tuple(result for part in parts for result in part.results),
        tuple(one for part in parts for one in part.skipped),
    )


def _is_results(name: str) -> bool:
    path = Path(name)
    return path.suffix == _RESULTS_SUFFIX and path.name != CASE_FILE and not path.is_dir()


def _read_results(path: Path) -> Replayed:
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
            refuse(f'{one.message}; a file of results ends in {_RESULTS_SUFFIX}')
    replayed = recorded(sources)
    return Replayed(replayed.results, (*skipped, *replayed.skipped))


def _matched(results: Sequence[Result], labels: Path | None) -> Matched:
    if labels is None:
        return Matched(tuple(results))
    try:
        matched = match_labels(results, read_labels(labels))
    except EvaluationError as error:
        refuse(error.message)
    if results:
        tell_unmatched(labels, matched.unmatched, [one.key for one in results], 'result')
    tell(
        (
            f'{one.result.completion.run_id} segment {one.result.completion.segment}: the label '
            f'{word(one.truth.correct)} counts, the '
            f'{one.recorded.source} on record says {word(one.recorded.correct)}'
            for one in matched.contradictions
        ),
        'contradictions',
    )
    return matched


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
