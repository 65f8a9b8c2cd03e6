"""A pipeline of the live node with a replay around it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
import tempfile
from types import TracebackType

from harness_eval.capture import TopicFacts
from harness_eval.cases import Case
from harness_eval.config import Config
from harness_eval.decode import Decoder
from harness_eval.judging import Thresholds
from harness_eval.oracle import OracleCalls
from harness_eval.pipeline import Pipeline
from harness_eval.pipeline.stored import evidence_digest
from harness_eval.replay.kept import ReplayCases
from harness_eval.replay.world import BagLedger, BagWorld
from harness_eval.reported_calls import Judge
from harness_eval.runs import Completion, Outcome, Segment


class Stage:
    """A pipeline with its world, its record and its place for cases; a context manager.

    Args:
        config: The whole configuration.
        judges: The evaluators by name.
        decoder: Reads messages.
        keep: Folder that new cases are kept in; None: none are.
        topics: Names of the topics as resolved, by their names in the configuration.
        facts: What a bag says about each topic that it holds, by name.
        oracles: Oracles whose recorded answers count, by tool; none is asked.
        scratch: Folder for what is temporary; None, or not there: that of the system.

    Attributes:
        world: The world around the pipeline.
        pipeline: The pipeline.
        required: Names of the tools that are judged.
    """

    def __init__(
        self,
        config: Config,
        judges: Mapping[str, Judge],
        decoder: Decoder,
        keep: Path | None,
        topics: Mapping[str, str],
        facts: Mapping[str, TopicFacts],
        oracles: Mapping[str, OracleCalls] | None = None,
        scratch: Path | None = None,
    ) -> None:
        self.required = config.evaluation.required_tools
        self.world = BagWorld(facts)
        self._decoder = decoder
        self._played: set[str] = set()
        self._undo = ExitStack()
        # A worker on another machine does not have the folder of the one that plans.
        place = scratch if scratch is not None and scratch.is_dir() else None
        folder = self._undo.enter_context(tempfile.TemporaryDirectory(dir=place))
        ledger = BagLedger(f'sqlite:///{folder}/ledger.sqlite3', self.world)
        self._undo.callback(ledger.close)
        self._cases = ReplayCases(
            keep, config.evidence.max_bytes, decoder, Thresholds.of(config.evaluation)
        )
        self.pipeline = Pipeline(
            config, ledger, self._cases, judges, decoder, self.world, topics, oracles
        )

    def __enter__(self) -> Stage:
        """Remove what is temporary at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove what is temporary."""
        self.close()

    def close(self) -> None:
        """Remove what is temporary; it may be called twice."""
        self._undo.close()

    def takes(self, completion: Completion, decoder: Decoder) -> bool:
        """Whether a stored segment can be judged here: by this decoder, and under its name."""
        return decoder is self._decoder and completion.run_id not in self._played

    def judge(self, case: Case) -> Outcome:
        """Judge a case, from its frames alone."""
        told: list[Outcome] = []
        digest = evidence_digest(case.captured)
        name = self._cases.lend(case, digest)
        self._played.add(case.completion.run_id)
        receipts = [frame.receipt for frame in case.captured.frames.values()]
        self.world.advance(max([case.captured.t_end, *receipts]))
        self.pipeline.judge_stored(case.completion, case.receipt, (name, digest), told.append)
        self.settle()
        return told[0]

    def settle(self) -> None:
        """Run what can run, and wait for judges."""
        self.world.settle(lambda: self.pipeline.judging)

    def seconds(self, outcome: Outcome) -> float:
        """Wall-clock seconds that the judge took; NaN if none was asked."""
        return self.world.take_seconds(outcome.run_id, outcome.segment)

    def folder(self, completion: Completion, receipt: int) -> Path | None:
        """Where the case of a segment was kept; None if it was not."""
        return self._cases.folder_of(Segment(completion, 0, receipt))
