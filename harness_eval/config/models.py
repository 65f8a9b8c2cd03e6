"""The settings classes of the configuration file, as agreed for the whole package.

Each class checks what can be seen from within it. What takes more than one of them (a check that
names a view, a tool that names an evaluator) is in :mod:`harness_eval.config.rules`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema, field_validator

from harness_eval.config.base import Flag, Integer, Name, Names, Number, Settings, Text
from harness_eval.config.checks import Check, Fraction, UsableCondition
from harness_eval.config.effects import EffectSettings
from harness_eval.config.sizes import parse_size

IMAGE = 'sensor_msgs/msg/Image'
COMPRESSED_IMAGE = 'sensor_msgs/msg/CompressedImage'
TOOL_COMPLETION = 'harness_eval_msgs/msg/ToolCompletion'

RESERVED_FAILURE_KINDS = ('post_condition', 'segment_budget', 'stalled')
"""Failure kinds that the package gives itself."""

Seconds = Annotated[Number, Field(ge=0.0)]
PositiveSeconds = Annotated[Number, Field(gt=0.0, le=86_400.0)]
Topic = Annotated[
    str,
    Field(pattern=r'^(~/|/)?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*$', max_length=255),
]
MessageType = Annotated[str, Field(pattern=r'^[a-z][a-z0-9_]*/msg/[A-Z][A-Za-z0-9]*$')]
Stamp = Literal['header', 'receipt']


class EvaluatorSettings(Settings):
    """One named evaluator.

    Attributes:
        kind: What judges: ``checks`` or ``plugin`` in this version.
        timeout: Seconds until a call is given up and becomes an error.
        clamp: Cut a score outside [0, 1] instead of making it an error.
        ref: For a plugin ``module:callable``.
        options: For a plugin: keyword arguments handed to it besides the request.
        isolation: ``thread``, or ``process`` for native code that may crash.
    """

    kind: Literal['checks', 'plugin']
    timeout: Annotated[Number, Field(gt=0.0, le=3600.0)] = 60.0
    clamp: Flag = False
    ref: str = ''
    options: dict[str, Any] = {}
    isolation: Literal['thread', 'process'] = 'thread'


class ToolSettings(Settings):
    """One tool.

    Attributes:
        arguments: The only arguments that may reach a post-condition.
        views: Views and states that its observation needs; default: all.
        references: Reference pictures by name; paths relative to the file that names them, or
            ``package://package/path`` in the share folder of a ROS 2 package.
        failure_kinds: What its failures may be called.
        evaluator: Name of its evaluator; default: ``evaluation.evaluator``.
        post_condition: The sentence; the same as an entry in ``evaluation.post_conditions``.
        checks: Its deterministic checks; at least one of them is not ``optional``.
        rubric: Reserved for the rubric evaluator; not in this version.
        on_success: Operations on the scene graph that its success brings, in order.
    """

    arguments: Names = ()
    views: tuple[str, ...] | None = None
    references: dict[Name, Text] = {}
    failure_kinds: Names = ()
    evaluator: str | None = None
    post_condition: Text | None = None
    checks: tuple[Check, ...] = ()
    rubric: Any = None
    on_success: tuple[EffectSettings, ...] = ()

    @field_validator('views')
    @classmethod
    def _once(cls, views: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if views is not None and len(set(views)) < len(views):
            raise ValueError('expected each view and state once, found one of them twice')
        return views

    @field_validator('failure_kinds')
    @classmethod
    def _not_reserved(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        for kind in kinds:
            if kind in RESERVED_FAILURE_KINDS:
                raise ValueError(f"expected the tool's own words, found the reserved {kind!r}")
        return kinds

    @field_validator('post_condition')
    @classmethod
    def _not_blank(cls, text: str | None) -> str | None:
        return None if text is None else refuse_blank(text)

    @field_validator('rubric')
    @classmethod
    def _no_rubric_yet(cls, rubric: Any) -> Any:
        if rubric is not None:
            raise ValueError(
                'rubrics are not in this version; give a post_condition or checks instead'
            )
        return rubric


def refuse_blank(text: str) -> str:
    """Refuse a post-condition that says nothing.

    Raises:
        ValueError: There is nothing in it but white space.
    """
    if not text.strip():
        raise ValueError('expected a sentence, found nothing but white space')
    return text


class EvaluationSettings(Settings):
    """The ``evaluation:`` block. After loading, ``tools`` has an entry for every required tool.

    Attributes:
        required_tools: Tools whose runs are judged; the completions of others are ignored.
        segment_tools: Required tools that run in segments: only they may be answered ``process``.
        max_segments: Most segments of one run; at the last one ``process`` becomes ``failure``.
        outcome_threshold: A score at or above it is ``success``.
        failure_threshold: A score below it is ``failure``; between the two, ``process`` (segment
            tools) or abstention.
        post_conditions: The sentence that must hold after each tool, by tool.
        evaluator: Name of the evaluator of every tool that names no other.
        evaluators: What judges, by name.
        tools: What else belongs to a tool, by tool.
    """

    required_tools: Names = ()
    segment_tools: Names = ()
    max_segments: Annotated[Integer, Field(ge=1, le=10_000)] = 8
    # A threshold of 0 would call every score a success.
    outcome_threshold: Annotated[Fraction, Field(gt=0.0)] = 0.9
    failure_threshold: Fraction = 0.5
    post_conditions: dict[Name, Text] = {}
    evaluator: str | None = None
    evaluators: dict[Name, EvaluatorSettings] = {}
    tools: dict[Name, ToolSettings] = {}


class ViewSettings(Settings):
    """One camera.

    Attributes:
        topic: Image topic; relative names are resolved by the node.
        type: ``sensor_msgs/msg/Image`` or ``sensor_msgs/msg/CompressedImage``; default: compressed
            if the topic's last word is ``compressed``, raw otherwise.
        camera_info: Topic of its ``sensor_msgs/msg/CameraInfo``; captured with the image.
        stamp: ``header``, or ``receipt`` for a type without a header.
        usable: What must be seen in it before anything is concluded.
        always_on: Keep the subscription open, for a camera that starts lazily.
        may_repeat: Accept frames that repeat byte for byte (a simulated camera without noise).
    """

    topic: Topic
    type: Literal['sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage'] | None = None
    camera_info: Topic | None = None
    stamp: Stamp = 'header'
    usable: UsableCondition | None = None
    always_on: Flag = False
    may_repeat: Flag = False

    @property
    def message_type(self) -> str:
        """The message type, with the default filled in."""
        if self.type is not None:
            return self.type
        return COMPRESSED_IMAGE if self.topic.split('/')[-1] == 'compressed' else IMAGE


class StateSettings(Settings):
    """One reading.

    Attributes:
        topic: Topic; relative names are resolved by the node.
        field: Field path into the message, for example ``position[name=finger_joint]``.
        type: Message type; default: whatever the topic has.
        reduce: How several values become one: ``min``, ``mean`` or ``max``; default: all of them
            are kept, and a check on the state holds only if it holds for each.
        stamp: ``header``, or ``receipt`` for a type without a header.
        always_on: Keep the subscription open.
    """

    topic: Topic
    field: Text
    type: MessageType | None = None
    reduce: Literal['min', 'mean', 'max'] | None = None
    stamp: Stamp = 'header'
    always_on: Flag = False


class CaptureSettings(Settings):
    """Which frames form an observation.

    Attributes:
        views: Cameras by name.
        states: Readings by name; no state has the name of a view.
        settle: Seconds after the end before a frame counts.
        slop: Seconds between the earliest and the latest stamp of one observation, at most.
        timeout: Seconds on the ROS clock to find a complete observation.
        wall_timeout: Seconds on the wall clock, for a ROS clock that stands still.
        max_clock_skew: Seconds that a stamp may be off the clock before it is an error.
        max_ahead: Seconds that a stamp may lie after its receipt; must be less than ``settle``.
    """

    views: dict[Name, ViewSettings] = {}
    states: dict[Name, StateSettings] = {}
    settle: Seconds = 0.3
    slop: Seconds = 0.05
    timeout: Annotated[Number, Field(gt=0.0, le=3600.0)] = 3.0
    wall_timeout: PositiveSeconds = 30.0
    max_clock_skew: Seconds = 1.0
    max_ahead: Seconds = 0.05


class CompletionSource(Settings):
    """Where completions come from: exactly one of ``topic`` and ``action``.

    Attributes:
        topic: Topic of ``type``.
        type: Message type; default ``harness_eval_msgs/msg/ToolCompletion``, which needs no
            mapping.
        run_id: Field path of the run id (other types).
        tool: Field path of the tool's name (topic, other types), or the tool's name (action).
        tool_name: Fixed tool name for a topic whose messages do not name it.
        segment: Field path of the segment; default: 0.
        stamp: Field path of the stamp, or ``receipt``; default ``header.stamp``.
        arguments: Field path of each argument.
        action: Name of a ROS 2 action whose goals' ends are completions of ``tool``.
    """

    topic: Topic | None = None
    type: MessageType = TOOL_COMPLETION
    run_id: Text | None = None
    tool: Text | None = None
    tool_name: Name | None = None
    segment: Text | None = None
    stamp: Text | None = None
    arguments: dict[Name, Text] = {}
    action: Topic | None = None


class SceneGraphSettings(Settings):
    """How the gate works.

    Attributes:
        hold_timeout: Seconds (steady clock) that a proposal waits for its run.
        order: ``completion``: a run's updates wait for runs completed earlier; ``none``: they do
            not.
        mode: ``gate``, or ``observe``: everything passes, verdicts are only recorded.
    """

    hold_timeout: PositiveSeconds = 60.0
    order: Literal['completion', 'none'] = 'completion'
    mode: Literal['gate', 'observe'] = 'gate'


class EvidenceSettings(Settings):
    """What is kept of the evidence.

    Attributes:
        keep: ``all``, ``failures`` (everything but successes) or ``none`` (until decided).
        max_bytes: Most bytes kept, oldest deleted first; a number or text such as ``2GiB``.
    """

    keep: Literal['all', 'failures', 'none'] = 'all'
    max_bytes: Annotated[
        int,
        BeforeValidator(parse_size),
        WithJsonSchema(
            {
                'anyOf': [
                    {'type': 'integer', 'minimum': 1},
                    {'type': 'string', 'pattern': r'^\d+(\.\d+)? ?([kMGT]i?)?B$'},
                ]
            }
        ),
    ] = 2 * 1024**3


class Config(Settings):
    """A whole, validated configuration file with its includes merged in.

    Attributes:
        evaluation: Which tools are judged, by what, and what must hold after them.
        capture: Which cameras and readings form an observation, and when.
        completions: How the node learns that a run ended, besides its own action.
        scene_graph: How updates of the scene graph are held and released.
        evidence: What is kept of what was seen.
    """

    evaluation: EvaluationSettings = EvaluationSettings()
    capture: CaptureSettings = CaptureSettings()
    completions: tuple[CompletionSource, ...] = (CompletionSource(topic='tool_completions'),)
    scene_graph: SceneGraphSettings = SceneGraphSettings()
    evidence: EvidenceSettings = EvidenceSettings()

    # Private, so that no dump, log or observation can show a path of the machine.
    _reference_paths: dict[tuple[str, str], Path] = PrivateAttr(default_factory=dict)

    def tool(self, name: str) -> ToolSettings:
        """Give the settings of a required tool.

        Raises:
            KeyError: The tool is not a required one.
        """
        return self.evaluation.tools[name]

    def reference_path(self, tool: str, name: str) -> Path:
        """Give the file of a reference picture; it existed when the configuration was loaded.

        Raises:
            KeyError: The tool has no reference of that name, or the configuration was not loaded
                from a file.
        """
        return self._reference_paths[tool, name]

    def views_of(self, tool: str) -> tuple[str, ...]:
        """List the views that an observation of ``tool`` needs, in the order of the file.

        Raises:
            KeyError: The tool is not a required one.
        """
        chosen = self.tool(tool).views
        return tuple(name for name in self.capture.views if chosen is None or name in chosen)

    def states_of(self, tool: str) -> tuple[str, ...]:
        """List the states that an observation of ``tool`` needs, in the order of the file.

        Raises:
            KeyError: The tool is not a required one.
        """
        chosen = self.tool(tool).views
        return tuple(name for name in self.capture.states if chosen is None or name in chosen)

    def evaluator_of(self, tool: str) -> str:
        """Name the evaluator of a required tool, a key of ``evaluation.evaluators``.

        Raises:
            KeyError: The tool is not a required one, or no evaluator is named for it.
        """
        name = self.tool(tool).evaluator or self.evaluation.evaluator
        if name is None:
            raise KeyError(tool)
        return name
