"""What ``case.json`` says of a case, which its bag has no place for, and the case as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
import hashlib
import json
from pathlib import Path
import re
from typing import Any

from harness_eval.capture import Captured, Frame
from harness_eval.case_bag import read_frames
from harness_eval.contract import EvaluationError
from harness_eval.decode import Decoder
from harness_eval.judging import Thresholds
from harness_eval.oracle import OracleAnswer
from harness_eval.runs import Completion, Outcome, Segment

CASE_FILE = 'case.json'
CASE_VERSION = 1
_NAME = re.compile(r'[A-Za-z0-9][A-Za-z0-9_.-]*')


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
        thresholds: Where a score became a verdict when it was judged; None: not on record.
    """

    completion: Completion
    receipt: int
    captured: Captured
    outcome: Outcome | None = None
    labelled: bool = False
    oracle: OracleAnswer | None = None
    label: CaseLabel | None = None
    thresholds: Thresholds | None = None


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


def is_case_name(name: str) -> bool:
    """Whether a folder of that name may be a case; others are half written, or not ours."""
    return _NAME.fullmatch(name) is not None


def read_case(folder: Path, decoder: Decoder) -> Case:
    """The case in a folder.

    Raises:
        CaseError: ``evidence_lost``: it is not there, or not whole.
    """
    description = read_description(folder)
    return case_of(folder.name, description, read_frames(folder, description['streams']))


def read_description(folder: Path) -> dict[str, Any]:
    """What ``case.json`` says.

    Raises:
        CaseError: ``evidence_lost``: it is not there.
        ValueError: It is no JSON object.
    """
    path = folder / CASE_FILE
    if not path.exists():
        raise CaseError(
            'evidence_lost',
            f'the evidence {folder.name} is gone; it was deleted by hand, or to stay within '
            'evidence.max_bytes',
        )
    return dict(json.loads(path.read_text('utf-8')))


def case_of(name: str, description: Mapping[str, Any], frames: Mapping[str, Frame] | None) -> Case:
    """The case that a description and frames make.

    Args:
        name: Its name.
        description: What :func:`read_description` gives.
        frames: Its frames; None: they are not wanted, and ``captured`` has none.

    Raises:
        CaseError: ``evidence_lost``: a frame is not there.
        ValueError, KeyError, TypeError: The description is none.
    """
    if description['version'] != CASE_VERSION:
        raise ValueError(
            f'{CASE_FILE} is of version {description["version"]!r}, {CASE_VERSION} is known'
        )
    completion = _completion(description['completion'])
    outcome = description.get('outcome')
    for frame in (frames or {}).values():
        _check_frame(frame)
    streams = () if frames is None else tuple(description['streams'])
    missing = [stream for stream in streams if frames is not None and stream not in frames]
    if missing:
        raise CaseError(
            'evidence_lost', f'the evidence {name} has no whole frame of {missing[0]!r}'
        )
    return Case(
        completion=completion,
        receipt=_whole_number(description, 'receipt'),
        captured=Captured(
            {stream: frames[stream] for stream in streams} if frames is not None else {},
            _whole_number(description, 't_end'),
            float(description['spread']),
            dict(description['seen']),
        ),
        outcome=None if outcome is None else Outcome.from_json(json.dumps(outcome)),
        labelled=bool(description.get('labelled')),
        oracle=OracleAnswer.from_plain(description.get('oracle')),
        label=CaseLabel.from_plain(description.get('label')),
        thresholds=_thresholds(description.get('thresholds')),
    )


def oracle_of_case(root: Path, name: str) -> OracleAnswer | None:
    """What an oracle said of a case; None if none did, or if the case is not there (any more).

    Args:
        root: The folder of cases.
        name: Name of the case.
    """
    if not is_case_name(name):
        return None
    try:
        description = json.loads((root / name / CASE_FILE).read_text('utf-8'))
    except (OSError, ValueError):
        return None
    plain = description.get('oracle') if isinstance(description, dict) else None
    return OracleAnswer.from_plain(plain)


def describe_case(segment: Segment, captured: Captured) -> dict[str, Any]:
    """What ``case.json`` says of a segment that was captured."""
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


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(path.name + '.part')
    part.write_text(json.dumps(data, indent=1), 'utf-8')
    part.replace(path)


def _completion(data: Mapping[str, Any]) -> Completion:
    texts = [data['run_id'], data['tool']]
    arguments = tuple((name, value) for name, value in data['arguments'])
    texts += [text for pair in arguments for text in pair]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError('run_id, tool and arguments of the completion must be texts')
    for key in ('segment', 'stamp'):
        _whole_number(data, key)
    return Completion(**{**data, 'arguments': arguments})


def _check_frame(frame: Frame) -> None:
    """Make sure that what is said of a frame is of the types that its judges count on."""
    said = asdict(frame)
    for key in ('stamp', 'receipt', 'payload_offset'):
        _whole_number(said, key)
    for key in ('topic', 'type', 'frame_id', 'stamp_source'):
        if not isinstance(said[key], str):
            raise ValueError(f'{key} of {frame.stream!r} must be a text, found {said[key]!r}')


def _whole_number(data: Mapping[str, Any], key: str) -> int:
    value = data[key]
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f'{key} must be a whole number, found {value!r}')
    return value


def _thresholds(data: Any) -> Thresholds | None:
    try:
        return Thresholds(float(data['outcome']), float(data['failure']))
    except (KeyError, TypeError, ValueError):
        return None
