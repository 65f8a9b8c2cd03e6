"""A recording as the rest of replay sees it, whatever its format.

A bag is made of files, and each file is read in windows: only what lies in the window is read
from disk. Messages come in the order of their receipt. Where several files, or several chunks of
one, cover the same time (a loop, clocks that went back, messages that were written late), they
are merged; what is held meanwhile are the places of the messages in chunks that overlap and a few
unpacked chunks, never the messages of a whole file.

Threading: a bag may be used by one thread at a time; several iterations may be under way at once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from types import MappingProxyType, TracebackType
from typing import NamedTuple, Protocol

from harness_eval.replay.bags.order import merged
from harness_eval.replay.bags.packed import PackedError, unpacked, ZSTD_MAGIC
from harness_eval.replay.bags.qos import OfferedQos
from harness_eval.replay.results import Skipped
from harness_eval.replay.sources import SourceError

MAX_NOTES = 100
"""Most notes kept of one bag; a bag that is damaged everywhere has one for each chunk."""


@dataclass(frozen=True)
class BagTopic:
    """A topic of a bag.

    Attributes:
        name: Absolute name.
        type: Message type, for example ``sensor_msgs/msg/Image``.
        count: How many messages of it there are; None: not known without reading all.
        qos: What its publishers offered, as far as the bag says so.
    """

    name: str
    type: str
    count: int | None = None
    qos: tuple[OfferedQos, ...] = ()


@dataclass(frozen=True)
class Definition:
    """The definition of a message type, as a bag carries it with its dependencies behind it.

    Attributes:
        text: The text, as :meth:`harness_eval.decode.Decoder.register` takes it.
        form: ``ros2msg`` or ``ros2idl``.
    """

    text: str
    form: str = 'ros2msg'


class BagMessage(NamedTuple):
    """A message as it was recorded.

    Attributes:
        topic: Absolute name of its topic.
        type: Its type.
        data: CDR bytes; of ROS 1, converted.
        receipt: Nanoseconds since epoch at which the recorder received it.
    """

    topic: str
    type: str
    data: bytes
    receipt: int


def full_type(name: str) -> str:
    """The name of a type as ROS 2 writes it: some recorders write ``sensor_msgs/Image``."""
    package, _, kind = name.partition('/')
    return f'{package}/msg/{kind}' if kind and '/' not in kind else name


Note = Callable[[str, str], None]
"""Takes the kind and the message of something that could not be read."""


class BagFile(Protocol):
    """One file of a bag."""

    @property
    def topics(self) -> Mapping[str, BagTopic]:
        """What it holds, by absolute name."""

    @property
    def margin(self) -> int:
        """Nanoseconds by which :attr:`span` may be too short at either end."""

    @property
    def definitions(self) -> Mapping[str, Definition]:
        """The definitions that it carries, by type."""

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last receipt, nanoseconds; None without messages."""

    def messages(
        self, topics: Collection[str], start: int | None, stop: int | None
    ) -> Iterator[BagMessage]:
        """Messages in order of receipt, ``start`` included, ``stop`` not."""

    def written(self, topics: Collection[str], start: int, stop: int) -> Iterator[tuple[str, int]]:
        """Topic and receipt of the messages of a window in the order of writing, unread."""

    def close(self) -> None:
        """Let go of what it holds."""


class Bag:
    """An opened recording; see :func:`harness_eval.replay.bags.open_bag`.

    Args:
        name: Its name without folders.
        files: What it is made of, in the order of recording.
        skipped: What could not be read of it, filled on as reading goes on.
        described: The topics as the metadata of the whole describe them.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[BagFile],
        skipped: list[Skipped] | None = None,
        described: Mapping[str, BagTopic] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self._files = list(files)
        self._skipped = [] if skipped is None else skipped
        self._note = notes_into(self._skipped, name)
        self._topics = _topics(self._files, described)
        spans = [span for file in self._files if (span := file.span) is not None]
        self._span = (min(s[0] for s in spans), max(s[1] for s in spans)) if spans else (0, 0)

    @property
    def topics(self) -> Mapping[str, BagTopic]:
        """The topics by absolute name."""
        return self._topics

    @property
    def start(self) -> int:
        """Receipt of the first message, nanoseconds since epoch; 0 without messages."""
        return self._span[0]

    @property
    def end(self) -> int:
        """Receipt of the last message, nanoseconds since epoch; 0 without messages."""
        return self._span[1]

    @property
    def definitions(self) -> Mapping[str, Definition]:
        """The message definitions that the bag carries, by type."""
        found: dict[str, Definition] = {}
        for file in self._files:
            for name, definition in file.definitions.items():
                found.setdefault(name, definition)
        return found

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """What could not be read so far; more may come with every read."""
        return tuple(dict.fromkeys(self._skipped))

    def messages(
        self,
        topics: Collection[str],
        start: int | None = None,
        stop: int | None = None,
    ) -> Iterator[BagMessage]:
        """Messages in the order of their receipt; of one receipt, in the order of the file.

        What is damaged is passed over and noted in :attr:`skipped`.

        Args:
            topics: Absolute names; those that the bag does not have give nothing.
            start: First receipt to give, nanoseconds; None: from the beginning.
            stop: First receipt not to give any more; None: to the end.
        """
        wanted = frozenset(topics)
        parts: list[tuple[int, Callable[[], Iterator[BagMessage]]]] = []
        for file in self._files:
            span = file.span
            if span is None or not wanted & file.topics.keys():
                continue
            first, last = span[0] - file.margin, span[1] + file.margin
            if (stop is None or first < stop) and (start is None or last >= start):
                parts.append((first, partial(self._of_file, file, wanted, start, stop)))
        for message in merged(parts, attrgetter('receipt')):
            if not message.data.startswith(ZSTD_MAGIC):
                yield message
                continue
            try:
                data = unpacked(message.data, 'zstd')
            except PackedError as error:
                self._note(
                    'bag_damaged',
                    f'a message on {message.topic} at {message.receipt / 1e9:.3f} s is damaged: '
                    f'{error}',
                )
                continue
            yield message._replace(data=data)

    def goes_back(self, topics: Collection[str], start: int, stop: int) -> int:
        """By how much time went back while a window was recorded: a loop, a clock that was set.

        Receipts of one topic rise as they are written. Where they do not, two times of recording
        cover the window, and in order of receipt their messages are mixed.

        Args:
            topics: Absolute names.
            start: First receipt of the window, nanoseconds.
            stop: First receipt after it.

        Returns:
            Nanoseconds of the largest step back on one topic; 0: there is none.
        """
        newest: dict[str, int] = {}
        most = 0
        for file in self._files:
            span = file.span
            if span is None or span[1] + file.margin < start or span[0] - file.margin >= stop:
                continue
            try:
                for topic, receipt in file.written(topics, start, stop):
                    before = newest.setdefault(topic, receipt)
                    most = max(most, before - receipt)
                    newest[topic] = max(before, receipt)
            except (SourceError, OSError):
                continue  # whoever reads the messages is told
        return most

    def _of_file(
        self, file: BagFile, topics: frozenset[str], start: int | None, stop: int | None
    ) -> Iterator[BagMessage]:
        try:
            yield from file.messages(topics, start, stop)
        except SourceError as error:
            self._note(error.kind, error.message)
        except OSError as error:
            self._note('unreadable', f'a file of {self.name} cannot be read: {error.strerror}')

    def close(self) -> None:
        """Let go of files and of what was unpacked."""
        for file in self._files:
            file.close()

    def __enter__(self) -> Bag:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def notes_into(skipped: list[Skipped], source: str) -> Note:
    """Give what writes notes of one bag into a list, within a bound."""

    def note(kind: str, message: str) -> None:
        one = Skipped(source, kind, message)
        if len(skipped) < MAX_NOTES and one not in skipped:
            skipped.append(one)

    return note


def _topics(files: Sequence[BagFile], described: Mapping[str, BagTopic]) -> Mapping[str, BagTopic]:
    found: dict[str, BagTopic] = {}
    for file in files:
        for name, topic in file.topics.items():
            known = found.get(name)
            if known is None:
                found[name] = topic
                continue
            both = known.count is not None and topic.count is not None
            total = (known.count or 0) + (topic.count or 0) if both else None
            found[name] = replace(known, count=total, qos=known.qos or topic.qos)
    for name, topic in described.items():
        known = found.get(name, topic)
        found[name] = replace(known, count=topic.count, qos=known.qos or topic.qos)
    return MappingProxyType(dict(sorted(found.items())))
