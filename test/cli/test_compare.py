"""``harness-eval compare`` replays two configurations and says which of them is to be used."""

from __future__ import annotations

import json
from pathlib import Path
import sys
from xml.etree import ElementTree as ET

from capture_streams import T_END
from cdr_messages import IMAGE, image_of
from judged_results import replayed, result_of
import numpy as np
from pipeline_world import DECODER
import pytest
from shell import Ended, Shell

from harness_eval.capture import Captured, Frame
from harness_eval.cases import CaseStore
from harness_eval.replay.results import Replayed
from harness_eval.runs import Completion, Segment

YAML = """
evaluation:
  required_tools: [pick]
  post_conditions: {{pick: "It is green."}}
  evaluator: cell
  evaluators: {{cell: {{kind: checks}}}}
  tools:
    pick:
      checks:
        - color:
            {{view: front, lower: [{hue}, 80, 80], upper: [70, 255, 255], coverage: [0.5, 1.0]}}
capture: {{views: {{front: {{topic: cell/front}}}}}}
"""
GREEN, YELLOW = (40, 200, 40), (40, 200, 200)
LABELS = 'run_id,label\n' + ''.join(
    f'run_{n},{"success" if n < 4 else "failure"}\n' for n in range(10)
)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture
def cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Ten cases, of which four are green and six yellow, and two configurations.

    ``strict.yaml`` takes green alone, ``loose.yaml`` yellow too, which no label does.
    """
    monkeypatch.chdir(tmp_path)
    for n in range(10):
        pixels = np.full((12, 16, 3), GREEN if n < 4 else YELLOW, np.uint8)
        pixels[0, 0] = n  # no two pictures are the same
        stamp = T_END + 400_000_000
        data = image_of(pixels, 'bgr8', stamp=stamp)
        frame = Frame('front', '/cell/front', IMAGE, stamp, stamp, data, 'camera')
        segment = Segment(Completion(f'run_{n}', 'pick', 0, T_END), 1, T_END)
        store = CaseStore(tmp_path / 'cases', 10**9, DECODER)
        store.write(segment, Captured({'front': frame}, T_END, 0.0, {'front': 1}))
    (tmp_path / 'strict.yaml').write_text(YAML.format(hue=50))
    (tmp_path / 'loose.yaml').write_text(YAML.format(hue=20))
    (tmp_path / 'labels.csv').write_text(LABELS)
    return tmp_path


def compared(shell: Shell, *arguments: object) -> Ended:
    return shell('compare', *arguments, 'cases', '--labels', 'labels.csv')


def saved(folder: Path, name: str, *said: str, truth: bool | None = True) -> Path:
    results = [result_of(word, f'run_{n}', truth=truth) for n, word in enumerate(said)]
    path = folder / name
    path.write_text(replayed(*results, config=f'{path.stem}.yaml').to_json(folder))
    return path


def test_a_configuration_that_puts_six_verdicts_right_is_promoted(
    shell: Shell, cell: Path
) -> None:
    ended = compared(shell, 'loose.yaml', 'strict.yaml', '--json', 'out.json')
    assert ended.code == 0
    assert ended.err == ''
    assert ended.out.startswith('decision   promote\nbase       loose.yaml\n')
    assert 'better by 0.6 on average over 10 segments, p = 0.016' in ended.out
    assert 'put right: 6 segments' in ended.out
    data = json.loads((cell / 'out.json').read_text())
    assert (data['version'], data['decision'], data['mean_gain']) == (1, 'promote', 0.6)
    assert data['compared'] == {'truth': 10, 'report': 0, 'score': 0}
    assert len(data['corrections']) == 6


def test_a_configuration_that_gets_labelled_runs_wrong_is_rejected(
    shell: Shell, cell: Path
) -> None:
    options = ('--html', 'out.html', '--junit', 'out.xml', '--json', 'out.json')
    ended = compared(shell, 'strict.yaml', 'loose.yaml', *options)
    assert ended.code == 1
    assert '6 labelled segments got worse' in ended.out
    assert 'got worse: 6 segments' in ended.out
    assert 'run_9' in ended.out
    page = (cell / 'out.html').read_text()
    worse = [one for one in page.split('<details class="run"')[1:] if '"regression"' in one]
    assert len(worse) == 6
    assert all('<img src="data:image/jpeg' in one for one in worse)
    suite = ET.parse(cell / 'out.xml').getroot()[0]
    assert suite.get('failures') == '7'
    for name in ('out.html', 'out.xml', 'out.json'):
        assert str(cell) not in (cell / name).read_text()


def test_a_configuration_that_changes_nothing_is_held(shell: Shell, cell: Path) -> None:
    ended = compared(shell, 'strict.yaml', 'strict.yaml')
    assert ended.code == 3
    assert 'neither better nor worse on any of 10 segments' in ended.out


def test_a_higher_bar_holds(shell: Shell, cell: Path) -> None:
    assert compared(shell, 'loose.yaml', 'strict.yaml', '--min-gain', '0.7').code == 3
    assert compared(shell, 'loose.yaml', 'strict.yaml', '--significance', '0.01').code == 3


def test_without_labels_the_score_of_the_judge_decides(shell: Shell, cell: Path) -> None:
    ended = shell('compare', 'strict.yaml', 'loose.yaml', 'cases', '--json', 'out.json')
    assert ended.code == 0
    data = json.loads((cell / 'out.json').read_text())
    assert data['compared'] == {'truth': 0, 'report': 0, 'score': 10}


def test_results_of_replay_are_taken_in_the_place_of_yaml(shell: Shell, cell: Path) -> None:
    for name in ('strict', 'loose'):
        ended = shell(
            'replay', 'cases', '--config', f'{name}.yaml', '--json', f'{name}.json', '--quiet'
        )
        assert ended.code == 0
    assert shell('compare', 'loose.json', 'strict.json', '--labels', 'labels.csv').code == 0
    assert shell('compare', 'strict.json', 'loose.json', '--labels', 'labels.csv').code == 1
    assert compared(shell, 'strict.json', 'loose.yaml').code == 1


def test_nothing_that_was_judged_is_no_pass(shell: Shell, cell: Path) -> None:
    for bag in (cell / 'cases').glob('*/*.mcap'):
        bag.write_bytes(b'cut')
    ended = compared(shell, 'loose.yaml', 'strict.yaml', '--json', 'out.json')
    assert ended.code == 3
    assert 'nothing to compare' in ended.out
    assert 'skipped run_0' in ended.err
    assert len(json.loads((cell / 'out.json').read_text())['skipped']) == 10


def test_the_metric_of_the_tool_goes_with_the_results(shell: Shell, tmp_path: Path) -> None:
    for name, depth in (('base', 2.0), ('candidate', 6.0)):
        results = [
            result_of('success', f'run_{n}', report={'depth': depth}, score=0.5) for n in range(5)
        ]
        kept = Replayed.from_json(
            replayed(*results, config=f'{name}.yaml').to_json(tmp_path), tmp_path
        )
        data = json.loads(kept.to_json(tmp_path))
        data['metrics'] = {'pick': {'name': 'depth', 'goal': 'maximize', 'scale': 8.0}}
        (tmp_path / f'{name}.json').write_text(json.dumps(data))
    ended = shell('compare', tmp_path / 'base.json', tmp_path / 'candidate.json')
    assert ended.code == 0
    assert 'better by 0.5 on average over 5 segments' in ended.out
    assert 'Compared 5 by report' in ended.out


@pytest.mark.parametrize(
    ('package', 'options'),
    [('scipy', []), ('jinja2', ['--html', 'a.html']), ('matplotlib', ['--html', 'a.html'])],
)
def test_without_a_package_it_says_what_to_install(
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    options: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = saved(tmp_path, 'a.json', 'success')
    monkeypatch.setitem(sys.modules, package, None)
    ended = shell('compare', path, path, *options)
    assert ended.code == 2
    assert 'pip install "harness_eval[replay]"' in ended.err
    if options:
        assert shell('compare', path, path).code == 3


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        (['a.yaml', 'b.yaml'], 'expected the cases or bags to replay with a YAML file'),
        (['a.json', 'b.json', 'cases'], 'expected no cases, since both are results already'),
        (['a.json', 'none.json'], 'none.json cannot be read: No such file'),
        (['a.json', 'bad.json'], 'bad.json: this is no file of results'),
        (['a.json', 'binary.json'], 'binary.json is no file of results: it is not UTF-8'),
        (['a.json', 'other.json'], 'the two replays know different truths'),
        (['a.json', 'a.json', '--labels', 'none.csv'], 'the labels cannot be read'),
        (['a.json', 'a.json', '--json', 'no/out.json'], 'out.json cannot be written'),
        (['a.json', 'a.json', '--html', '.'], 'cannot be written'),
        (['a.json', 'a.json', '--significance', '0'], '--significance lies between 0 and 1'),
        (['a.json', 'a.json', '--min-gain', 'inf'], '--min-gain is a finite number'),
        (['a.json', 'bad.yaml', 'x.mcap'], 'bad.yaml:1: expected a mapping'),
        (['a.json', 'none.yaml', 'x.mcap'], 'none.yaml'),
        (['a.json', 'a.yaml', 'nowhere'], 'nothing is called nowhere'),
    ],
)
def test_bad_usage_is_told_in_a_line(
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(tmp_path, 'a.json', 'success')
    saved(tmp_path, 'other.json', 'success', truth=False)
    (tmp_path / 'bad.json').write_text('{}')
    (tmp_path / 'x.mcap').write_bytes(b'')
    (tmp_path / 'binary.json').write_bytes(b'\xff\xfe')
    (tmp_path / 'bad.yaml').write_text('- a\n')
    (tmp_path / 'a.yaml').write_text(YAML.format(hue=50))
    ended = shell('compare', *arguments)
    assert ended.code == 2
    assert ended.out == ''
    assert words in ended.err
    assert str(tmp_path) not in ended.err
