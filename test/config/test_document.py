"""YAML is read in one way only, with the line of every key, and within bounds."""

from __future__ import annotations

from contextlib import suppress
import math
from pathlib import Path
import re
import time
import tracemalloc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
import pytest
import yaml

from harness_eval.config.document import Document, read_document
from harness_eval.config.errors import ConfigError, Problem
from harness_eval.config.nodes import MAX_DEPTH
from harness_eval.config.places import dotted, Source

SOURCE = Source('cell.yaml', Path())


def read(text: str) -> Document:
    return read_document(text, SOURCE)


def refusal(text: str) -> Problem:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return caught.value.problems[0]


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('true', True),
        ('FALSE', False),
        ('yes', 'yes'),
        ('on', 'on'),
        ('No', 'No'),
        ('1:30', '1:30'),
        ('190:20:30', '190:20:30'),
        ('2001-12-14', '2001-12-14'),
        ('1_000', '1_000'),
        ('010', 10),
        ('0o10', 8),
        ('0x1F', 31),
        ('-3', -3),
        ('1e3', 1000.0),
        ('.5', 0.5),
        ('5.', 5.0),
        ('-.inf', -math.inf),
        ('~', None),
        ('null', None),
        ('"true"', 'true'),
        ("'7'", '7'),
        ('.', '.'),
        ('+', '+'),
    ],
)
def test_scalars_follow_the_core_schema_of_yaml_1_2(text: str, value: Any) -> None:
    found = read(f'key: {text}').data['key']
    assert found == value
    assert type(found) is type(value)


def test_words_that_yaml_1_1_takes_for_truth_values_are_keys_like_any_other() -> None:
    assert read('on: 1\nyes: 2\nno: 3').data == {'on': 1, 'yes': 2, 'no': 3}


def test_every_key_and_element_knows_its_line() -> None:
    document = read('a:\n  b:\n    - x\n    - {c: 1}\n')
    lines = {place.key: place.line for place in document.places.values()}
    assert lines == {'a': 1, 'a.b': 2, 'a.b[0]': 3, 'a.b[1]': 4, 'a.b[1].c': 4}


def test_a_missing_key_is_placed_at_what_stands_around_it() -> None:
    place = read('a:\n  b: {c: 1}\n').place(('a', 'b', 'd', 0))
    assert (place.line, place.key) == (2, 'a.b.d[0]')


def test_a_key_that_is_no_plain_word_is_quoted_in_a_path() -> None:
    assert dotted(('a', 'b.c', 3, 'd e')) == "a['b.c'][3]['d e']"


def test_a_duplicate_key_is_told_with_both_lines_and_the_rest_is_still_read() -> None:
    document = read('a: 1\nb: 2\na: 3\n')
    assert document.data == {'a': 1, 'b': 2}
    assert [(problem.line, problem.key) for problem in document.problems] == [(3, 'a')]
    assert 'the first one is in line 1' in document.problems[0].message


@pytest.mark.parametrize(
    ('text', 'line', 'words'),
    [
        ('a: 1\n2: x', 2, "a text as key, found '2'; put it in quotes"),
        ('true: x', 1, 'put it in quotes'),
        ('~: x', 1, 'a text as key'),
        ('a: 1\n? [b]\n: c', 2, 'a text as key, found a sequence'),
        ('a: {b: 1}\nc:\n  <<: {b: 1}', 3, 'merge key'),
        ('a: !!python/object/apply:os.system ["true"]', 1, 'no tag'),
        ('a: !!str 1', 1, 'no tag'),
        ('a: ! 1', 1, 'no tag'),
        ('a: 1\n---\nb: 2', 2, 'one document'),
        ('a: *b', 1, 'expected an anchor &b'),
        ('a: &a [*a]', 1, 'within itself'),
        ('a:\n\t- b', 2, 'spaces, found a tab'),
        ('a: {target} is lifted', 1, 'quote a text'),
        ('a: b: c', 1, 'expected YAML'),
        ('a: "open', 1, 'expected YAML'),
        ('a: \x07', 1, 'a character that YAML refuses'),
        (f'a: {"1" * 2000}', 1, 'at most 1000 digits'),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused_with_its_line(
    text: str, line: int, words: str
) -> None:
    problem = refusal(text)
    assert (problem.file, problem.line) == ('cell.yaml', line)
    assert words in problem.message


@pytest.mark.parametrize('text', ['', '\n\n', '# nothing\n', '---\n', 'null', '~'])
def test_an_empty_file_is_refused_as_empty(text: str) -> None:
    problem = refusal(text)
    assert 'found an empty file' in problem.message


def test_an_alias_is_followed_and_its_values_are_placed_where_they_are_used() -> None:
    document = read('a: &a {x: [1, 2]}\nb: *a\n')
    assert document.data == {'a': {'x': [1, 2]}, 'b': {'x': [1, 2]}}
    assert document.data['a'] is not document.data['b']
    assert document.place(('b', 'x', 1)).key == 'b.x[1]'


def bomb(levels: int, width: int) -> str:
    lines = ['a0: &a0 [lol]']
    for level in range(1, levels):
        row = ', '.join([f'*a{level - 1}'] * width)
        lines.append(f'a{level}: &a{level} [{row}]')
    return '\n'.join(lines)


@pytest.mark.parametrize(
    'text',
    [
        bomb(12, 9),
        bomb(3, 400),
        '[' * 100_000,
        '{a: ' * 100_000,
        '- ' * 100_000 + 'x',
        '[' + 'a, ' * 300_000 + ']',
        '\n'.join(f'k{index}: 1' for index in range(60_000)),
    ],
    ids=['deep bomb', 'wide bomb', 'lists', 'mappings', 'blocks', 'long list', 'long mapping'],
)
def test_a_bomb_is_refused_quickly_and_with_little_memory(text: str) -> None:
    tracemalloc.start()
    begin = time.process_time()
    try:
        problem = refusal(text)
        seconds = time.process_time() - begin
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 'expected' in problem.message
    assert seconds < 3.0
    assert peak < 32 * 1024 * 1024


def test_as_many_levels_as_allowed_are_read_and_one_more_is_not() -> None:
    assert read('[' * MAX_DEPTH + ']' * MAX_DEPTH).data is not None
    assert f'at most {MAX_DEPTH} levels' in refusal('[' * (MAX_DEPTH + 1)).message


NUMBERS_OF_1_2 = re.compile(r'[-+]?(0o[0-7]+|[0-9.]+[eE][-+]?[0-9]+)')
"""Numbers in YAML 1.2 that are texts in 1.1."""

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.text(st.characters(codec='utf-8', exclude_categories=('Cc', 'Cs'))).filter(
        lambda text: not NUMBERS_OF_1_2.fullmatch(text)
    ),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text('abcxyz_', min_size=1), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(st.dictionaries(st.text('abc', min_size=1), PLAIN, min_size=1, max_size=4))
def test_what_pyyaml_writes_is_read_back_as_it_was(data: dict[str, Any]) -> None:
    # The 1.1 writer quotes more than 1.2 needs to, and of texts only those numbers less.
    assert read(yaml.safe_dump(data)).data == data


@given(st.text(max_size=200))
def test_no_text_does_worse_than_a_configuration_error(text: str) -> None:
    with suppress(ConfigError):
        assert read(text).data is not None
