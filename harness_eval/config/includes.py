"""A configuration file and the files that it includes, read into one document.

An included file brings what a package of tools knows about its tools: ``evaluation`` with
post-conditions, tools, evaluators, required tools and segment tools. Nothing is overridden: the
same thing in two files is refused, because nobody could tell which of the two judged a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
import os
from pathlib import Path
from typing import Any, TypeVar

from harness_eval.config.document import Document, read_document
from harness_eval.config.errors import ConfigError, describe, did_you_mean, Problem
from harness_eval.config.files import read_text, resolve
from harness_eval.config.places import KeyPath, Source

MAX_INCLUDE_DEPTH = 8
"""Files that include one another, the first one not counted."""

MAX_INCLUDED_FILES = 64
"""Included files in all."""

_MERGED_MAPPINGS = ('tools', 'post_conditions', 'evaluators')

_MERGED_LISTS = ('required_tools', 'segment_tools')

_Kind = TypeVar('_Kind', dict[str, Any], list[Any])


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
    mine = _section(included, target, evaluation, path, value, dict, 'a mapping')
    if mine is None:
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
    mine = _section(included, target, evaluation, path, value, list, 'a list of names')
    if mine is None:
        return
    before = {item for item in mine if isinstance(item, str)}
    taken: dict[str | int, str | int] = {}
    for index, item in enumerate(value):
        if isinstance(item, str) and item in before:
            continue  # asked for in both files is asked for
        taken[index] = len(mine)
        mine.append(item)
    _adopt_places(included, target, path, taken)


def _section(
    included: Document,
    target: Document,
    evaluation: dict[str, Any],
    path: KeyPath,
    value: Any,
    kind: type[_Kind],
    expected: str,
) -> _Kind | None:
    """The section that ``value`` is to be added to; ``None`` if nothing can or need be added."""
    if value is None:
        return None
    if not isinstance(value, kind):
        message = f'expected {expected}, found {describe(value)}'
        target.problems.append(included.problem(path, message))
        return None
    key = str(path[-1])
    if evaluation.get(key) is None:
        evaluation[key] = kind()
    mine = evaluation[key]
    return mine if isinstance(mine, kind) else None  # refused with the shape of the file


def _adopt_places(
    included: Document, target: Document, section: KeyPath, taken: dict[str | int, str | int]
) -> None:
    """Take over where the entries of a section stand, under their new name or index."""
    depth = len(section)
    for path, place in included.places.items():
        if len(path) > depth and path[:depth] == section and path[depth] in taken:
            here = (*section, taken[path[depth]], *path[depth + 1 :])
            target.places[here] = place
