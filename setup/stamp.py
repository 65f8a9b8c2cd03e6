"""What went into a stage of the set-up, and whether that stage was finished with it."""

from __future__ import annotations

from collections.abc import Iterable
import contextlib
import hashlib
from pathlib import Path


def fingerprint(values: Iterable[str], files: Iterable[Path], root: Path) -> str:
    """Hash values and files; the order of the files does not matter.

    Args:
        values: Anything that counts besides files, in order.
        files: Files whose name below ``root`` and content count.
        root: Folder that the names are relative to.

    Returns:
        SHA-256 in hexadecimal.
    """
    digest = hashlib.sha256()
    for value in values:
        digest.update(f'{len(value)} {value}\n'.encode())
    for path in sorted(files):
        content = path.read_bytes()
        digest.update(f'{path.relative_to(root)} {len(content)}\n'.encode())
        digest.update(content)
    return digest.hexdigest()


class Stamp:
    """A file that says with which inputs a stage was finished."""

    def __init__(self, path: Path) -> None:
        """Name the file; nothing is read or written yet."""
        self._path = path

    def fits(self, inputs: str) -> bool:
        """Whether the stage was finished with these inputs."""
        try:
            return self._path.read_text() == inputs
        except FileNotFoundError:
            return False

    def remove(self) -> None:
        """Say that the stage is not finished."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    def write(self, inputs: str) -> None:
        """Say that the stage was finished; the file appears whole or not at all."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        new = self._path.with_suffix('.new')
        new.write_text(inputs)
        new.replace(self._path)
