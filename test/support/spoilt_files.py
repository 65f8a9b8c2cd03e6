"""Configuration files that are good until a test spoils one place of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_eval.config import ConfigError, load_config, Problem

Case = tuple[str, str, int, str, str]
"""What is replaced, by what, and the line, the key and words of the problem."""


def written(folder: Path, text: str, name: str = 'cell.yaml') -> Path:
    """Write a file; returns where it is."""
    path = folder / name
    path.write_text(text, encoding='utf-8')
    return path


def refused(folder: Path, text: str) -> ConfigError:
    """The error of a file that cannot be used."""
    with pytest.raises(ConfigError) as caught:
        load_config(written(folder, text))
    return caught.value


def problems(folder: Path, text: str) -> list[Problem]:
    """All that is wrong with a file."""
    return refused(folder, text).problems


def spoilt(good: str, before: str, after: str) -> str:
    """A good file with one place replaced."""
    assert good.count(before) == 1, 'the case must spoil one place'
    return good.replace(before, after)


def check_refused(folder: Path, good: str, case: Case) -> None:
    """Insist that a spoilt file is refused there and with these words, and names no folder."""
    before, after, line, key, words = case
    found = problems(folder, spoilt(good, before, after))
    assert ('cell.yaml', line, key) in [(one.file, one.line, one.key) for one in found]
    assert any(words in one.message for one in found if (one.line, one.key) == (line, key))
    assert str(folder) not in str(found)
