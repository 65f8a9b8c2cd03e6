"""``harness-eval compare``: promote a candidate configuration, hold it or reject it.

Exit codes: 0 promote, 1 reject, 2 bad usage, 3 hold; nothing to compare is held, not promoted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Optional, TYPE_CHECKING

import typer

from harness_eval.cli.compare_text import comparison_parts
from harness_eval.cli.configured import refuse_configuration
from harness_eval.cli.exit_codes import OK
from harness_eval.cli.extras import need_page, need_statistics
from harness_eval.cli.judged_input import read_results, RESULTS_SUFFIX
from harness_eval.cli.label_input import given_labels, GivenLabels, LabelsOption
from harness_eval.cli.output_files import need_writable, write_json, write_with
from harness_eval.cli.screen import complain_of_each, print_screen, refuse
from harness_eval.cli.workers import (
    Answers,
    AnswersOption,
    DaskOption,
    JobsOption,
    progress_bar,
    warnings_told,
    working,
)
from harness_eval.config import ConfigError
from harness_eval.contract import EvaluationError

if TYPE_CHECKING:
    from harness_eval.replay.comparison import Comparison
    from harness_eval.replay.results import Replayed
    from harness_eval.replay.sources import Source

COMPARISON_VERSION = 1
REJECT = 1
HOLD = 3

# typer reads these at run time, on Python 3.10 too.
_Base = Annotated[
    Path,
    typer.Argument(
        metavar='BASE',
        help='The YAML file in use, or results of `replay --json` with it.',
        show_default=False,
    ),
]
_Candidate = Annotated[
    Path,
    typer.Argument(metavar='CANDIDATE', help='The other one, likewise.', show_default=False),
]
_Sources = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Argument(
        metavar='SOURCE...',
        help='Cases, folders of cases, bags and globs; none where both are results.',
        show_default=False,
    ),
]
_MinGain = Annotated[
    float,
    typer.Option(
        '--min-gain', min=0.0, help='Mean gain that a promotion takes, over all tools or in one.'
    ),
]
_Significance = Annotated[
    float,
    typer.Option('--significance', help='Largest probability of chance that counts as none.'),
]
_Json = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option('--json', metavar='FILE', help='Write the comparison there.', show_default=False),
]
_Junit = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option('--junit', metavar='FILE', help='Write it as JUnit XML.', show_default=False),
]
_Html = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option('--html', metavar='FILE', help='Write a page of it.', show_default=False),
]


def compare(
    base: _Base,
    candidate: _Candidate,
    sources: _Sources = None,
    labels: LabelsOption = None,
    min_gain: _MinGain = 0.05,
    significance: _Significance = 0.05,
    answers: AnswersOption = Answers.live,
    jobs: JobsOption = 1,
    dask: DaskOption = None,
    html: _Html = None,
    json: _Json = None,
    junit: _Junit = None,
) -> None:
    """Compare two configurations on the same runs: promote the candidate, hold it or reject it.

    A promotion takes a mean gain of --min-gain, over all tools or in one, that is no chance, and
    nothing that got worse. The code is 0 for promote, 1 for reject, 3 for hold.
    """
    from harness_eval.replay.compare import compare as compared

    need_statistics()
    if html is not None:
        need_page()
    need_writable(html, json, junit)
    if not 0.0 < significance < 1.0 or not min_gain < float('inf'):
        refuse('--significance lies between 0 and 1, and --min-gain is a finite number')
    given = given_labels(labels)
    with TemporaryDirectory(prefix='harness_eval_') as album:
        pictures = None if html is None else Path(album)
        sides = _sides((base, candidate), sources or (), answers, jobs, dask, pictures)
        first, second = _labelled(sides, given)
        try:
            found = compared(first, second, min_gain=min_gain, significance=significance)
        except EvaluationError as error:
            refuse(error.message)
        _write(found, second, html, json, junit)
    complain_of_each((f'skipped {one.source}: {one.message}' for one in found.skipped), 'skipped')
    print_screen(*comparison_parts(found))
    code = {'promote': OK, 'reject': REJECT, 'hold': HOLD}[found.decision.value]
    raise typer.Exit(code)


# --- what is compared -------------------------------------------------------------------------


def _sides(
    given: Sequence[Path],
    patterns: Sequence[str],
    answers: Answers,
    jobs: int,
    dask: str | None,
    album: Path | None,
) -> list[Replayed]:
    """What the runs came to under both configurations."""
    replayed = [path.suffix != RESULTS_SUFFIX for path in given]
    if any(replayed) and not patterns:
        refuse('expected the cases or bags to replay with a YAML file, found none')
    if patterns and not any(replayed):
        refuse('expected no cases, since both are results already; delete them')
    sources = list(_found(patterns))
    with ExitStack() as stack:
        executor = stack.enter_context(working(jobs, dask)) if any(replayed) else None
        return [
            _replayed(path, sources, answers, executor, album) if again else _read(path)
            for path, again in zip(given, replayed, strict=True)
        ]


def _found(patterns: Sequence[str]) -> Iterator[Source]:
    from harness_eval.replay.sources import find_sources

    found, missing = find_sources(patterns)
    for one in missing:
        if one.kind == 'no_source':
            refuse(one.message)
    complain_of_each((f'skipped {one.source}: {one.message}' for one in missing), 'skipped')
    yield from found


def _replayed(
    config: Path,
    sources: Sequence[Source],
    answers: Answers,
    executor: Executor | None,
    album: Path | None,
) -> Replayed:
    from harness_eval.replay.jobs import replay

    try:
        with warnings_told(), progress_bar(quiet=False) as progress:
            return replay(
                sources,
                config,
                answers=answers.value,
                album=album,
                executor=executor,
                progress=progress,
            )
    except ConfigError as error:
        refuse_configuration(error)
    except EvaluationError as error:
        refuse(f'{config.name}: {error.message}')


def _read(path: Path) -> Replayed:
    read = read_results(path)
    return read if read.config else dataclasses.replace(read, config=path.name)


def _labelled(sides: Sequence[Replayed], given: GivenLabels) -> list[Replayed]:
    matched = [given.beside(side.results) for side in sides]
    nowhere = [one for one in matched[0].unmatched if one in matched[1].unmatched]
    keys = [one.key for side in sides for one in side.results]
    given.tell_unmatched(nowhere, keys, 'result')
    return [
        dataclasses.replace(side, results=one.results)
        for side, one in zip(sides, matched, strict=True)
    ]


# --- what is written --------------------------------------------------------------------------


def _write(
    found: Comparison,
    candidate: Replayed,
    html: Path | None,
    json_file: Path | None,
    junit: Path | None,
) -> None:
    from harness_eval.replay.report import write_comparison_junit, write_html

    if json_file is not None:
        write_json(json_file, {'version': COMPARISON_VERSION, **found.to_plain()})
    if junit is not None:
        write_with(junit, lambda: write_comparison_junit(junit, found))
    if html is not None:
        from harness_eval.replay.metrics import score

        results = [dataclasses.replace(pair.candidate, truth=pair.truth) for pair in found.pairs]
        scores = score(results)
        write_with(html, lambda: write_html(html, candidate, scores, found))
