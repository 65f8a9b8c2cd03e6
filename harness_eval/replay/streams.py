"""Which topics of a bag or a case are the streams that a configuration names. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from harness_eval.capture import Captured, Frame, StreamKind, StreamSpec
from harness_eval.contract import CaptureError
from harness_eval.replay.bags import absolute_name, BagTopic, resolve_topic
from harness_eval.replay.sources import SourceError
from harness_eval.times import seconds

_KINDS = {
    StreamKind.VIEW: ('sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage'),
    StreamKind.CAMERA_INFO: ('sensor_msgs/msg/CameraInfo',),
}


def fitting(
    captured: Captured, streams: Iterable[StreamSpec], namespace: str | None, tool: str
) -> Captured:
    """The frames of a case that a tool is judged by now.

    Args:
        captured: The frames that were chosen then.
        streams: What an observation for the tool needs now, topics as in the configuration.
        namespace: Namespace of the node that took them; None: whichever it was.
        tool: Name of the tool.

    Raises:
        CaptureError: ``evidence_incomplete`` or ``configuration_changed``, naming the stream.
    """
    frames = {}
    for spec in streams:
        frame = captured.frames.get(spec.name)
        if frame is None:
            raise CaptureError(
                'evidence_incomplete',
                f'the case does not show {spec.name!r}, which the configuration requires for '
                f'{tool!r}; it has {", ".join(captured.frames) or "no frames"}. Replay the bag '
                'that the case was taken from, or leave that view or state out',
            )
        found = _difference(frame, spec, namespace)
        if found:
            raise CaptureError(
                'configuration_changed',
                f'{spec.name!r} of the case {found}; a case holds nothing else, so replay the '
                'bag that it was taken from',
            )
        frames[spec.name] = frame
    stamps = [frame.stamp for frame in frames.values()]
    spread = seconds(max(stamps, default=0) - min(stamps, default=0))
    seen = {name: captured.seen.get(name, 0) for name in frames}
    return replace(captured, frames=frames, spread=spread, seen=seen)


def _difference(frame: Frame, spec: StreamSpec, namespace: str | None) -> str:
    if not _is_topic(frame.topic, spec.topic, namespace):
        return f'comes from {frame.topic}, not from {spec.topic} as in the configuration'
    if spec.type and frame.type != spec.type:
        return f'is of the type {frame.type}, not {spec.type} as in the configuration'
    if frame.stamp_source != spec.stamp_source:
        return (
            f'has its stamp from the {frame.stamp_source}, not from the {spec.stamp_source} as in '
            'the configuration'
        )
    return ''


def _is_topic(found: str, name: str, namespace: str | None) -> bool:
    wanted = absolute_name(name, namespace or '')
    found = absolute_name(found)
    # The node may have run in any namespace.
    anywhere = namespace is None and not name.startswith('/')
    return found == wanted or (anywhere and found.endswith(wanted))


def missing_topics(topics: Mapping[str, BagTopic], streams: Iterable[StreamSpec]) -> str:
    """Say which topics of a bag would fit those streams of a tool that it does not have.

    Args:
        topics: The topics of the bag.
        streams: What an observation for the tool needs, topics as resolved.

    Returns:
        Sentences; empty if nothing is missing.
    """
    parts = []
    for spec in streams:
        types = (spec.type,) if spec.type else _KINDS.get(spec.kind, ())
        if spec.topic not in topics:
            try:
                resolve_topic(topics, spec.topic, types)
            except SourceError as error:
                parts.append(f'{error.message}.')
    return ' '.join(parts)
