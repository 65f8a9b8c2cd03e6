"""What can be judged again: cases and bags, found from what somebody typed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
import glob
import os
from pathlib import Path
import re

from harness_eval.cases import CASE_FILE
from harness_eval.contract import EvaluationError
from harness_eval.replay.results import Skipped

METADATA_FILE = 'metadata.yaml'
"""What describes a rosbag2 folder."""

BAG_SUFFIXES = ('.mcap', '.db3', '.bag', '.mcap.zstd', '.db3.zstd')
"""How the names of bag files end; other files are bags if they begin like one."""

_MAGICS = (b'\x89MCAP0\r\n', b'SQLite format 3\x00', b'#ROSBAG V')
_SPLIT = re.compile(r'(.+)_(\d+)\.(mcap|db3)(\.zstd)?')


class SourceError(EvaluationError):
    """A case or a bag, or what lies in it, cannot be used."""


@dataclass(frozen=True)
class CaseSource:
    """A judged segment that was kept: a folder with ``case.json``.

    Attributes:
        path: The folder.
        called: Its name among others, see :func:`told_apart`; empty: its base name.
    """

    path: Path
    called: str = ''

    @property
    def name(self) -> str:
        """Its name, with no more folders than tell it apart."""
        return self.called or base_name(self.path)


@dataclass(frozen=True)
class BagSource:
    """A recording: a rosbag2 folder, one of its files, or a rosbag1 file.

    Attributes:
        path: The folder or file.
        called: Its name among others, see :func:`told_apart`; empty: its base name.
    """

    path: Path
    called: str = ''

    @property
    def name(self) -> str:
        """Its name, with no more folders than tell it apart."""
        return self.called or base_name(self.path)


Source = CaseSource | BagSource


def base_name(path: Path) -> str:
    """The name of a file or folder without those that it lies in, ``.`` written out."""
    return path.name if path.name not in ('', '..') else path.resolve().name


def find_sources(patterns: Sequence[str]) -> tuple[list[Source], list[Skipped]]:
    """Find the cases and bags that are meant.

    A pattern is a case, a folder of cases or bags (searched through all its folders), a rosbag2
    folder, a bag file or a glob (``**`` crosses folders). A folder with ``case.json`` is a case,
    although it holds a bag as well; so is every file in it. Files that belong to one rosbag2
    folder are one bag. Hidden folders, and cases that are only half written, are passed over.

    Args:
        patterns: What somebody typed.

    Returns:
        The sources in the order of the patterns and, within one, of their names, each once
        however often it is meant, with names that tell them apart; and a note for each pattern
        that means nothing (``no_source``), names no bag (``not_a_bag``) or cannot be read
        (``unreadable``).
    """
    found: dict[Path, Source] = {}
    skipped: list[Skipped] = []
    for pattern in patterns:
        path = Path(pattern).expanduser()
        typed = str(path)
        # A name that exists is meant as it stands, with brackets and all.
        here = [typed]
        if not os.path.lexists(typed):
            here = sorted(glob.glob(typed, recursive=True))  # noqa: PTH207 (of any folder)
        sources = [source for name in here for source in _sources(Path(name), skipped)]
        if not sources:
            skipped.append(_nothing(path, here))
        for source in sources:
            found.setdefault(source.path.resolve(), source)
    return told_apart(list(found.values())), skipped


def told_apart(sources: Sequence[Source]) -> list[Source]:
    """Give sources of one base name as many of the folders that they lie in as tell them apart.

    All of one base name get as many, for example ``monday/bag`` and ``friday/bag``; a name depends
    on nothing but the sources that it is told apart from.

    Args:
        sources: The sources.

    Returns:
        The same, in the same order.
    """
    alike: dict[str, list[Path]] = {}
    for source in sources:
        alike.setdefault(base_name(source.path), []).append(_absolute(source.path))
    depths = {name: _depth(list(dict.fromkeys(paths))) for name, paths in alike.items()}
    return [_called(source, depths[base_name(source.path)]) for source in sources]


def _called(source: Source, depth: int) -> Source:
    parts = _absolute(source.path).parts[-depth:]
    return replace(source, called='/'.join(parts).lstrip('/') if depth > 1 else '')


def _depth(paths: Sequence[Path]) -> int:
    """How many names at the ends of different paths make them differ."""
    depth = 1
    while len({path.parts[-depth:] for path in paths}) < len(paths):
        depth += 1
    return depth


def _absolute(path: Path) -> Path:
    return path.resolve() if path.name in ('', '..') else path.parent.resolve() / path.name


def is_bag_folder(folder: Path) -> bool:
    """Whether a folder is one rosbag2 bag: with metadata, or the files of one that lost it."""
    if (folder / METADATA_FILE).is_file():
        return True
    splits = [_SPLIT.fullmatch(path.name) for path in bag_files(folder)]
    if not splits or None in splits:
        return False
    known = [match.groups() for match in splits if match is not None]
    numbers = sorted(int(number) for _, number, _, _ in known)
    alike = {(stem, suffix, packed) for stem, _, suffix, packed in known}
    return len(alike) == 1 and numbers == list(range(len(numbers)))


def bag_files(folder: Path) -> list[Path]:
    """The files of rosbag2 in a folder, in the order in which they were recorded."""
    files = [path for path in folder.iterdir() if _is_rosbag2(path)]
    return sorted(files, key=_natural)


def _is_rosbag2(path: Path) -> bool:
    return path.name.endswith(BAG_SUFFIXES) and path.suffix != '.bag' and path.is_file()


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """Sort ``x_2`` before ``x_10``."""
    parts = re.split(r'(\d+)', path.name)
    return [(1, int(p), '') if p.isdecimal() and p.isascii() else (0, 0, p) for p in parts]


def _sources(path: Path, skipped: list[Skipped]) -> Iterator[Source]:
    try:
        if path.is_dir():
            yield from _in_folder(path, skipped, frozenset())
        elif (path.parent / CASE_FILE).is_file():
            yield CaseSource(path.parent)
        elif path.name == METADATA_FILE:
            yield BagSource(path.parent)
        elif _is_special(path):
            return
        elif path.name.endswith(BAG_SUFFIXES) or _begins_like_a_bag(path):
            yield BagSource(path)
    except OSError as error:
        skipped.append(_unreadable(path, error))


def _in_folder(folder: Path, skipped: list[Skipped], above: frozenset[Path]) -> Iterator[Source]:
    try:
        real = folder.resolve()
        if real in above:  # a link that leads back up
            return
        if (folder / CASE_FILE).is_file():
            yield CaseSource(folder)
            return
        if is_bag_folder(folder):
            yield BagSource(folder)
            return
        children = sorted(folder.iterdir(), key=_natural)
    except OSError as error:
        skipped.append(_unreadable(folder, error))
        return
    for child in children:
        if child.name.startswith('.'):  # so does a case that is only half written
            continue
        if child.is_dir():
            yield from _in_folder(child, skipped, above | {real})
        elif child.name.endswith(BAG_SUFFIXES) and not _is_special(child):
            yield BagSource(child)


def _is_special(path: Path) -> bool:
    """Whether something is a pipe, a socket or a device, which might be read for ever."""
    return path.exists() and not path.is_file()


def _begins_like_a_bag(path: Path) -> bool:
    with path.open('rb') as file:
        return file.read(16).startswith(_MAGICS)


def _unreadable(path: Path, error: OSError) -> Skipped:
    reason = error.strerror or type(error).__name__
    return Skipped(base_name(path), 'unreadable', f'{base_name(path)} cannot be read: {reason}')


def _nothing(path: Path, here: Sequence[str]) -> Skipped:
    name = base_name(path)
    looked = (
        f'a case (a folder with {CASE_FILE}), a rosbag2 folder ({METADATA_FILE}) or a bag file '
        f'({", ".join(BAG_SUFFIXES)})'
    )
    if not here:
        message = f'nothing is called {name}: expected {looked}, a folder of them or a glob'
        return Skipped(name, 'no_source', message)
    if here == [str(path)] and path.is_file():
        return Skipped(name, 'not_a_bag', f'{name} is no bag: expected {looked}')
    return Skipped(name, 'no_source', f'{name} holds nothing to judge: looked for {looked}')
