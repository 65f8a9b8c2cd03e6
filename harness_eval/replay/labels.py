"""Labels: what a person says really happened, laid beside results.

What a person says goes before what an oracle recorded; where the two differ both are told. Nothing
is guessed: a label that could mean two segments and two labels of one segment are errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness_eval.contract import EvaluationError
from harness_eval.lines import clean_line
from harness_eval.replay.results import Result, Truth

LABEL = 'label'
"""Source of a truth that a person noted."""
_SHOWN = 60
"""Characters of a foreign text in an error."""
_SOURCES_TOLD = 5

Key = tuple[str, str, int]
"""Source, run id and segment of a result."""


class LabelsError(EvaluationError):
    """A file of labels cannot be used."""


@dataclass(frozen=True)
class Label:
    """What a person says of one segment.

    Attributes:
        run_id: The run.
        correct: The segment really achieved what it was asked to do.
        segment: Its number; None: the last one of the run.
        source: Name of the case or bag, with as many of its folders as tell it apart; empty: the
            run id alone says which.
        note: What the person wrote beside it.
        line: Line of the file on which the row begins, from 1.
    """

    run_id: str
    correct: bool
    segment: int | None = None
    source: str = ''
    note: str = ''
    line: int = 0

    @property
    def truth(self) -> Truth:
        """The same as a truth."""
        return Truth(self.correct, LABEL, self.note)

    def __str__(self) -> str:
        segment = '' if self.segment is None else f' segment {self.segment}'
        source = f' of {self.source!r}' if self.source else ''
        return f'line {self.line} ({clean_line(self.run_id, _SHOWN)!r}{segment}{source})'


@dataclass(frozen=True)
class Contradiction:
    """A label that says something else than what was on record.

    Attributes:
        result: The result, with the truth of the label, which counts.
        truth: That truth.
        recorded: What an oracle, or an earlier label, says.
    """

    result: Result
    truth: Truth
    recorded: Truth


@dataclass(frozen=True)
class Matched:
    """Results with the labels that belong to them.

    Attributes:
        results: All results, in their order.
        unmatched: Labels that belong to none of them.
        contradictions: Labels that overrule what was on record.
    """

    results: tuple[Result, ...]
    unmatched: tuple[Label, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()


def assign(labels: Sequence[Label], keys: Sequence[Key]) -> tuple[dict[int, Label], list[Label]]:
    """Find the segments that labels belong to.

    A label without a segment belongs to the last one of its run that is there.

    Args:
        labels: The labels.
        keys: The segments.

    Returns:
        The label of each segment that has one, by its place in ``keys``; the labels without any.

    Raises:
        LabelsError: ``labels_ambiguous``: a label that may mean two segments, or two labels that
            mean one.
    """
    runs: dict[str, list[int]] = {}
    for number, (_, run_id, _) in enumerate(keys):
        runs.setdefault(run_id.strip(), []).append(number)
    found: dict[int, Label] = {}
    unmatched: list[Label] = []
    for label in labels:
        places = [
            one
            for one in runs.get(label.run_id, ())
            if not label.source or _is_source(keys[one][0], label.source)
        ]
        place = _meant(label, places, keys)
        if place is None:
            unmatched.append(label)
            continue
        if place in found:
            raise LabelsError(
                'labels_ambiguous',
                f'{found[place]} and {label} mean the same segment; keep one of them',
            )
        found[place] = label
    return found, unmatched


def _is_source(name: str, said: str) -> bool:
    """Whether two names, each with some of the folders around it, may mean one source."""
    pairs = zip(reversed(name.split('/')), reversed(said.split('/')), strict=False)
    return all(one == other for one, other in pairs)


def match_labels(results: Sequence[Result], labels: Sequence[Label]) -> Matched:
    """Lay labels beside results. A label goes before a truth that a result already has.

    Raises:
        LabelsError: As :func:`assign`.
    """
    found, unmatched = assign(labels, [result.key for result in results])
    labelled = list(results)
    contradictions = []
    for place, label in sorted(found.items()):
        recorded = results[place].truth
        labelled[place] = replace(results[place], truth=label.truth)
        if recorded is not None and recorded.correct != label.correct:
            contradictions.append(Contradiction(labelled[place], label.truth, recorded))
    return Matched(tuple(labelled), tuple(unmatched), tuple(contradictions))


def _meant(label: Label, places: Sequence[int], keys: Sequence[Key]) -> int | None:
    """Place of the segment that a label means among those of its run; None: it is not there."""
    of_number: dict[int, list[int]] = {}
    for place in places:
        of_number.setdefault(keys[place][2], []).append(place)
    if label.segment is None:
        doubtful = next((several for several in of_number.values() if len(several) > 1), None)
        meant = of_number[max(of_number)] if of_number else []
    else:
        meant = of_number.get(label.segment, [])
        doubtful = meant if len(meant) > 1 else None
    if doubtful is not None:
        sources = ', '.join(repr(keys[place][0]) for place in doubtful[:_SOURCES_TOLD])
        raise LabelsError(
            'labels_ambiguous',
            f'{label} may mean a segment of each of {sources}; say which in the column source',
        )
    return meant[0] if meant else None
