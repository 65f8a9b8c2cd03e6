"""The files that a verb writes; that one cannot be written ends the command."""

from __future__ import annotations

from collections.abc import Callable
import json
from pathlib import Path
from typing import Any

from harness_eval.cli.screen import refuse
from harness_eval.lines import describe


def need_writable(*paths: Path | None) -> None:
    """End the command before the work, unless these files can be written after it."""
    for path in paths:
        if path is None:
            continue
        if not path.absolute().parent.is_dir():
            refuse(f'{path.name} cannot be written: its folder does not exist')
        if path.is_dir():
            refuse(f'{path.resolve().name} cannot be written: it is a folder')


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a file of JSON."""
    write_text(path, json.dumps(value, indent=1, allow_nan=False) + '\n')


def write_text(path: Path, text: str) -> None:
    """Write a file of text in UTF-8."""
    write_with(path, lambda: path.write_text(text, 'utf-8'))


def write_with(path: Path, write: Callable[[], object]) -> None:
    """Have a file written.

    Args:
        path: The file.
        write: Writes it.
    """
    try:
        write()
    except OSError as error:
        refuse(f'{path.name} cannot be written: {error.strerror or describe(error)}')
