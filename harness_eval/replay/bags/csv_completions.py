"""Completions written down by a person, for bags that recorded none.

The columns of the file, in any order:

===================  ===========================================================================
``time``             when the run had ended and its completion would have been received: seconds
                     since epoch (``1700000000.25``), or ISO 8601 with a time zone
                     (``2023-11-14T22:13:20.25Z``)
``tool``             name of the tool in the configuration
``run_id``           optional; an empty one becomes ``csv_<row>``, with the number of the row in
                     the file, whose first row names the columns
``segment``          optional; 0, 1, 2 …; empty: 0. Above 0 it needs a ``run_id``
``argument.<name>``  optional, one for each argument of the tool; empty: not given
===================  ===========================================================================

The stamps of the completions are unknown (0), so that ``time`` alone says when the run ended.
"""

from __future__ import annotations

from collections.abc import Iterator
import csv
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
import re

from harness_eval.replay.sources import SourceError
from harness_eval.runs import Completion, completion_problem, MAX_STAMP, printable
from harness_eval.times import SECOND

ARGUMENT = 'argument.'
_REQUIRED = ('time', 'tool')
_OPTIONAL = ('run_id', 'segment')
_ISO = re.compile(
    r'(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,9})\d*)?\s*(Z|z|[+-]\d\d:?\d\d)?'
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def completions_from_csv(path: Path) -> list[tuple[Completion, int]]:
    """Read completions from a file; see the module for its columns.

    Returns:
        Completions with their receipts (nanoseconds), in order of receipt.

    Raises:
        SourceError: ``bad_completions``; it names the file, the row and the column, and what
            would be right. ``unreadable``, ``no_source``.
    """
    try:
        with path.open(encoding='utf-8-sig', newline='') as file:
            found = list(_rows(path.name, csv.reader(file, strict=True)))
    except FileNotFoundError:
        raise SourceError('no_source', f'there is no file {path.name}: check its name') from None
    except OSError as error:
        raise SourceError('unreadable', f'{path.name} cannot be read: {error.strerror}') from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise SourceError(
            'bad_completions', f'{path.name} is no CSV file in UTF-8: {error}'
        ) from None
    return sorted(found, key=lambda one: one[1])


def _rows(name: str, rows: Iterator[list[str]]) -> Iterator[tuple[Completion, int]]:
    columns = [column.strip() for column in next(rows, [])]
    _check_columns(name, columns)
    for number, cells in enumerate(rows, start=2):
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(columns):
            raise SourceError(
                'bad_completions',
                f'{name}, row {number}: has {len(cells)} cells, expected {len(columns)}, one for '
                'each column of the first row; put quotes around a cell with a comma in it',
            )
        row = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
        yield _completion(f'{name}, row {number}', number, row)


def _check_columns(name: str, columns: list[str]) -> None:
    expected = f'{", ".join(_REQUIRED)}, and optionally {", ".join(_OPTIONAL)}, {ARGUMENT}<name>'
    for column in columns:
        known = column in _REQUIRED + _OPTIONAL
        if not known and not (column.startswith(ARGUMENT) and len(column) > len(ARGUMENT)):
            raise SourceError(
                'bad_completions',
                f'{name}, row 1: the column {printable(column, 60)!r} is not known; expected the '
                f'columns {expected}, separated by commas',
            )
        if columns.count(column) > 1:
            raise SourceError(
                'bad_completions', f'{name}, row 1: the column {column!r} is there twice'
            )
    for column in _REQUIRED:
        if column not in columns:
            raise SourceError(
                'bad_completions',
                f'{name}, row 1: the column {column!r} is missing; expected the columns '
                f'{expected}',
            )


def _completion(where: str, number: int, row: dict[str, str]) -> tuple[Completion, int]:
    def wrong(column: str, expected: str) -> SourceError:
        found = printable(row.get(column, ''), 60)
        return SourceError(
            'bad_completions', f'{where}, column {column}: found {found!r}, expected {expected}'
        )

    receipt = _time(row['time'])
    if receipt is None or not 0 < receipt <= MAX_STAMP:
        raise wrong(
            'time',
            'seconds since epoch, for example 1700000000.25, or a time with its zone, for example '
            '2023-11-14T22:13:20.25Z',
        )
    if not row['tool']:
        raise wrong('tool', 'the name of a tool in the configuration')
    digits = row.get('segment', '') or '0'
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10):
        raise wrong('segment', 'a number from 0, or nothing for 0')
    segment = int(digits)
    run_id = row.get('run_id', '')
    if segment and not run_id:
        raise wrong('run_id', f'the run that segment {segment} belongs to')
    completion = Completion(
        run_id=run_id or f'csv_{number}',
        tool=row['tool'],
        segment=segment,
        arguments=tuple(
            (column.removeprefix(ARGUMENT), value)
            for column, value in row.items()
            if column.startswith(ARGUMENT) and value
        ),
    )
    problem = completion_problem(completion)
    if problem is not None:
        raise SourceError('bad_completions', f'{where}: {problem[1]}')
    return completion, receipt


def _time(text: str) -> int | None:
    """Nanoseconds since epoch; None: the text is no time."""
    iso = _ISO.fullmatch(text)
    if iso is None:
        try:
            return int(Decimal(text) * SECOND) if len(text) <= 40 else None
        except (ArithmeticError, ValueError):
            return None
    day, clock, fraction, zone = iso.groups()
    if zone is None:
        return None
    zone = '+00:00' if zone in 'Zz' else zone if ':' in zone else f'{zone[:3]}:{zone[3:]}'
    try:
        moment = datetime.fromisoformat(f'{day}T{clock}{zone}') - _EPOCH
    except ValueError:
        return None
    seconds = moment.days * 86_400 + moment.seconds
    return seconds * SECOND + int((fraction or '').ljust(9, '0'))
