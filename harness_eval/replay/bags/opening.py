"""From a path to an opened bag, whatever is wrong with parts of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness_eval.replay.bags.bag import Bag, BagFile, Note, notes_into
from harness_eval.replay.bags.mcap_file import McapFile
from harness_eval.replay.bags.metadata import Metadata, MetadataError, read_metadata
from harness_eval.replay.bags.packed import ZSTD_MAGIC
from harness_eval.replay.bags.packed_file import Open, PackedFile, Unpacking
from harness_eval.replay.bags.ros1_file import Ros1File
from harness_eval.replay.bags.sqlite_file import SqliteFile
from harness_eval.replay.results import Skipped
from harness_eval.replay.sources import bag_files, BagSource, base_name, METADATA_FILE, SourceError

_FORMATS: Mapping[bytes, Open] = {
    b'\x89MCAP0\r\n': McapFile,
    b'SQLite format 3\x00': SqliteFile,
    b'#ROSBAG V2': Ros1File,
}


def open_bag(source: BagSource | Path) -> Bag:
    """Open a recording: a rosbag2 folder, one file of one (MCAP or sqlite3), or a rosbag1 file.

    What a file is, its first bytes say. Of a folder those files are read that its metadata list;
    without metadata, or with such that cannot be understood, all that are there. A file that
    cannot be read is noted in :attr:`Bag.skipped` and the others are used.

    Raises:
        SourceError: ``no_source``, ``unreadable``, ``not_a_bag``, ``bag_damaged`` or
            ``bag_locked``: nothing of it can be used.
    """
    path = source.path if isinstance(source, BagSource) else source
    name = source.name if isinstance(source, BagSource) else base_name(path)
    skipped: list[Skipped] = []
    note = notes_into(skipped, name)
    try:
        if path.is_dir():
            return _folder(path, name, skipped, note)
        return Bag(name, [_open_file(path, note, Unpacking(_open_plain, note), None)], skipped)
    except OSError as error:
        raise _unreadable(path, error) from None


def _folder(folder: Path, name: str, skipped: list[Skipped], note: Note) -> Bag:
    metadata = Metadata(())
    here = bag_files(folder)
    paths: Sequence[Path] = here
    try:
        metadata = read_metadata(folder)
        paths = _listed(folder, metadata, here, note)
    except MetadataError as error:
        if not here:
            raise SourceError(
                'not_a_bag',
                f'{name} is no bag: {METADATA_FILE} {error}, and no .mcap or .db3 file is there',
            ) from None
        note('bad_metadata', f'{METADATA_FILE} {error}; the files of the folder are read as found')
    files: list[BagFile] = []
    problems: list[SourceError] = []
    unpacking = Unpacking(_open_plain, note)
    for path in paths:
        if path.name in metadata.empty:
            continue
        try:
            files.append(_open_file(path, note, unpacking, metadata))
        except OSError as error:
            problems.append(_unreadable(path, error))
        except SourceError as error:
            problems.append(error)
    if problems and not files:
        raise problems[0]
    for problem in problems:
        note(problem.kind, f'{problem.message}; the other files of the bag are used')
    described = metadata.topics
    if skipped:  # the counts are those of the whole
        described = {name: replace(topic, count=None) for name, topic in described.items()}
    return Bag(name, files, skipped, described)


def _listed(folder: Path, metadata: Metadata, here: Sequence[Path], note: Note) -> list[Path]:
    found = [folder / file for file in metadata.files if (folder / file).is_file()]
    missing = [file for file in metadata.files if not (folder / file).is_file()]
    if not found and here:
        note('bad_metadata', f'{METADATA_FILE} lists none of the files; they are read as found')
        return list(here)
    if missing and not found:
        raise SourceError(
            'bag_damaged',
            f'{folder.name} lacks its files, for example {missing[0]}: copy them to where '
            f'{METADATA_FILE} is',
        )
    for file in missing:
        note('bag_file_missing', f'{file} is missing; the other files of the bag are used')
    return found


def _open_file(path: Path, note: Note, unpacking: Unpacking, metadata: Metadata | None) -> BagFile:
    if _begin(path).startswith(ZSTD_MAGIC):
        described = metadata or Metadata(())
        # Some recorders list the times under the name that the file had before it was packed.
        plain = path.name.removesuffix('.zstd')
        span = described.spans.get(path.name) or described.spans.get(plain)
        return PackedFile(path, unpacking, described.topics, span)
    return _open_plain(path, note)


def _open_plain(path: Path, note: Note) -> BagFile:
    begin = _begin(path)
    for magic, open_format in _FORMATS.items():
        if begin.startswith(magic):
            return open_format(path, note)
    if not begin:
        raise SourceError('bag_damaged', f'{path.name} is empty: nothing was recorded')
    raise SourceError(
        'not_a_bag',
        f'{path.name} begins neither as MCAP, nor as sqlite3, nor as a bag of ROS 1',
    )


def _begin(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise SourceError('not_a_bag', f'{path.name} is no file: expected a bag')
    with path.open('rb') as file:
        return file.read(16)


def _unreadable(path: Path, error: OSError) -> SourceError:
    name = base_name(path)
    if isinstance(error, FileNotFoundError):
        return SourceError('no_source', f'there is no bag {name}: check its name')
    reason = error.strerror or type(error).__name__
    return SourceError('unreadable', f'{name} cannot be read: {reason}')
