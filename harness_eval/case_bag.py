"""The bag of a case: the completion, the chosen frames and the outcome, for any reader of bags.

Frames are the CDR bytes as they came. The outcome comes when the rest has long been written, so it
has a file of its own, which ``metadata.yaml`` names: readers open the folder as one bag. That file
is there before it is named, so that a case can be read at whatever moment a process ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
import hashlib
from pathlib import Path
import shutil
from typing import Any, Literal

import yaml

from harness_eval.capture import Captured, Frame
from harness_eval.decode import Decoder
from harness_eval.message_types import TOOL_COMPLETION
from harness_eval.outcome_messages import outcome_bytes, OUTCOME_TYPE
from harness_eval.runs import Completion, Outcome, Segment
from harness_eval.times import sec_and_nanosec

COMPLETION_TOPIC = '/tool_completions'
COMPLETION_TYPE = TOOL_COMPLETION
OUTCOME_TOPIC = '/harness_eval/outcomes'
EVIDENCE_FILE = 'evidence.mcap'
OUTCOME_FILE = 'outcome.mcap'
METADATA_FILE = 'metadata.yaml'
# Those written in C are twenty times faster, where they are there.
_Loader: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
_Dumper: Any = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)
_PART = '.outcome-part'
_BAG_VERSION: Literal[9] = 9

Streams = Mapping[str, Mapping[str, Any]]
"""What ``case.json`` says of each stream but the data, by its name."""


def write_bag(folder: Path, segment: Segment, captured: Captured, decoder: Decoder) -> None:
    """Write a new bag with the completion of a segment and the frames that were chosen for it."""
    from rosbags.rosbag2 import StoragePlugin, Writer

    with Writer(folder, version=_BAG_VERSION, storage_plugin=StoragePlugin.MCAP) as bag:
        connections: dict[tuple[str, str], Any] = {}

        def write(topic: str, kind: str, stamp: int, data: bytes) -> None:
            connection = connections.get((topic, kind))
            if connection is None:
                connection = bag.add_connection(topic, kind, typestore=decoder.typestore_for(kind))
                connections[topic, kind] = connection
            bag.write(connection, stamp, data)

        message = completion_message(segment.completion, decoder)
        write(COMPLETION_TOPIC, COMPLETION_TYPE, segment.receipt, message)
        written = set()
        for frame in sorted(captured.frames.values(), key=lambda f: (f.receipt, f.stream)):
            # Several readings may come from one message; but a simulated clock gives messages
            # that came one after the other the same receipt.
            topic = _absolute(frame.topic)
            key = (topic, frame.receipt, frame.sha256)
            if key not in written:
                written.add(key)
                write(topic, frame.type, frame.receipt, frame.data)
    # The writer calls its file like the folder, which is a temporary and hidden name here.
    written_as = f'{folder.name}.mcap'
    (folder / written_as).rename(folder / EVIDENCE_FILE)
    metadata = folder / METADATA_FILE
    metadata.write_text(metadata.read_text('utf-8').replace(written_as, EVIDENCE_FILE), 'utf-8')


def read_frames(folder: Path, streams: Streams) -> dict[str, Frame]:
    """The frames of a case, each only if its bytes are those that were written.

    Args:
        folder: The case.
        streams: What ``case.json`` says of each stream but the data.
    """
    from rosbags.rosbag2 import Reader

    with Reader(folder) as bag:
        return frames_of(streams, ((one.topic, at, data) for one, at, data in bag.messages()))


def frames_of(streams: Streams, messages: Iterable[tuple[str, int, bytes]]) -> dict[str, Frame]:
    """The frames among the messages of a case, each only if its bytes are those written.

    Args:
        streams: What ``case.json`` says of each stream but the data.
        messages: Topic, receipt (ns) and CDR bytes of each.
    """
    wanted: dict[tuple[str, int], list[str]] = {}
    for name, fields in streams.items():
        wanted.setdefault((_absolute(fields['topic']), fields['receipt']), []).append(name)
    frames: dict[str, Frame] = {}
    for topic, receipt, data in messages:
        for name in wanted.get((topic, receipt), ()):
            fields = dict(streams[name])
            digest = fields.pop('sha256')
            if hashlib.sha256(data).hexdigest() == digest:
                frames[name] = Frame(stream=name, data=bytes(data), **fields)
    return frames


def add_outcome(folder: Path, outcome: Outcome, decoder: Decoder) -> None:
    """Put an outcome into the bag of a case, in the place of any that it has.

    Args:
        folder: The case.
        outcome: The outcome.
        decoder: Knows the definitions of the message types.

    Raises:
        OSError: The disk cannot be written.
        DecodeError: The outcome cannot be encoded.
        ValueError: ``metadata.yaml`` is not what this module wrote.
    """
    from rosbags.rosbag2 import StoragePlugin, Writer

    part = folder / _PART
    shutil.rmtree(part, ignore_errors=True)
    try:
        stamp = max(outcome.decided_at, outcome.completed_at)
        with Writer(part, version=_BAG_VERSION, storage_plugin=StoragePlugin.MCAP) as bag:
            connection = bag.add_connection(
                OUTCOME_TOPIC, OUTCOME_TYPE, typestore=decoder.typestore_for(OUTCOME_TYPE)
            )
            bag.write(connection, stamp, outcome_bytes(outcome, decoder))
        whole = _with_outcome(_metadata(folder), _metadata(part))
        text = yaml.dump(whole, Dumper=_Dumper, sort_keys=False)
        (part / METADATA_FILE).write_text(text, 'utf-8')
        (part / f'{part.name}.mcap').replace(folder / OUTCOME_FILE)
        (part / METADATA_FILE).replace(folder / METADATA_FILE)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _metadata(folder: Path) -> dict[str, Any]:
    return dict(yaml.load((folder / METADATA_FILE).read_text('utf-8'), Loader=_Loader))


def _with_outcome(whole: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """The metadata of both bags as one; of an outcome that was there before nothing is left."""
    try:
        first, second = whole['rosbag2_bagfile_information'], extra['rosbag2_bagfile_information']
        files = [one for one in first['files'] if one['path'] != OUTCOME_FILE]
        files += [{**second['files'][0], 'path': OUTCOME_FILE}]
        topics = [
            one
            for one in first['topics_with_message_count']
            if one['topic_metadata']['name'] != OUTCOME_TOPIC
        ]
        topics += second['topics_with_message_count']
        starts = [one['starting_time']['nanoseconds_since_epoch'] for one in files]
        ends = [
            start + one['duration']['nanoseconds']
            for start, one in zip(starts, files, strict=True)
        ]
        return {
            'rosbag2_bagfile_information': {
                **first,
                'files': files,
                'relative_file_paths': [one['path'] for one in files],
                'topics_with_message_count': topics,
                'message_count': sum(one['message_count'] for one in files),
                'starting_time': {'nanoseconds_since_epoch': min(starts)},
                'duration': {'nanoseconds': max(ends) - min(starts)},
            }
        }
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f'{METADATA_FILE} is not that of a case: {error!r}') from error


def completion_message(completion: Completion, decoder: Decoder) -> bytes:
    """The completion as the CDR bytes of a ``ToolCompletion``."""
    sec, nanosec = sec_and_nanosec(completion.stamp)
    time = decoder.new('builtin_interfaces/msg/Time', sec=sec, nanosec=nanosec)
    message = decoder.new(
        COMPLETION_TYPE,
        header=decoder.new('std_msgs/msg/Header', stamp=time, frame_id=''),
        run_id=completion.run_id,
        tool=completion.tool,
        segment=completion.segment,
        arguments=[
            decoder.new('diagnostic_msgs/msg/KeyValue', key=name, value=value)
            for name, value in completion.arguments
        ],
    )
    return decoder.serialize(COMPLETION_TYPE, message)


def _absolute(topic: str) -> str:
    return topic if topic.startswith('/') else '/' + topic
