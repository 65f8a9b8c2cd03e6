"""Labels kept within cases, so that they travel with them and no bound deletes such a case."""

from __future__ import annotations

from dataclasses import asdict, dataclass
import json
from pathlib import Path
from typing import Any

from harness_eval.cases import CASE_FILE, CaseError, CaseLabel
from harness_eval.lines import describe
from harness_eval.oracle import OracleAnswer
from harness_eval.replay.labels import LABEL
from harness_eval.replay.results import Truth


@dataclass(frozen=True)
class LabelledCase:
    """What a case says about itself, without its frames.

    Attributes:
        folder: The case.
        run_id: Its run.
        segment: Number of its segment.
        truth: What really happened, if somebody noted it.
    """

    folder: Path
    run_id: str
    segment: int
    truth: Truth | None

    @property
    def key(self) -> tuple[str, str, int]:
        """Source, run id and segment, as of a result of this case."""
        return self.folder.name, self.run_id, self.segment


def read_labelled_case(folder: Path) -> LabelledCase:
    """What a case says about itself; its frames are not looked at.

    Raises:
        CaseError: ``evidence_lost``: it is no case, or not whole.
    """
    description = _description(folder)
    try:
        completion = description['completion']
        return LabelledCase(
            folder,
            str(completion['run_id']),
            int(completion['segment']),
            truth_of(
                CaseLabel.from_plain(description.get('label')),
                OracleAnswer.from_plain(description.get('oracle')),
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CaseError(
            'evidence_lost', f'{CASE_FILE} of {folder.name} is damaged: {describe(error)}'
        ) from error


def truth_of(label: CaseLabel | None, oracle: OracleAnswer | None) -> Truth | None:
    """The truth that a case holds: the label of a person, else the oracle's answer.

    Args:
        label: What a person noted within it.
        oracle: What the oracle said of it.
    """
    if label is not None:
        return Truth(label.correct, LABEL, label.note)
    if oracle is not None and oracle.outcome_correct is not None:
        return Truth(oracle.outcome_correct, 'oracle')
    return None


def write_label(folder: Path, truth: Truth) -> None:
    """Note a label within a case, which from then on is never deleted to make room.

    The file is replaced at once: whoever reads it finds the old one or the new one.

    Args:
        folder: The case.
        truth: What a person says.

    Raises:
        CaseError: ``evidence_lost``: it is no case; ``label_not_stored``: it cannot be written.
    """
    description = _description(folder)
    description['labelled'] = True
    description['label'] = asdict(CaseLabel(truth.correct, truth.note))
    part = folder / f'{CASE_FILE}.label.part'
    try:
        part.write_text(json.dumps(description, indent=1), 'utf-8')
        part.replace(folder / CASE_FILE)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise CaseError(
            'label_not_stored',
            f'the label of {folder.name} cannot be written: {describe(error)}',
            retryable=True,
        ) from error


def _description(folder: Path) -> dict[str, Any]:
    try:
        description = json.loads((folder / CASE_FILE).read_text('utf-8'))
    except (OSError, ValueError, RecursionError) as error:
        raise CaseError(
            'evidence_lost', f'{CASE_FILE} of {folder.name} cannot be read: {describe(error)}'
        ) from error
    if not isinstance(description, dict):
        raise CaseError('evidence_lost', f'{CASE_FILE} of {folder.name} is no object')
    return description
