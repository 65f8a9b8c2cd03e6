"""Labels that a verb is given: read before the work, and laid beside the results after it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Optional

import typer

from harness_eval.cli.screen import complain_of_each, plain, refuse
from harness_eval.contract import EvaluationError
from harness_eval.replay.label_file import read_labels
from harness_eval.replay.labels import Key, Label, match_labels, Matched
from harness_eval.replay.results import Result

_MOST_NAMED = 3
"""Segments that are named in a line."""

# typer reads this at run time, on Python 3.10 too.
LabelsOption = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        '--labels',
        metavar='FILE',
        help='A CSV file with columns run_id and label.',
        show_default=False,
    ),
]


@dataclass(frozen=True)
class GivenLabels:
    """Labels that were given.

    Attributes:
        path: Their file; None: none were given.
        labels: What it says.
    """

    path: Path | None = None
    labels: tuple[Label, ...] = ()

    def beside(self, results: Sequence[Result]) -> Matched:
        """Lay them beside results; labels that could mean two things end the command."""
        if self.path is None:
            return Matched(tuple(results))
        try:
            return match_labels(results, self.labels)
        except EvaluationError as error:
            refuse(error.message)

    def tell_unmatched(self, unmatched: Iterable[Label], keys: Sequence[Key], what: str) -> None:
        """Complain of those that belong to nothing, and say what they may have meant.

        Args:
            unmatched: Those that belong to nothing.
            keys: What they could have belonged to.
            what: What that is, in the singular.
        """
        name = '' if self.path is None else self.path.name
        runs: dict[str, list[Key]] = {}
        for key in keys:
            runs.setdefault(key[1].strip(), []).append(key)
        complain_of_each(
            (_unmatched(name, one, runs.get(one.run_id, ()), what) for one in unmatched), 'labels'
        )


def given_labels(path: Path | None) -> GivenLabels:
    """Read the labels that a verb is given; that they cannot be read ends the command."""
    if path is None:
        return GivenLabels()
    try:
        return GivenLabels(path, read_labels(path))
    except EvaluationError as error:
        refuse(error.message)


def word(correct: bool) -> str:
    """What a person would write as a label."""
    return 'success' if correct else 'failure'


def _unmatched(name: str, label: Label, keys: Sequence[Key], what: str) -> str:
    said = f'{name}, {label}: no such {what}'
    if not keys:
        return said
    there = ', '.join(
        f'segment {segment} of {plain(source, 80)!r}' for source, _, segment in keys[:_MOST_NAMED]
    )
    more = ', …' if len(keys) > _MOST_NAMED else ''
    alone = len({source for source, _, _ in keys}) == 1
    advice = '; the column source may be empty' if label.source and alone else ''
    return f'{said}; of that run there is {there}{more}{advice}'
