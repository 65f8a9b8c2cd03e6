"""A success that needs a typed report frees nothing without it."""

from __future__ import annotations

from collections.abc import Callable

from pipeline_world import World
import pytest

from harness_eval.config import load_config
from harness_eval.contract import Status, Verdict
from harness_eval.runs import SegmentState

REPORT = 'report: [{key: held, title: "Whether it is held.", type: boolean, equals: true}]'


@pytest.fixture
def reporting(make_world: Callable[..., World]) -> World:
    """A world in which ``pick`` needs a report."""
    world = make_world()
    path = world.folder / 'evaluation.yaml'
    text = path.read_text()
    line = '      arguments: [target, place]\n'
    assert line in text
    path.write_text(text.replace(line, f'{line}      {REPORT}\n'))
    world.config = load_config(path)
    world.crash()
    return world


@pytest.mark.parametrize('report', [None, {'held': False}, {'held': 1}, {}])
def test_a_success_without_an_accepted_report_is_an_error_and_frees_nothing(
    reporting: World, report: object
) -> None:
    reporting.propose('a')
    reporting.run('a', Verdict(Status.SUCCESS, ('seen',), report=report))  # type: ignore[arg-type]
    assert reporting.state('a') is SegmentState.ERROR
    assert reporting.outcomes[-1].error_kind == 'report_rejected'
    assert reporting.passed() == []


def test_a_success_with_an_accepted_report_is_one_and_carries_it(reporting: World) -> None:
    reporting.run('a', Verdict(Status.SUCCESS, ('seen',), report={'held': True}))
    assert reporting.state('a') is SegmentState.SUCCESS
    verdict = reporting.outcomes[-1].verdict
    assert verdict is not None
    assert verdict.report == {'held': True}
