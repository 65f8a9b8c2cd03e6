"""What an evaluator is asked: from a tool's settings, its arguments and the chosen frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness_eval.capture import Captured, StreamKind, StreamSpec
from harness_eval.config.checks import Region, UsableCondition
from harness_eval.config.evaluators import ModelSettings
from harness_eval.config.models import Config, ToolSettings
from harness_eval.config.placeholders import fill_placeholders
from harness_eval.contract import (
    CaptureError,
    Criterion,
    DecodeError,
    EvaluationError,
    EvaluationRequest,
    frozen,
    Image,
    Observation,
    PostCondition,
    ReportOutput,
    Rubric,
)
from harness_eval.decode import Decoder
from harness_eval.lines import printable
from harness_eval.observation import build_observation, CAMERA_INFO_SUFFIX, input_digest, owner_of
from harness_eval.runs import Completion
from harness_eval.scene_graph import effect_ops, Op
from harness_eval.usable import check_usable


def resolved_topics(config: Config, resolve: Callable[[str], str]) -> dict[str, str]:
    """The names of all topics of ``capture`` as resolved, by their names in the configuration."""
    views, states = config.capture.views.values(), config.capture.states.values()
    names = [view.topic for view in views]
    names += [view.camera_info for view in views if view.camera_info is not None]
    names += [state.topic for state in states]
    return {name: resolve(name) for name in names}


@dataclass(frozen=True)
class Prepared:
    """A question ready to be asked.

    Attributes:
        request: What the evaluator is given.
        digest: SHA-256 (hex) of it.
        observed: Earliest and latest stamp of the observation, nanoseconds.
    """

    request: EvaluationRequest
    digest: str
    observed: tuple[int, int]


class Requests:
    """Makes the questions of one configuration. Safe to use from several threads.

    Args:
        config: The whole configuration.
        decoder: Reads the messages.
        topics: Names of the topics as resolved, by their names in the configuration.
    """

    def __init__(
        self, config: Config, decoder: Decoder, topics: Mapping[str, str] | None = None
    ) -> None:
        self._config = config
        self._decoder = decoder
        self._references: dict[tuple[str, str], Image] = {}
        self.streams = _streams(config, topics or {})

    def streams_of(self, tool: str) -> tuple[StreamSpec, ...]:
        """The streams that an observation for the tool needs, in order of the configuration."""
        wanted = self._tool(tool).views
        names = tuple(n for n in self.streams if wanted is None or owner_of(n) in wanted)
        return tuple(self.streams[name] for name in names)

    def effects(self, completion: Completion) -> tuple[Op, ...]:
        """The scene-graph operations that the tool's success brings.

        Raises:
            EvaluationError: An argument that the tool needs is missing or too long.
        """
        tool = self._tool(completion.tool)
        try:
            return effect_ops(tool.on_success, _declared(tool, completion))
        except ValueError as error:
            raise EvaluationError(
                'invalid_argument',
                f'on_success of {completion.tool!r} makes no operation: {error}',
            ) from error

    def post_condition_text(self, completion: Completion) -> str:
        """The tool's sentence with its arguments filled in.

        Raises:
            EvaluationError: An argument that the tool needs is missing or too long.
        """
        tool = self._tool(completion.tool)
        return fill_placeholders(tool.post_condition or '', _declared(tool, completion))

    def prepare(self, completion: Completion, captured: Captured) -> Prepared:
        """The question about a completion, from the frames that were chosen for it.

        Raises:
            EvaluationError: The frames do not make an observation.
        """
        self._tool(completion.tool)
        needed = [stream.name for stream in self.streams_of(completion.tool)]
        missing = [name for name in needed if name not in captured.frames]
        if missing:
            raise CaptureError(
                'evidence_incomplete',
                f'the evidence does not show {", ".join(missing)}, which the configuration '
                f'requires for {completion.tool!r} now; run the tool again',
            )
        observation = build_observation(captured, self._config, self._decoder)
        request = self.question(completion, observation)
        stamps = [frame.stamp for frame in captured.frames.values()]
        digest = input_digest(request, captured.frames)
        return Prepared(replace(request, digest=digest), digest, (min(stamps), max(stamps)))

    def question(self, completion: Completion, observation: Observation) -> EvaluationRequest:
        """The question about a completion, from what the world looks like after it.

        Raises:
            EvaluationError: An argument is missing or too long, or a reference picture cannot be
                read.
        """
        tool = self._tool(completion.tool)
        return EvaluationRequest(
            PostCondition(
                text=self.post_condition_text(completion),
                checks=tool.checks,
                references=self._references_of(completion.tool, tool),
                failure_kinds=tool.failure_kinds,
                process_allowed=completion.tool in self._config.evaluation.segment_tools,
                rubric=_rubric(tool),
                report=_report(tool),
                regions=self._regions_of(completion.tool),
            ),
            observation,
        )

    def check_usable(self, observation: Observation) -> None:
        """Make sure that every view shows what must be seen before anything is concluded.

        Raises:
            Abstention: ``view_unusable``, naming the views and what was seen of them.
            EvaluationError: A picture cannot be decoded.
        """
        check_usable(observation, self._usable_conditions(observation))

    def _tool(self, name: str) -> ToolSettings:
        try:
            return self._config.tool(name)
        except KeyError:
            raise EvaluationError(
                'unknown_tool', f'{printable(name, 60)!r} is not one of required_tools any more'
            ) from None

    def _usable_conditions(self, observation: Observation) -> Mapping[str, UsableCondition]:
        settings = self._config.capture.views
        conditions = {name: settings[name].usable for name in observation.views}
        return {name: one for name, one in conditions.items() if one is not None}

    def _references_of(self, name: str, tool: ToolSettings) -> Mapping[str, Image]:
        return {reference: self._reference(name, reference) for reference in tool.references}

    def _regions_of(self, tool: str) -> Mapping[str, Mapping[str, Region]]:
        """The part of each view that each model is shown of this tool.

        An evaluator is not told the tool's name, so what it shows of the views comes with the
        question; of all models, since any of them may be asked by another evaluator.
        """
        settings = self._config.evaluation.evaluators
        return {
            name: one.regions[tool]
            for name, one in settings.items()
            if isinstance(one, ModelSettings) and one.regions.get(tool)
        }

    def _reference(self, tool: str, name: str) -> Image:
        known = self._references.get((tool, name))
        if known is None:  # two threads may both read it, which is better than one that waits
            known = _read_picture(self._config.reference_path(tool, name), tool, name)
            self._references[(tool, name)] = known
        return known


def _read_picture(path: Path, tool: str, name: str) -> Image:
    import cv2

    picture = cv2.imread(str(path), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    if picture is None:
        raise DecodeError(
            'unreadable_reference',
            f'reference {name!r} of {tool!r} ({path.name}) is not a picture that OpenCV can read',
        )
    return frozen(picture)


def _rubric(tool: ToolSettings) -> Rubric | None:
    given = tool.rubric
    if given is None:
        return None
    criteria = tuple(
        Criterion(one.name, one.text, one.weight, one.must) for one in given.criteria or ()
    )
    return Rubric(given.text or '', criteria, given.version)


def _report(tool: ToolSettings) -> tuple[ReportOutput, ...]:
    """The outputs that the judge fills in; none if a plugin of its own does."""
    if tool.report is None or tool.report.source is not None:
        return ()
    return tuple(ReportOutput(one.key, one.title, one.type) for one in tool.report.outputs)


def _declared(tool: ToolSettings, completion: Completion) -> dict[str, str]:
    return {name: value for name, value in completion.arguments if name in tool.arguments}


def _streams(config: Config, topics: Mapping[str, str]) -> dict[str, StreamSpec]:
    found: dict[str, StreamSpec] = {}
    for name, view in config.capture.views.items():
        found[name] = StreamSpec(
            name,
            topics.get(view.topic, view.topic),
            StreamKind.VIEW,
            view.stamp,
            view.may_repeat,
            view.message_type,
        )
        if view.camera_info is not None:
            topic = topics.get(view.camera_info, view.camera_info)
            found[name + CAMERA_INFO_SUFFIX] = StreamSpec(
                name + CAMERA_INFO_SUFFIX, topic, StreamKind.CAMERA_INFO
            )
    for name, state in config.capture.states.items():
        found[name] = StreamSpec(
            name,
            topics.get(state.topic, state.topic),
            StreamKind.STATE,
            state.stamp,
            type=state.type or '',
        )
    return found
