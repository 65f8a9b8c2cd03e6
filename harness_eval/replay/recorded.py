"""Outcomes that are on record: those kept with cases, and those that a bag carries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
import os
from pathlib import Path

from harness_eval.case_bag import bag_definitions
from harness_eval.cases import Case, read_case
from harness_eval.contract import DecodeError, EvaluationError
from harness_eval.decode import Decoder
from harness_eval.lines import clean_line, describe
from harness_eval.outcome_messages import outcome_of_bytes, OUTCOME_TYPE, VERDICT_TYPE
from harness_eval.replay.bags import Bag, decoder_for, open_bag
from harness_eval.replay.case_labels import truth_of
from harness_eval.replay.results import Replayed, Result, Skipped
from harness_eval.replay.sources import BagSource, CaseSource, Source
from harness_eval.runs import Completion, Outcome

Key = tuple[str, int]
"""A run id and the number of a segment."""


def recorded_outcomes(bag: Bag, decoder: Decoder) -> dict[Key, Outcome]:
    """The newest outcome of each segment that a bag carries.

    They come from topics of the types ``RunOutcome`` and ``Verdict``, whatever their names; of one
    attempt the outcome counts, which says more. What cannot be read is none.

    Args:
        bag: The bag.
        decoder: Reads its messages.
    """
    found: dict[Key, tuple[tuple[int, bool], Outcome]] = {}
    kinds = (OUTCOME_TYPE, VERDICT_TYPE)
    topics = [name for name, topic in bag.topics.items() if topic.type in kinds]
    for message in bag.messages(topics) if topics else ():
        try:
            outcome = outcome_of_bytes(message.type, message.data, decoder)
        except DecodeError:
            continue
        key = outcome.run_id, outcome.segment
        rank = outcome.attempt, message.type == OUTCOME_TYPE
        if key not in found or found[key][0] <= rank:
            found[key] = rank, outcome
    return {key: outcome for key, (_, outcome) in found.items()}


def case_in(folder: Path, decoder: Decoder) -> Case:
    """The case in a folder.

    Raises:
        EvaluationError: It cannot be read; the message names no path.
    """
    with _readable(folder):
        return read_case(folder, decoder)


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    try:
        yield
    except EvaluationError:
        raise
    except Exception as error:  # a damaged file may raise anything
        what = clean_line(describe(error), 200).replace(f'{folder}', folder.name)
        raise EvaluationError(
            'case_damaged', f'the case {folder.name} cannot be read: {what}'
        ) from error


def recorded(sources: Sequence[Source]) -> Replayed:
    """Results as they are on record; nothing is judged.

    Args:
        sources: Cases, and bags that carry outcomes.

    Returns:
        For each segment with an outcome on record that outcome, as ``outcome`` and as
        ``recorded``; what has none is skipped as ``no_outcome``.
    """
    results: list[Result] = []
    skipped: list[Skipped] = []
    decoders = CaseDecoders()
    for source in sources:
        try:
            if isinstance(source, CaseSource):
                results.append(_of_case(source, decoders.of(source.path)))
            else:
                found, notes = _of_bag(source)
                results += found
                skipped += notes
        except EvaluationError as error:
            skipped.append(Skipped(source.name, error.kind, error.message))
    return Replayed(tuple(results), tuple(skipped))


def _of_case(source: CaseSource, decoder: Decoder) -> Result:
    case = case_in(source.path, decoder)
    if case.outcome is None:
        raise EvaluationError(
            'no_outcome',
            f'the case {source.name} has no outcome: its judge had not answered when the node '
            'ended; replay it',
        )
    return Result(
        source=source.name,
        completion=case.completion,
        outcome=case.outcome,
        recorded=case.outcome,
        truth=truth_of(case.label, case.oracle),
        case=source.path,
    )


def _of_bag(source: BagSource) -> tuple[list[Result], list[Skipped]]:
    with open_bag(source) as bag:
        outcomes = recorded_outcomes(bag, bag_decoder(bag))
        notes = list(bag.skipped)
    if not outcomes:
        notes.append(
            Skipped(
                source.name,
                'no_outcome',
                f'{source.name} carries no outcomes (topics of the type {OUTCOME_TYPE} or '
                f'{VERDICT_TYPE}); replay it',
            )
        )
    ordered = sorted(outcomes.values(), key=lambda one: (one.completed_at, one.decided_at))
    return [
        Result(
            source=source.name,
            completion=Completion(one.run_id, one.tool, one.segment, one.completed_at),
            outcome=one,
            recorded=one,
        )
        for one in ordered
    ], notes


def bag_decoder(bag: Bag) -> Decoder:
    """A decoder that knows the types of a bag, as far as anything defines them."""
    return decoder_for(bag)[0]


class CaseDecoders:
    """Decoders for cases: one for all whose types are defined alike."""

    def __init__(self) -> None:
        self._newest = Decoder.from_environment(os.environ)
        self._known: dict[str, tuple[str, str]] = {}

    def of(self, folder: Path) -> Decoder:
        """A decoder that knows the types of a case, which carries their definitions.

        Raises:
            EvaluationError: The case cannot be read.
        """
        with _readable(folder):
            found = bag_definitions(folder)
        new = {name: one for name, one in found.items() if self._known.get(name) != one}
        if any(name in self._known for name in new):
            self._newest = Decoder.from_environment(os.environ)
            self._known, new = {}, dict(found)
        for name, (text, form) in new.items():
            with suppress(DecodeError):
                self._newest.register(name, text, form)
        self._known.update(new)
        return self._newest
