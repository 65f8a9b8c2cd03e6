"""``show`` tells what an oracle said of a run, which is kept with its case."""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
import json
import os
from pathlib import Path

import pytest
from shell import Shell

from harness_eval.contract import Status, Verdict
from harness_eval.ledger import Ledger
from harness_eval.oracle import OracleAnswer
from harness_eval.ros.places import default_evidence_dir, default_ledger_url, node_folder
from harness_eval.runs import Completion, outcome_of

END = 1_700_000_000 * 10**9
CASE = 'run-1-0123456789ab-0'


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture
def folder() -> Path:
    return node_folder(os.environ, '/harness_eval')


@pytest.fixture
def ledger(folder: Path) -> Iterator[Ledger]:
    """A ledger with one successful run."""
    made = Ledger(default_ledger_url(folder, simulated=False))
    with made.transaction():
        segment = made.add_segment(Completion('run-1', 'pick', 0, END), END)
    segment = dataclasses.replace(segment, evidence=CASE)
    outcome = outcome_of(Verdict(Status.SUCCESS), segment, decided_at=END, max_segments=8)
    with made.transaction():
        made.decide(segment, outcome)
    yield made
    made.close()


def note(root: Path, answer: OracleAnswer | None) -> None:
    case = root / CASE
    case.mkdir(parents=True)
    plain = {} if answer is None else {'oracle': answer.to_plain()}
    (case / 'case.json').write_text(json.dumps(plain))


@pytest.mark.parametrize(
    ('answer', 'words'),
    [
        (OracleAnswer('oracle:sim', True), 'correct (oracle:sim)'),
        (OracleAnswer('oracle:sim', False), 'not correct (oracle:sim)'),
        (OracleAnswer('oracle:sim'), 'does not know (oracle:sim)'),
        (OracleAnswer('oracle:sim', error='no_token: \x1b[2J'), 'no answer: no_token: '),
    ],
)
def test_show_tells_what_the_oracle_said(
    ledger: Ledger, folder: Path, shell: Shell, answer: OracleAnswer, words: str
) -> None:
    note(default_evidence_dir(folder), answer)
    shown = shell('show', 'run-1')
    assert shown.code == 0
    (line,) = (row for row in shown.out.splitlines() if row.startswith('oracle'))
    assert words in line
    assert '\x1b' not in shown.out
    assert shell('show', 'run-1', '--json').json['segments'][0]['oracle'] == answer.to_plain()


@pytest.mark.parametrize('case_is_there', [True, False])
def test_show_of_a_run_without_an_oracle_says_nothing_of_one(
    ledger: Ledger, folder: Path, shell: Shell, case_is_there: bool
) -> None:
    if case_is_there:
        note(default_evidence_dir(folder), None)
    assert 'oracle' not in shell('show', 'run-1').out
    assert shell('show', 'run-1', '--json').json['segments'][0]['oracle'] is None


def test_cases_kept_elsewhere_are_named(
    ledger: Ledger, folder: Path, shell: Shell, tmp_path: Path
) -> None:
    note(tmp_path / 'cases', OracleAnswer('oracle:sim', False))
    assert 'oracle' not in shell('show', 'run-1').out
    assert 'not correct' in shell('show', 'run-1', '--evidence', str(tmp_path / 'cases')).out


@pytest.mark.parametrize('prefix', ['', 'sqlite:///'])
def test_beside_a_ledger_that_is_named_lie_its_cases(
    ledger: Ledger, folder: Path, shell: Shell, prefix: str
) -> None:
    note(default_evidence_dir(folder), OracleAnswer('oracle:sim', True))
    named = f'{prefix}{folder / "ledger.sqlite3"}'
    assert 'oracle' in shell('show', 'run-1', '--ledger', named).out
