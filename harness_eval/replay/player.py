"""Runs in a bag and stored cases, judged again by the pipeline of the live node.

A :class:`Player` drives a :class:`~harness_eval.pipeline.Pipeline` by the times of a bag.
Deadlines end waits at the nanosecond after them, and whatever came until then counts. Nothing
depends on how fast the machine is; only a judge's own deadline runs on its clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import zip_longest
import math
from pathlib import Path
import tempfile
from types import TracebackType

from harness_eval.capture import TopicFacts
from harness_eval.cases import Case
from harness_eval.config import Config
from harness_eval.contract import EvaluationError
from harness_eval.decode import Decoder
from harness_eval.judging import Thresholds
from harness_eval.oracle import build_oracle, OracleCalls
from harness_eval.pipeline import Pipeline
from harness_eval.pipeline.stored import evidence_digest
from harness_eval.replay.bags import Bag
from harness_eval.replay.case_labels import truth_of
from harness_eval.replay.kept import ReplayCases
from harness_eval.replay.recorded import Key
from harness_eval.replay.results import Result, Skipped
from harness_eval.replay.streams import fitting, missing_topics, resolved_topics
from harness_eval.replay.world import BagLedger, BagWorld
from harness_eval.reported_calls import Judge
from harness_eval.requests import Requests
from harness_eval.runs import Completion, completion_problem, Outcome, printable, Segment
from harness_eval.times import SECOND

TICK = 20_000_000
"""Nanoseconds between two looks at the clock while a run waits for frames, as in the live node."""

Played = Result | Skipped


class Player:
    """Judges one source after the other; a context manager.

    Args:
        config: The whole configuration.
        judges: The evaluators by name, each behind its calls.
        keep: Folder that new cases are kept in; None: none are.
        namespace: Namespace of the node that took the evidence; None: the root for bags,
            whichever it was for cases.
    """

    def __init__(
        self,
        config: Config,
        judges: Mapping[str, Judge],
        *,
        keep: Path | None = None,
        namespace: str | None = None,
    ) -> None:
        self._config = config
        self._judges = judges
        self._keep = keep
        self._namespace = namespace
        self._stage: _Stage | None = None

    def __enter__(self) -> Player:
        """Remove what is temporary at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove what is temporary."""
        self._clear()

    def play_case(self, source: str, folder: Path, case: Case, decoder: Decoder) -> Played:
        """Judge a stored case by the rules of now.

        Args:
            source: Its name in results.
            folder: Where it lies.
            case: What it holds.
            decoder: Reads its messages.
        """
        tool = case.completion.tool
        if tool not in self._config.evaluation.required_tools:
            return Skipped(
                source,
                'not_required',
                f'it is a run of {printable(tool, 80)!r}, which is not one of required_tools',
            )
        streams = Requests(self._config, decoder).streams_of(tool)
        try:
            captured = fitting(case.captured, streams, self._namespace, tool)
        except EvaluationError as error:
            return Skipped(source, error.kind, error.message)
        stage = self._stage_for(case.completion, decoder)
        outcome = stage.judge(replace(case, captured=captured))
        return Result(
            source=source,
            completion=case.completion,
            outcome=outcome,
            recorded=case.outcome,
            truth=truth_of(case.label, case.oracle),
            seconds=stage.seconds(outcome),
            case=folder if self._keep is None else stage.folder(case.completion, case.receipt),
        )

    def play_bag(
        self,
        source: str,
        bag: Bag,
        completions: Sequence[tuple[Completion, int]],
        decoder: Decoder,
        recorded: Mapping[Key, Outcome],
    ) -> Iterator[tuple[int, Played]]:
        """Judge the runs of a bag; only what they need is read of it.

        Args:
            source: Its name in results.
            bag: The bag.
            completions: Completions with their receipts (ns), in order of receipt.
            decoder: Reads its messages.
            recorded: Outcomes that the bag carries.

        Yields:
            What became of each completion and its place among them, in order. Repetitions of
            one and completions of tools that are not required are left out.
        """
        topics = resolved_topics(self._config, self._namespace or '')
        facts = {
            name: TopicFacts(publishers=1, types=(topic.type,))
            for name, topic in bag.topics.items()
        }
        requests = Requests(self._config, decoder, topics)
        with _Stage(self._config, self._judges, decoder, self._keep, topics, facts) as stage:
            for ended in _Reading(stage, bag).play(completions):
                completion, receipt = completions[ended.number]
                outcome, refusal = ended.outcome, ended.refusal
                name = f'run {printable(completion.run_id, 80)!r} segment {completion.segment}'
                if refusal:
                    kind, _, why = refusal.partition(': ')
                    yield ended.number, Skipped(source, kind, f'{name}: {why}')
                    continue
                if outcome.error_kind == 'no_publisher':
                    streams = requests.streams_of(completion.tool)
                    hint = missing_topics(bag.topics, streams)
                    outcome = replace(outcome, message=outcome.message + hint)
                key = completion.run_id, completion.segment
                yield (
                    ended.number,
                    Result(
                        source=source,
                        completion=completion,
                        outcome=outcome,
                        recorded=recorded.get(key),
                        seconds=stage.seconds(outcome),
                        case=stage.folder(completion, receipt),
                    ),
                )

    def _stage_for(self, completion: Completion, decoder: Decoder) -> _Stage:
        """A stage on which a segment of that name was not judged yet."""
        if self._stage is None or not self._stage.takes(completion, decoder):
            self._clear()
            oracles = _oracles(self._config)
            self._stage = _Stage(self._config, self._judges, decoder, self._keep, {}, {}, oracles)
        return self._stage

    def _clear(self) -> None:
        stage, self._stage = self._stage, None
        if stage is not None:
            stage.close()


class _Stage:
    """A pipeline with its world, its record and its place for cases."""

    def __init__(
        self,
        config: Config,
        judges: Mapping[str, Judge],
        decoder: Decoder,
        keep: Path | None,
        topics: Mapping[str, str],
        facts: Mapping[str, TopicFacts],
        oracles: Mapping[str, OracleCalls] | None = None,
    ) -> None:
        self.required = config.evaluation.required_tools
        self.world = BagWorld(facts)
        self._decoder = decoder
        self._played: set[str] = set()
        self._undo = ExitStack()
        folder = self._undo.enter_context(tempfile.TemporaryDirectory(prefix='harness_eval_'))
        ledger = BagLedger(f'sqlite:///{folder}/ledger.sqlite3', self.world)
        self._undo.callback(ledger.close)
        self._cases = ReplayCases(
            keep, config.evidence.max_bytes, decoder, Thresholds.of(config.evaluation)
        )
        self.pipeline = Pipeline(
            config, ledger, self._cases, judges, decoder, self.world, topics, oracles
        )

    def __enter__(self) -> _Stage:
        return self

    def __exit__(self, *_: object) -> None:
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


@dataclass(frozen=True)
class _Ended:
    """What a completion came to.

    Attributes:
        number: Its place among the completions.
        told: The outcome, once it is there.
        refusal: Why it was not taken; empty if it was.
    """

    number: int
    told: list[Outcome]
    refusal: str

    @property
    def outcome(self) -> Outcome:
        return self.told[0]


class _Reading:
    """Reads as much of a bag as runs need, and hands it to their pipeline in order."""

    def __init__(self, stage: _Stage, bag: Bag) -> None:
        self._world = stage.world
        self._pipeline = stage.pipeline
        self._settle = stage.settle
        self._required = stage.required
        self._bag = bag
        self._ticked = 0

    def play(self, completions: Sequence[tuple[Completion, int]]) -> Iterator[_Ended]:
        """What becomes of each completion, in order, as soon as no earlier one is open."""
        waiting: deque[_Ended] = deque()
        seen: set[tuple[str, int, str]] = set()
        ordered = [
            (number, completion, receipt)
            for number, (completion, receipt) in enumerate(completions)
            if completion.tool in self._required
        ]
        following = [receipt for _, _, receipt in ordered[1:]]
        for (number, completion, receipt), until in zip_longest(ordered, following):
            told = self._take(completion, receipt)
            identity = completion.run_id, completion.segment, completion.fingerprint
            if identity not in seen or completion_problem(completion) is not None:
                waiting.append(_Ended(number, told, self._world.rejection))
            seen.add(identity)
            self._read(receipt, until)
            while waiting and waiting[0].told:
                yield waiting.popleft()

    def _take(self, completion: Completion, receipt: int) -> list[Outcome]:
        told: list[Outcome] = []
        self._world.rejection = ''
        self._world.advance(receipt)
        self._pipeline.completion(completion, receipt, told.append)
        self._settle()
        return told

    def _read(self, start: int, until: int | None) -> None:
        """Hand in messages until nothing waits, or until the next completion comes."""
        if self._pipeline.capturing:
            last = self._last_deadline() + 1
            stop = last if until is None else min(last, until)
            for message in self._bag.messages(self._world.topics, start, stop):
                self._pass(message.receipt)
                if not self._pipeline.capturing:
                    return
                self._pipeline.frame(message.topic, message.type, message.data, message.receipt)
                self._settle()
                if not self._pipeline.capturing:
                    return
        if self._pipeline.capturing:
            self._pass(self._last_deadline() + 1 if until is None else until)

    def _pass(self, now: int) -> None:
        """Let time go on, and look at each deadline that it goes past, in order."""
        while self._pipeline.capturing and (due := self._first_deadline()) < now:
            self._tick(max(due, self._world.ros_now()) + 1)
        if now > self._world.ros_now():
            self._world.advance(now)
        if self._pipeline.capturing and now >= self._ticked + TICK:
            self._tick(now)

    def _tick(self, now: int) -> None:
        self._ticked = now
        self._world.advance(now)
        self._pipeline.tick()
        self._settle()

    def _first_deadline(self) -> int:
        return min(self._deadlines())

    def _last_deadline(self) -> int:
        return max(self._deadlines())

    def _deadlines(self) -> list[int]:
        """When waits for frames end, in nanoseconds of the bag's time."""
        now, steady = self._world.ros_now(), self._world.steady_now()
        return [
            min(ros, now + math.ceil((wall - steady) * SECOND))
            for ros, wall in self._pipeline.capture_deadlines
        ]


def _oracles(config: Config) -> dict[str, OracleCalls]:
    """Oracles whose recorded answers count; none is asked, since what they see now is not it."""
    return {
        tool: OracleCalls(
            build_oracle(settings.oracle),
            settings.oracle.timeout,
            decides=settings.oracle.decides,
        )
        for tool, settings in config.evaluation.tools.items()
        if settings.oracle is not None
    }
