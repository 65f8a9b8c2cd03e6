"""One file of a bag that is packed as a whole (``compression_mode: FILE``).

It is unpacked into a temporary file when a window reaches into it, in pieces, and the temporary
file stays until another one takes its place or the bag is closed: the disk holds at most
:data:`KEPT_FILES` unpacked files of a bag at once, and memory none.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path

from harness_eval.replay.bags.bag import BagFile, BagMessage, BagTopic, Definition, Note
from harness_eval.replay.bags.packed import UnpackedFile

KEPT_FILES = 2
"""Unpacked files of one bag that are kept: runs near a split need both sides of it."""

_MARGIN = 10**9
"""Nanoseconds by which the times in the metadata may be wrong: they are those of the first and the
last message that were written, and a few messages are written late."""

Open = Callable[[Path, Note], BagFile]


class Unpacking:
    """The unpacked files of one bag.

    Args:
        open_file: Opens a file that is not packed.
        note: Takes what cannot be read.
    """

    def __init__(self, open_file: Open, note: Note) -> None:
        self._open_file = open_file
        self._note = note
        self._kept: OrderedDict[Path, tuple[UnpackedFile, BagFile]] = OrderedDict()

    def opened(self, path: Path) -> BagFile:
        """The file that a packed one holds.

        Raises:
            SourceError: It holds none that can be read.
            OSError: It cannot be read, or there is no room to unpack it.
        """
        if path in self._kept:
            self._kept.move_to_end(path)
            return self._kept[path][1]
        while len(self._kept) >= KEPT_FILES:
            self._drop(self._kept.popitem(last=False)[1])
        unpacked = UnpackedFile(path)
        try:
            if unpacked.damage:
                self._note('bag_cut', f'{path.name} is {unpacked.damage}; what it gave is used')
            self._kept[path] = unpacked, self._open_file(unpacked.path, self._note)
        except BaseException:
            unpacked.close()
            raise
        return self._kept[path][1]

    def close(self) -> None:
        """Remove the temporary files."""
        while self._kept:
            self._drop(self._kept.popitem()[1])

    @staticmethod
    def _drop(kept: tuple[UnpackedFile, BagFile]) -> None:
        # An iteration under way goes on: the system keeps an open file until it is closed.
        kept[1].close()
        kept[0].close()


class PackedFile:
    """A packed file of a bag.

    Args:
        path: The file.
        unpacking: What unpacks it.
        topics: Its topics, if the metadata name them; otherwise it is unpacked to learn them.
        span: First and last receipt as the metadata have them; None likewise.

    Attributes:
        margin: Nanoseconds by which the span may be too short at either end.

    Raises:
        SourceError: It had to be unpacked, and cannot be read.
        OSError: Likewise.
    """

    def __init__(
        self,
        path: Path,
        unpacking: Unpacking,
        topics: Mapping[str, BagTopic],
        span: tuple[int, int] | None,
    ) -> None:
        self._path = path
        self._unpacking = unpacking
        self.margin = _MARGIN
        self._topics, self._span = topics, span
        if not topics or span is None:
            file = unpacking.opened(path)
            self._topics, self._span = file.topics, file.span
            self.margin = 0

    @property
    def topics(self) -> Mapping[str, BagTopic]:
        """What the file holds, by absolute name."""
        return self._topics

    @property
    def definitions(self) -> Mapping[str, Definition]:
        """The definitions that the file carries, by type; it is unpacked for them."""
        return self._unpacking.opened(self._path).definitions

    @property
    def span(self) -> tuple[int, int] | None:
        """First and last receipt, nanoseconds; None without messages."""
        return self._span

    def messages(
        self, topics: Collection[str], start: int | None, stop: int | None
    ) -> Iterator[BagMessage]:
        """Messages in order of receipt, ``start`` included, ``stop`` not."""
        yield from self._unpacking.opened(self._path).messages(topics, start, stop)

    def written(self, topics: Collection[str], start: int, stop: int) -> Iterator[tuple[str, int]]:
        """Topic and receipt of the messages of a window in the order of writing, unread."""
        yield from self._unpacking.opened(self._path).written(topics, start, stop)

    def close(self) -> None:
        """Remove the temporary files of the bag."""
        self._unpacking.close()
