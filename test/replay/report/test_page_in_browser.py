"""The page in a headless Chromium: it asks nothing of a network, filters, and fits a phone."""

from __future__ import annotations

from collections.abc import Iterator
import os
from pathlib import Path
from typing import Any

from browser import Browser, browsing, missing
from drawn_cases import write_case
from judged_results import replayed, result_of
import pytest

from harness_eval.replay.compare import compare
from harness_eval.replay.metrics import score
from harness_eval.replay.report import write_html
from harness_eval.replay.results import Result, Skipped

REQUIRED = os.environ.get('HARNESS_EVAL_REQUIRE_BROWSER') == '1'
LONG = 'a_name_without_any_place_to_break_it_' * 4
BAD = '"><script>window.broken = 1</script><img src=x onerror="window.broken = 1">'
LONG_LINE = 'marker 7 in front: seen at [0.42, 0.31], which lies in [0.3, 0.0, 0.7, 0.4] ' * 3


def results(root: Path, *, better: bool) -> list[Result]:
    """60 runs of three tools, with everything that is hard to show among them."""
    found = []
    for n in range(60):
        truth = n % 3 != 0
        right = n != 21 if better else n % 5 != 0
        said = 'error' if n % 13 == 12 else 'success' if truth == right else 'failure'
        found.append(
            result_of(
                said,
                {7: BAD, 8: LONG}.get(n, f'run_{n}'),
                tool=('pick', 'place', 'insert')[n // 20],
                truth=truth,
                score=0.9 if said == 'success' else 0.1,
                evidence=(LONG_LINE, f'opening: {n} of {60 if better else 61}', BAD, LONG * 4),
                reason='the gripper is empty ' * 10,
                report={LONG[:60]: 1.5},
                case=write_case(root, f'run_{n}', held=truth) if n < 6 or n == 21 else None,
            )
        )
    return found


@pytest.fixture(scope='module')
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a comparison, with all that a page can hold."""
    folder = tmp_path_factory.mktemp('page')
    sides = [results(folder / 'cases', better=better) for better in (False, True)]
    skipped = (Skipped('cell.mcap', 'bag_damaged', LONG_LINE),)
    base, candidate = (
        replayed(*side, config=name, skipped=skipped)
        for side, name in zip(sides, ('base.yaml', f'{LONG}.yaml'), strict=True)
    )
    path = folder / 'page.html'
    write_html(path, candidate, score(candidate.results), compare(base, candidate))
    return path


def opened(width: int) -> Iterator[Browser]:
    lack = missing()
    if lack and not REQUIRED:
        pytest.skip(f'{lack}; install chromium and chromium-driver to look at the page')
    assert not lack, f'HARNESS_EVAL_REQUIRE_BROWSER=1, but {lack}'
    with browsing(width, 900) as browser:
        yield browser


@pytest.fixture(scope='module')
def browser() -> Iterator[Browser]:
    yield from opened(1280)


@pytest.fixture(scope='module')
def phone() -> Iterator[Browser]:
    yield from opened(390)


def shown(browser: Browser) -> list[dict[str, Any]]:
    """What each run that is shown can be found by."""
    script = """
        return [...document.querySelectorAll('details.run')]
            .filter((run) => run.getClientRects().length)
            .map((run) => ({...run.dataset}));
    """
    return list(browser.run(script))


def test_nothing_is_asked_of_a_network_and_the_console_is_silent(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    browser.run("document.querySelectorAll('details').forEach((run) => { run.open = true; })")
    pictures = browser.run("""
        const pictures = [...document.images];
        pictures.forEach((picture) => { picture.loading = 'eager'; });
        return Promise.all(pictures.map((picture) => picture.decode()))
            .then(() => pictures.map((picture) => [picture.naturalWidth, picture.naturalHeight]));
    """)
    assert pictures == [[64, 48]] * 14
    console, asked = browser.logs()
    assert console == []
    assert page.as_uri() in asked
    assert [url for url in asked if not url.startswith('data:')] == [page.as_uri()]


def test_what_was_written_by_others_does_not_run(browser: Browser, page: Path) -> None:
    browser.open(page, 'run-1')
    assert browser.run('return window.broken ?? null') is None
    assert browser.run("return document.querySelectorAll('script').length") == 1
    assert BAD in browser.run("return document.getElementById('runs').textContent")


def test_the_policy_of_the_page_stops_a_script_that_slipped_in(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    browser.run("""
        const script = document.createElement('script');
        script.textContent = 'window.broken = 1';
        document.body.append(script);
        new Image().src = 'http://127.0.0.1:9/pixel.png';
    """)
    assert browser.run('return window.broken ?? null') is None
    console, _ = browser.logs()
    assert len([line for line in console if 'Content Security Policy' in line]) == 2


def test_the_filters_stand_in_the_address(browser: Browser, page: Path) -> None:
    browser.open(page)
    assert len(shown(browser)) == 60
    browser.open(page, 'tool=place&outcome=failure')
    found = shown(browser)
    assert 0 < len(found) < 20
    assert {(one['tool'], one['outcome']) for one in found} == {('place', 'failure')}
    count = f'{len(found)} of 60'
    assert browser.run("return document.getElementById('count').textContent") == count
    browser.open(page, 'change=regression')
    assert [one['change'] for one in shown(browser)] == ['regression']
    browser.open(page, 'agreement=unknown&outcome=success')
    assert shown(browser) == []
    browser.open(page, 'q=OPENING%3A+17+of')
    assert len(shown(browser)) == 1
    browser.open(page, 'tool=none_of_them')
    assert len(shown(browser)) == 60


def test_what_is_chosen_is_filtered_by_and_goes_to_the_address(
    browser: Browser, page: Path
) -> None:
    browser.open(page)
    choose = """
        const [name, value] = arguments;
        const field = document.querySelector(`#filters [name=${name}]`);
        field.value = value;
        field.dispatchEvent(new Event('input', {bubbles: true}));
        return location.hash;
    """
    assert browser.run(choose, 'agreement', 'wrong') == '#agreement=wrong'
    assert {one['agreement'] for one in shown(browser)} == {'wrong'}
    assert browser.run(choose, 'q', 'run_21/0') == '#agreement=wrong&q=run_21%2F0'
    assert len(shown(browser)) == 1
    assert browser.run(choose, 'q', 'nowhere') == '#agreement=wrong&q=nowhere'
    assert shown(browser) == []
    assert browser.run("return document.getElementById('none').hidden") is False


def test_a_card_is_a_link_to_what_it_counts(browser: Browser, page: Path) -> None:
    browser.open(page)
    number = browser.run("""
        const card = document.querySelector('a.card[href="#outcome=error"]');
        card.click();
        return new Promise((done) => setTimeout(
            () => done(Number(card.querySelector('b').textContent)), 0));
    """)
    assert {one['outcome'] for one in shown(browser)} == {'error'}
    assert len(shown(browser)) == number == 4


def test_a_link_to_a_run_unfolds_it(browser: Browser, page: Path) -> None:
    browser.open(page, 'run-30')
    assert browser.run("return document.getElementById('run-30').open") is True
    place = browser.run("return document.getElementById('run-30').getBoundingClientRect().top")
    assert -1 <= place < 900


def test_print_shows_what_is_unfolded_and_no_controls(browser: Browser, page: Path) -> None:
    browser.open(page, 'tool=place')
    browser.emulate('Emulation.setEmulatedMedia', media='print')
    try:
        browser.run("window.dispatchEvent(new Event('beforeprint'))")
        display = "return getComputedStyle(document.getElementById('filters')).display"
        assert browser.run(display) == 'none'
        assert len(shown(browser)) == 20
        unfolded = "return document.querySelectorAll('details.run[open]:not([hidden])').length"
        assert browser.run(unfolded) == 20
    finally:
        browser.emulate('Emulation.setEmulatedMedia', media='')


@pytest.mark.parametrize('unfolded', [False, True])
def test_a_phone_needs_no_scrolling_sideways(phone: Browser, page: Path, unfolded: bool) -> None:
    phone.open(page)
    if unfolded:
        phone.run("""
            for (const run of document.querySelectorAll('details')) {
                run.open = true;
                run.style.contentVisibility = 'visible';
            }
        """)
    wide = phone.run("""
        const clipped = (one) => one.closest('svg, .scroll, summary .why, [hidden]');
        return [...document.querySelectorAll('body *')]
            .filter((one) => !clipped(one) && one.getBoundingClientRect().right > 390.5)
            .map((one) => `${one.tagName} ${one.className}`);
    """)
    assert wide == []
    assert phone.run('return [document.documentElement.scrollWidth, innerWidth]') == [390, 390]
    scrolled = "return [...document.querySelectorAll('.scroll')].map((one) => one.scrollWidth)"
    assert max(phone.run(scrolled)) <= 390
