"""The page on judges says of every fault what a user really sees."""

from __future__ import annotations

from pathlib import Path
import re

from model_faults import FAULTS

PAGE = Path(__file__).parents[3] / 'docs' / 'evaluators.md'
SOURCES = Path(__file__).parents[3] / 'harness_eval' / 'evaluators'


def told() -> set[tuple[str, bool]]:
    """Each kind of error on the page, and whether it is said to be retryable."""
    rows = re.findall(r'^\|[^|\n]*\| `(\w+)` \| (yes|no)\b', PAGE.read_text(), re.MULTILINE)
    return {(kind, again == 'yes') for kind, again in rows}


def test_every_fault_that_is_served_stands_in_the_table_with_its_kind() -> None:
    seen = {(kind, again) for _answer, kind, again in FAULTS.values()}
    assert seen - told() == set()


def test_every_kind_of_error_that_the_sources_raise_stands_in_a_table() -> None:
    raised = set()
    for folder in ('model', 'rubric'):
        for path in (SOURCES / folder).rglob('*.py'):
            raised |= set(re.findall(r"Error\(\s*'([a-z_]+)'", path.read_text()))
            raised |= set(re.findall(r"^ +\d{3}: \('([a-z_]+)'", path.read_text(), re.MULTILINE))
    known = {kind for kind, _again in told()}
    assert raised
    # A source of random tokens that gives none is a fault of the machine, not of a judge.
    assert raised - known == {'no_delimiter'}
