"""``harness-eval score``: how well the judges judged, as far as the truth is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from harness_eval.cli.exit_codes import EVALUATION_ERROR
from harness_eval.cli.extras import need_statistics
from harness_eval.cli.judged_input import InputsArgument, read_judged, ToolOption
from harness_eval.cli.label_input import LabelsOption
from harness_eval.cli.output_files import write_json
from harness_eval.cli.score_text import score_parts
from harness_eval.cli.screen import complain, print_screen

SCORES_VERSION = 1

_JsonFile = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        '--json', metavar='FILE', help='Write the numbers there as JSON.', show_default=False
    ),
]


def score(
    inputs: InputsArgument,
    labels: LabelsOption = None,
    tool: ToolOption = None,
    json_file: _JsonFile = None,
) -> None:
    """Say how well the judges judged, per tool and in all; nothing is judged again.

    The code is 4 if no labelled result has a verdict, since nothing was measured then.
    """
    need_statistics()
    from harness_eval.replay import metrics

    judged = read_judged(inputs, labels, tool)
    scores = metrics.score(judged.results)
    if json_file is not None:
        plain_scores = {
            'version': SCORES_VERSION,
            **scores.to_plain(),
            'unmatched_labels': [
                {'run_id': one.run_id, 'segment': one.segment, 'source': one.source}
                for one in judged.unmatched
            ],
            'skipped': [
                {'source': one.source, 'kind': one.kind, 'message': one.message}
                for one in judged.skipped
            ],
        }
        write_json(json_file, plain_scores)
    if scores.overall.results:
        print_screen(*score_parts(scores))
    if not scores.overall.results:
        complain('there is no result to score')
    elif not scores.overall.labelled:
        complain(
            'nothing is labelled, so nothing was measured; give --labels, or cases whose oracle '
            'or label is on record'
        )
    elif not scores.overall.decided:
        complain('no labelled result has the verdict success or failure; nothing was measured')
    if not scores.overall.decided:
        raise typer.Exit(EVALUATION_ERROR)
