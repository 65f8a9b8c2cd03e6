"""One page that holds all it shows, of whatever was written, and tells nothing of the machine."""

from __future__ import annotations

import base64
from dataclasses import replace
import hashlib
from html.parser import HTMLParser
from pathlib import Path
import re

import cv2
from drawn_cases import write_case
from hypothesis import given, settings
import hypothesis.strategies as st
from judged_results import outcome_of, replayed, result_of, runs
import numpy as np
import pytest

from harness_eval.replay.compare import compare
from harness_eval.replay.metrics import score
from harness_eval.replay.report import write_html
from harness_eval.replay.report.entries import entries
from harness_eval.replay.report.page import render
from harness_eval.replay.report.pictures import read_pictures
from harness_eval.replay.report.plots import plots
from harness_eval.replay.results import Replayed, Skipped

VOID = {'meta', 'link', 'img', 'input', 'br'}


class Page(HTMLParser):
    """What a page holds: each element with its attributes, and the texts of some."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or '' for name, value in attributes}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or '' for name, value in attributes}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and data.strip():
            self.texts.setdefault(self.open[-1], []).append(data.strip())

    def all(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def runs(self) -> list[dict[str, str]]:
        return [one for one in self.all('details') if one.get('class') == 'run']

    @property
    def text(self) -> str:
        return '\n'.join(text for texts in self.texts.values() for text in texts)


def page(results: Replayed, **more: object) -> Page:
    return Page(render(results, **more))


def test_the_page_asks_nothing_of_a_network(tmp_path: Path) -> None:
    results = replayed(
        result_of('success', truth=True, score=0.9, case=write_case(tmp_path, 'run')),
        result_of('failure', 'b', truth=False, score=0.2),
    )
    found = page(results, scores=score(results.results))
    for _, attributes in found.elements:
        for name in ('src', 'href', 'xlink:href', 'action', 'data', 'poster', 'srcset'):
            value = attributes.get(name, '#')
            assert value.startswith(('#', 'data:')), value
    styles = ''.join(found.texts['style'])
    assert 'url(' not in re.sub(r'url\(#', '', styles)
    assert '@import' not in styles


def test_nothing_but_our_script_may_run() -> None:
    found = page(replayed(result_of('success')))
    policy = next(one['content'] for one in found.all('meta') if 'http-equiv' in one)
    (script,) = found.texts['script']
    text = render(replayed(result_of('success')))
    exact = text[text.index('<script>') + 8 : text.index('</script>')]
    assert exact.strip() == script
    digest = base64.b64encode(hashlib.sha256(exact.encode()).digest()).decode()
    assert policy == (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


BAD = '"><script>alert(1)</script><img src=x onerror=alert(2)>{{ 7 * 7 }}'


def test_whatever_was_written_is_shown_and_not_obeyed(tmp_path: Path) -> None:
    first = result_of(
        'failure', BAD, tool=BAD, source=BAD, evidence=(BAD,), reason=BAD, report={BAD: BAD}
    )
    second = replace(first, outcome=outcome_of('error', BAD, BAD, reason=BAD))
    skipped = (Skipped(BAD, BAD, BAD),)
    sides = [replayed(one, config=BAD, skipped=skipped) for one in (first, second)]
    found = page(sides[1], scores=score([second]), comparison=compare(*sides))
    assert [len(found.all(tag)) for tag in ('script', 'img')] == [1, 0]
    assert not any(name.startswith('on') for _, one in found.elements for name in one)
    assert '{{ 7 * 7 }}' in found.text
    assert found.runs[0]['data-tool'].startswith('"><script>alert(1)')


texts = st.text(max_size=30) | st.sampled_from(
    ['\ud800', '\x00', '\u202e', '</style>', "'", '&lt;']
)


@given(texts, texts, texts)
@settings(max_examples=25)
def test_any_text_can_be_shown(
    tmp_path_factory: pytest.TempPathFactory, run_id: str, tool: str, text: str
) -> None:
    results = replayed(
        result_of('failure', run_id, tool=tool, reason=f'r{text}', evidence=(text,), source=text),
        result_of('error', run_id, tool=tool, reason=text),
        skipped=(Skipped(text, text, text),),
        config=text,
    )
    path = tmp_path_factory.getbasetemp() / 'page.html'
    write_html(path, results)
    assert len(Page(path.read_text('utf-8')).runs) == 2


def test_a_page_is_the_same_every_time(tmp_path: Path) -> None:
    case = write_case(tmp_path, 'run')
    results = replayed(result_of('success', truth=True, score=0.9, case=case))
    assert render(results, score(results.results)) == render(results, score(results.results))


def test_nothing_of_the_machine_is_told(tmp_path: Path) -> None:
    place = str(tmp_path / 'weights.pt')
    results = replayed(
        result_of(
            'failure',
            reason=f'cannot open {place}',
            evidence=(f'{place} is gone',),
            report={'file': place},
            case=write_case(tmp_path, 'run'),
        ),
        result_of('error', reason=place, case=tmp_path / 'gone'),
        skipped=(Skipped('a', 'b', place),),
    )
    text = render(results)
    assert str(tmp_path) not in text
    assert 'weights.pt' in text


# --- what is shown ----------------------------------------------------------------------------


def test_each_run_says_what_it_can_be_found_by() -> None:
    found = page(
        replayed(
            result_of('success', 'a', tool='pick', truth=True),
            result_of('success', 'b', tool='pick', truth=False),
            result_of('error', 'c', tool='place', truth=True),
            result_of('process', 'd', tool='place', truth=False),
        )
    )
    assert [(r['data-tool'], r['data-outcome'], r['data-agreement']) for r in found.runs] == [
        ('pick', 'success', 'right'),
        ('pick', 'success', 'wrong'),
        ('place', 'error', 'unknown'),
        ('place', 'process', 'unknown'),
    ]
    filters = [one['href'] for one in found.all('a') if one.get('class') == 'card']
    assert '#outcome=error' in filters
    assert '#agreement=wrong' in filters


def test_reason_evidence_report_and_route_are_there() -> None:
    one = result_of(
        'failure',
        'run_9',
        evidence=('marker 7: not seen',),
        reason='the gripper is empty',
        report={'depth': 3.5},
        score=0.125,
        source='case_9',
    )
    text = page(replayed(one)).text
    for expected in (
        'run_9/0',
        'the gripper is empty',
        'marker 7: not seen',
        'report depth',
        '3.5',
        'score 0.125',
        'target = cup',
        'case_9',
        '0.250 s',
    ):
        assert expected in text


def test_what_was_on_record_stands_beside_it_only_where_it_differs() -> None:
    now = result_of('success', 'a', evidence=('same', 'new'))
    before = outcome_of('failure', 'a', evidence=('same', 'old'))
    same = replace(now, recorded=replace(now.outcome, decided_at=1))
    differs = replace(now, recorded=before)
    first, second = entries(replayed(same, differs), None)
    assert first.other is None
    assert second.other is not None
    assert (second.other.title, second.other.label) == ('on record', 'failure')
    assert [(line.text, line.only) for line in second.side.evidence] == [
        ('same', False),
        ('new', True),
    ]
    assert [(line.text, line.only) for line in second.other.evidence] == [
        ('same', False),
        ('old', True),
    ]


def test_a_comparison_shows_both_sides_and_what_got_worse_first() -> None:
    base = replayed(
        *(result_of(said, f'run_{n}', truth=True) for n, said in enumerate(['success'] * 3)),
        result_of('failure', 'run_3', truth=True),
        config='base.yaml',
    )
    candidate = replayed(
        *(result_of('success', f'run_{n}', truth=True) for n in range(2)),
        result_of('failure', 'run_2', truth=True, reason='not in view'),
        result_of('success', 'run_3', truth=True),
        config='candidate.yaml',
    )
    found = page(candidate, comparison=compare(base, candidate))
    assert [one['data-change'] for one in found.runs] == [
        'regression',
        'same',
        'same',
        'correction',
    ]
    assert ['open' in one for one in found.runs] == [True, False, False, False]
    assert {'href': '#run-1'} in found.all('a')
    assert found.texts['title'] == ['candidate.yaml compared with base.yaml']
    assert found.texts['h4'][:2] == ['base: base.yaml', 'candidate: candidate.yaml']
    assert 'reject' in found.texts['p']
    assert 'truth: 1 under the base, 0 under the candidate, a gain of -1' in found.text


def test_of_many_that_got_worse_some_are_named_and_unfolded_and_the_others_counted() -> None:
    base, candidate = (runs(*[said] * 23, truth=True) for said in ('success', 'failure'))
    found = page(candidate, comparison=compare(base, candidate))
    named = [one['href'] for one in found.all('a') if one.get('href', '').startswith('#run-')]
    assert named == [f'#run-{number}' for number in range(1, 21)]
    assert sum('open' in one for one in found.runs) == 20
    assert 'and 3 more' in found.text


def test_numbers_have_their_intervals_and_missing_ones_their_reason() -> None:
    results = [
        result_of('success' if n != 3 else 'failure', f'r{n}', truth=True, score=0.9)
        for n in range(10)
    ]
    found = page(replayed(*results), scores=score(results))
    assert '10.0 %' in found.text
    assert '[1.8, 40.4] of 10' in found.text
    titles = [one['title'] for one in found.all('td') if 'title' in one]
    assert 'every decided run truly succeeded; it takes failures too' in titles


def test_there_is_a_plot_only_of_what_is_known() -> None:
    known = [result_of('success', truth=True, score=0.9), result_of('failure', 'b', truth=False)]
    assert len(plots(score(known).overall)) == 3
    assert len(plots(score([replace(one, truth=None) for one in known]).overall)) == 0
    unscored = [result_of('success', truth=True)]
    assert [plot.svg.count('<svg') for plot in plots(score(unscored).overall)] == [1]


def test_an_empty_replay_is_a_page_too() -> None:
    found = page(replayed(skipped=(Skipped('a.mcap', 'no_runs', 'no run was found'),)))
    assert found.runs == []
    assert 'no run was found' in found.text


def test_two_thousand_runs_fit_on_a_page() -> None:
    results = [result_of('success', f'run_{n}', evidence=('seen',)) for n in range(2000)]
    text = render(replayed(*results))
    assert text.count('<details class="run"') == 2000
    assert len(text) < 5_000_000


# --- pictures ---------------------------------------------------------------------------------


def decoded(url: str) -> np.ndarray:
    head, _, data = url.partition(',')
    assert head == 'data:image/jpeg;base64'
    picture = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)
    assert picture is not None
    return picture


def test_the_views_of_a_case_are_shown_with_their_age(tmp_path: Path) -> None:
    found = page(replayed(result_of('success', case=write_case(tmp_path, 'run'))))
    assert [one['alt'] for one in found.all('img')] == ['view front', 'view wrist']
    shapes = [decoded(one['src']).shape for one in found.all('img')]
    assert shapes == [(48, 64, 3)] * 2
    assert [one['width'] for one in found.all('img')] == ['64', '64']
    assert found.texts['figcaption'] == ['0.300 s after the end', '0.312 s after the end']


def test_large_views_are_made_smaller(tmp_path: Path) -> None:
    case = write_case(tmp_path, 'run', size=(1280, 960))
    pictures = read_pictures([case]).pictures[case]
    assert [decoded(one.url).shape for one in pictures] == [(480, 640, 3)] * 2


@pytest.mark.parametrize('bound', ['max_pictures', 'max_bytes'])
def test_a_full_page_leaves_pictures_out_says_so_and_keeps_the_wrong_ones(
    tmp_path: Path, bound: str
) -> None:
    results = [
        result_of('success', f'run_{n}', truth=n != 3, case=write_case(tmp_path, f'run_{n}'))
        for n in range(4)
    ]
    folders = [one.case for one in results if one.case is not None]
    size = max(
        sum(len(v.url) for v in views) for views in read_pictures(folders).pictures.values()
    )
    limit = {'max_pictures': {'max_pictures': 5}, 'max_bytes': {'max_bytes': 2 * size + 100}}[
        bound
    ]
    text = render(replayed(*results), **limit)
    assert 'The pictures of 2 cases are left out' in text
    assert text.count('Its pictures are left out: the page is full.') == 2
    details = text.split('<details class="run"')[1:]
    assert [one.count('<img') for one in details] == [2, 0, 0, 2]


def test_a_case_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    damaged = write_case(tmp_path, 'damaged')
    next(damaged.glob('*.mcap')).write_bytes(b'cut')
    for case in (damaged, tmp_path / 'gone'):
        found = page(replayed(result_of('success', case=case)))
        assert found.all('img') == []
        assert 'the case cannot be read' in found.text


def test_a_case_of_two_results_is_read_once(tmp_path: Path) -> None:
    case = write_case(tmp_path, 'run')
    album = read_pictures([case, case], max_pictures=2)
    assert list(album.pictures) == [case]
    assert album.left_out == 0
