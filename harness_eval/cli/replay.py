"""``harness-eval replay``: judge recorded runs again by the rules of a configuration.

Exit codes: 0 when every segment was judged, whatever the verdicts (labels and tests say what they
should be); 4 when something was skipped or ended in an error, so that not everything was; 2 for
bad usage, a bad configuration or files that cannot be written; 130 after Ctrl-C.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Optional, TYPE_CHECKING

import typer

from harness_eval.cli.configured import refuse_configuration
from harness_eval.cli.exit_codes import EVALUATION_ERROR
from harness_eval.cli.extras import need_page
from harness_eval.cli.label_input import given_labels, LabelsOption
from harness_eval.cli.output_files import need_writable, write_text, write_with
from harness_eval.cli.screen import print_screen, refuse
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
from harness_eval.runs import OutcomeKind

if TYPE_CHECKING:
    from harness_eval.replay.results import Replayed

# typer reads these at run time, on Python 3.10 too.
_Sources = Annotated[
    list[str],
    typer.Argument(
        metavar='SOURCE',
        help='Cases, folders of cases, bags of rosbag2 or rosbag1, and globs.',
        show_default=False,
    ),
]
_Config = Annotated[Path, typer.Option('--config', metavar='FILE', help='The YAML file.')]
_Completions = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        '--completions',
        metavar='FILE',
        help='A CSV file with columns time and tool, in the place of what the bags have.',
        show_default=False,
    ),
]
_Cases = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        '--cases',
        metavar='DIR',
        help='Keep new cases there, as `evidence` of the file says; sources stay as they are.',
        show_default=False,
    ),
]
_Json = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option('--json', metavar='FILE', help='Write the results there.', show_default=False),
]
_Junit = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option('--junit', metavar='FILE', help='Write them as JUnit XML.', show_default=False),
]
_Html = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option('--html', metavar='FILE', help='Write a page of them.', show_default=False),
]
_Namespace = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        '--namespace',
        metavar='NS',
        help='Namespace of the node that took the evidence; default: the root.',
        show_default=False,
    ),
]
_Quiet = Annotated[bool, typer.Option('--quiet', '-q', help='Print the summary alone.')]


def replay(
    sources: _Sources,
    config: _Config,
    answers: AnswersOption = Answers.live,
    completions: _Completions = None,
    jobs: JobsOption = 1,
    dask: DaskOption = None,
    cases: _Cases = None,
    labels: LabelsOption = None,
    json: _Json = None,
    junit: _Junit = None,
    html: _Html = None,
    namespace: _Namespace = None,
    quiet: _Quiet = False,
) -> None:
    """Judge recorded runs again, by the rules of FILE; needs no ROS 2.

    The code is 0 when every segment was judged, whatever the verdicts, and 4 when something was
    skipped or ended in an error.
    """
    from harness_eval.cli.replay_text import results_rows, summary, tell_skipped
    from harness_eval.replay.jobs import replay as judge_again
    from harness_eval.replay.sources import find_sources

    if html is not None:
        need_page()
    need_writable(json, junit, html)
    given = given_labels(labels)
    found, missing = find_sources(sources)
    for one in missing:
        if one.kind == 'no_source':
            refuse(one.message)
    with TemporaryDirectory(prefix='harness_eval_') as folder:
        album = Path(folder)
        try:
            with (
                warnings_told(),
                working(jobs, dask) as executor,
                progress_bar(quiet) as progress,
            ):
                judged = judge_again(
                    found,
                    config,
                    answers=answers.value,
                    completions=completions,
                    keep_cases=cases,
                    album=None if html is None else album,
                    namespace=namespace,
                    executor=executor,
                    progress=progress,
                )
        except ConfigError as error:
            refuse_configuration(error)
        except EvaluationError as error:
            refuse(error.message)
        judged = dataclasses.replace(judged, skipped=(*missing, *judged.skipped))
        matched = given.beside(judged.results)
        if judged.results:
            given.tell_unmatched(matched.unmatched, [one.key for one in judged.results], 'result')
        judged = dataclasses.replace(judged, results=matched.results)
        if html is not None:
            _write_html(html, judged)
    judged = _without(album, judged)
    if json is not None:
        write_text(json, judged.to_json(json.absolute().parent) + '\n')
    if junit is not None:
        from harness_eval.replay.report import write_junit

        write_with(junit, lambda: write_junit(junit, judged))
    tell_skipped(judged)
    if not quiet and judged.results:
        print_screen(results_rows(judged.results))
    print_screen(summary(judged))
    if judged.skipped or any(one.outcome.kind is OutcomeKind.ERROR for one in judged.results):
        raise typer.Exit(EVALUATION_ERROR)


def _write_html(path: Path, judged: Replayed) -> None:
    from harness_eval.replay.report import write_html

    scores = None
    if any(one.truth is not None for one in judged.results):
        from harness_eval.replay.metrics import score

        scores = score(judged.results)
    write_with(path, lambda: write_html(path, judged, scores))


def _without(album: Path, judged: Replayed) -> Replayed:
    """The results without cases that are deleted by now."""
    results = [
        dataclasses.replace(one, case=None)
        if one.case is not None and one.case.parent == album
        else one
        for one in judged.results
    ]
    return dataclasses.replace(judged, results=tuple(results))
