"""Streams, frames and captures for the tests, with times in milliseconds after the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness_eval.capture import Capture, Captured, Frame, StreamKind, StreamSpec, TopicFacts
from harness_eval.config.models import CaptureSettings
from harness_eval.contract import CaptureError

MS = 1_000_000
T_END = 1_700_000_000_000 * MS
"""Nanoseconds; a wall-clock time of today's size."""

HEADER = b'\x00\x01\x00\x00header__'


def view(name: str = 'front', *, may_repeat: bool = False) -> StreamSpec:
    """Make a view that must not repeat."""
    return StreamSpec(name, f'cell/{name}/image_raw', StreamKind.VIEW, may_repeat=may_repeat)


def state(name: str = 'joints') -> StreamSpec:
    """Make a state."""
    return StreamSpec(name, f'cell/{name}', StreamKind.STATE)


def frame(
    spec: StreamSpec, stamp: float, receipt: float | None = None, payload: bytes | None = None
) -> Frame:
    """Make a frame; without a payload it differs from every frame of another stamp."""
    nanoseconds = T_END + round(stamp * MS)
    content = str(stamp).encode() if payload is None else payload
    return Frame(
        stream=spec.name,
        topic=spec.topic,
        type='sensor_msgs/msg/Image',
        stamp=nanoseconds,
        receipt=nanoseconds if receipt is None else T_END + round(receipt * MS),
        data=HEADER + content,
        payload_offset=len(HEADER),
    )


def capture(*streams: StreamSpec, **settings: float) -> Capture:
    """Start a capture at the end of the execution and at wall time 0."""
    limits = CaptureSettings.model_validate(settings)
    return Capture(streams, T_END, limits, ros_start=T_END, wall_start=0.0)


def graph(
    facts: Mapping[str, TopicFacts] | None = None, publishers: int = 1
) -> Callable[[str], TopicFacts]:
    """Answer for the graph: one publisher of every topic unless said otherwise."""
    known = {} if facts is None else facts
    return lambda name: known.get(name, TopicFacts(publishers=publishers))


def poll(
    running: Capture,
    ros: float,
    wall: float | None = None,
    facts: Callable[[str], TopicFacts] | None = None,
) -> Captured | None:
    """Poll at a ROS time in milliseconds after the end; the wall clock keeps pace."""
    seconds = ros / 1000 if wall is None else wall
    return running.poll(T_END + round(ros * MS), seconds, facts or graph())


def outcome(
    running: Capture, frames: Sequence[Frame], facts: Callable[[str], TopicFacts] | None = None
) -> Captured | CaptureError:
    """Feed all frames, then let the ROS deadline pass if there is no observation before."""
    for each in frames:
        running.add(each)
    try:
        found = poll(running, 1, facts=facts)
        if found is not None:
            return found
        after = (running.ros_deadline - T_END) / MS + 1
        found = poll(running, after, wall=2.0, facts=facts)
    except CaptureError as error:
        return error
    assert found is not None
    return found
