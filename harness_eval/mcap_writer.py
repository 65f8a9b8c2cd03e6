"""A whole MCAP file with few messages, written at once by MCAP's own library.

Nothing is compressed: what a camera sees hardly can be, and the robot waits. Each chunk has its
checksum, which readers of bags look at (0.25 ms for a picture of 640x480); one of the whole file
would cost as much again, and they do not. A chunk ends where the library ends it, behind 1 MiB.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness_eval.decode import TypeDefinition

_NO_PROFILES = '[]'
"""Nothing is known of the quality of service of those who published."""


@dataclass(frozen=True)
class Channel:
    """What all messages of one topic have in common.

    Attributes:
        topic: Name of the topic.
        type: Type of the messages.
        definition: What is known of it.
    """

    topic: str
    type: str
    definition: TypeDefinition


@dataclass(frozen=True)
class Message:
    """One message.

    Attributes:
        channel: Where it belongs.
        stamp: Nanoseconds of its receipt.
        data: CDR bytes.
    """

    channel: Channel
    stamp: int
    data: bytes


def write_mcap(path: Path, messages: Iterable[Message], description: str) -> None:
    """Write a file that readers of bags open by itself.

    Args:
        path: The file, which must not be there yet.
        messages: What it holds.
        description: What ``metadata.yaml`` says of the bag, within the file.

    Raises:
        OSError: It cannot be written.
    """
    from mcap.writer import CompressionType, Writer

    schemas: dict[str, int] = {}
    channels: dict[Channel, int] = {}
    with path.open('xb') as file:
        writer = Writer(file, compression=CompressionType.NONE)
        writer.start('ros2')
        writer.add_metadata('rosbag2', {'serialized_metadata': description})
        for message in messages:
            channel = message.channel
            if channel.type not in schemas:
                kind = channel.definition
                schemas[channel.type] = writer.register_schema(
                    channel.type, kind.form, kind.text.encode()
                )
            if channel not in channels:
                channels[channel] = writer.register_channel(
                    channel.topic,
                    'cdr',
                    schemas[channel.type],
                    {'offered_qos_profiles': _NO_PROFILES},
                )
            writer.add_message(channels[channel], message.stamp, message.data, message.stamp)
        writer.finish()  # type: ignore[no-untyped-call]
