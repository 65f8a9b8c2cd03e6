"""The CSV file that labels are written in.

It has the columns ``run_id`` and ``label``, and may have ``segment``, ``source`` and ``note``. An
error names each row by the line on which it begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
import csv
import io
from pathlib import Path, PurePath

from harness_eval.config.errors import did_you_mean
from harness_eval.lines import clean_line, describe
from harness_eval.replay.labels import Label, LabelsError
from harness_eval.runs import MAX_SEGMENT

REQUIRED = ('run_id', 'label')
COLUMNS = ('run_id', 'segment', 'source', 'label', 'note')
MAX_BYTES = 256 * 2**20
"""Most bytes of a file of labels; a row takes about fifty."""

_CORRECT = frozenset({'success', 'true', '1', 'yes'})
_WRONG = frozenset({'failure', 'false', '0', 'no'})
_PROBLEMS_TOLD = 5
_SHOWN = 60
"""Characters of a foreign text in an error."""
_UTF_16 = (b'\xff\xfe', b'\xfe\xff')


def read_labels(path: Path) -> tuple[Label, ...]:
    """The labels in a CSV file.

    Raises:
        LabelsError: ``labels_unreadable``, or as :func:`parse_labels`.
    """
    try:
        with path.open('rb') as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise LabelsError(
            'labels_unreadable', f'the labels cannot be read: {describe(error)}'
        ) from error
    return parse_labels(data, path.name)


def parse_labels(data: bytes, name: str) -> tuple[Label, ...]:
    """The labels in the bytes of a CSV file: UTF-8, with or without a byte order mark.

    Args:
        data: The bytes.
        name: What errors call the file.

    Raises:
        LabelsError: ``labels_encoding``, ``labels_columns`` or ``labels_malformed``; the message
            names each row by the line on which it begins.
    """
    rows = _rows(_text(data, name), name)
    header_line, header = next(rows, (0, []))
    if not header:
        raise LabelsError(
            'labels_columns',
            f'{name} is empty; expected a first line with the columns {", ".join(COLUMNS)}',
        )
    columns = _columns(header, f'{name}, line {header_line}')
    labels: list[Label] = []
    problems: list[str] = []
    first: dict[tuple[str, str, int | None], Label] = {}
    for line, cells in rows:
        try:
            label = _label(columns, cells, line)
            known = first.setdefault((label.source, label.run_id, label.segment), label)
            if known is not label:
                raise ValueError(_twice(known, label))
            labels.append(label)
        except ValueError as problem:
            problems.append(f'line {line}: {problem}')
    if problems:
        told = '; '.join(problems[:_PROBLEMS_TOLD])
        more = len(problems) - _PROBLEMS_TOLD
        raise LabelsError(
            'labels_malformed', f'{name}: {told}' + (f'; and {more} more' if more > 0 else '')
        )
    return tuple(labels)


def _text(data: bytes, name: str) -> str:
    if len(data) > MAX_BYTES:
        raise LabelsError(
            'labels_malformed', f'{name} has more than {MAX_BYTES} bytes; is it a file of labels?'
        )
    if data.startswith(_UTF_16):
        raise LabelsError('labels_encoding', f'{name} is UTF-16; save it as CSV in UTF-8')
    try:
        text = data.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        line = data.count(b'\n', 0, error.start) + 1
        raise LabelsError(
            'labels_encoding',
            f'{name}, line {line}: expected UTF-8, found the byte 0x{data[error.start]:02x}; '
            'save the file as CSV in UTF-8',
        ) from error
    if '\0' in text:
        line = text.count('\n', 0, text.index('\0')) + 1
        raise LabelsError(
            'labels_encoding', f'{name}, line {line}: found a null character; is it a text?'
        )
    return text


def _rows(text: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not blank, with the line on which it begins."""
    reader = csv.reader(io.StringIO(text, newline=''), strict=True)
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, [cell.strip() for cell in cells]
            line = reader.line_num + 1
    except csv.Error as error:
        raise LabelsError(
            'labels_malformed', f'{name}, row that begins on line {line}: {error}'
        ) from error


def _columns(header: Sequence[str], where: str) -> list[str]:
    columns = [cell.casefold() for cell in header]
    if len(columns) == 1 and any(sign in columns[0] for sign in ';\t'):
        raise LabelsError(
            'labels_columns', f'{where}: expected commas between the columns; save it as CSV'
        )
    for column in columns:
        shown = clean_line(column, _SHOWN)
        if column not in COLUMNS:
            hint = did_you_mean(shown, COLUMNS, what='columns')
            raise LabelsError('labels_columns', f'{where}: unknown column {shown!r}{hint}')
        if columns.count(column) > 1:
            raise LabelsError('labels_columns', f'{where}: the column {shown!r} is there twice')
    for column in REQUIRED:
        if column not in columns:
            raise LabelsError(
                'labels_columns',
                f'{where}: the column {column!r} is missing, found {", ".join(columns)}',
            )
    return columns


def _label(columns: Sequence[str], cells: Sequence[str], line: int) -> Label:
    if len(cells) != len(columns):
        raise ValueError(f'expected {len(columns)} cells, found {len(cells)}')
    row = dict(zip(columns, cells, strict=True))
    if not row['run_id']:
        raise ValueError('the run_id is empty')
    return Label(
        run_id=row['run_id'],
        correct=_correct(row['label']),
        segment=_segment(row),
        source=PurePath(row['source']).as_posix() if row.get('source') else '',
        note=row.get('note', ''),
        line=line,
    )


def _correct(word: str) -> bool:
    folded = word.casefold()
    if folded in _CORRECT:
        return True
    if folded in _WRONG:
        return False
    raise ValueError(
        f'expected success or failure (or true, false, 1, 0, yes, no) as label, '
        f'found {clean_line(word, _SHOWN)!r}'
    )


def _segment(row: Mapping[str, str]) -> int | None:
    word = row.get('segment', '')
    if not word:
        return None
    number = int(word) if word.isascii() and word.isdigit() and len(word) <= 10 else -1
    if not 0 <= number <= MAX_SEGMENT:
        raise ValueError(
            f'expected the number of a segment, from 0, found {clean_line(word, _SHOWN)!r}'
        )
    return number


def _twice(known: Label, label: Label) -> str:
    run = repr(clean_line(label.run_id, _SHOWN))
    if known.correct == label.correct:
        return f'{run} is labelled already on line {known.line}'
    return f'{run} is labelled otherwise on line {known.line}'
