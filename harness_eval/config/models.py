"""The settings classes of the configuration file, as agreed for the whole package.

Each class checks what can be seen from within it. What takes more than one of them (a check that
names a view, a tool that names an evaluator) is in :mod:`harness_eval.config.rules`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, PrivateAttr

from harness_eval.config.base import MessageType, Name, PositiveSeconds, Settings, Text, Topic
from harness_eval.config.evaluation import EvaluationSettings, ToolSettings
from harness_eval.config.evaluators import EvaluatorSettings
from harness_eval.config.observation import CaptureSettings, StateSettings, ViewSettings
from harness_eval.config.sizes import Size
from harness_eval.message_types import TOOL_COMPLETION

__all__ = [
    'CaptureSettings',
    'CompletionSource',
    'Config',
    'EvaluationSettings',
    'EvaluatorSettings',
    'EvidenceSettings',
    'SceneGraphSettings',
    'StateSettings',
    'ToolSettings',
    'ViewSettings',
]


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
    arguments: dict[Name, Text] = Field(default_factory=dict)
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
    max_bytes: Size = 2 * 1024**3


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

        A state that a check of the tool names is one of them, whatever its ``views`` list.

        Raises:
            KeyError: The tool is not a required one.
        """
        settings = self.tool(tool)
        if settings.views is None:
            return tuple(self.capture.states)
        needed = {*settings.views, *settings.checked_states}
        return tuple(name for name in self.capture.states if name in needed)

    def evaluator_of(self, tool: str) -> str:
        """Name the evaluator of a required tool, a key of ``evaluation.evaluators``.

        Raises:
            KeyError: The tool is not a required one, or no evaluator is named for it.
        """
        name = self.tool(tool).evaluator or self.evaluation.evaluator
        if name is None:
            raise KeyError(tool)
        return name
