"""A configuration file and the files that it includes, read into one document.

An included file brings what a package of tools knows about its tools: ``evaluation`` with
post-conditions, tools, evaluators, required tools and segment tools. Nothing is overridden: the
same thing in two files is refused, because nobody could tell which of the two judged a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
import errno
import os
from pathlib import Path
import stat
from typing import Any

from harness_eval.config.document import Document, read_document
from harness_eval.config.errors import ConfigError, describe, did_you_mean, Problem
from harness_eval.config.places import KeyPath, Source

MAX_FILE_BYTES = 1024 * 1024
"""Most bytes of one file; a large cell has some ten thousand."""

MAX_INCLUDE_DEPTH = 8
"""Files that include one another, the first one not counted."""

MAX_INCLUDED_FILES = 64
"""Included files in all."""

_PACKAGE = 'package://'
_MERGED_MAPPINGS = ('tools', 'post_conditions', 'evaluators')
_MERGED_LISTS = ('required_tools', 'segment_tools')


def load_document(path: Path) -> Document:
    """Read a file and merge what it includes into it; ``include`` is gone afterwards.

    Args:
        path: The file.

    Returns:
        The merged document. What is wrong with an include and still let the rest be read is in
        its ``problems``.

    Raises:
        ConfigError: The file itself cannot be read, or it is not YAML.
    """
    document = _read(path)
    _Includes(path).merge_into(document)
    return document


def resolve(text: str, directory: Path) -> Path:
    """Find the file that a path in the YAML means.

    Args:
        text: A path relative to ``directory``, or ``package://package/path``.
        directory: Folder of the file that names it.

    Raises:
        ValueError: It is absolute or malformed, or the package is not there.
    """
    if '\0' in text or not text.strip():
        raise ValueError('expected a path, found one that no file can have')
    if text.startswith(_PACKAGE):
        package, _, rest = text[len(_PACKAGE) :].partition('/')
        if not package or not rest:
            raise ValueError(f'expected package://package/path, found {describe(text)}')
        return _share_directory(package) / rest
    if '://' in text:
        raise ValueError(f'expected a relative path or package://…, found {describe(text)}')
    if Path(text).is_absolute():
        raise ValueError(
            'expected a path relative to this file, or package://package/path, found an '
            'absolute path, which holds on one machine only'
        )
    return directory / text


def _share_directory(package: str) -> Path:
    try:
        # Only here: a file without package:// needs no ROS 2 at all.
        from ament_index_python.packages import get_package_share_directory
    except ImportError:
        raise ValueError(
            'package:// needs ament_index_python, which is not there; source a ROS 2 '
            'installation first'
        ) from None
    try:
        return Path(get_package_share_directory(package))
    except (LookupError, ValueError, OSError):  # PackageNotFoundError is a KeyError
        raise ValueError(
            f'expected an installed ROS 2 package, found no {package!r}; build it and source '
            'its workspace'
        ) from None


def read_text(path: Path, what: str = 'a YAML file') -> str:
    """Read a text file within :data:`MAX_FILE_BYTES`.

    Args:
        path: The file.
        what: What it should be, for errors.

    Raises:
        ValueError: It cannot be read; the message names no folder.
    """
    try:
        # Not before the kind is known: opening a pipe would wait for its writer.
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise ValueError(f'expected {what}, found a directory')
        if not stat.S_ISREG(mode):
            raise ValueError(f'expected {what}, found something that is not a regular file')
        with path.open('rb') as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise ValueError(f'expected {what}, found no such file') from None
        reason = (error.strerror or 'unknown reason').lower()
        raise ValueError(
            f'expected {what} that can be read, found that it cannot: {reason}'
        ) from None
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f'expected at most {MAX_FILE_BYTES} bytes, found more')
    try:
        return data.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        line = data.count(b'\n', 0, error.start) + 1
        raise ValueError(
            f'expected UTF-8, found the byte 0x{data[error.start]:02x} in line {line} that is not'
        ) from None


def _read(path: Path) -> Document:
    try:
        text = read_text(path)
    except ValueError as error:
        raise ConfigError([Problem(path.name, 0, '', str(error))]) from None
    return _parse(text, path)


def _parse(text: str, path: Path) -> Document:
    document = read_document(text, Source(path.name, path.parent))
    if not isinstance(document.data, dict):
        message = f'expected a mapping of settings, found {describe(document.data)}'
        raise ConfigError([Problem(path.name, 1, '', message)])
    return document


@dataclass
class _Includes:
    """Follows includes from one root file; each file contributes once."""

    root: Path
    _seen: set[str] = field(default_factory=set)
    _chain: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._seen.add(os.path.realpath(self.root))
        self._chain.append(os.path.realpath(self.root))

    def merge_into(self, document: Document) -> None:
        """Merge what ``document`` includes, in the order of its list."""
        listed = document.data.pop('include', None)
        if listed is None:
            return
        if not isinstance(listed, list):
            message = f'expected a list of paths, found {describe(listed)}'
            document.problems.append(document.problem(('include',), message))
            return
        for index, text in enumerate(listed):
            path: KeyPath = ('include', index)
            try:
                included = self._included(text, document.place(path).source.directory)
            except ValueError as error:
                document.problems.append(document.problem(path, str(error)))
            except ConfigError as error:
                document.problems += error.problems
            else:
                if included is not None:
                    _merge(included, document)

    def _included(self, text: Any, directory: Path) -> Document | None:
        """Read one included file with its own includes; ``None`` if it is merged already."""
        if not isinstance(text, str):
            raise ValueError(f'expected a path, found {describe(text)}')
        path = resolve(text, directory)
        real = os.path.realpath(path)
        if real in self._chain:
            names = [Path(entry).name for entry in self._chain[self._chain.index(real) :]]
            raise ValueError(
                'expected includes without a loop, found '
                + ' includes '.join([*names, Path(real).name])
            )
        if real in self._seen:
            return None
        if len(self._chain) > MAX_INCLUDE_DEPTH:
            raise ValueError(
                f'expected at most {MAX_INCLUDE_DEPTH} levels of includes, found more'
            )
        if len(self._seen) > MAX_INCLUDED_FILES:
            raise ValueError(f'expected at most {MAX_INCLUDED_FILES} included files, found more')
        self._seen.add(real)
        try:
            content = read_text(path)
        except ValueError as error:
            raise ValueError(f'cannot include {Path(text).name!r}: {error}') from None
        document = _parse(content, path)
        self._chain.append(real)
        try:
            self.merge_into(document)
        finally:
            self._chain.pop()
        return document


def _merge(included: Document, target: Document) -> None:
    """Add what an included file brings; refuse what it may not bring."""
    target.problems += included.problems
    for key in included.data:
        if key != 'evaluation':
            message = "expected nothing but 'evaluation' and 'include' in an included file"
            target.problems.append(
                included.problem((key,), message + did_you_mean(key, ['evaluation', 'include']))
            )
    brought = included.data.get('evaluation')
    if brought is None:
        return
    if not isinstance(brought, dict):
        message = f'expected a mapping, found {describe(brought)}'
        target.problems.append(included.problem(('evaluation',), message))
        return
    evaluation = target.data.get('evaluation')
    if evaluation is None:
        evaluation = target.data['evaluation'] = {}
    if not isinstance(evaluation, dict):
        return  # refused when the shape of the file is checked
    for key, value in brought.items():
        path: KeyPath = ('evaluation', key)
        if key in _MERGED_MAPPINGS:
            _merge_mapping(included, target, evaluation, path, value)
        elif key in _MERGED_LISTS:
            _merge_list(included, target, evaluation, path, value)
        else:
            allowed = [*_MERGED_MAPPINGS, *_MERGED_LISTS]
            message = 'expected a key that an included file may bring, found another one'
            target.problems.append(
                included.problem(path, message + did_you_mean(key, allowed, what='it may bring'))
            )


def _merge_mapping(
    included: Document, target: Document, evaluation: dict[str, Any], path: KeyPath, value: Any
) -> None:
    if value is None:
        return
    if not isinstance(value, dict):
        message = f'expected a mapping, found {describe(value)}'
        target.problems.append(included.problem(path, message))
        return
    key = str(path[-1])
    if evaluation.get(key) is None:
        evaluation[key] = {}
    mine = evaluation[key]
    if not isinstance(mine, dict):
        return
    taken: dict[str | int, str | int] = {}
    for name, item in value.items():
        here = (*path, name)
        if name in mine:
            first = target.place(here)
            target.problems.append(
                included.problem(
                    here,
                    f'expected {name!r} to be defined in one file, found it in '
                    f'{first.source.name}:{first.line} too; delete one of the two',
                )
            )
            continue
        mine[name] = item
        taken[name] = name
    _adopt_places(included, target, path, taken)


def _merge_list(
    included: Document, target: Document, evaluation: dict[str, Any], path: KeyPath, value: Any
) -> None:
    if value is None:
        return
    if not isinstance(value, list):
        message = f'expected a list of names, found {describe(value)}'
        target.problems.append(included.problem(path, message))
        return
    key = str(path[-1])
    if evaluation.get(key) is None:
        evaluation[key] = []
    mine = evaluation[key]
    if not isinstance(mine, list):
        return
    before = {item for item in mine if isinstance(item, str)}
    taken: dict[str | int, str | int] = {}
    for index, item in enumerate(value):
        if isinstance(item, str) and item in before:
            continue  # asked for in both files is asked for
        taken[index] = len(mine)
        mine.append(item)
    _adopt_places(included, target, path, taken)


def _adopt_places(
    included: Document, target: Document, section: KeyPath, taken: dict[str | int, str | int]
) -> None:
    """Take over where the entries of a section stand, under their new name or index."""
    depth = len(section)
    for path, place in included.places.items():
        if len(path) > depth and path[:depth] == section and path[depth] in taken:
            here = (*section, taken[path[depth]], *path[depth + 1 :])
            target.places[here] = place
