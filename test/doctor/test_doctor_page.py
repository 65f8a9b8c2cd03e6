"""The page on readiness and the doctor names every kind that is told."""

from __future__ import annotations

from pathlib import Path
import re

from harness_eval.doctor import proposals, remarks
from harness_eval.readiness import CAPTURE_ERRORS
from harness_eval.watches import ERRORS_IN_A_ROW, FIRST_RETRY, LONGEST_RETRY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / 'docs' / 'doctor.md').read_text()
SOURCES = (
    'doctor/remarks.py',
    'doctor/judges.py',
    'readiness.py',
    'watches.py',
    'evaluators/probing.py',
    'evaluators/probes.py',
)
ELSEWHERE = {'judge_timeout', 'no_ros', 'no_process', 'evaluator_crashed', 'plugin_import'}
"""Kinds that a judgement ends with as well."""


def test_every_kind_that_is_told_stands_on_the_page() -> None:
    told = set()
    for name in SOURCES:
        text = (ROOT / 'harness_eval' / name).read_text()
        told |= set(
            re.findall(r"(?:Reason|Error|_warn|Remark)\([^'()]*'([a-z]+(?:_[a-z]+)*)'", text)
        )
        told |= set(re.findall(r"^ +(?:return )?\(?'([a-z]+(?:_[a-z]+)*)',$", text, re.MULTILINE))
    told -= CAPTURE_ERRORS - set(re.findall(r'`(\w+)`', PAGE))
    assert {'no_publisher', 'frozen', 'too_slow', 'inactive', 'model_absent', 'blind'} <= told
    missing = told - set(re.findall(r'`(\w+)`', PAGE)) - ELSEWHERE
    assert not {kind for kind in missing if not kind.startswith('endpoint_')}


def test_the_figures_on_the_page_are_those_of_the_code() -> None:
    assert f'after {FIRST_RETRY:g}, 10, 20, 40, {LONGEST_RETRY:g}, ' in PAGE
    assert ERRORS_IN_A_ROW == 3
    assert f'and {proposals.AHEAD_MARGIN * 1e3:g} ms for clocks' in PAGE
    least = proposals.LEAST_SLOP_MARGIN * 1e3
    assert f'and {proposals.SLOP_MARGIN:.0%} or at least {least:g} ms'.replace('%', ' %') in PAGE
    assert f'and {proposals.SETTLE_MARGIN * 1e3:g} ms; never less' in PAGE
    assert remarks.FRAMES_NEEDED == 2
