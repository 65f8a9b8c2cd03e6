"""The wait of segments for the frames that show what they came to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace

from harness_eval.capture import Capture, Captured, Frame, StreamSpec, TopicFacts
from harness_eval.config import Config
from harness_eval.contract import CaptureError, DecodeError
from harness_eval.decode import Decoder, HeaderFacts
from harness_eval.pipeline.active import Active
from harness_eval.pipeline.effects import Guarded
from harness_eval.runs import Completion, Key, Segment
from harness_eval.times import seconds

CLOCK_JUMP_NS = 1_000_000
"""How far receipts of frames, which come from one thread, must go back to show a clock jump."""


@dataclass(frozen=True)
class _Expected:
    """The wait of a segment that is not on record yet."""

    key: Key
    streams: tuple[StreamSpec, ...]
    capture: Capture


class Captures:
    """Those of the segments under evaluation that wait for frames.

    Args:
        config: The whole configuration.
        decoder: Reads messages.
        effects: The world around.
        active: All segments under evaluation.
        guard: Ends a segment as an error whatever is raised within.
        on_captured: Gets a segment and its frames, once there are all.
    """

    def __init__(
        self,
        config: Config,
        decoder: Decoder,
        effects: Guarded,
        active: Mapping[Key, Active],
        guard: Callable[[Active], AbstractContextManager[None]],
        on_captured: Callable[[Active, Captured], None],
    ) -> None:
        self._config = config
        self._decoder = decoder
        self._effects = effects
        self._active = active
        self._guard = guard
        self._on_captured = on_captured
        self._undecodable: dict[str, str] = {}
        self._last_receipt = 0
        self._expected: _Expected | None = None

    def waiting(self) -> list[Capture]:
        """Each wait."""
        return [active.capture for active in self._active.values() if active.capture is not None]

    @contextmanager
    def expecting(
        self, completion: Completion, receipt: int, streams: tuple[StreamSpec, ...]
    ) -> Iterator[None]:
        """Listen to what a completion needs while the record says whether it is taken.

        If :meth:`begin` comes inside, it goes on from there; if not, nothing has happened.

        Args:
            completion: What was reported.
            receipt: Nanoseconds of its receipt on the node's clock.
            streams: What its observation needs; at least one.
        """
        segment = Segment(completion, order=0, receipt=receipt)
        self._expected = _Expected(completion.key, streams, self._capture(segment, streams))
        self.tap()
        try:
            yield
        finally:
            if self._expected is not None:
                self._expected = None
                self.tap()

    def begin(self, active: Active, streams: tuple[StreamSpec, ...]) -> None:
        """Begin to wait for the frames of a segment, whose clocks were checked."""
        expected = self._expected
        active.streams = streams
        for spec in streams:
            self._undecodable.pop(spec.topic, None)
        if expected is not None and expected.key == active.key and expected.streams == streams:
            active.capture = expected.capture
            self._expected = None
        else:
            active.capture = self._capture(active.segment, streams)
            self.tap()

    def _capture(self, segment: Segment, streams: tuple[StreamSpec, ...]) -> Capture:
        return Capture(
            streams,
            segment.t_end,
            self._config.capture,
            ros_start=segment.receipt,
            wall_start=self._effects.steady_now(),
        )

    def frame(self, topic: str, kind: str, data: bytes, receipt: int) -> None:
        """A message came on a topic; see :meth:`Pipeline.frame`."""
        waiting = [
            (active, spec)
            for active in self._active.values()
            if active.capture is not None
            for spec in active.streams
            if spec.topic == topic and spec.type in ('', kind)
        ]
        if not waiting:
            return
        try:
            header = self._decoder.stamp(kind, data)
        except DecodeError as error:
            self._undecodable[topic] = error.message
            return
        self._undecodable.pop(topic, None)
        for active, spec in waiting:
            if active.capture is None:
                continue  # an error ended it a moment ago
            with self._guard(active):
                if header is None and spec.stamp_source == 'header':
                    raise _without_header(spec, kind)
                active.capture.add(_frame(spec, kind, data, receipt, header))
        jumped = receipt <= self._last_receipt - CLOCK_JUMP_NS
        self._last_receipt = receipt
        for active in dict.fromkeys(active for active, _ in waiting):
            self.poll(active, receipt if jumped else None)

    def check_clocks(self, segment: Segment) -> None:
        """Make sure that stamps can be compared with the end of this segment.

        Raises:
            CaptureError: They cannot.
        """
        if segment.receipt == 0:
            raise CaptureError(
                'clock_not_started',
                'the completion came before the ROS clock began: the node runs with use_sim_time '
                'and no /clock has come; start the simulation first',
            )
        ahead = seconds(segment.completion.stamp - segment.receipt)
        if ahead > self._config.capture.max_clock_skew:
            raise CaptureError(
                'clock_skew',
                f'the completion is stamped {ahead:.3f} s after it was received; capture.'
                f'max_clock_skew allows {self._config.capture.max_clock_skew:g} s. Synchronise '
                'the clock of the host that reported it (chrony, NTP), or leave its stamp zero',
            )

    def tap(self) -> None:
        """Listen to what is waited for, and to nothing else."""
        waiting = [a.streams for a in self._active.values() if a.capture is not None]
        if self._expected is not None:
            waiting.append(self._expected.streams)
        self._effects.tap(frozenset(spec.topic for streams in waiting for spec in streams))

    def poll(self, active: Active, ros_now: int | None) -> None:
        """See whether a capture has ended; without a time, whether its frames have ended it.

        Deadlines are looked at in ticks alone: frames that came in time may still be in the queue
        behind the one that is handled now.
        """
        if active.capture is None:
            return
        with self._guard(active):
            if ros_now is None:
                captured = active.capture.found()
            else:
                captured = active.capture.poll(
                    ros_now, self._effects.steady_now(), self._facts_of(active)
                )
            if captured is not None:
                active.capture = None
                self._on_captured(active, captured)
                self.tap()

    def _facts_of(self, active: Active) -> Callable[[str], TopicFacts]:
        topics = {spec.name: spec.topic for spec in active.streams}

        def facts(stream: str) -> TopicFacts:
            topic = topics[stream]
            found = self._effects.facts(topic)
            problem = self._undecodable.get(topic, '')
            return replace(found, undecodable=problem) if problem else found

        return facts


def _frame(
    spec: StreamSpec, kind: str, data: bytes, receipt: int, header: HeaderFacts | None
) -> Frame:
    if header is None or spec.stamp_source == 'receipt':
        stamp, source = receipt, 'receipt'
    else:
        stamp, source = header.stamp, 'header'
    return Frame(
        stream=spec.name,
        topic=spec.topic,
        type=kind,
        stamp=stamp,
        receipt=receipt,
        data=data,
        frame_id='' if header is None else header.frame_id,
        stamp_source=source,
        payload_offset=0 if header is None else header.payload_offset,
    )


def _without_header(spec: StreamSpec, kind: str) -> CaptureError:
    return CaptureError(
        'no_header',
        f'{spec.name!r} comes as {kind}, which carries no stamp; set stamp: receipt for it if the '
        'time of its receipt is good enough',
    )
