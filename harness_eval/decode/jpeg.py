"""Whether a JPEG file is whole: its markers first, its entropy-coded data on suspicion.

A decoder fills what is missing of a JPEG with mid grey and says nothing; a post-condition such as
"the table is empty" then holds. The markers are therefore checked always: every segment, the order
of the restart markers, and the end-of-image marker. A file that was cut and closed again, as some
cameras do, shows only in the pixels, whose last one is mid grey. Such a file, and one with a long
run of zeros, is read symbol by symbol to find out. What is damaged without any of these signs,
such as a single flipped bit, cannot be told.

Source: ITU-T Recommendation T.81.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import cycle
import re
import struct

import numpy as np

from harness_eval.contract import DecodeError, Image
from harness_eval.decode.huffman import HuffmanTable, read_scan

_UINT16 = struct.Struct('>H')
_FRAME = struct.Struct('>BHHB')
_SOI, _EOI, _SOS, _DHT, _DRI = 0xD8, 0xD9, 0xDA, 0xC4, 0xDD
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_RESTART_FIRST, _RESTART_LAST = 0xD0, 0xD7
# What may follow entropy-coded data: tables, another scan, the number of lines, comments, the end.
_AFTER_SCAN = frozenset({0xC4, 0xCC, 0xD9, 0xDA, 0xDB, 0xDC, 0xDD, 0xFE, *range(0xE0, 0xF0)})
_NEXT_MARKER = re.compile(rb'\xff[^\x00\xff\xd0-\xd7]')
_RESTART = re.compile(rb'\xff([\xd0-\xd7])')
_AC = 0x10
_MID_GREY = 128
_GREY_TOLERANCE = 2.0
_LUMA = (0.114, 0.587, 0.299)
"""Share of blue, green and red in the brightness (ITU-R BT.601)."""

_LONG_ZEROS = bytes(32)
"""A part of a buffer that was never filled; whole files hold it only in plain areas."""

_BLOCK = 8


@dataclass
class _Scan:
    """One scan: which components with which tables, and where its data lie."""

    components: tuple[tuple[int, int, int], ...]
    spectral: tuple[int, int]
    approximation: int
    begin: int
    end: int
    interval: int


@dataclass
class _File:
    """What the markers of a file say."""

    frame: int = 0
    width: int = 0
    height: int = 0
    sampling: dict[int, tuple[int, int]] = field(default_factory=dict)
    tables: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    scans: list[_Scan] = field(default_factory=list)
    interval: int = 0


def recognises(content: memoryview) -> bool:
    """Tell whether the bytes begin like a JPEG file."""
    return bytes(content[:3]) == b'\xff\xd8\xff'


def inspect(content: memoryview) -> tuple[int, int]:
    """Check the markers of a whole file.

    Returns:
        Width and height in pixels.

    Raises:
        DecodeError: ``malformed_image``; ``unsupported_encoding`` for more than 8 bits.
    """
    file = _read_markers(content)
    return file.width, file.height


def confirm(content: memoryview, pixels: Image) -> None:
    """Make sure that a decoded picture ends with pixels and not with filling.

    Args:
        content: The file.
        pixels: What the decoder made of it.

    Raises:
        DecodeError: ``malformed_image``.
    """
    if not _ends_grey(pixels) and _LONG_ZEROS not in bytes(content):
        return
    file = _read_markers(content)
    first = file.scans[0]
    if file.frame > 0xC2 or len(first.components) != len(file.sampling):
        # Arithmetic coding, or one component a scan: no more can be told than the markers say.
        return
    tables = {
        number: HuffmanTable.build(*file.tables.get(number, (b'', b'')))
        for _, dc, ac in first.components
        for number in (dc, ac | _AC)
    }
    blocks = []
    for component, dc, ac in first.components:
        across, down = _block_shape(file, component)
        of_dc, of_ac = tables[dc], tables[ac | _AC]
        if of_dc is None or (of_ac is None and first.spectral[1]):
            raise _broken('ends in plain grey and has no code tables that prove it whole')
        blocks.append((across * down, of_dc, of_ac))
    problem = read_scan(
        bytes(content[first.begin : first.end]),
        blocks=blocks,
        units=_units(file, first),
        interval=first.interval,
        spectral=first.spectral,
    )
    if problem:
        raise _broken(problem)


def _ends_grey(pixels: Image) -> bool:
    """Tell whether the last pixel is as bright as what decoders fill in.

    Its colour does not count: that is blended with the colours beside it.
    """
    last = [float(value) for value in np.atleast_1d(pixels[-1, -1])[:3]]
    luma = last[0] if len(last) == 1 else sum(map(float.__mul__, _LUMA, last))
    return abs(luma - _MID_GREY) <= _GREY_TOLERANCE


def _block_shape(file: _File, component: int) -> tuple[int, int]:
    return file.sampling[component] if len(file.sampling) > 1 else (1, 1)


def _units(file: _File, scan: _Scan) -> int:
    """How many units the scan has: a minimum coded unit is a block of every component."""
    shapes = [_block_shape(file, component) for component in file.sampling]
    across = _BLOCK * max(shape[0] for shape in shapes)
    down = _BLOCK * max(shape[1] for shape in shapes)
    return -(-file.width // across) * -(-file.height // down)


def _read_markers(content: memoryview) -> _File:
    file = _File()
    position = 2
    while True:
        begin = position
        while position < len(content) and content[position] == 0xFF:
            position += 1
        if position >= len(content):
            raise _broken(f'ends after {len(content)} bytes without its end marker; it was cut')
        if position == begin:
            raise _broken(f'has no marker where one must be, at byte {position}')
        marker = content[position]
        position += 1
        if marker == _EOI:
            break
        if file.scans and marker not in _AFTER_SCAN:
            raise _broken(f'has the marker {marker:02x} within its pixels, at byte {position}')
        if marker in (0x01, _SOI) or _RESTART_FIRST <= marker <= _RESTART_LAST:
            raise _broken(f'has the stray marker {marker:02x} at byte {position}')
        segment = _segment(content, position)
        position += 2 + len(segment)
        if marker in _FRAMES:
            _read_frame(file, marker, segment)
        elif marker == _DHT:
            _read_tables(file, segment)
        elif marker == _DRI:
            file.interval = _number(segment, 0)
        elif marker == _SOS:
            position = _read_scan_header(file, content, segment, position)
    if not file.scans:
        raise _broken('has no pixels')
    _check_restarts(file, content)
    if file.frame == 0xC2:
        _check_progression(file)
    return file


def _segment(content: memoryview, position: int) -> memoryview:
    length = _number(content, position)
    if length < 2 or position + length > len(content):
        raise _broken(f'ends after {len(content)} bytes, within a segment; it was cut')
    return content[position + 2 : position + length]


def _number(content: memoryview, position: int) -> int:
    if position + _UINT16.size > len(content):
        raise _broken(f'ends after {len(content)} bytes, within a segment; it was cut')
    return int(_UINT16.unpack_from(content, position)[0])


def _read_frame(file: _File, marker: int, segment: memoryview) -> None:
    if file.sampling or len(segment) < _FRAME.size:
        raise _broken('has a damaged frame header')
    precision, file.height, file.width, count = _FRAME.unpack_from(segment)
    if precision != 8:
        raise DecodeError(
            'unsupported_encoding', f'the JPEG has {precision} bits a channel, expected 8'
        )
    if len(segment) < _FRAME.size + 3 * count or not 1 <= count <= 4:
        raise _broken('has a damaged frame header')
    for index in range(count):
        identity, sampling, _ = segment[_FRAME.size + 3 * index : _FRAME.size + 3 * index + 3]
        across, down = sampling >> 4, sampling & 0x0F
        if not 1 <= across <= 4 or not 1 <= down <= 4:
            raise _broken('has a damaged frame header')
        file.sampling[identity] = (across, down)
    file.frame = marker


def _read_tables(file: _File, segment: memoryview) -> None:
    position = 0
    while position < len(segment):
        counts = bytes(segment[position + 1 : position + 17])
        symbols = bytes(segment[position + 17 : position + 17 + sum(counts)])
        if len(counts) < 16 or len(symbols) < sum(counts):
            raise _broken('has a damaged code table')
        # A table that changes between scans does not matter: only the first scan is ever read.
        if not file.scans:
            file.tables[segment[position]] = (counts, symbols)
        position += 17 + len(symbols)


def _read_scan_header(file: _File, content: memoryview, segment: memoryview, position: int) -> int:
    count = segment[0] if segment else 0
    if not file.sampling or not 1 <= count <= 4 or len(segment) < 4 + 2 * count:
        raise _broken('has a damaged scan header')
    components = tuple(
        (segment[1 + 2 * index], segment[2 + 2 * index] >> 4, segment[2 + 2 * index] & 0x0F)
        for index in range(count)
    )
    if any(component not in file.sampling for component, _, _ in components):
        raise _broken('has a damaged scan header')
    first, last, approximation = segment[1 + 2 * count : 4 + 2 * count]
    found = _NEXT_MARKER.search(content, position)
    if found is None:
        raise _broken(f'ends after {len(content)} bytes without its end marker; it was cut')
    file.scans.append(
        _Scan(components, (first, last), approximation, position, found.start(), file.interval)
    )
    return found.start()


def _check_restarts(file: _File, content: memoryview) -> None:
    for scan in file.scans:
        found = [match.group(1)[0] for match in _RESTART.finditer(content, scan.begin, scan.end)]
        if any(
            number != expected
            for number, expected in zip(found, cycle(range(_RESTART_FIRST, _RESTART_LAST + 1)))
        ):
            raise _broken('has its restart markers out of order: a part of it is missing')
        if len(scan.components) != len(file.sampling):
            continue
        expected_count = (_units(file, scan) - 1) // scan.interval if scan.interval else 0
        if len(found) != expected_count:
            raise _broken(f'has {len(found)} restart markers, expected {expected_count}')


def _check_progression(file: _File) -> None:
    """Refuse a progressive file whose last scans are missing: it shows a blurred picture."""
    missing = {
        (component, index) for component in file.sampling for index in range(_BLOCK * _BLOCK)
    }
    for scan in file.scans:
        if scan.approximation & 0x0F == 0:
            for component, _, _ in scan.components:
                first, last = scan.spectral
                missing -= {(component, index) for index in range(first, last + 1)}
    if missing:
        raise _broken(f'lacks {len(missing)} coefficients of its last scans; it was cut')


def _broken(what: str) -> DecodeError:
    return DecodeError('malformed_image', f'the JPEG {what}')
