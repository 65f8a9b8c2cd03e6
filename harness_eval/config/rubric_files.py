"""Rubrics that live in files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from harness_eval.config.document import Document, read_document
from harness_eval.config.errors import ConfigError, describe
from harness_eval.config.files import read_text
from harness_eval.config.places import Source
from harness_eval.config.shape import findings
from harness_eval.config.tool_judging import MAX_RUBRIC, RubricSettings

_YAML = ('.yaml', '.yml')


def read_rubric(path: Path, version: str) -> RubricSettings:
    """Read the file of a rubric.

    Args:
        path: The file; one that ends in ``.yaml`` or ``.yml`` holds ``version`` and ``text`` or
            ``criteria``, any other is free text.
        version: What the configuration calls this version; empty if it does not.

    Returns:
        The rubric, without a ``file``.

    Raises:
        ValueError: The file cannot be read, or is no rubric as a whole.
        ConfigError: What is wrong within a YAML file, with its lines.
    """
    text = read_text(path, 'a rubric')
    if path.suffix not in _YAML:
        return _free_text(text, version)
    document = read_document(text, Source(path.name, path.parent))
    if document.problems:
        raise ConfigError(document.problems)
    found = _validated(document)
    if version and found.version:
        raise ValueError(
            f'expected the version in one place, found {version!r} here and {found.version!r} '
            f'in {path.name}'
        )
    return found.model_copy(update={'version': version}) if version else found


def _free_text(text: str, version: str) -> RubricSettings:
    if not text.strip() or len(text) > MAX_RUBRIC:
        found = f'{len(text)} characters' if text.strip() else 'nothing but white space'
        raise ValueError(f'expected a rubric of 1 to {MAX_RUBRIC} characters, found {found}')
    return RubricSettings(text=text, version=version)


def _validated(document: Document) -> RubricSettings:
    data: Any = document.data
    if not isinstance(data, dict):
        raise ValueError(
            f"expected 'version' and 'text' or 'criteria' in {document.source.name}, found "
            f'{describe(data)}'
        )
    if 'file' in data:
        raise ConfigError(
            [document.problem(('file',), 'expected the rubric itself, found another file')]
        )
    try:
        return RubricSettings.model_validate(data)
    except ValidationError as error:
        found = findings(error, RubricSettings, data)
        raise ConfigError([document.problem(where, message) for where, message in found]) from None
