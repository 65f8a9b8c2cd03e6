"""Outcomes that are on record: those kept with cases, and those that a bag carries."""

from __future__ import annotations

from collections.abc import Sequence

from harness_eval.contract import DecodeError, EvaluationError
from harness_eval.decode import Decoder
from harness_eval.outcome_messages import outcome_of_bytes, OUTCOME_TYPE, VERDICT_TYPE
from harness_eval.replay.bags import Bag, decoder_for, open_bag
from harness_eval.replay.case_labels import truth_of
from harness_eval.replay.results import Replayed, Result, Skipped
from harness_eval.replay.sources import BagSource, CaseSource, Source, told_apart
from harness_eval.replay.stored_cases import StoredCases
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
    stored = StoredCases()
    for source in told_apart(sources):
        try:
            if isinstance(source, CaseSource):
                results.append(_of_case(source, stored))
            else:
                found, notes = _of_bag(source)
                results += found
                skipped += notes
        except EvaluationError as error:
            skipped.append(Skipped(source.name, error.kind, error.message))
    return Replayed(tuple(results), tuple(skipped))


def _of_case(source: CaseSource, stored: StoredCases) -> Result:
    case = stored.read_record(source.path)
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
