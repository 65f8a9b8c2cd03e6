"""The table shows each outcome beside the truth, with and without a terminal."""

from __future__ import annotations

import dataclasses
import io

import pytest
from rich.console import Console

from harness_eval.contract import Status, Verdict
from harness_eval.demo.board import Board
from harness_eval.demo.faults import Fault
from harness_eval.demo.summary import Row
from harness_eval.runs import Outcome, OutcomeKind

RIGHT = Row(
    5,
    Fault.CAMERA_OCCLUDED,
    Outcome('r', 'pick_object', 0, 1, OutcomeKind.ABSTAINED, 1, None, 'view_unusable', 'hidden'),
    Status.SUCCESS,
    0.5,
)
WRONG = Row(
    12,
    Fault.KNOCKED_OVER,
    Outcome('r', 'place_object', 0, 1, OutcomeKind.VERDICT, 1, Verdict(Status.SUCCESS)),
    Status.FAILURE,
    1.25,
)


def test_without_a_terminal_each_outcome_is_one_plain_line() -> None:
    text = io.StringIO()
    with Board(Console(file=text, width=80)) as board:
        board.begin(5, 'pick_object', 0, Fault.CAMERA_OCCLUDED)
        board.stage('captured')
        board.end(RIGHT)
        board.end(WRONG)
    heading, first, second = text.getvalue().splitlines()
    assert ' '.join(heading.split()) == 'tool # what goes wrong outcome truth ms'
    assert ' '.join(first.split()) == (
        '5 pick_object 0 camera occluded abstained view_unusable success ok 500'
    )
    assert second.split()[-3:] == ['failure', 'WRONG', '1250']


def test_no_plain_line_is_wider_than_80_columns() -> None:
    text = io.StringIO()
    longest = max(Fault, key=lambda fault: len(fault.value))
    with Board(Console(file=text, width=200)) as board:
        board.end(dataclasses.replace(RIGHT, number=99, fault=longest, latency=9.999))
        board.end(dataclasses.replace(WRONG, number=99, fault=longest, latency=9.999))
    assert max(map(len, text.getvalue().splitlines())) <= 80


@pytest.mark.parametrize('width', [80, 120])
def test_on_a_terminal_the_whole_row_fits(width: int) -> None:
    text = io.StringIO()
    console = Console(file=text, width=width, height=30, force_terminal=True, color_system=None)
    with Board(console) as board:
        board.end(RIGHT)
        board.end(WRONG)
    last = text.getvalue().splitlines()
    assert any(
        ' '.join(line.split())
        == '5 pick_object 0 camera occluded abstained view_unusable success ✓ 500'
        for line in last
    )
    assert any('knocked over' in line and '✗ 1250' in line for line in last)
    assert any('1 of 2 outcomes are what they had to be' in line for line in last)
