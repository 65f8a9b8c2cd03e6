"""Arguments reach a post-condition on one line, whole and only once, or not at all."""

from __future__ import annotations

import unicodedata

from hypothesis import assume, given
from hypothesis import strategies as st
import pytest

from harness_eval.config import fill_placeholders
from harness_eval.config.placeholders import MAX_ARGUMENT_LENGTH, placeholders
from harness_eval.contract import EvaluationError

VISIBLE = st.text(max_size=MAX_ARGUMENT_LENGTH).filter(
    lambda text: any(not unicodedata.category(c).startswith(('C', 'Z')) for c in text)
)


def test_each_placeholder_is_listed_once_in_order() -> None:
    assert placeholders('{b} {{c}} {a} {b}') == ('b', 'a')


def test_a_placeholder_is_replaced_and_doubled_braces_become_single() -> None:
    assert fill_placeholders('{{{x}}} {y}', {'x': 'a', 'y': 'b'}) == '{a} b'


@pytest.mark.parametrize(
    'template',
    ['{', '}', 'a } b', '{a', '{a b}', '{}', '{0}', '{a.b}', '{a[0]}', '{a:>9}', '{a!r}'],
)
def test_anything_but_a_bare_name_between_braces_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match='expected'):
        placeholders(template)


@pytest.mark.parametrize(
    'hidden',
    ['\n', '\r', '\t', '\0', '\x1b', '\x7f', '\x85', '\x9b', '\u2028', '\u2029', '\u202e',
     '\u2066', '\u200b', '\u200f', '\u061c', '\ufeff', '\U000e0041', '\ud800'],
)  # fmt: skip
def test_a_character_that_nobody_sees_is_removed(hidden: str) -> None:
    assert fill_placeholders('The {x}.', {'x': f'red{hidden}cube'}) == 'The redcube.'


@given(VISIBLE, VISIBLE)
def test_filled_text_is_the_template_with_the_visible_characters_of_each_argument(
    first: str, second: str
) -> None:
    filled = fill_placeholders('<{a}|{b}>', {'a': first, 'b': second, 'unused': '\n' * 999})
    expected = [
        ''.join(c for c in text if unicodedata.category(c) not in ('Cc', 'Cf', 'Cs', 'Zl', 'Zp'))
        for text in (first, second)
    ]
    assert filled == f'<{expected[0]}|{expected[1]}>'
    assert len(filled.splitlines()) == 1


@given(VISIBLE, VISIBLE)
def test_what_an_argument_holds_is_never_expanded_again(secret: str, around: str) -> None:
    assume(len(around) <= MAX_ARGUMENT_LENGTH - 3)
    filled = fill_placeholders('{a}', {'a': '{b}' + around, 'b': secret})
    assert filled.startswith('{b}')


def test_an_argument_of_the_greatest_length_is_filled_in_whole() -> None:
    assert fill_placeholders('{a}', {'a': 'x' * MAX_ARGUMENT_LENGTH}) == 'x' * MAX_ARGUMENT_LENGTH


@pytest.mark.parametrize('value', ['x' * (MAX_ARGUMENT_LENGTH + 1), '\n' * 1_000_000])
def test_an_argument_that_is_too_long_is_an_error_and_never_cut(value: str) -> None:
    with pytest.raises(EvaluationError, match="'a'") as caught:
        fill_placeholders('{a}', {'a': value})
    assert caught.value.kind == 'argument_too_long'
    assert not caught.value.retryable


@pytest.mark.parametrize('arguments', [{}, {'b': 'x'}, {'a': ''}, {'a': ' \u200b\n'}])
def test_an_argument_that_is_missing_or_shows_nothing_is_an_error(
    arguments: dict[str, str],
) -> None:
    with pytest.raises(EvaluationError, match="'a'") as caught:
        fill_placeholders('{a}', arguments)
    assert caught.value.kind == 'missing_argument'


@given(st.text())
def test_a_text_with_every_brace_doubled_has_no_placeholders_and_is_filled_to_itself(
    text: str,
) -> None:
    escaped = text.replace('{', '{{').replace('}', '}}')
    assert placeholders(escaped) == ()
    assert fill_placeholders(escaped, {}) == text
