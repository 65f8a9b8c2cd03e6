"""Foreign text made safe to show."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
import pytest

from harness_eval.lines import (
    clean_line,
    describe,
    printable,
    redact,
    redact_plain,
    visible,
)


@pytest.mark.parametrize(
    ('text', 'shown'),
    [
        ('cannot open /tmp/a/x.png: gone', 'cannot open x.png: gone'),
        ('cannot open /tmp/my folder/deep one/x.png: gone', 'cannot open x.png: gone'),
        ("no '/home/me/my folder/my x.png' there", "no 'my x.png' there"),
        ('File "/home/me/c.py", line 3', 'File "c.py", line 3'),
        ('error:/tmp/a/b', 'error:b'),
        ('path=/usr/lib/x.so)', 'path=x.so)'),
        ('copy /tmp/a/b to /tmp/c/d', 'copy b to d'),
        ('sqlite:////tmp/x/ledger.db', 'sqlite:///ledger.db'),
        ('asked https://me:p@ss@host:80/v1?token=abc&b=1', 'asked https://host:80/v1?…'),
        ('redis://:secret@host/0', 'redis://host/0'),
        ('GET /v1/x?api_key=secret failed', 'GET /v1/x?api_key=… failed'),
        ('Authorization: Bearer abc.def', 'Authorization: Bearer …'),
        ('/cell/front/image_raw is dark, /tf too', '/cell/front/image_raw is dark, /tf too'),
        ('3/4 of 1/2, at 5 m/s', '3/4 of 1/2, at 5 m/s'),
        ('package://skills/config/x.yaml', 'package://skills/config/x.yaml'),
    ],
)  # fmt: skip
def test_paths_are_reduced_to_base_names_and_addresses_lose_their_secrets(
    text: str, shown: str
) -> None:
    assert redact(text) == shown


@given(
    folders=st.lists(st.from_regex(r'[A-Za-z0-9_.-]{3,8}( [a-z]{1,5}){0,2}', fullmatch=True),
                     min_size=1, max_size=4),
    before=st.sampled_from(['', 'in ', "'", 'x: ', '(', 'a=']),
)  # fmt: skip
def test_no_folder_of_a_path_is_left(folders: list[str], before: str) -> None:
    path = '/'.join(['/home', *(f'Q{folder}' for folder in folders), 'name.png'])
    closing = "'" if before == "'" else ''
    assert 'Q' not in redact(f'{before}{path}{closing} is missing')


def test_texts_deep_in_plain_values_are_redacted() -> None:
    plain = {'/tmp/a/k': ['/tmp/a/b', {'x': '/tmp/c/d'}, 3, None]}
    assert redact_plain(plain) == {'k': ['b', {'x': 'd'}, 3, None]}


def test_an_os_error_is_written_with_base_names_whatever_its_paths_look_like() -> None:
    error = FileNotFoundError(2, 'No such file or directory', 'secret folder/x y.png')
    assert describe(error) == "FileNotFoundError: [Errno 2] No such file or directory: 'x y.png'"


def test_an_exception_whose_class_breaks_when_it_is_read_can_be_described() -> None:
    class Broken(type):
        def __getattribute__(cls, name: str) -> object:
            raise RuntimeError(name)

        @property
        def __name__(cls) -> str:  # type: ignore[override]
            raise RuntimeError

    class Odd(Exception, metaclass=Broken):
        def __str__(self) -> str:
            raise SystemExit

    assert describe(Odd()).endswith('(its text cannot be read)')


# Characters that nobody sees: an escape, a line break, a line separator, a bidirectional
# override and a joiner.
ODD = 'a\x1b b\nc\u2028d \u202e e\u200df'


def test_of_what_somebody_wrote_one_line_of_words_stays_with_its_joiners() -> None:
    assert clean_line(ODD) == 'a b c d e\u200df'


def test_of_a_name_every_character_is_shown_that_nobody_would_see() -> None:
    assert printable(ODD, 40) == 'a\ufffd b\ufffdc\ufffdd \ufffd e\ufffdf'


def test_what_goes_into_a_question_loses_what_nobody_sees_and_nothing_else() -> None:
    assert visible(ODD) == 'a bcd  ef'
    assert visible('x' * 5000 + '  ') == 'x' * 5000 + '  '


@given(st.text(max_size=80), st.integers(2, 40))
def test_a_shown_name_is_one_short_line(text: str, limit: int) -> None:
    shown = printable(text, limit)
    assert len(shown) <= limit
    assert len(shown.splitlines()) <= 1
    shown.encode()
