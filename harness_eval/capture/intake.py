"""Which frames of one stream may be evidence, and what became of the others."""

from __future__ import annotations

from array import array
from collections import deque
from dataclasses import dataclass

from harness_eval.capture.frames import Frame, StreamKind, StreamSpec
from harness_eval.config.models import CaptureSettings
from harness_eval.contract import CaptureError
from harness_eval.times import nanoseconds, seconds

REMEMBERED = 16
"""Pictures that a new one must differ from. A driver that died may leave a ring of buffers that
goes round for ever; rings are of 2 to 8 buffers, and two publishers may each repeat theirs."""


@dataclass(frozen=True)
class Window:
    """The limits that a frame must keep, all in nanoseconds, all included.

    Attributes:
        t_end: End of the execution.
        opens: Earliest stamp.
        closes: Latest stamp.
        max_ahead: How far a stamp may lie after its own receipt.
        max_behind: How far a stamp may lie before its own receipt.
    """

    t_end: int
    opens: int
    closes: int
    max_ahead: int
    max_behind: int

    @classmethod
    def after(cls, t_end: int, settings: CaptureSettings) -> Window:
        """Make the window that the settings put after an end.

        Args:
            t_end: Nanoseconds of the end of the execution.
            settings: The capture settings, in seconds.
        """
        opens = t_end + nanoseconds(settings.settle)
        return cls(
            t_end=t_end,
            opens=opens,
            closes=opens + nanoseconds(settings.timeout),
            max_ahead=nanoseconds(settings.max_ahead),
            max_behind=nanoseconds(settings.max_clock_skew),
        )


class Intake:
    """Takes the frames of one stream in order of arrival, and counts what it turns away.

    Attributes:
        spec: The stream.
        seen: Frames that came, whatever became of them.
        before_clock: Frames that came before the first ``/clock``.
        mistyped: Frames of another message type than the one configured.
        not_newer: Frames with a stamp not after the last one.
        skewed: Frames with a stamp too far before their receipt.
        early: Frames from before the window.
        beyond: Frames from after the window.
        repeated: Frames in the window that repeat one of the pictures before them.
        unproven: Frames in the window that had none before them to be compared with.
        stamps: Nanoseconds of the eligible frames.
        newest: Nanoseconds of the last stamp that moved the stream on.
        offset: Nanoseconds from receipt to stamp of the least skewed of the skewed frames.
    """

    def __init__(self, spec: StreamSpec, window: Window) -> None:
        self.spec = spec
        self._window = window
        self._must_change = spec.kind is StreamKind.VIEW and not spec.may_repeat
        self._payloads: deque[int] = deque(maxlen=REMEMBERED)
        self.seen = 0
        self.before_clock = 0
        self.mistyped = 0
        self.not_newer = 0
        self.skewed = 0
        self.early = 0
        self.beyond = 0
        self.repeated = 0
        self.unproven = 0
        self.stamps = array('q')
        self.newest: int | None = None
        self.offset: int | None = None

    @property
    def eligible(self) -> int:
        """How many frames may be evidence."""
        return len(self.stamps)

    def admit(self, frame: Frame, floor: int, now: int) -> bool:
        """Decide whether a frame may be evidence.

        Args:
            frame: The next frame of the stream.
            floor: Nanoseconds; an older stamp is too old whenever the frame was received.
            now: Nanoseconds of the ROS clock when ``floor`` was fixed.

        Returns:
            Whether it may.

        Raises:
            CaptureError: ``unstamped_view``, ``unstamped_state`` or ``clock_skew``: no frame of
                this stream can be trusted.
        """
        window = self._window
        self.seen += 1
        if frame.receipt <= 0:
            self.before_clock += 1
            return False
        if self.spec.type and frame.type != self.spec.type:
            self.mistyped += 1
            return False
        self._refuse_unstamped(frame)
        first, repeats = self._remember(frame)
        offset = frame.stamp - frame.receipt
        if offset > window.max_ahead:
            raise CaptureError('clock_skew', self._ahead(offset))
        if self.newest is not None and frame.stamp <= self.newest:
            self.not_newer += 1
            return False
        self.newest = frame.stamp
        if offset < -window.max_behind:
            return self._turn_away_skewed(offset)
        # What came before the end shows nothing of what is after it, whatever its stamp says.
        if frame.stamp < window.opens or frame.receipt < window.t_end:
            self.early += 1
            return False
        if frame.stamp > window.closes:
            self.beyond += 1
            return False
        if frame.stamp < floor:
            return self._turn_away_skewed(frame.stamp - now)
        if first:
            self.unproven += 1
            return False
        if repeats:
            self.repeated += 1
            return False
        self.stamps.append(frame.stamp)
        return True

    def describe(self) -> str:
        """Name the stream for an error text: what it is, its name and its topic."""
        what, name = self.spec.kind.value, self.spec.name
        if self.spec.kind is StreamKind.CAMERA_INFO:
            what, name = 'camera_info of view', name.rpartition('/')[0] or name
        return f"{what} '{name}' (topic {self.spec.topic})"

    def _remember(self, frame: Frame) -> tuple[bool, bool]:
        """Say whether a frame is the first, and whether its picture came lately."""
        if not self._must_change:
            return False, False
        payload = _digest(frame)
        first, repeats = not self._payloads, payload in self._payloads
        if repeats:  # it counts as seen just now, however many others come between
            self._payloads.remove(payload)
        self._payloads.append(payload)
        return first, repeats

    def _turn_away_skewed(self, offset: int) -> bool:
        self.skewed += 1
        self.offset = offset if self.offset is None else max(self.offset, offset)
        return False

    def _refuse_unstamped(self, frame: Frame) -> None:
        kind = 'unstamped_state' if self.spec.kind is StreamKind.STATE else 'unstamped_view'
        if frame.stamp_source != self.spec.stamp_source:
            raise CaptureError(
                kind,
                f'{self.describe()}: expected stamps from the {self.spec.stamp_source}, found '
                f"one from the {frame.stamp_source}; a type without a header needs 'stamp: "
                "receipt' in the configuration, every other type 'stamp: header'",
            )
        if frame.stamp == 0:
            raise CaptureError(
                kind,
                f'{self.describe()}: expected the time of the measurement in the header, found '
                'a stamp of zero; make the driver fill header.stamp (receipt cannot replace it)',
            )

    def _ahead(self, offset: int) -> str:
        return (
            f'{self.describe()}: a stamp lies {seconds(offset):.3f} s after its receipt (offset '
            f'{seconds(offset):+.3f} s), more than the {seconds(self._window.max_ahead):.3f} s of '
            'capture.max_ahead; synchronise the clock of the sending host with this one (chrony, '
            'PTP), or see that use_sim_time is the same everywhere and /clock comes often enough'
        )


def _digest(frame: Frame) -> int:
    """Hash what follows the header: SipHash, 64 bit, some 4 GB/s with the copy of the slice.

    Should two pictures ever have one hash, a good frame is turned away, and the next one serves.
    """
    return hash(frame.data[frame.payload_offset :])
