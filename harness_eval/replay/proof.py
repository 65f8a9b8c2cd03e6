"""Whether a stored case is of one piece: what ``case.json`` says, and what its bag shows.

Cases are files: they are copied, put together and edited, and a replay has no ledger to hold them
against. But the bag of a case holds the completion as it came, frames carry their own stamps, and
the outcome is in the bag too. What is said twice must be the same; otherwise a case could show the
frames of another run, or such from before the end, and pass for evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from harness_eval.capture import Frame
from harness_eval.case_bag import OUTCOME_FILE
from harness_eval.cases import (
    Case,
    CASE_FILE,
    CaseError,
    COMPLETION_TOPIC,
    COMPLETION_TYPE,
    OUTCOME_TOPIC,
)
from harness_eval.contract import DecodeError, EvaluationError
from harness_eval.decode import Decoder
from harness_eval.outcome_messages import outcome_of_bytes, OUTCOME_TYPE
from harness_eval.replay.bags import BagMessage, open_bag
from harness_eval.runs import Completion, Outcome
from harness_eval.times import nanoseconds_of

ALTERED = 'evidence_altered'
"""Kind of the error that says that a case contradicts itself."""

_ADVICE = 'put the right files back, or replay the bag that the case was taken from'


def check_case(name: str, case: Case, messages: Iterable[BagMessage], decoder: Decoder) -> None:
    """Make sure that a case is that of its completion, and its outcome that of the case.

    Args:
        name: Name of the case.
        case: What ``case.json`` says.
        messages: Those of its bag that are no frames.
        decoder: Reads them.

    Raises:
        CaseError: ``evidence_altered``; ``evidence_lost``: the bag has no completion.
    """
    check_end(name, case)
    ends = [one for one in messages if _is_completion(one)]
    if len(ends) != 1:
        raise CaseError(
            'evidence_lost',
            f'the bag of the case {name} holds {len(ends)} completions, expected that of its run; '
            + _ADVICE,
        )
    found = _difference(case, ends[0], decoder)
    if found:
        raise CaseError(
            ALTERED,
            f'{CASE_FILE} of {name} and the completion in its bag differ in {found!r}; {_ADVICE}',
        )
    outcomes = [one.data for one in messages if _is_outcome(one)]
    _check_outcome(name, case, outcomes, decoder)


def check_record(folder: Path, case: Case, decoder: Decoder) -> None:
    """Make sure that the outcome on record is that of the case; frames are not looked at.

    Args:
        folder: The case.
        case: What ``case.json`` says.
        decoder: Knows the type of an outcome.

    Raises:
        CaseError: ``evidence_altered``.
    """
    check_end(folder.name, case)
    outcomes: list[bytes] = []
    path = folder / OUTCOME_FILE
    if case.outcome is not None and path.is_file():
        try:
            with open_bag(path) as bag:
                outcomes = [one.data for one in bag.messages((OUTCOME_TOPIC,))]
        except EvaluationError:
            pass  # a process may end before that file is whole
    _check_outcome(folder.name, case, outcomes, decoder)


def check_end(name: str, case: Case) -> None:
    """Make sure that the end of the run, and the outcome on record, are those of the completion.

    Raises:
        CaseError: ``evidence_altered``.
    """
    completion, outcome = case.completion, case.outcome
    end = max(completion.stamp, case.receipt)
    if case.captured.t_end != end:
        raise CaseError(
            ALTERED,
            f'{CASE_FILE} of {name} has another t_end than the later of stamp and receipt of its '
            f'completion; {_ADVICE}',
        )
    if outcome is None:
        return
    of = (completion.run_id, completion.tool, completion.segment, end)
    if of != (outcome.run_id, outcome.tool, outcome.segment, outcome.completed_at):
        raise CaseError(
            ALTERED, f'{CASE_FILE} of {name} has the outcome of another run; {_ADVICE}'
        )


def check_frames(name: str, frames: Iterable[Frame], decoder: Decoder) -> None:
    """Make sure that frames have the stamps that their own headers say.

    Args:
        name: Name of the case.
        frames: Its frames, or those of them that are needed.
        decoder: Reads them.

    Raises:
        CaseError: ``evidence_altered``.
        DecodeError: A frame cannot be read.
    """
    for frame in frames:
        header = decoder.stamp(frame.type, frame.data)
        stamp = frame.receipt
        if frame.stamp_source == 'header':
            if header is None:
                raise _altered_frame(name, frame, 'a stamp, but its type has no header')
            stamp = header.stamp
        if frame.stamp != stamp:
            raise _altered_frame(name, frame, 'another stamp than the frame itself')
        if header is not None and header.frame_id != frame.frame_id:
            raise _altered_frame(name, frame, 'another frame_id than the frame itself')


def _altered_frame(name: str, frame: Frame, what: str) -> CaseError:
    return CaseError(ALTERED, f'{CASE_FILE} of {name} gives {frame.stream!r} {what}; {_ADVICE}')


def _is_completion(message: BagMessage) -> bool:
    return message.topic == COMPLETION_TOPIC and message.type == COMPLETION_TYPE


def _is_outcome(message: BagMessage) -> bool:
    return message.topic == OUTCOME_TOPIC and message.type == OUTCOME_TYPE


def _difference(case: Case, message: BagMessage, decoder: Decoder) -> str:
    """What ``case.json`` says otherwise about the completion than the bag; empty: nothing."""
    said = case.completion
    read = decoder.message(COMPLETION_TYPE, message.data)
    came = Completion(
        read.run_id,
        read.tool,
        read.segment,
        nanoseconds_of(read.header.stamp),
        tuple((one.key, one.value) for one in read.arguments),
    )
    if case.receipt != message.receipt:
        return 'receipt'
    fields = ('run_id', 'tool', 'segment', 'stamp', 'arguments')
    return next((one for one in fields if getattr(said, one) != getattr(came, one)), '')


def _check_outcome(name: str, case: Case, data: Sequence[bytes], decoder: Decoder) -> None:
    """Hold the outcome on record against the one in the bag.

    It comes into ``case.json`` first, so that the bag may have an older one or none.
    """
    try:
        known = [outcome_of_bytes(OUTCOME_TYPE, one, decoder) for one in data]
    except DecodeError:
        return  # what a process left half written says nothing
    for one in known:
        newest = 0 if case.outcome is None else case.outcome.attempt
        same = case.outcome is not None and _answer(one) == _answer(case.outcome)
        if one.attempt > newest or (one.attempt == newest and not same):
            raise CaseError(
                ALTERED, f'{CASE_FILE} of {name} has another outcome than its bag; {_ADVICE}'
            )


def _answer(outcome: Outcome) -> tuple[object, ...]:
    """What was answered to what, by whom."""
    verdict = outcome.verdict
    return (
        outcome.run_id,
        outcome.tool,
        outcome.segment,
        outcome.kind,
        None if verdict is None else (verdict.status, verdict.score, verdict.failure_kind),
        outcome.score,
        outcome.error_kind,
        outcome.evaluator,
        outcome.input_digest,
        outcome.completed_at,
    )
