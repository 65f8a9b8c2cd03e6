"""``harness-eval label``: note within cases what really happened, so that it travels with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness_eval.cases import CaseError
from harness_eval.cli.label_input import given_labels, word
from harness_eval.cli.screen import complain, many, plain, print_screen, refuse
from harness_eval.contract import EvaluationError
from harness_eval.replay.case_labels import LabelledCase, read_labelled_case, write_label
from harness_eval.replay.labels import assign

_Cases = Annotated[
    list[str],
    typer.Argument(metavar='CASES', help='Cases, folders of cases and globs.', show_default=False),
]
_Labels = Annotated[
    Path,
    typer.Option(
        '--labels',
        metavar='FILE',
        help='A CSV file with columns run_id and label.',
        show_default=False,
    ),
]


def label(cases: _Cases, labels: _Labels) -> None:
    """Note labels within their cases; a labelled case is never deleted to make room."""
    known = _cases(cases)
    given = given_labels(labels)
    keys = [case.key for case in known]
    try:
        found, unmatched = assign(given.labels, keys)
    except EvaluationError as error:
        refuse(error.message)
    given.tell_unmatched(unmatched, keys, 'case')
    failed = 0
    for place, one in sorted(found.items()):
        case, before = known[place], known[place].truth
        try:
            write_label(case.folder, one.truth)
        except CaseError as error:
            failed += 1
            complain(error.message)
            continue
        if before is not None and before.correct != one.correct:
            complain(
                f'{case.folder.name}: the label {word(one.correct)} counts, the '
                f'{before.source} on record says {word(before.correct)}'
            )
    print_screen(
        f'{len(found) - failed} of {many(len(known), "case")} labelled'
        + (f'; {many(len(unmatched), "label")} matched none of them' if unmatched else '')
    )
    if failed or not found:
        refuse(
            f'{many(failed, "label")} could not be written'
            if failed
            else 'no label belongs to a case'
        )


def _cases(patterns: list[str]) -> list[LabelledCase]:
    from harness_eval.replay.sources import CaseSource, find_sources

    sources, skipped = find_sources(patterns)
    for one in skipped:
        if one.kind == 'no_source':
            refuse(one.message)
        complain(one.message)
    known = []
    for source in sources:
        if not isinstance(source, CaseSource):
            complain(f'{plain(source.name)} is a bag; labels are noted within cases only')
            continue
        try:
            known.append(read_labelled_case(source.path))
        except CaseError as error:
            complain(error.message)
    if not known:
        refuse('there is no case among what was given')
    return known
