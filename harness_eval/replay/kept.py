"""Where a replay reads stored evidence from, and keeps new evidence if it is to."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from harness_eval.capture import Captured
from harness_eval.cases import Case, case_name, CaseError, CaseStore
from harness_eval.decode import Decoder
from harness_eval.judging import Thresholds
from harness_eval.oracle import OracleAnswer
from harness_eval.replay.case_labels import write_label
from harness_eval.replay.labels import LABEL
from harness_eval.replay.results import Truth
from harness_eval.runs import Outcome, Segment


class ReplayCases(CaseStore):
    """A store that keeps new cases in a folder, or nothing at all; sources are never changed.

    Args:
        root: Where cases are kept; None: nowhere.
        max_bytes: Most bytes kept there.
        decoder: Knows the definitions of the message types.
        thresholds: Where a score becomes a verdict.
    """

    def __init__(
        self, root: Path | None, max_bytes: int, decoder: Decoder, thresholds: Thresholds
    ) -> None:
        super().__init__(root or Path(), max_bytes, decoder, thresholds)
        self._kept = root
        self._lent: dict[str, tuple[Segment, Case]] = {}

    def lend(self, case: Case, evidence: str) -> str:
        """Have a case judged that was read elsewhere.

        Args:
            case: The case.
            evidence: Digest of its frames.

        Returns:
            Its name here.
        """
        segment = Segment(case.completion, 0, case.receipt, evidence_digest=evidence)
        name = case_name(segment)
        self._lent[name] = (segment, case)
        return name

    def folder_of(self, segment: Segment) -> Path | None:
        """Where the case of a segment was kept; None if it was not."""
        if self._kept is None:
            return None
        folder = self._kept / case_name(segment)
        return folder if folder.is_dir() else None

    def write(self, segment: Segment, captured: Captured) -> str:
        """Keep what was captured, if anything is kept."""
        return case_name(segment) if self._kept is None else super().write(segment, captured)

    def read(self, name: str) -> Case:
        """The case of that name that was lent."""
        try:
            return self._lent[name][1]
        except KeyError:
            raise CaseError('evidence_lost', f'no case {name} was lent to this replay') from None

    def finish(self, name: str, outcome: Outcome) -> None:
        """Note the outcome, with the evidence of a case that was lent, if anything is kept."""
        lent = self._lent.pop(name, None)
        if self._kept is None:
            return
        if lent is not None:
            segment, case = lent
            super().write(segment, case.captured)
            if case.oracle is not None:
                super().note_oracle(name, case.oracle)
            if case.label is not None:
                truth = Truth(case.label.correct, LABEL, case.label.note)
                write_label(self._kept / name, truth)
        super().finish(name, outcome)

    def note_oracle(self, name: str, answer: OracleAnswer) -> None:
        """Note what an oracle said, if anything is kept."""
        if self._kept is not None:
            super().note_oracle(name, answer)

    def remove(self, name: str) -> bool:
        """Delete a kept case."""
        return True if self._kept is None else super().remove(name)

    def enforce_bound(self, keep: Collection[str] = ()) -> list[str]:
        """Delete the oldest kept cases until the rest fits."""
        return [] if self._kept is None else super().enforce_bound(keep)

    def clear_leftovers(self) -> None:
        """Leave everything: other processes may write into the same folder."""
