"""Runs in a bag and stored cases, judged again by the pipeline of the live node.

A :class:`Player` drives a :class:`~harness_eval.pipeline.Pipeline` by the times of a bag.
Deadlines end waits at the nanosecond after them, and whatever came until then counts. Nothing
depends on how fast the machine is; only a judge's own deadline runs on its clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from harness_eval.capture import TopicFacts
from harness_eval.cases import Case
from harness_eval.config import Config
from harness_eval.contract import EvaluationError
from harness_eval.decode import Decoder
from harness_eval.oracle import build_oracle, OracleCalls
from harness_eval.replay.bags import absolute_name, Bag
from harness_eval.replay.case_labels import truth_of
from harness_eval.replay.proof import check_frames
from harness_eval.replay.reading import Reading
from harness_eval.replay.recorded import Key
from harness_eval.replay.results import Result, Skipped
from harness_eval.replay.stage import Stage
from harness_eval.replay.streams import fitting, missing_topics
from harness_eval.reported_calls import Judge
from harness_eval.requests import Requests, resolved_topics
from harness_eval.runs import Completion, Outcome, printable

Played = Result | Skipped


class Player:
    """Judges one source after the other; a context manager.

    Args:
        config: The whole configuration.
        judges: The evaluators by name, each behind its calls.
        keep: Folder that new cases are kept in; None: none are.
        namespace: Namespace of the node that took the evidence; None: the root for bags,
            whichever it was for cases.
        scratch: Folder for what is temporary; None: that of the system.
    """

    def __init__(
        self,
        config: Config,
        judges: Mapping[str, Judge],
        *,
        keep: Path | None = None,
        namespace: str | None = None,
        scratch: Path | None = None,
    ) -> None:
        self._config = config
        self._judges = judges
        self._keep = keep
        self._namespace = namespace
        self._scratch = scratch
        self._stage: Stage | None = None

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

    def begin_anew(self) -> None:
        """Let no case after a fault be judged on the stage that had it."""
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
            check_frames(folder.name, captured.frames.values(), decoder)
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
        namespace = self._namespace or ''
        topics = resolved_topics(self._config, lambda name: absolute_name(name, namespace))
        facts = {
            name: TopicFacts(publishers=1, types=(topic.type,))
            for name, topic in bag.topics.items()
        }
        requests = Requests(self._config, decoder, topics)
        with self._made(decoder, topics, facts) as stage:
            for ended in Reading(stage, bag).play(completions):
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
                    outcome = replace(outcome, message=f'{hint} {outcome.message}'.lstrip())
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

    def _stage_for(self, completion: Completion, decoder: Decoder) -> Stage:
        """A stage on which a segment of that name was not judged yet."""
        if self._stage is None or not self._stage.takes(completion, decoder):
            self._clear()
            oracles = _oracles(self._config)
            self._stage = self._made(decoder, {}, {}, oracles)
        return self._stage

    def _made(
        self,
        decoder: Decoder,
        topics: Mapping[str, str],
        facts: Mapping[str, TopicFacts],
        oracles: Mapping[str, OracleCalls] | None = None,
    ) -> Stage:
        return Stage(
            self._config,
            self._judges,
            decoder,
            self._keep,
            topics,
            facts,
            oracles,
            self._scratch,
        )

    def _clear(self) -> None:
        stage, self._stage = self._stage, None
        if stage is not None:
            stage.close()


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
