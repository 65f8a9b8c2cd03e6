"""Judged segments kept on disk, so that they can be judged again.

A case is a rosbag2 folder (MCAP) with the completion and the chosen frames under their own
topics and types, beside a ``case.json`` that says which message belongs to which stream. Players
and viewers of bags open it as it stands. Frames are the CDR bytes as they came.

A case is written under a temporary name and renamed, so a folder with its proper name is whole.
Its name is made here: a run id is never used as a path.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
import hashlib
import json
import os
from pathlib import Path
import re
import shutil
import threading
from typing import Any, Literal

from harness_eval.capture import Captured, Frame
from harness_eval.contract import EvaluationError
from harness_eval.decode import Decoder
from harness_eval.lines import clean_line, describe
from harness_eval.oracle import OracleAnswer
from harness_eval.runs import Completion, Outcome, Segment

CASE_FILE = 'case.json'
CASE_VERSION = 1
COMPLETION_TOPIC = '/tool_completions'
COMPLETION_TYPE = 'harness_eval_msgs/msg/ToolCompletion'
_TEMPORARY = '.part-'
_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]*')
_BAG_VERSION: Literal[9] = 9
_NANOSECONDS = 10**9


class CaseError(EvaluationError):
    """A case could not be written or read."""


@dataclass(frozen=True)
class CaseLabel:
    """What a person says really happened.

    Attributes:
        correct: The segment achieved what it was asked to do.
        note: What the person wrote beside it.
    """

    correct: bool
    note: str = ''

    @classmethod
    def from_plain(cls, data: Any) -> CaseLabel | None:
        """Read plain data; None for what does not hold a label."""
        if not isinstance(data, dict) or not isinstance(data.get('correct'), bool):
            return None
        return cls(data['correct'], str(data.get('note', '')))


@dataclass(frozen=True)
class Case:
    """One judged segment, as it was kept.

    Attributes:
        completion: What was reported.
        receipt: Nanoseconds of its receipt on the node's clock.
        captured: The chosen frames.
        outcome: The newest outcome, if there is one.
        labelled: Somebody noted the truth of it; such a case is never deleted.
        oracle: What the tool's oracle said of it, if it has one and has been asked.
        label: The truth that somebody noted within the case (``harness-eval label``).
    """

    completion: Completion
    receipt: int
    captured: Captured
    outcome: Outcome | None = None
    labelled: bool = False
    oracle: OracleAnswer | None = None
    label: CaseLabel | None = None


class CaseStore:
    """A folder of cases, kept within a number of bytes. Safe to use from several threads.

    Args:
        root: The folder; made when the first case is written.
        max_bytes: Most bytes kept; the oldest cases go first, labelled ones never.
        decoder: Knows the definitions of the message types.
    """

    def __init__(self, root: Path, max_bytes: int, decoder: Decoder) -> None:
        self._root = root
        self._max_bytes = max_bytes
        self._decoder = decoder
        self._lock = threading.Lock()
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
            _write_bag(part, segment, captured, self._decoder)
            _write_json(part / CASE_FILE, _description(segment, captured))
            final = self._root / name
            if final.exists():
                shutil.rmtree(final)
            size = _size(part)
            self.hold(name)
            with self._lock:
                self._known_sizes()[name] = size
                part.replace(final)
        except Exception as error:  # rosbags raises errors of many kinds for one full disk
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
        """Note the outcome beside the evidence, which nobody uses any more.

        Raises:
            CaseError: ``evidence_not_stored``.
        """
        path = self._folder(name) / CASE_FILE
        try:
            self._let_go(name)
            with self._lock:
                description = json.loads(path.read_text('utf-8'))
                newest = description.get('outcome') or {'attempt': 0}
                if newest['attempt'] <= outcome.attempt:  # else another attempt was quicker
                    description['outcome'] = json.loads(outcome.to_json())
                    _write_json(path, description)
        except (OSError, ValueError) as error:
            raise CaseError(
                'evidence_not_stored', f'cannot note the outcome of {name}: {_reason(error)}'
            ) from error

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
                _write_json(path, description)
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
        if not _NAME.fullmatch(name):
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
                if not _NAME.fullmatch(folder.name):
                    continue  # half written, or not ours
                try:
                    made = (folder / CASE_FILE).stat().st_mtime_ns
                    found.append((made, folder.name, _size(folder)))
                except OSError:
                    continue  # no case, or deleted just now
            self._sizes = {name: size for _, name, size in sorted(found)}
        return self._sizes


def case_name(segment: Segment) -> str:
    """Name of the folder for a segment: readable, and safe whatever the run id holds.

    The receipt is part of it, so that the same run id under another ledger (a simulation that is
    started again) does not take the place of the older case.
    """
    run_id = segment.completion.run_id
    readable = re.sub(r'[^A-Za-z0-9_-]+', '-', run_id)[:40].strip('-_') or 'run'
    identity = f'{segment.receipt} {run_id}'.encode('utf-8', 'surrogatepass')
    digest = hashlib.sha256(identity).hexdigest()[:12]
    return f'{readable}-{digest}-{segment.completion.segment}'


def read_case(folder: Path, decoder: Decoder) -> Case:
    """The case in a folder.

    Raises:
        CaseError: ``evidence_lost``: it is not there, or not whole.
    """
    path = folder / CASE_FILE
    if not path.exists():
        raise CaseError(
            'evidence_lost',
            f'the evidence {folder.name} is gone; it was deleted by hand, or to stay within '
            'evidence.max_bytes',
        )
    description = json.loads(path.read_text('utf-8'))
    data = dict(description['completion'])
    data['arguments'] = tuple((name, value) for name, value in data['arguments'])
    outcome = description.get('outcome')
    return Case(
        completion=Completion(**data),
        receipt=description['receipt'],
        captured=_read_frames(folder, description),
        outcome=None if outcome is None else Outcome.from_json(json.dumps(outcome)),
        labelled=bool(description.get('labelled')),
        oracle=OracleAnswer.from_plain(description.get('oracle')),
        label=CaseLabel.from_plain(description.get('label')),
    )


def oracle_of_case(root: Path, name: str) -> OracleAnswer | None:
    """What an oracle said of a case; None if none did, or if the case is not there (any more).

    Args:
        root: The folder of cases.
        name: Name of the case.
    """
    if not _NAME.fullmatch(name):
        return None
    try:
        description = json.loads((root / name / CASE_FILE).read_text('utf-8'))
    except (OSError, ValueError):
        return None
    plain = description.get('oracle') if isinstance(description, dict) else None
    return OracleAnswer.from_plain(plain)


def _description(segment: Segment, captured: Captured) -> dict[str, Any]:
    streams = {}
    for name, frame in captured.frames.items():
        fields = asdict(frame)
        fields['sha256'] = frame.sha256
        del fields['data'], fields['stream']
        streams[name] = fields
    return {
        'version': CASE_VERSION,
        'completion': asdict(segment.completion),
        'receipt': segment.receipt,
        't_end': captured.t_end,
        'spread': captured.spread,
        'seen': dict(captured.seen),
        'streams': streams,
    }


def _write_bag(folder: Path, segment: Segment, captured: Captured, decoder: Decoder) -> None:
    from rosbags.rosbag2 import StoragePlugin, Writer

    with Writer(folder, version=_BAG_VERSION, storage_plugin=StoragePlugin.MCAP) as bag:
        connections: dict[tuple[str, str], Any] = {}

        def write(topic: str, kind: str, stamp: int, data: bytes) -> None:
            connection = connections.get((topic, kind))
            if connection is None:
                connection = bag.add_connection(topic, kind, typestore=decoder.typestore_for(kind))
                connections[topic, kind] = connection
            bag.write(connection, stamp, data)

        message = completion_message(segment.completion, decoder)
        write(COMPLETION_TOPIC, COMPLETION_TYPE, segment.receipt, message)
        written = set()
        for frame in sorted(captured.frames.values(), key=lambda f: (f.receipt, f.stream)):
            # Several readings may come from one message; but a simulated clock gives messages
            # that came one after the other the same receipt.
            topic = _absolute(frame.topic)
            key = (topic, frame.receipt, frame.sha256)
            if key not in written:
                written.add(key)
                write(topic, frame.type, frame.receipt, frame.data)


def _read_frames(folder: Path, description: dict[str, Any]) -> Captured:
    from rosbags.rosbag2 import Reader

    wanted: dict[tuple[str, int], list[str]] = {}
    for name, fields in description['streams'].items():
        wanted.setdefault((_absolute(fields['topic']), fields['receipt']), []).append(name)
    frames: dict[str, Frame] = {}
    with Reader(folder) as bag:
        for connection, stamp, data in bag.messages():
            for name in wanted.get((connection.topic, stamp), ()):
                fields = dict(description['streams'][name])
                digest = fields.pop('sha256')
                if hashlib.sha256(data).hexdigest() == digest:
                    frames[name] = Frame(stream=name, data=bytes(data), **fields)
    missing = [name for name in description['streams'] if name not in frames]
    if missing:
        raise CaseError(
            'evidence_lost', f'the evidence {folder.name} has no whole frame of {missing[0]!r}'
        )
    return Captured(
        {name: frames[name] for name in description['streams']},
        description['t_end'],
        description['spread'],
        description['seen'],
    )


def completion_message(completion: Completion, decoder: Decoder) -> bytes:
    """The completion as the CDR bytes of a ``ToolCompletion``."""
    seconds, nanoseconds = divmod(completion.stamp, _NANOSECONDS)
    time = decoder.new('builtin_interfaces/msg/Time', sec=seconds, nanosec=nanoseconds)
    message = decoder.new(
        COMPLETION_TYPE,
        header=decoder.new('std_msgs/msg/Header', stamp=time, frame_id=''),
        run_id=completion.run_id,
        tool=completion.tool,
        segment=completion.segment,
        arguments=[
            decoder.new('diagnostic_msgs/msg/KeyValue', key=name, value=value)
            for name, value in completion.arguments
        ],
    )
    return decoder.serialize(COMPLETION_TYPE, message)


def _absolute(topic: str) -> str:
    return topic if topic.startswith('/') else '/' + topic


def _write_json(path: Path, data: dict[str, Any]) -> None:
    part = path.with_name(path.name + '.part')
    part.write_text(json.dumps(data, indent=1), 'utf-8')
    part.replace(path)


def _size(folder: Path) -> int:
    return sum(entry.stat().st_size for entry in os.scandir(folder))


def _reason(error: BaseException) -> str:
    return clean_line(describe(error), 200)
