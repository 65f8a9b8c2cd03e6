"""Verdicts that are kept by their question: the same again, never another's, never damaged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import Queue
import sqlite3
import threading
from typing import Any

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from judged_world import make_request
from member_judges import PATIENCE
import pytest

from harness_eval import judge_cache
from harness_eval.calls import JudgeCalls, Outcome
from harness_eval.config.evaluators import (
    CascadeSettings,
    EvaluatorSettings,
    ModelSettings,
    PluginSettings,
)
from harness_eval.contract import EvaluationRequest, Status, Verdict
from harness_eval.evaluators import Judges
from harness_eval.judge_cache import cache_beside, JudgeCache
from harness_eval.judging import Thresholds
from harness_eval.kept_answers import digest_of, identity, read_kept, written

DIGEST = 'a' * 64
WHOLE = Verdict(
    Status.FAILURE,
    ('The tray is empty.', 'ünïcode'),
    failure_reason='nothing there',
    failure_kind='post_condition',
    score=0.25,
    report={'count': 0, 'label': 'none'},
    route='model-7b',
    cost=0.02,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / 'ledger.judge_cache.sqlite3'


@pytest.fixture
def cache(path: Path) -> Iterator[JudgeCache]:
    made = JudgeCache(path, wall_clock=lambda: 1_700_000_000.0)
    yield made
    made.close()


def test_a_kept_verdict_says_that_it_was_kept_and_costs_nothing(cache: JudgeCache) -> None:
    cache.put('judge', DIGEST, WHOLE)
    assert cache.get('judge', DIGEST) == Verdict(
        Status.FAILURE,
        ('cached: the answer of 2023-11-14 22:13:20 UTC', 'The tray is empty.', 'ünïcode'),
        failure_reason='nothing there',
        failure_kind='post_condition',
        score=0.25,
        report={'count': 0, 'label': 'none'},
        route='cached (model-7b)',
        cost=0.0,
    )


def test_a_verdict_without_route_and_cost_does_so_too(cache: JudgeCache) -> None:
    cache.put('judge', DIGEST, Verdict(Status.SUCCESS))
    found = cache.get('judge', DIGEST)
    assert found is not None
    assert (found.route, found.cost) == ('cached', 0.0)


def test_another_question_and_another_judge_get_no_answer(cache: JudgeCache) -> None:
    cache.put('judge', DIGEST, WHOLE)
    assert cache.get('judge', 'b' * 64) is None
    assert cache.get('other', DIGEST) is None


def test_it_survives_a_restart(path: Path, cache: JudgeCache) -> None:
    cache.put('judge', DIGEST, WHOLE)
    cache.close()
    again = JudgeCache(path)
    assert again.get('judge', DIGEST) is not None
    again.close()


def test_a_newer_answer_takes_the_place_of_the_older(cache: JudgeCache) -> None:
    cache.put('judge', DIGEST, WHOLE)
    cache.put('judge', DIGEST, Verdict(Status.SUCCESS))
    found = cache.get('judge', DIGEST)
    assert found is not None
    assert found.status is Status.SUCCESS


def test_it_stays_within_its_size_and_forgets_the_oldest(path: Path) -> None:
    cache = JudgeCache(path, max_bytes=10_000)
    for number in range(200):
        cache.put('judge', f'{number}', Verdict(Status.SUCCESS, ('x' * 400,)))
    known = [n for n in range(200) if cache.get('judge', f'{n}') is not None]
    assert known == list(range(known[0], 200))
    assert 10 < len(known) < 25
    cache.close()
    again = JudgeCache(path, max_bytes=10_000)
    again.put('judge', 'new', Verdict(Status.SUCCESS, ('x' * 400,)))
    assert again.get('judge', f'{known[0]}') is None
    again.close()


def test_a_very_large_verdict_is_not_kept(cache: JudgeCache) -> None:
    cache.put('judge', DIGEST, Verdict(Status.SUCCESS, report={'a': 'x' * 300_000}))
    assert cache.get('judge', DIGEST) is None


@pytest.mark.parametrize(
    'content', [b'no database at all ' * 100, b'SQLite format 3\0' + b'\xff' * 5000]
)
def test_a_damaged_file_is_begun_anew_with_a_word(
    path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(content)
    cache = JudgeCache(path)
    assert cache.get('judge', DIGEST) is None
    assert path.name in caplog.text
    cache.put('judge', DIGEST, WHOLE)
    assert cache.get('judge', DIGEST) is not None
    cache.close()


def test_a_file_that_cannot_be_opened_is_no_cache(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.mkdir()
    cache = JudgeCache(path)
    assert not cache.usable
    cache.put('judge', DIGEST, WHOLE)
    assert cache.get('judge', DIGEST) is None
    assert 'no answers are kept any more' in caplog.text
    cache.close()


@pytest.mark.parametrize(
    'change',
    [
        "UPDATE answers SET text = replace(text, 'failure', 'success')",
        "UPDATE answers SET text = ''",
        "UPDATE answers SET key = replace(key, 'judge:', 'other:')",
        "UPDATE answers SET digest = ''",
    ],
)
def test_an_entry_that_was_changed_is_not_used(
    path: Path, cache: JudgeCache, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put('judge', DIGEST, WHOLE)
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    assert cache.get('judge', DIGEST) is None
    assert cache.get('other', DIGEST) is None
    assert 'a damaged entry is not used' in caplog.text


def test_a_file_that_breaks_while_it_is_used_is_no_cache_from_then_on(
    path: Path, cache: JudgeCache, caplog: pytest.LogCaptureFixture
) -> None:
    cache.put('judge', DIGEST, WHOLE)
    with sqlite3.connect(path) as connection:
        connection.execute('DROP TABLE answers')
    connection.close()
    assert cache.get('judge', DIGEST) is None
    assert not cache.usable
    assert 'no answers are kept any more' in caplog.text
    cache.put('judge', DIGEST, WHOLE)
    assert cache.get('judge', DIGEST) is None


def test_entries_of_another_format_are_forgotten(
    path: Path, cache: JudgeCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put('judge', DIGEST, WHOLE)
    cache.close()
    monkeypatch.setattr(judge_cache, 'FORMAT', judge_cache.FORMAT + 1)
    again = JudgeCache(path)
    assert again.usable
    assert again.get('judge', DIGEST) is None
    again.close()


TEXT = st.text(max_size=40)


@given(
    evidence=st.lists(TEXT.filter(lambda text: bool(text.strip())), max_size=5),
    score=st.none() | st.floats(0.0, 1.0),
    reason=TEXT.filter(lambda text: bool(text.strip())),
    fails=st.booleans(),
)
@hypothesis_settings(max_examples=60)
def test_what_is_read_is_what_was_written(
    evidence: list[str],
    score: float | None,
    reason: str,
    fails: bool,
) -> None:
    status = Status.FAILURE if fails else Status.SUCCESS
    verdict = Verdict(status, tuple(evidence), failure_reason=reason if fails else '', score=score)
    text = written(verdict, 5.0)
    read = read_kept('key', text, digest_of('key', text))
    said = 'cached: the answer of 1970-01-01 00:00:05 UTC'
    assert read == replace(verdict, evidence=(said, *evidence), route='cached', cost=0.0)


# --- who answers ------------------------------------------------------------------------------


def plugin(**given: Any) -> PluginSettings:
    return PluginSettings(kind='plugin', ref='a:b', **given)


def test_what_changes_only_when_an_answer_comes_leaves_the_identity() -> None:
    plain = identity('r', plugin(), Thresholds())
    assert plain == identity('r', plugin(timeout=3.0, max_concurrency=2, cache=True), Thresholds())


@pytest.mark.parametrize(
    'other',
    [
        identity('s', plugin(), Thresholds()),
        identity('r', plugin(options={'model': 'b'}), Thresholds()),
        identity('r', plugin(clamp=True), Thresholds()),
        identity('r', plugin(unsure=(0.4, 0.6)), Thresholds()),
        identity('r', plugin(), Thresholds(outcome=0.95)),
        identity('r', plugin(), Thresholds(), {'member': 'x'}),
    ],
)
def test_what_may_change_an_answer_changes_the_identity(other: str) -> None:
    assert other != identity('r', plugin(), Thresholds())


def test_a_key_in_the_environment_is_not_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ModelSettings(kind='model', model='m', base_url='http://a/v1', api_key_env='KEY')
    monkeypatch.setenv('KEY', 'first-secret')
    before = identity('r', model, Thresholds())
    monkeypatch.setenv('KEY', 'second-secret')
    assert identity('r', model, Thresholds()) == before


# --- evaluators of a configuration -------------------------------------------------------------


def cascade_over(**options: Any) -> dict[str, EvaluatorSettings]:
    return {
        'inner': PluginSettings(kind='plugin', ref='fake_judge:judge', options=options),
        'outer': CascadeSettings(kind='cascade', members=('inner',), cache=True),
    }


class Asked:
    """Counts what the plugin is asked."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def __call__(self, request: EvaluationRequest) -> float:
        with self._lock:
            self.count += 1
        return 0.95


def ask(calls: JudgeCalls) -> Verdict:
    done: Queue[Outcome] = Queue()
    calls.call(EvaluationRequest(REQUEST.post_condition, REQUEST.observation, DIGEST), done.put)
    outcome = done.get(timeout=PATIENCE)
    assert isinstance(outcome, Verdict)
    return outcome


REQUEST = make_request()


def kept_soon(cache: JudgeCache) -> None:
    """Wait until a verdict has been kept."""
    limit = threading.Event()
    for _ in range(2000):
        if cache._bytes:
            return
        limit.wait(0.005)
    raise AssertionError('nothing was kept')


def test_a_judge_whose_cache_is_on_answers_from_it_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fake_judge

    asked = Asked()
    monkeypatch.setattr(fake_judge, 'behave', asked)
    settings = {'judge': PluginSettings(kind='plugin', ref='fake_judge:judge', cache=True)}
    cache = cache_beside(tmp_path / 'ledger.sqlite3', settings)
    assert cache is not None
    first = ask(Judges(settings, Thresholds(), cache=cache).calls('judge'))
    kept_soon(cache)
    cache.close()
    again = cache_beside(tmp_path / 'ledger.sqlite3', settings)
    assert again is not None
    second = ask(Judges(settings, Thresholds(), cache=again).calls('judge'))
    again.close()
    assert asked.count == 1
    assert (first.route, second.route) == ('', 'cached')
    assert second.score == 0.95


def test_a_cascade_is_known_by_its_members_too(tmp_path: Path) -> None:
    one = Judges(cascade_over(), Thresholds())._identity('outer')
    assert one == Judges(cascade_over(), Thresholds())._identity('outer')
    assert one != Judges(cascade_over(strict=True), Thresholds())._identity('outer')


def test_no_file_is_made_where_no_cache_is_on(tmp_path: Path) -> None:
    settings = {'judge': PluginSettings(kind='plugin', ref='a:b')}
    assert cache_beside(tmp_path / 'ledger.sqlite3', settings) is None
    assert list(tmp_path.iterdir()) == []
