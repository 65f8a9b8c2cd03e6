"""Cases, read for a replay: with the decoder that knows the types of their messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
import os
from pathlib import Path

from harness_eval.case_bag import frames_of
from harness_eval.case_file import case_of, read_description
from harness_eval.cases import Case, CaseError, COMPLETION_TYPE
from harness_eval.contract import DecodeError, EvaluationError
from harness_eval.decode import Decoder
from harness_eval.lines import clean_line, describe
from harness_eval.outcome_messages import OUTCOME_TYPE
from harness_eval.replay.bags import Bag, BagMessage, Definition, open_bag
from harness_eval.replay.proof import check_case, check_record

_MOST_BESIDE = 8
"""Messages of a case that are no frames: it has one completion and at most one outcome."""


class StoredCases:
    """Reads cases; those whose types are defined alike share a decoder."""

    def __init__(self) -> None:
        self._decoder = Decoder.from_environment(os.environ)
        self._known: dict[str, Definition] = {}

    def read(self, folder: Path) -> tuple[Case, Decoder]:
        """A case, and a decoder that knows the definitions which it carries.

        Raises:
            EvaluationError: It cannot be read; the message names no path.
        """
        with _telling_what_is_wrong(folder):
            description = read_description(folder)
            with open_bag(folder) as bag:
                beside: list[BagMessage] = []
                frames = frames_of(description['streams'], _frames(bag, beside))
                case = case_of(folder.name, description, frames)
                decoder = self._knowing(bag)
                check_case(folder.name, case, beside, decoder)
                return case, decoder

    def read_record(self, folder: Path) -> Case:
        """A case for its outcome alone; ``captured`` has no frames.

        Raises:
            EvaluationError: As :meth:`read`.
        """
        case = read_without_frames(folder)
        with _telling_what_is_wrong(folder):
            check_record(folder, case, self._decoder)
        return case

    def _knowing(self, bag: Bag) -> Decoder:
        found = bag.definitions
        if any(self._known.get(name, one) != one for name, one in found.items()):
            self._decoder, self._known = Decoder.from_environment(os.environ), {}
        for name, one in found.items():
            if name not in self._known:
                with suppress(DecodeError):  # whoever needs that type is told
                    self._decoder.register(name, one.text, one.form)
        self._known.update(found)
        return self._decoder


def read_without_frames(folder: Path) -> Case:
    """A case as ``case.json`` says; ``captured`` has no frames.

    Raises:
        EvaluationError: It cannot be read; the message names no path.
    """
    with _telling_what_is_wrong(folder):
        return case_of(folder.name, read_description(folder), None)


def _frames(bag: Bag, beside: list[BagMessage]) -> Iterator[tuple[str, int, bytes]]:
    """The messages of a case; those that are its record are noted beside."""
    for message in bag.messages(bag.topics):
        if message.type in (COMPLETION_TYPE, OUTCOME_TYPE) and len(beside) < _MOST_BESIDE:
            beside.append(message)
        yield message.topic, message.receipt, message.data


@contextmanager
def _telling_what_is_wrong(folder: Path) -> Iterator[None]:
    try:
        yield
    except EvaluationError:
        raise
    except Exception as error:  # a damaged file may raise anything
        what = clean_line(describe(error), 200).replace(f'{folder}', folder.name)
        raise CaseError(
            'case_damaged', f'the case {folder.name} cannot be read: {what}'
        ) from error
