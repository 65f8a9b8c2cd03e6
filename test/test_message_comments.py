"""Whoever reads a message definition learns what each field means, without our code."""

from __future__ import annotations

from pathlib import Path

import pytest

MESSAGES = Path(__file__).parents[1] / 'harness_eval_msgs'
DEFINITIONS = sorted(
    path for kind in ('msg', 'srv', 'action') for path in MESSAGES.glob(f'{kind}/*.{kind}')
)

# Units and ranges, or when there is no number at all.
UNITS = ('seconds', 'currency', '0 to 1', 'NaN', 'one element for a scalar')


def fields(text: str) -> list[tuple[str, str, str]]:
    """Type, name and comment of each field and constant."""
    found = []
    for line in text.splitlines():
        declared, _, comment = line.partition('#')
        words = declared.split()
        if words and words != ['---']:
            found.append((words[0], words[1].partition('=')[0], comment.strip()))
    return found


def test_all_definitions_are_looked_at() -> None:
    assert len(DEFINITIONS) == len([*MESSAGES.glob('*/*.*')]) >= 18


@pytest.mark.parametrize('path', DEFINITIONS, ids=lambda path: path.name)
def test_each_definition_begins_with_what_it_is(path: Path) -> None:
    first = path.read_text('utf-8').splitlines()[0]
    assert first.startswith('# ')
    assert first.rstrip().endswith('.')


@pytest.mark.parametrize('path', DEFINITIONS, ids=lambda path: path.name)
def test_each_field_and_constant_says_what_it_means(path: Path) -> None:
    declared = fields(path.read_text('utf-8'))
    assert declared
    assert [name for _, name, comment in declared if len(comment) < 5] == []


@pytest.mark.parametrize('path', DEFINITIONS, ids=lambda path: path.name)
def test_each_number_with_a_fraction_says_its_unit_or_range(path: Path) -> None:
    for kind, name, comment in fields(path.read_text('utf-8')):
        if kind.startswith('float64'):
            assert any(unit in comment for unit in UNITS), f'{name}: {comment}'


def test_a_field_without_a_comment_is_found() -> None:
    assert fields('# A thing.\nuint8 A=1 # one\n---\nstring b\n') == [
        ('uint8', 'A', 'one'),
        ('string', 'b', ''),
    ]
