"""Unpacking what recorders pack: chunks, messages and whole files."""

from __future__ import annotations

from contextlib import suppress
import importlib
from pathlib import Path
import tempfile
from typing import Any

from harness_eval.replay.sources import SourceError

ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
"""What zstd begins with; no CDR message does, whose first byte is 0."""

MAX_UNPACKED = 1 << 30
"""Largest chunk or message in bytes; rosbag2 writes chunks below a megabyte."""

_BLOCK = 1 << 20


class PackedError(ValueError):
    """Something packed cannot be unpacked."""


def zstd_decompressor() -> Any:
    """A decompressor of the zstd that is at hand: of Python 3.14, or its backport.

    Raises:
        SourceError: ``package_missing``.
    """
    for name in ('compression.zstd', 'backports.zstd'):
        try:
            return importlib.import_module(name).ZstdDecompressor()
        except ImportError:
            continue
    raise SourceError(
        'package_missing',
        'the bag is packed with zstd, and nothing is there to unpack it: install backports.zstd '
        '(pip install "harness_eval[replay]")',
    )


def unpacked(
    data: bytes, compression: str, limit: int = MAX_UNPACKED, *, whole: bool = True
) -> bytes:
    """Unpack what is in memory.

    Args:
        data: The packed bytes.
        compression: ``zstd``, ``lz4`` (frames) or nothing.
        limit: Most bytes that it may become.
        whole: Whether an end that is missing is an error; otherwise what there is is given.

    Raises:
        PackedError: It is packed otherwise, damaged, cut or too large.
    """
    if not compression:
        return data
    if compression == 'zstd':
        machine = zstd_decompressor()
    elif compression == 'lz4':
        machine = importlib.import_module('lz4.frame').LZ4FrameDecompressor()
    else:
        raise PackedError(f'packed with {compression[:20]!r}; zstd and lz4 are understood')
    parts: list[bytes] = []
    room = limit + 1  # one more, so that what just fits comes to its end
    # In pieces, so that what lies before the damage of a cut chunk is not lost with it.
    try:
        for begin in range(0, len(data), _BLOCK):
            if machine.eof:
                break
            part = bytes(machine.decompress(data[begin : begin + _BLOCK], room))
            parts.append(part)
            room -= len(part)
            if room <= 0:
                raise PackedError(f'larger than {limit} bytes when unpacked')
    except PackedError:
        raise
    except Exception as error:  # both libraries have errors of their own
        if whole:
            raise PackedError(f'{compression} data is damaged: {error}') from None
    if whole and not machine.eof:
        raise PackedError(f'{compression} data is cut')
    return b''.join(parts)


class UnpackedFile:
    """A packed file, unpacked into a temporary one that lives as long as this.

    Args:
        path: The packed file (zstd).

    Attributes:
        path: The temporary file; it has the name of the packed one without ``.zstd``.
        damage: What is wrong with the packed one; empty: nothing. What could be unpacked is there.

    Raises:
        OSError: It cannot be read, or the disk for temporary files is full.
    """

    def __init__(self, path: Path) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix='harness_eval-')
        self.path = Path(self._folder.name, path.name.removesuffix('.zstd'))
        self.damage = ''
        try:
            self.damage = _unpack(path, self.path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove the temporary file."""
        with suppress(OSError):
            self._folder.cleanup()


def _unpack(packed: Path, plain: Path) -> str:
    machine = zstd_decompressor()
    with packed.open('rb') as source, plain.open('wb') as sink:
        while block := source.read(_BLOCK):
            try:
                if machine.eof:  # several frames may follow each other
                    block = machine.unused_data + block
                    machine = zstd_decompressor()
                sink.write(machine.decompress(block, _BLOCK))
                while not machine.eof and not machine.needs_input:
                    sink.write(machine.decompress(b'', _BLOCK))
                while machine.eof and machine.unused_data:
                    rest, machine = machine.unused_data, zstd_decompressor()
                    sink.write(machine.decompress(rest, _BLOCK))
                    while not machine.eof and not machine.needs_input:
                        sink.write(machine.decompress(b'', _BLOCK))
            except OSError:
                raise
            except Exception as error:  # each library has an error of its own
                return f'damaged after {sink.tell()} unpacked bytes: {error}'
        return '' if machine.eof else f'cut after {sink.tell()} unpacked bytes'
