"""The settings classes of the configuration file, as agreed for the whole package."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from harness_eval.config.base import Settings
from harness_eval.config.checks import Check, Fraction, UsableCondition

Seconds = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Name = Annotated[str, Field(pattern=r'^[A-Za-z][A-Za-z0-9_]*$', max_length=100)]


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
    timeout: Annotated[float, Field(gt=0.0, le=3600.0)] = 60.0
    clamp: bool = False
    ref: str = ''
    options: dict[str, Any] = {}
    isolation: Literal['thread', 'process'] = 'thread'


class EffectSettings(Settings):
    """One scene-graph operation applied on success, with placeholders; exactly one key is set.

    Attributes:
        add_node: ``[name]`` or ``[name, {attribute: value}]``.
        remove_node: ``[name]``.
        set_attributes: ``[name, {attribute: value}]``.
        add_edge: ``[subject, predicate, object]`` or with attributes as a fourth element.
        remove_edge: ``[subject, predicate, object]``.
    """

    add_node: tuple[Any, ...] | None = None
    remove_node: tuple[str] | None = None
    set_attributes: tuple[Any, ...] | None = None
    add_edge: tuple[Any, ...] | None = None
    remove_edge: tuple[str, str, str] | None = None


class ToolSettings(Settings):
    """One tool.

    Attributes:
        arguments: The only arguments that may reach a post-condition.
        views: Views and states that its observation needs; default: all.
        references: Reference pictures by name; paths relative to the file, or ``package://``.
        failure_kinds: What its failures may be called.
        evaluator: Name of its evaluator; default: ``evaluation.evaluator``.
        post_condition: The sentence; the same as an entry in ``evaluation.post_conditions``.
        checks: Its deterministic checks.
        rubric: Reserved for the rubric evaluator.
        on_success: Operations on the scene graph that its success brings.
    """

    arguments: tuple[Name, ...] = ()
    views: tuple[str, ...] | None = None
    references: dict[str, str] = {}
    failure_kinds: tuple[str, ...] = ()
    evaluator: str | None = None
    post_condition: str | None = None
    checks: tuple[Check, ...] = ()
    rubric: Any = None
    on_success: tuple[EffectSettings, ...] = ()


class EvaluationSettings(Settings):
    """The ``evaluation:`` block. After loading, ``tools`` has an entry for every required tool."""

    required_tools: tuple[Name, ...] = ()
    segment_tools: tuple[Name, ...] = ()
    max_segments: Annotated[int, Field(ge=1, le=10_000)] = 8
    outcome_threshold: Fraction = 0.9
    failure_threshold: Fraction = 0.5
    post_conditions: dict[str, str] = {}
    evaluator: str | None = None
    evaluators: dict[str, EvaluatorSettings] = {}
    tools: dict[str, ToolSettings] = {}


class ViewSettings(Settings):
    """One camera.

    Attributes:
        topic: Image topic, relative names are resolved by the node.
        type: ``sensor_msgs/msg/Image`` or ``sensor_msgs/msg/CompressedImage``; default: compressed
            if the topic's last word is ``compressed``, raw otherwise.
        camera_info: Topic of its ``sensor_msgs/CameraInfo``; captured with the image.
        stamp: ``header``, or ``receipt`` for a type without a header.
        usable: What must be seen in it before anything is concluded.
        always_on: Keep the subscription open, for a camera that starts lazily.
        may_repeat: Accept frames that repeat byte for byte (a simulated camera without noise).
    """

    topic: str
    type: str | None = None
    camera_info: str | None = None
    stamp: Literal['header', 'receipt'] = 'header'
    usable: UsableCondition | None = None
    always_on: bool = False
    may_repeat: bool = False


class StateSettings(Settings):
    """One reading.

    Attributes:
        topic: Topic; relative names are resolved by the node.
        field: Field path into the message, for example ``position[name=finger_joint]``.
        type: Message type; default: whatever the topic has.
        reduce: How several values become one: ``min``, ``mean`` or ``max``.
        stamp: ``header``, or ``receipt`` for a type without a header.
        always_on: Keep the subscription open.
    """

    topic: str
    field: str
    type: str | None = None
    reduce: Literal['min', 'mean', 'max'] | None = None
    stamp: Literal['header', 'receipt'] = 'header'
    always_on: bool = False


class CaptureSettings(Settings):
    """Which frames form an observation; see DESIGN words in ``docs/configuration.md``."""

    views: dict[Name, ViewSettings] = {}
    states: dict[Name, StateSettings] = {}
    settle: Seconds = 0.3
    slop: Seconds = 0.05
    timeout: Annotated[float, Field(gt=0.0, le=3600.0)] = 3.0
    wall_timeout: Annotated[float, Field(gt=0.0, le=86_400.0)] = 30.0
    max_clock_skew: Seconds = 1.0
    max_ahead: Seconds = 0.05


class CompletionSource(Settings):
    """Where completions come from: exactly one of ``topic`` and ``action``.

    Attributes:
        topic: Topic of ``type``.
        type: Message type; default ``harness_eval_msgs/msg/ToolCompletion``, which needs no mapping.
        run_id: Field path of the run id (other types).
        tool: Field path of the tool's name (topic, other types), or the tool's name (action).
        tool_name: Fixed tool name for a topic whose messages do not name it.
        segment: Field path of the segment; default: 0.
        stamp: Field path of the stamp, or ``receipt``.
        arguments: Field path of each argument.
        action: Name of a ROS 2 action whose goals' ends are completions of ``tool``.
    """

    topic: str | None = None
    type: str = 'harness_eval_msgs/msg/ToolCompletion'
    run_id: str | None = None
    tool: str | None = None
    tool_name: str | None = None
    segment: str | None = None
    stamp: str | None = None
    arguments: dict[Name, str] = {}
    action: str | None = None


class SceneGraphSettings(Settings):
    """How the gate works.

    Attributes:
        hold_timeout: Seconds (steady clock) that a proposal waits for its run.
        order: ``completion``: a run's updates wait for runs completed earlier; ``none``.
        mode: ``gate``, or ``observe``: everything passes, verdicts are only recorded.
    """

    hold_timeout: Annotated[float, Field(gt=0.0, le=86_400.0)] = 60.0
    order: Literal['completion', 'none'] = 'completion'
    mode: Literal['gate', 'observe'] = 'gate'


class EvidenceSettings(Settings):
    """What is kept of the evidence.

    Attributes:
        keep: ``all``, ``failures`` (everything but successes) or ``none`` (until decided).
        max_bytes: Most bytes kept, oldest deleted first; a number or text such as ``2GiB``.
    """

    keep: Literal['all', 'failures', 'none'] = 'all'
    max_bytes: int = 2 * 1024**3


class Config(Settings):
    """A whole, validated configuration file with its includes merged in."""

    evaluation: EvaluationSettings = EvaluationSettings()
    capture: CaptureSettings = CaptureSettings()
    completions: tuple[CompletionSource, ...] = (CompletionSource(topic='tool_completions'),)
    scene_graph: SceneGraphSettings = SceneGraphSettings()
    evidence: EvidenceSettings = EvidenceSettings()
