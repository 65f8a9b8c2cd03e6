"""Measures one stream from its messages: rate, stamps against receipts, size, repetitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
import math

from harness_eval.capture import StreamKind, StreamSpec
from harness_eval.contract import DecodeError
from harness_eval.decode import Decoder
from harness_eval.field_path import FieldPath
from harness_eval.times import SECOND, seconds


@dataclass(frozen=True)
class StreamStatistics:
    """What one stream was like while it was listened to. Durations are seconds.

    Attributes:
        spec: The stream.
        frames: Messages that came and could be read.
        type: Their message type; empty if none came.
        rate: Messages per second by their receipts; NaN with fewer than two.
        period: Median time between two stamps; NaN with fewer than two.
        jitter: Widest deviation of the time between two stamps from ``period``; NaN likewise.
        offset: Smallest, median and largest ``stamp - receipt``; negative: stamped before it was
            received, as it should be. NaN if no message has a stamp.
        stamps: Nanoseconds of the stamps, strictly increasing.
        unstamped: Messages with a stamp of zero.
        headerless: Messages without a header though their stamp is to come from it.
        before_clock: Messages that came while the clock read zero.
        not_newer: Messages with a stamp not after the one before.
        compared: Pictures that had one before them to be compared with.
        repeated: Of those, the ones that repeat it byte for byte.
        mistyped: Messages of another type than the one configured.
        unreadable: Why messages could not be read; empty if all could.
        width: Pixels in a row; 0 for what is no picture.
        height: Number of rows.
        encoding: As the message names it.
    """

    spec: StreamSpec
    frames: int
    type: str
    rate: float
    period: float
    jitter: float
    offset: tuple[float, float, float]
    stamps: tuple[int, ...]
    unstamped: int
    headerless: int
    before_clock: int
    not_newer: int
    compared: int
    repeated: int
    mistyped: int
    unreadable: str
    width: int
    height: int
    encoding: str

    @property
    def frozen(self) -> bool:
        """Whether it repeats one picture, which it may not."""
        return self.compared > 0 and self.repeated == self.compared


class StreamMeter:
    """Takes the messages of one stream in order of their arrival. Not thread-safe.

    Args:
        spec: The stream.
        decoder: Reads the messages.
        field: Field path of a state; it is read in the first message of each size.
        reduce: How several values become one.
    """

    def __init__(
        self,
        spec: StreamSpec,
        decoder: Decoder,
        field: FieldPath | None = None,
        reduce: str | None = None,
    ) -> None:
        self._spec = spec
        self._decoder = decoder
        self._field = field
        self._reduce = reduce
        self._compares = spec.kind is StreamKind.VIEW and not spec.may_repeat
        self._before: bytes | None = None
        self._looked_at = -1
        self._type = self._unreadable = self._encoding = ''
        self._width = self._height = 0
        self._receipts: list[int] = []
        self._stamps: list[int] = []
        self._offsets: list[int] = []
        self._unstamped = self._headerless = self._before_clock = self._not_newer = 0
        self._compared = self._repeated = self._mistyped = 0

    def add(self, kind: str, data: bytes, receipt: int) -> None:
        """Take one more message.

        Args:
            kind: Message type.
            data: The CDR bytes as received.
            receipt: Nanoseconds of the receipt; 0: before the first ``/clock``.
        """
        if self._spec.type and kind != self._spec.type:
            self._mistyped += 1
            return
        self._type = kind
        try:
            header = self._decoder.stamp(kind, data)
            self._look_inside(kind, data)
        except DecodeError as error:
            self._unreadable = error.message
            return
        if receipt <= 0:
            self._before_clock += 1
            return
        self._receipts.append(receipt)
        if self._spec.stamp_source == 'receipt':
            self._stamped(receipt, receipt)
        elif header is None:
            self._headerless += 1
        else:
            self._stamped(header.stamp, receipt)
        if self._compares and header is not None:
            self._compare(data[header.payload_offset :])

    def statistics(self) -> StreamStatistics:
        """What was seen so far."""
        periods = [seconds(b - a) for a, b in pairwise(self._stamps)]
        period = quantile(periods, 0.5)
        offsets = [seconds(offset) for offset in self._offsets]
        return StreamStatistics(
            spec=self._spec,
            frames=len(self._receipts),
            type=self._type,
            rate=_rate(self._receipts),
            period=period,
            jitter=max((abs(one - period) for one in periods), default=math.nan),
            offset=(quantile(offsets, 0.0), quantile(offsets, 0.5), quantile(offsets, 1.0)),
            stamps=tuple(self._stamps),
            unstamped=self._unstamped,
            headerless=self._headerless,
            before_clock=self._before_clock,
            not_newer=self._not_newer,
            compared=self._compared,
            repeated=self._repeated,
            mistyped=self._mistyped,
            unreadable=self._unreadable,
            width=self._width,
            height=self._height,
            encoding=self._encoding,
        )

    def _stamped(self, stamp: int, receipt: int) -> None:
        if stamp == 0:
            self._unstamped += 1
            return
        self._offsets.append(stamp - receipt)
        if self._stamps and stamp <= self._stamps[-1]:
            self._not_newer += 1
        else:
            self._stamps.append(stamp)

    def _compare(self, payload: bytes) -> None:
        if self._before is not None:
            self._compared += 1
            self._repeated += payload == self._before
        self._before = payload

    def _look_inside(self, kind: str, data: bytes) -> None:
        """Read what a judgement will read; once for each size of the message, which is enough."""
        if len(data) == self._looked_at and not self._unreadable:
            return
        if self._spec.kind is StreamKind.VIEW:
            facts = self._decoder.image_facts(kind, data)
            self._width, self._height = facts.width, facts.height
            self._encoding = facts.encoding
        elif self._spec.kind is StreamKind.CAMERA_INFO:
            self._decoder.camera_info(kind, data)
        elif self._field is not None:
            self._decoder.reading(kind, data, self._field, self._reduce)
        self._unreadable = ''
        self._looked_at = len(data)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of them does not exceed; NaN for none.

    It is the nearest-rank quantile, which is always one of the values.
    """
    if not values:
        return math.nan
    rank = max(1, math.ceil(share * len(values)))
    return sorted(values)[rank - 1]


def _rate(receipts: Sequence[int]) -> float:
    if len(receipts) < 2 or receipts[-1] <= receipts[0]:
        return math.nan
    return (len(receipts) - 1) * SECOND / (receipts[-1] - receipts[0])
