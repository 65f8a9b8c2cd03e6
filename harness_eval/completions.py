"""From messages that say that a run ended to completions. Pure.

Three kinds of sources: ``ToolCompletion`` messages, the status topic of any ROS 2 action, and
messages of any type whose fields are mapped in the configuration. None of them has a way to hand
on a claim of success: of a goal that succeeded, was aborted or was cancelled alike it only counts
that it ended.
"""

from __future__ import annotations

from typing import Any

from harness_eval.config.models import CompletionSource
from harness_eval.contract import DecodeError
from harness_eval.decode import Decoder
from harness_eval.field_path import FieldPath
from harness_eval.lines import printable
from harness_eval.message_types import GOAL_STATUS, TOOL_COMPLETION
from harness_eval.runs import Completion
from harness_eval.times import nanoseconds_of

ENDED_STATUSES = frozenset({4, 5, 6})
"""``STATUS_SUCCEEDED``, ``STATUS_CANCELED``, ``STATUS_ABORTED`` of ``action_msgs/GoalStatus``."""
_MAX_DIGITS = 10


class CompletionReader:
    """Reads the completions of one source.

    Args:
        source: Its entry in the configuration.
        decoder: Reads the messages.
        started: Nanoseconds of the ROS clock since when the source is listened to; 0 before the
            first ``/clock`` of a simulation.
    """

    def __init__(self, source: CompletionSource, decoder: Decoder, started: int) -> None:
        self._source = source
        self._decoder = decoder
        self._started = started
        self._running: set[bytes] = set()
        self._ended: set[bytes] = set()

    @property
    def topic(self) -> str:
        """Topic to listen to, as in the configuration."""
        if self._source.action is not None:
            return f'{self._source.action}/_action/status'
        return self._source.topic or 'tool_completions'

    @property
    def type(self) -> str:
        """Message type of the topic."""
        return GOAL_STATUS if self._source.action is not None else self._source.type

    def read(self, data: bytes) -> list[Completion]:
        """The completions that a message reports; usually one.

        Args:
            data: The CDR bytes as received.

        Raises:
            DecodeError: The message cannot be read, or lacks a mapped field.
        """
        if self._source.action is not None:
            return self._ended_goals(data)
        if self._source.type == TOOL_COMPLETION and self._source.run_id is None:
            return [completion_of(self._decoder.message(TOOL_COMPLETION, data))]
        return [self._mapped(data)]

    def _mapped(self, data: bytes) -> Completion:
        source = self._source

        def text(path: str) -> str:
            return self._decoder.text(source.type, data, FieldPath.parse(path))

        segment = 0
        if source.segment is not None:
            segment = _segment(text(source.segment), source.segment)
        stamp = 0
        path = source.stamp or 'header.stamp'
        if path != 'receipt':
            stamp = self._decoder.time(source.type, data, FieldPath.parse(path))
        return Completion(
            run_id='' if source.run_id is None else text(source.run_id),
            tool=source.tool_name or ('' if source.tool is None else text(source.tool)),
            segment=segment,
            stamp=stamp,
            arguments=tuple((name, text(path)) for name, path in source.arguments.items()),
        )

    def _ended_goals(self, data: bytes) -> list[Completion]:
        """Goals that ended since the last message.

        A status message lists every goal that the server still knows. A goal that had ended
        before anybody listened is not taken: what the cameras show now is no evidence of it.
        """
        found = []
        present = set()
        for status in self._decoder.message(GOAL_STATUS, data).status_list:
            goal = bytes(status.goal_info.goal_id.uuid)
            present.add(goal)
            if status.status not in ENDED_STATUSES:
                self._running.add(goal)
            elif goal not in self._ended:
                self._ended.add(goal)
                if goal in self._running or 0 < self._started <= nanoseconds_of(
                    status.goal_info.stamp
                ):
                    tool = self._source.tool or ''
                    found.append(Completion(run_id=goal.hex(), tool=tool, unique=True))
        self._running &= present
        self._ended &= present
        return found


def completion_of(message: Any) -> Completion:
    """The completion that a ``ToolCompletion`` or the goal of ``Evaluate`` holds.

    Args:
        message: Of rclpy or of the decoder.
    """
    return Completion(
        run_id=message.run_id,
        tool=message.tool,
        segment=message.segment,
        stamp=nanoseconds_of(message.header.stamp),
        arguments=tuple((pair.key, pair.value) for pair in message.arguments),
    )


def _segment(text: str, path: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        found = printable(text, 60)
        raise DecodeError(
            'not_a_segment', f'{path} should hold the number of a segment, but holds {found!r}'
        )
    return int(text)
