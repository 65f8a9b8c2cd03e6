"""Judged segments kept on disk, so that they can be judged again.

A case is a rosbag2 folder (MCAP) with the completion, the chosen frames and the outcome under
their own topics and types, beside a ``case.json`` that says which message belongs to which stream.
Players and viewers of bags open it as it stands. Frames are the CDR bytes as they came.

A case is written under a temporary name and renamed, so a folder with its proper name is whole.
Its name is made here: a run id is never used as a path.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict
import json
import os
from pathlib import Path
import shutil
import threading
from typing import Any

from harness_eval.capture import Captured
from harness_eval.case_bag import (
    add_outcome,
    completion_message,
    COMPLETION_TOPIC,
    COMPLETION_TYPE,
    OUTCOME_TOPIC,
    write_bag,
)
from harness_eval.case_file import (
    Case,
    CASE_FILE,
    case_name,
    CaseError,
    CaseLabel,
    describe_case,
    is_case_name,
    oracle_of_case,
    read_case,
    write_json,
)
from harness_eval.decode import Decoder
from harness_eval.judging import Thresholds
from harness_eval.lines import clean_line, describe
from harness_eval.oracle import OracleAnswer
from harness_eval.runs import Outcome, Segment

__all__ = [
    'CASE_FILE',
    'COMPLETION_TOPIC',
    'COMPLETION_TYPE',
    'OUTCOME_TOPIC',
    'Case',
    'CaseError',
    'CaseLabel',
    'CaseStore',
    'case_name',
    'completion_message',
    'oracle_of_case',
    'read_case',
]

_TEMPORARY = '.part-'


class CaseStore:
    """A folder of cases, kept within a number of bytes. Safe to use from several threads.

    Args:
        root: The folder; made when the first case is written.
        max_bytes: Most bytes kept; the oldest cases go first, labelled ones never.
        decoder: Knows the definitions of the message types.
        thresholds: Where a score becomes a verdict; noted with each outcome.
    """

    def __init__(
        self,
        root: Path,
        max_bytes: int,
        decoder: Decoder,
        thresholds: Thresholds | None = None,
    ) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._decoder = decoder
        self._thresholds = thresholds
        self._lock = threading.Lock()
        self._bag_lock = threading.Lock()
        self._sizes: dict[str, int] | None = None
        self._in_use: set[str] = set()
        self._use_lock = threading.Lock()  # never held while the disk is touched

    def write(self, segment: Segment, captured: Captured) -> str:
        """Keep what was captured for a segment.

        Returns:
            Name of the case. No bound deletes it before :meth:`finish` or :meth:`remove`.

        Raises:
            CaseError: ``evidence_not_stored``, for example because the disk is full.
        """
        name = case_name(segment)
        part = self._root / (_TEMPORARY + name)
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(part, ignore_errors=True)
            write_bag(part, segment, captured, self._decoder)
            write_json(part / CASE_FILE, describe_case(segment, captured))
            final = self._root / name
            if final.exists():
                shutil.rmtree(final)
            size = _size(part)
            self.hold(name)
            with self._lock:
                self._known_sizes()[name] = size
                part.replace(final)
        except Exception as error:  # libraries have errors of many kinds for a full disk
            shutil.rmtree(part, ignore_errors=True)
            self.remove(name)
            raise CaseError(
                'evidence_not_stored',
                f'the evidence could not be written: {_reason(error)}; make room, or set '
                'evidence_dir to a folder that can be written',
                retryable=True,
            ) from error
        return name

    def hold(self, name: str) -> None:
        """Keep a case from being deleted by a bound, until :meth:`finish` or :meth:`remove`."""
        with self._use_lock:
            self._in_use.add(name)

    def read(self, name: str) -> Case:
        """The case of that name.

        Raises:
            CaseError: ``evidence_lost``: it is not there, or not whole.
        """
        try:
            return read_case(self._folder(name), self._decoder)
        except CaseError:
            raise
        except Exception as error:  # a damaged file may raise anything
            raise CaseError(
                'evidence_lost', f'the evidence {name} cannot be read: {_reason(error)}'
            ) from error

    def finish(self, name: str, outcome: Outcome) -> None:
        """Note the outcome with the evidence, which nobody uses any more.

        It is noted in ``case.json`` first; a process that ends before it is in the bag as well
        leaves a case that can be read.

        Raises:
            CaseError: ``evidence_not_stored``.
        """
        folder = self._folder(name)
        try:
            with self._lock:
                description = _newest_attempt(folder, outcome)
                if description is None:
                    return
                description['outcome'] = json.loads(outcome.to_json())
                if self._thresholds is not None:
                    description['thresholds'] = asdict(self._thresholds)
                write_json(folder / CASE_FILE, description)
            self._put_into_bag(folder, outcome)
        except CaseError:
            raise
        except Exception as error:  # libraries have errors of many kinds for a full disk
            raise CaseError(
                'evidence_not_stored', f'cannot note the outcome of {name}: {_reason(error)}'
            ) from error
        finally:
            self._let_go(name)

    def _put_into_bag(self, folder: Path, outcome: Outcome) -> None:
        """Under a lock of its own: nobody who writes evidence waits for this."""
        with self._bag_lock:
            if _newest_attempt(folder, outcome) is None:
                return
            add_outcome(folder, outcome, self._decoder)
        with self._lock:
            if self._sizes is not None and folder.name in self._sizes:
                self._sizes[folder.name] = _size(folder)

    def note_oracle(self, name: str, answer: OracleAnswer) -> None:
        """Note what an oracle said beside the evidence; for a case that is gone this does nothing.

        Raises:
            CaseError: ``evidence_not_stored``.
        """
        path = self._folder(name) / CASE_FILE
        try:
            with self._lock:
                description = json.loads(path.read_text('utf-8'))
                description['oracle'] = answer.to_plain()
                write_json(path, description)
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise CaseError(
                'evidence_not_stored', f'cannot note the oracle of {name}: {_reason(error)}'
            ) from error

    def remove(self, name: str) -> bool:
        """Delete a case, unless it is labelled; one that is not there is no matter.

        Returns:
            Whether it is gone.
        """
        self._let_go(name)
        with self._lock:
            if self._is_labelled(name):
                return False
            if self._sizes is not None:
                self._sizes.pop(name, None)
        shutil.rmtree(self._folder(name), ignore_errors=True)
        return True

    def enforce_bound(self, keep: Collection[str] = ()) -> list[str]:
        """Delete the oldest cases until the rest fits.

        Args:
            keep: Names that are still needed whatever their age.

        Returns:
            Names of what was deleted.
        """
        removed = []
        with self._lock:
            sizes = self._known_sizes()
            total = sum(sizes.values())
            for name in list(sizes):
                if total <= self._max_bytes:
                    break
                if name in keep or self._is_in_use(name) or self._is_labelled(name):
                    continue
                total -= sizes.pop(name)
                removed.append(name)
        for name in removed:
            shutil.rmtree(self._folder(name), ignore_errors=True)
        return removed

    def clear_leftovers(self) -> None:
        """Delete what a killed process left half written."""
        if self._root.is_dir():
            for part in self._root.glob(f'{_TEMPORARY}*'):
                shutil.rmtree(part, ignore_errors=True)

    def _folder(self, name: str) -> Path:
        if not is_case_name(name):
            raise CaseError('evidence_lost', f'{name!r} is not the name of a case')
        return self._root / name

    def _let_go(self, name: str) -> None:
        with self._use_lock:
            self._in_use.discard(name)

    def _is_in_use(self, name: str) -> bool:
        with self._use_lock:
            return name in self._in_use

    def _is_labelled(self, name: str) -> bool:
        try:
            description = json.loads((self._folder(name) / CASE_FILE).read_text('utf-8'))
        except (OSError, ValueError):
            return False
        return bool(description.get('labelled'))

    def _known_sizes(self) -> dict[str, int]:
        if self._sizes is None:
            found = []
            for folder in self._root.glob('*'):
                if not is_case_name(folder.name):
                    continue  # half written, or not ours
                try:
                    made = (folder / CASE_FILE).stat().st_mtime_ns
                    found.append((made, folder.name, _size(folder)))
                except OSError:
                    continue  # no case, or deleted just now
            self._sizes = {name: size for _, name, size in sorted(found)}
        return self._sizes


def _newest_attempt(folder: Path, outcome: Outcome) -> dict[str, Any] | None:
    """What is noted of a case; None if that is a later attempt than the one of an outcome."""
    description: dict[str, Any] = json.loads((folder / CASE_FILE).read_text('utf-8'))
    newest = description.get('outcome') or {'attempt': 0}
    return None if newest['attempt'] > outcome.attempt else description


def _size(folder: Path) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder))


def _reason(error: BaseException) -> str:
    return clean_line(describe(error), 200)
