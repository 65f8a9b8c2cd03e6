"""``metadata.yaml`` of a rosbag2 folder, as far as it can be understood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from harness_eval.replay.bags.bag import BagTopic
from harness_eval.replay.bags.qos import offered_qos
from harness_eval.replay.sources import METADATA_FILE

MAX_METADATA_BYTES = 32 << 20
"""Largest file that is read; a topic with its profiles takes about a kilobyte."""


class MetadataError(ValueError):
    """The file cannot be understood."""


@dataclass(frozen=True)
class Metadata:
    """What the metadata say.

    Attributes:
        files: Base names of the files, in order of recording.
        topics: The topics with their counts.
        spans: First and last receipt of each file that has messages, nanoseconds; files without
            an entry say nothing.
        empty: Files that hold no messages.
    """

    files: tuple[str, ...]
    topics: Mapping[str, BagTopic] = field(default_factory=dict)
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    empty: frozenset[str] = frozenset()


def read_metadata(folder: Path) -> Metadata:
    """Read the metadata of a folder.

    What replay needs of them is the list of the files; topics, counts and times are taken as far
    as they are well formed.

    Raises:
        MetadataError: They are missing, no YAML, or list no files; the message follows
            "metadata.yaml".
    """
    path = folder / METADATA_FILE
    try:
        if path.stat().st_size > MAX_METADATA_BYTES:
            raise MetadataError(f'is larger than {MAX_METADATA_BYTES} bytes')
        text = path.read_text('utf-8')
    except FileNotFoundError:
        raise MetadataError('is missing') from None
    except OSError as error:
        raise MetadataError(f'cannot be read: {error.strerror}') from None
    except UnicodeDecodeError:
        raise MetadataError('is not UTF-8') from None
    try:
        data = yaml.load(text, getattr(yaml, 'CSafeLoader', yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line = getattr(getattr(error, 'problem_mark', None), 'line', None)
        where = '' if line is None else f' at line {line + 1}'
        raise MetadataError(f'is no YAML{where}') from None
    body = data.get('rosbag2_bagfile_information') if isinstance(data, dict) else None
    if not isinstance(body, dict):
        raise MetadataError('lacks rosbag2_bagfile_information')
    listed = body.get('relative_file_paths')
    if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
        raise MetadataError('lacks the list relative_file_paths')
    spans, empty = _spans(body.get('files'))
    return Metadata(
        tuple(PurePosixPath(one).name for one in listed),
        _topics(body.get('topics_with_message_count')),
        spans,
        empty,
    )


def _topics(listed: Any) -> dict[str, BagTopic]:
    found: dict[str, BagTopic] = {}
    for entry in listed if isinstance(listed, list) else ():
        described = entry.get('topic_metadata') if isinstance(entry, dict) else None
        if not isinstance(described, dict):
            continue
        name, kind = described.get('name'), described.get('type')
        count = entry.get('message_count')
        if isinstance(name, str) and isinstance(kind, str):
            found[name] = BagTopic(
                name,
                kind,
                count if isinstance(count, int) and count >= 0 else None,
                offered_qos(described.get('offered_qos_profiles')),
            )
    return found


def _spans(listed: Any) -> tuple[dict[str, tuple[int, int]], frozenset[str]]:
    spans: dict[str, tuple[int, int]] = {}
    empty = set()
    for entry in listed if isinstance(listed, list) else ():
        try:
            name = PurePosixPath(entry['path']).name
            start = entry['starting_time']['nanoseconds_since_epoch']
            length = entry['duration']['nanoseconds']
            if entry['message_count'] == 0:
                empty.add(name)
            elif isinstance(start, int) and isinstance(length, int) and length >= 0:
                spans[name] = (start, start + length)
        except (KeyError, TypeError):
            continue
    return spans, frozenset(empty)
