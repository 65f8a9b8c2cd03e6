"""Completions from a file that a person wrote, and errors that say where it is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness_eval.replay.bags import completions_from_csv
from harness_eval.replay.sources import SourceError
from harness_eval.runs import Completion

SECOND = 10**9


def read(folder: Path, text: str | bytes) -> list[tuple[Completion, int]]:
    path = folder / 'done.csv'
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return completions_from_csv(path)


def test_all_columns_are_read_in_any_order(tmp_path: Path) -> None:
    text = (
        'argument.target,tool,run_id,time,segment,argument.place\n'
        '"cup, red",pick,a,1700000000.25,,table\n'
        ',insert,b,1700000001,2,\n'
    )
    assert read(tmp_path, text) == [
        (
            Completion('a', 'pick', 0, 0, (('target', 'cup, red'), ('place', 'table'))),
            1_700_000_000_250_000_000,
        ),
        (Completion('b', 'insert', 2), 1_700_000_001 * SECOND),
    ]


def test_rows_without_a_run_id_are_runs_of_their_own_named_after_their_rows(
    tmp_path: Path,
) -> None:
    found = read(tmp_path, 'time,tool\n9,pick\n\n8,pick\n')
    assert [(c.run_id, receipt) for c, receipt in found] == [
        ('csv_4', 8 * SECOND),
        ('csv_2', 9 * SECOND),
    ]


@pytest.mark.parametrize(
    ('text', 'nanoseconds'),
    [
        ('1700000000.123456789', 1_700_000_000_123_456_789),
        ('1.7e9', 1_700_000_000 * SECOND),
        ('2023-11-14T22:13:20Z', 1_700_000_000 * SECOND),
        ('2023-11-14 22:13:20.123456789Z', 1_700_000_000_123_456_789),
        ('2023-11-14T23:13:20.5+01:00', 1_700_000_000_500_000_000),
        ('2023-11-14T23:13:20+0100', 1_700_000_000 * SECOND),
        ('2023-11-14T22:13Z', 1_699_999_980 * SECOND),
    ],
)
def test_times_are_exact_in_every_form(text: str, nanoseconds: int, tmp_path: Path) -> None:
    ((_, receipt),) = read(tmp_path, f'time,tool\n{text},pick\n')
    assert receipt == nanoseconds


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('', "row 1: the column 'time' is missing"),
        ('time\n1\n', "row 1: the column 'tool' is missing"),
        ('time,tool,success\n', "row 1: the column 'success' is not known"),
        ('time,tool,argument.\n', "'argument.' is not known"),
        ('time;tool\n', 'separated by commas'),
        ('time,tool,time\n', "the column 'time' is there twice"),
        ('time,tool\n1,pick\nnoon,pick\n', "row 3, column time: found 'noon', expected seconds"),
        ('time,tool\n2023-11-14T22:13:20,pick\n', 'a time with its zone'),
        ('time,tool\n2023-13-14T22:13:20Z,pick\n', 'column time'),
        ('time,tool\nnan,pick\n', 'column time'),
        ('time,tool\n-1,pick\n', 'column time'),
        ('time,tool\n1e30,pick\n', 'column time'),
        ('time,tool\n1e999999999,pick\n', 'column time'),
        ('time,tool\n1,\n', 'row 2, column tool: found'),
        ('time,tool,segment\n1,pick,x\n', "column segment: found 'x', expected a number from 0"),
        ('time,tool,segment\n1,pick,1\n', 'column run_id'),
        ('time,tool,segment,run_id\n1,pick,9999999999,r\n', 'segment'),
        ('time,tool,run_id\n1,pick,' + 'r' * 300, 'run id of 300 characters'),
        ('time,tool\n1,pick,more\n', 'row 2: has 3 cells, expected 2'),
        ('time,tool\n1,"pick\n', 'no CSV file'),
        (b'time,tool\n1,\xff\n', 'in UTF-8'),
    ],
)
def test_an_error_says_where_and_what_would_be_right(
    text: str | bytes, said: str, tmp_path: Path
) -> None:
    with pytest.raises(SourceError) as raised:
        read(tmp_path, text)
    assert raised.value.kind == 'bad_completions'
    assert raised.value.message.startswith('done.csv')
    assert said in raised.value.message
    assert len(raised.value.message) < 300


def test_a_file_saved_by_a_spreadsheet_is_read(tmp_path: Path) -> None:
    assert len(read(tmp_path, b'\xef\xbb\xbftime,tool\r\n1,pick\r\n')) == 1


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as raised:
        completions_from_csv(tmp_path / 'done.csv')
    assert (raised.value.kind, str(tmp_path) in raised.value.message) == ('no_source', False)
