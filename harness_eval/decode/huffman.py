"""Reading the entropy-coded data of a JPEG, to see whether all of it is there.

No pixel is computed; only the lengths of the codes matter. About a microsecond a symbol, so it is
done on suspicion only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import re

_MAX_LENGTH = 16
_COEFFICIENTS = 64
_SPARE_BYTES = 4
"""Most bytes that may be left over at the end; an encoder pads to a whole byte."""

_RESTART = re.compile(rb'\xff[\xd0-\xd7]')


@dataclass(frozen=True)
class HuffmanTable:
    """A code table.

    Attributes:
        entries: For every 16 bits that can come next: the length of the code (0: none) times 256
            plus the symbol.
    """

    entries: tuple[int, ...]

    @classmethod
    def build(cls, counts: bytes, symbols: bytes) -> HuffmanTable | None:
        """Make a table from how many codes each length has (T.81, annex C).

        Returns:
            The table; None if the numbers are no code.
        """
        if len(counts) != _MAX_LENGTH or len(symbols) != sum(counts) or len(symbols) > 256:
            return None
        entries: list[int] = []
        index = 0
        for length, count in enumerate(counts, start=1):
            for symbol in symbols[index : index + count]:
                entries += [length << 8 | symbol] * (1 << (_MAX_LENGTH - length))
            index += count
            if len(entries) > 1 << _MAX_LENGTH:
                return None
        entries += [0] * ((1 << _MAX_LENGTH) - len(entries))
        return cls(tuple(entries))


def read_scan(
    data: bytes,
    *,
    blocks: Sequence[tuple[int, HuffmanTable, HuffmanTable | None]],
    units: int,
    interval: int,
    spectral: tuple[int, int],
) -> str:
    """Read a whole scan.

    Args:
        data: The entropy-coded data as they lie in the file.
        blocks: For every component of a unit: number of blocks, DC table, AC table.
        units: Number of units of the picture.
        interval: Units between restart markers; 0 without them.
        spectral: First and last coefficient that the scan holds.

    Returns:
        What is wrong; empty if nothing is.
    """
    order = [(dc, ac) for count, dc, ac in blocks for _ in range(count)]
    left = units
    for part in _RESTART.split(data):
        wanted = min(interval or left, left)
        problem = _read_part(part.replace(b'\xff\x00', b'\xff'), order, wanted, spectral)
        if problem:
            return f'{problem}; {units - left} of {units} blocks were read'
        left -= wanted
    return f'lacks {left} of {units} blocks; it was cut' if left else ''


def _read_part(
    data: bytes,
    order: Sequence[tuple[HuffmanTable, HuffmanTable | None]],
    units: int,
    spectral: tuple[int, int],
) -> str:
    total = 8 * len(data)
    # Codes are looked up 16 bits at a time, so the last ones look beyond the end.
    padded = data + b'\x00' * 4
    position = 0
    last = min(spectral[1], _COEFFICIENTS - 1)
    tables = [(dc.entries, ac.entries if ac is not None else ()) for dc, ac in order]
    for _ in range(units):
        for dc, ac in tables:
            byte = position >> 3
            window = int.from_bytes(padded[byte : byte + 3], 'big')
            entry = dc[window >> (8 - (position & 7)) & 0xFFFF]
            position += (entry >> 8) + (entry & 0xFF)
            if not entry or position > total:
                return 'has pixels that end too early or are damaged'
            index = 1
            while index <= last:
                byte = position >> 3
                window = int.from_bytes(padded[byte : byte + 3], 'big')
                entry = ac[window >> (8 - (position & 7)) & 0xFFFF]
                size = entry & 0x0F
                position += (entry >> 8) + size
                if not entry or position > total:
                    return 'has pixels that end too early or are damaged'
                if size:
                    index += (entry >> 4 & 0x0F) + 1
                elif entry & 0xFF == 0xF0:
                    index += 16
                else:
                    break
            if index > _COEFFICIENTS:
                return 'has damaged pixels'
    if total - position > 8 * _SPARE_BYTES + 7:
        return 'has pixels left over: a part before them is damaged'
    return ''
