"""The wait of one run for its observation, as a state machine that is told the time.

It holds no thread and reads no clock. Whoever drives it hands in every frame by :meth:`add` and
the time by :meth:`poll`, from one thread, and polls after each batch of frames and at the
deadlines; a jump of the clock is seen between two polls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType

from harness_eval.capture.choice import OnlineChooser
from harness_eval.capture.explain import clock_jumped, Moment, timed_out
from harness_eval.capture.frames import Captured, Frame, StreamSpec, TopicFacts
from harness_eval.capture.intake import Intake, Window
from harness_eval.config.models import CaptureSettings
from harness_eval.contract import CaptureError
from harness_eval.times import nanoseconds, seconds

_JUMP = 1_000_000
"""Nanoseconds. A clock that reads this much less than before was set back; less is jitter."""

_HANDOVER = 2_000_000_000
"""Nanoseconds. The longest that a frame may wait between its receipt and :meth:`Capture.add`
beyond ``max_clock_skew``. It bounds what is kept for a stream that sends nothing."""


class Capture:
    """Collects the frames of one run until they form an observation.

    Args:
        streams: What the observation needs; all of them are required.
        t_end: Nanoseconds of the end of the execution, the later of its stamp and its receipt.
        settings: Limits of the capture.
        ros_start: Nanoseconds of the ROS clock now.
        wall_start: Seconds of a steady wall clock now.

    Attributes:
        t_end: Nanoseconds of the end of the execution.
        ros_deadline: Nanoseconds of the ROS clock after which the wait is over.
        wall_deadline: Seconds of the wall clock after which the wait is over.

    Raises:
        ValueError: No streams, or two of the same name.
    """

    def __init__(
        self,
        streams: Sequence[StreamSpec],
        t_end: int,
        settings: CaptureSettings,
        *,
        ros_start: int,
        wall_start: float,
    ) -> None:
        window = Window.after(t_end, settings)
        self.t_end = t_end
        self.ros_deadline = window.closes
        self.wall_deadline = wall_start + settings.wall_timeout
        self._settings = settings
        self._window = window
        self._chooser: OnlineChooser[Frame] = OnlineChooser(
            (stream.name for stream in streams), nanoseconds(settings.slop)
        )
        self._intakes = {stream.name: Intake(stream, window) for stream in streams}
        self._ros_start = ros_start
        self._ros_newest = ros_start
        self._floor = self._oldest_to_come(ros_start)
        self._wall_start = wall_start
        self._wall_moved = wall_start
        self._found: Captured | CaptureError | None = None
        self._answered: Captured | CaptureError | None = None

    def add(self, frame: Frame) -> None:
        """Take one more frame; the frames of a stream come in the order of their arrival.

        Once the observation is complete or the capture has failed, frames are ignored.

        Args:
            frame: The frame.

        Raises:
            KeyError: The frame's stream is not one of those that the observation needs.
        """
        intake = self._intakes[frame.stream]
        if self._found is not None or self._answered is not None:
            return
        try:
            if not intake.admit(frame, self._floor, self._ros_newest):
                return
        except CaptureError as error:
            self._found = error
            return
        chosen = self._chooser.add(frame.stream, frame.stamp, frame)
        if chosen is not None:
            self._found = self._observe(chosen)

    def poll(
        self, ros_now: int, wall_now: float, facts: Callable[[str], TopicFacts]
    ) -> Captured | None:
        """Say whether the observation is complete. After an end the answer stays the same.

        Args:
            ros_now: Nanoseconds of the ROS clock.
            wall_now: Seconds of the wall clock that ``wall_start`` was read from.
            facts: Gives what the graph says about the topic of a stream, by the stream's name;
                asked only when a time-out is explained.

        Returns:
            The chosen frames, or None while the wait goes on.

        Raises:
            CaptureError: The observation cannot be made, or a deadline passed without one. Its
                kind and message name the stream at fault.
        """
        if self._answered is not None:
            return self._give(self._answered)
        answer = self._decide(ros_now, wall_now, facts)
        if answer is None:
            self._ros_newest = max(self._ros_newest, ros_now)
            self._floor = self._oldest_to_come(self._ros_newest)
            self._chooser.advance(self._floor)
            return None
        self._answered = answer
        return self._give(answer)

    def found(self) -> Captured | None:
        """Say whether the frames so far make the observation, without looking at the time.

        Raises:
            CaptureError: A frame showed that the observation cannot be made.
        """
        if self._answered is None:
            self._answered = self._found
        return None if self._answered is None else self._give(self._answered)

    def _decide(
        self, ros_now: int, wall_now: float, facts: Callable[[str], TopicFacts]
    ) -> Captured | CaptureError | None:
        if ros_now > self._ros_newest:
            self._wall_moved = wall_now
        # A jump comes first: it may have mixed frames from before and after it, and it explains
        # stamps that look skewed.
        if ros_now <= self._ros_newest - _JUMP:
            back = self._ros_newest - ros_now
            return clock_jumped(self._ordered(), self._moment(ros_now, wall_now), back)
        if self._found is not None:
            return self._found
        waited = wall_now - self._wall_start
        if ros_now > self.ros_deadline or waited > self._settings.wall_timeout:
            return timed_out(self._ordered(), self._moment(ros_now, wall_now), facts)
        return None

    def _ordered(self) -> tuple[Intake, ...]:
        return tuple(self._intakes.values())

    def _moment(self, ros_now: int, wall_now: float) -> Moment:
        return Moment(
            window=self._window,
            settings=self._settings,
            ros_start=self._ros_start,
            ros_now=ros_now,
            wall_still=wall_now - self._wall_moved,
        )

    def _give(self, answer: Captured | CaptureError) -> Captured:
        if isinstance(answer, CaptureError):
            raise answer
        return answer

    def _observe(self, chosen: dict[str, Frame]) -> Captured:
        stamps = [frame.stamp for frame in chosen.values()]
        return Captured(
            frames=MappingProxyType(chosen),
            t_end=self.t_end,
            spread=seconds(max(stamps) - min(stamps)),
            seen=MappingProxyType({name: intake.seen for name, intake in self._intakes.items()}),
        )

    def _oldest_to_come(self, ros_now: int) -> int:
        return ros_now - self._window.max_behind - _HANDOVER
