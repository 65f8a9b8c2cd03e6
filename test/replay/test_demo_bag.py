"""The bag in ``examples/demo_bag`` is small, and judged as its labels say."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from harness_eval.config import load_config
from harness_eval.contract import Status
from harness_eval.replay.eval_case import contradicts, said
from harness_eval.replay.judged_once import JudgedOnce
from harness_eval.replay.results import Result

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / 'examples' / 'demo_bag'
MAX_BYTES = 3_000_000


@pytest.fixture(scope='module')
def results() -> list[Result]:
    judgements = JudgedOnce(
        load_config(FOLDER / 'cell.yaml'),
        [str(FOLDER / 'demo_cell')],
        FOLDER / 'labels.csv',
        'live',
    )
    assert judgements.unlisted == []
    found = [judgements.judged(one) for one in judgements.listed]
    return [one for one in found if isinstance(one, Result)]


def test_it_takes_less_than_three_megabytes() -> None:
    sizes = [path.stat().st_size for path in FOLDER.rglob('*') if path.is_file()]
    assert 500_000 < sum(sizes) < MAX_BYTES


def test_it_is_judged_by_the_rules_of_the_demo() -> None:
    def rules(path: Path) -> list[str]:
        lines = path.read_text('utf-8').splitlines()
        return [line for line in lines if not line.startswith('#')]

    demo = rules(ROOT / 'config' / 'demo.yaml')
    assert [line.replace('image_raw/compressed', 'image_raw') for line in demo] == demo
    here = rules(FOLDER / 'cell.yaml')
    assert here != demo
    assert [line.replace('image_raw/compressed', 'image_raw') for line in here] == demo


def test_every_verdict_is_what_the_labels_say(results: list[Result]) -> None:
    assert len(results) == 24
    assert all(result.truth is not None for result in results)
    assert [result.completion.run_id for result in results if contradicts(result)] == []
    for result in results:
        verdict, truth = result.outcome.verdict, result.truth
        if verdict is not None and verdict.status is not Status.PROCESS and truth is not None:
            assert (verdict.status is Status.SUCCESS) == truth.correct


def test_it_holds_every_tool_every_verdict_and_what_nobody_can_judge(
    results: list[Result],
) -> None:
    assert Counter(said(result.outcome) for result in results) == {
        'success': 9,
        'process': 3,
        'failure not_grasped': 2,
        'failure wrong_object': 1,
        'failure half_open': 1,
        'failure jammed': 2,
        'failure off_target': 1,
        'failure knocked_over': 1,
        'abstained view_unusable': 1,
        'error no_frames': 1,
        'error frozen': 1,
        'error clock_skew': 1,
    }
    assert len({result.completion.tool for result in results}) == 5
