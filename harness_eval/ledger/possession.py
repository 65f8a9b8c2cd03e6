"""Being the one writer of a file, and noticing that the file is not the same any more.

A file that is deleted or replaced while it is open goes on taking writes that nobody will ever
see again; a lock file that is deleted lets a second writer in. Neither raises an error by itself,
so both are looked for in each transaction, which costs a few microseconds.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from harness_eval.contract import LedgerError

_Identity = tuple[int, int]


class Possession:
    """The lock of a ledger, and the identity of its files.

    Args:
        path: The file, with links resolved.

    Raises:
        LedgerError: ``ledger_in_use``: another process has the lock.
        OSError: The lock file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._lock_path = f'{path}.lock'
        self._files = (f'{path}', f'{path}-wal')
        self._known: tuple[_Identity | None, ...] = ()
        self._lock = self._take_lock()

    def close(self) -> None:
        """Give up the lock."""
        os.close(self._lock)

    def remember(self) -> None:
        """Take the files as they are now for the ones that must stay."""
        self._known = tuple(map(_identity, self._files))

    def check(self) -> bool:
        """Make sure that what is written goes to the file that others read, and that it is ours.

        A lock file that is gone is made again, unless another node has done so.

        Returns:
            Whether nobody else can have written since the last check.

        Raises:
            LedgerError: ``ledger_unavailable``: the file was deleted or replaced;
                ``ledger_in_use``: the lock file was, and another node has it now.
        """
        if self._known and tuple(map(_identity, self._files)) != self._known:
            raise LedgerError(
                'ledger_unavailable',
                f'{self._name} was deleted or replaced while the node writes it, so that nothing '
                'can be put on record; put the file and its -wal back, or start the node again '
                'with what is there now',
                retryable=True,
            )
        if _identity(self._lock_path) == _identity(self._lock):
            return True
        try:
            lock = self._take_lock()
        except OSError as error:
            raise LedgerError(
                'ledger_unavailable',
                f'the lock of {self._name} was deleted and cannot be made again: {error.strerror}',
                retryable=True,
            ) from error
        os.close(self._lock)
        self._lock = lock
        return False

    def _take_lock(self) -> int:
        while True:
            handle = os.open(self._lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                os.close(handle)
                raise LedgerError(
                    'ledger_in_use',
                    f'another node writes {self._name}; stop it, or give this one a ledger_url '
                    'of its own',
                ) from error
            except OSError:
                os.close(handle)
                raise
            if _identity(handle) == _identity(self._lock_path):
                return handle
            os.close(handle)  # deleted between the two calls: a lock that nobody would see


def _identity(file: str | int) -> _Identity | None:
    try:
        found = os.stat(file)  # noqa: PTH116, for a handle too; and each transaction asks
    except OSError:
        return None
    return found.st_dev, found.st_ino
