"""The records that a capture takes in and gives out. Stamps are nanoseconds of the ROS clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
import hashlib


class StreamKind(str, Enum):
    """What one stream of an observation carries."""

    VIEW = 'view'
    STATE = 'state'
    CAMERA_INFO = 'camera_info'


@dataclass(frozen=True)
class StreamSpec:
    """One stream that an observation needs.

    Attributes:
        name: Name that frames and errors use; unique within a capture.
        topic: Topic that it comes from, as resolved.
        kind: What it carries.
        stamp_source: ``header``, or ``receipt`` for a type without a header.
        may_repeat: Whether a frame may repeat an earlier one byte for byte. It matters for views
            only, where it comes from the configuration; states and camera_info always may.
        type: Message type that it must have, for example ``sensor_msgs/msg/Image``; empty:
            whatever suits the kind.
    """

    name: str
    topic: str
    kind: StreamKind
    stamp_source: str = 'header'
    may_repeat: bool = True
    type: str = ''


@dataclass(frozen=True)
class Frame:
    """One message of one stream, as it came.

    Attributes:
        stream: Name of the stream.
        topic: Topic that it came from, as resolved.
        type: Message type.
        stamp: Nanoseconds of the header's stamp; of the receipt if ``stamp_source`` says so.
        receipt: Nanoseconds of the node's ROS clock when it came; 0 before the first ``/clock``.
        data: The CDR bytes as received.
        frame_id: Coordinate frame, empty if the message has none.
        stamp_source: ``header`` or ``receipt``.
        payload_offset: Index into ``data`` of what follows the header. The test for a frozen
            camera compares ``data[payload_offset:]``; with 0 the stamp is compared too, so that
            no camera ever looks frozen.
    """

    stream: str
    topic: str
    type: str
    stamp: int
    receipt: int
    data: bytes = field(repr=False)
    frame_id: str = ''
    stamp_source: str = 'header'
    payload_offset: int = 0

    @cached_property
    def sha256(self) -> str:
        """SHA-256 (hex) of the data; worked out once: a megabyte takes half a millisecond."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class TopicFacts:
    """What the graph says about the topic of a stream at the moment an error is explained.

    Attributes:
        publishers: How many publishers the topic has.
        types: The message types that they offer.
        incompatible_qos: Why no subscription can match them; empty if one can.
        undecodable: Why messages that came could not be read at all; empty if they could.
    """

    publishers: int = 0
    types: tuple[str, ...] = ()
    incompatible_qos: str = ''
    undecodable: str = ''


@dataclass(frozen=True)
class Captured:
    """The chosen frames of one observation.

    Attributes:
        frames: The chosen frame of every stream, by name.
        t_end: Nanoseconds of the end of the execution.
        spread: Seconds between the earliest and the latest chosen stamp; at most ``slop``.
        seen: How many frames came of every stream until the choice was made.
    """

    frames: Mapping[str, Frame]
    t_end: int
    spread: float
    seen: Mapping[str, int]
