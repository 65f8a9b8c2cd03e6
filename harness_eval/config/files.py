"""Files that a configuration names: where they are, and their text within bounds."""

from __future__ import annotations

import errno
from pathlib import Path
import stat

from harness_eval.config.errors import describe

MAX_FILE_BYTES = 1024 * 1024
"""Most bytes of one file; a large cell has some ten thousand."""

_PACKAGE = 'package://'


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
