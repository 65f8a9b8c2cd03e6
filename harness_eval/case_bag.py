"""The bag of a case: the completion, the chosen frames and the outcome, for any reader of bags.

Frames are the CDR bytes as they came. The outcome comes when the rest has long been written, so it
has a file of its own, which ``metadata.yaml`` names: readers open the folder as one bag. That file
is there before it is named, so that a case can be read at whatever moment a process ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
import hashlib
from pathlib import Path
import shutil
from typing import Any

import yaml

from harness_eval.capture import Captured, Frame
from harness_eval.decode import Decoder
from harness_eval.mcap_writer import Channel, Message, write_mcap
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
_BAG_VERSION = 9
"""Of the format of ``metadata.yaml``: that of Jazzy and later."""
_ROOT = 'rosbag2_bagfile_information'

Streams = Mapping[str, Mapping[str, Any]]
"""What ``case.json`` says of each stream but the data, by its name."""


def write_bag(folder: Path, segment: Segment, captured: Captured, decoder: Decoder) -> None:
    """Write a new bag with the completion of a segment and the frames that were chosen for it."""

    def message(topic: str, kind: str, stamp: int, data: bytes) -> Message:
        return Message(Channel(topic, kind, decoder.definition(kind)), stamp, data)

    completion = completion_message(segment.completion, decoder)
    messages = [message(COMPLETION_TOPIC, COMPLETION_TYPE, segment.receipt, completion)]
    written: dict[tuple[str, int], list[bytes]] = {}
    for frame in sorted(captured.frames.values(), key=lambda f: (f.receipt, f.stream)):
        # Several readings may come from one message; but a simulated clock gives messages
        # that came one after the other the same receipt.
        topic = _absolute(frame.topic)
        same_moment = written.setdefault((topic, frame.receipt), [])
        if frame.data not in same_moment:
            same_moment.append(frame.data)
            messages.append(message(topic, frame.type, frame.receipt, frame.data))
    information = _information(EVIDENCE_FILE, messages)
    folder.mkdir(parents=True)
    write_mcap(folder / EVIDENCE_FILE, messages, _yaml(information))
    (folder / METADATA_FILE).write_text(_yaml({_ROOT: information}), 'utf-8')


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
    channel = Channel(OUTCOME_TOPIC, OUTCOME_TYPE, decoder.definition(OUTCOME_TYPE))
    stamp = max(outcome.decided_at, outcome.completed_at)
    messages = [Message(channel, stamp, outcome_bytes(outcome, decoder))]
    information = _information(OUTCOME_FILE, messages)
    part = folder / _PART
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir()
        write_mcap(part / OUTCOME_FILE, messages, _yaml(information))
        whole = _with_outcome(_metadata(folder), information)
        (part / METADATA_FILE).write_text(_yaml({_ROOT: whole}), 'utf-8')
        (part / OUTCOME_FILE).replace(folder / OUTCOME_FILE)
        (part / METADATA_FILE).replace(folder / METADATA_FILE)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _information(file: str, messages: Sequence[Message]) -> dict[str, Any]:
    """What ``metadata.yaml`` says of a bag of one file."""
    stamps = [message.stamp for message in messages]
    counts = Counter(message.channel for message in messages)
    return {
        'version': _BAG_VERSION,
        'storage_identifier': 'mcap',
        'relative_file_paths': [file],
        **_extent(min(stamps), max(stamps), len(messages)),
        'topics_with_message_count': [
            {
                'topic_metadata': {
                    'name': channel.topic,
                    'type': channel.type,
                    'serialization_format': 'cdr',
                    'offered_qos_profiles': [],
                    'type_description_hash': channel.definition.digest,
                },
                'message_count': count,
            }
            for channel, count in counts.items()
        ],
        'compression_format': '',
        'compression_mode': '',
        'files': [{'path': file, **_extent(min(stamps), max(stamps), len(messages))}],
        'custom_data': None,
        'ros_distro': 'unknown',
    }


def _extent(start: int, end: int, count: int) -> dict[str, Any]:
    """What is said of messages, in nanoseconds."""
    return {
        'starting_time': {'nanoseconds_since_epoch': start},
        'duration': {'nanoseconds': end - start},
        'message_count': count,
    }


def _yaml(data: dict[str, Any]) -> str:
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False))


def _metadata(folder: Path) -> dict[str, Any]:
    return dict(yaml.load((folder / METADATA_FILE).read_text('utf-8'), Loader=_Loader))


def _with_outcome(whole: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """What is said of both bags as one; of an outcome that was there before nothing is left."""
    try:
        first = whole[_ROOT]
        files = [one for one in first['files'] if one['path'] != OUTCOME_FILE]
        files += extra['files']
        topics = [
            one
            for one in first['topics_with_message_count']
            if one['topic_metadata']['name'] != OUTCOME_TOPIC
        ]
        topics += extra['topics_with_message_count']
        starts = [one['starting_time']['nanoseconds_since_epoch'] for one in files]
        ends = [
            start + one['duration']['nanoseconds']
            for start, one in zip(starts, files, strict=True)
        ]
        return {
            **first,
            'files': files,
            'relative_file_paths': [one['path'] for one in files],
            'topics_with_message_count': topics,
            **_extent(min(starts), max(ends), sum(one['message_count'] for one in files)),
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
