"""JUnit's XML: an error is no failure, and whatever was written a build server can read it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

from hypothesis import given, settings
import hypothesis.strategies as st
from judged_results import replayed, result_of
import pytest

from harness_eval.replay.compare import compare
from harness_eval.replay.report import write_comparison_junit, write_junit
from harness_eval.replay.results import Replayed, Skipped

ALLOWED = {
    'testsuites': {'name', 'tests', 'failures', 'errors', 'skipped', 'time'},
    'testsuite': {'name', 'tests', 'failures', 'errors', 'skipped', 'time'},
    'testcase': {'classname', 'name', 'time'},
    'failure': {'message', 'type'},
    'error': {'message', 'type'},
    'skipped': {'message'},
    'system-out': set(),
}
"""What GitHub, GitLab and Jenkins read, by element."""


def written(folder: Path, results: Replayed) -> ET.Element:
    path = folder / 'junit.xml'
    write_junit(path, results)
    return checked(ET.parse(path).getroot())


def checked(root: ET.Element) -> ET.Element:
    """The document, after its shape and its counts were compared with what is in it."""
    for element in root.iter():
        assert set(element.attrib) == ALLOWED[element.tag]
    suite = root[0]
    assert root.attrib == suite.attrib
    counts = {
        'tests': len(suite),
        **{f'{tag}s': len(suite.findall(f'*/{tag}')) for tag in ('failure', 'error')},
        'skipped': len(suite.findall('*/skipped')),
    }
    assert {key: int(suite.get(key, '')) for key in counts} == counts
    names = [(case.get('classname'), case.get('name')) for case in suite]
    assert len(set(names)) == len(names)
    return root


def tag_of(case: ET.Element) -> str:
    return next((child.tag for child in case if child.tag != 'system-out'), '')


@pytest.mark.parametrize(
    ('said', 'truth', 'tag'),
    [
        ('success', None, ''),
        ('failure', None, 'failure'),
        ('success', True, ''),
        ('success', False, 'failure'),
        ('failure', False, ''),
        ('failure', True, 'failure'),
        ('process', None, 'skipped'),
        ('process', False, 'skipped'),
        ('error', None, 'error'),
        ('error', True, 'error'),
        ('abstained', None, 'skipped'),
        ('interrupted', None, 'skipped'),
    ],
)
def test_a_test_fails_on_a_wrong_verdict_or_without_a_truth_on_a_failure(
    tmp_path: Path, said: str, truth: bool | None, tag: str
) -> None:
    root = written(tmp_path, replayed(result_of(said, truth=truth)))
    assert [tag_of(case) for case in root[0]] == [tag]


def test_a_test_says_tool_run_reason_evidence_and_time(tmp_path: Path) -> None:
    evidence = ('marker 7: not seen', 'opening: 0.08 in [0, 0.06]')
    result = result_of(
        'failure', 'run_7', tool='pick', segment=2, evidence=evidence, reason='empty', score=0.25
    )
    root = written(tmp_path, replayed(result))
    assert root.get('name') == 'harness_eval cell.yaml'
    case = root[0][0]
    assert case.attrib == {'classname': 'pick', 'name': 'run_7/2', 'time': '0.250'}
    assert case[0].attrib == {'message': 'failure: empty', 'type': 'post_condition'}
    assert case[0].text == '\n'.join(('source case', 'score 0.25', *evidence))


def test_a_verdict_against_the_truth_says_so(tmp_path: Path) -> None:
    root = written(tmp_path, replayed(result_of('success', truth=False)))
    assert root[0][0][0].attrib == {
        'message': 'the run really failed (label), the verdict is success',
        'type': 'false_success',
    }


def test_an_error_has_its_kind_and_its_message(tmp_path: Path) -> None:
    root = written(tmp_path, replayed(result_of('error')))
    assert root[0][0][0].attrib == {
        'message': 'error judge_down: the judge did not answer',
        'type': 'judge_down',
    }


def test_what_could_not_be_judged_is_an_error(tmp_path: Path) -> None:
    cut = Skipped('cell.mcap', 'bag_damaged', 'it ends in the middle')
    root = written(tmp_path, replayed(result_of('success'), skipped=(cut,)))
    case = root[0][1]
    assert (case.get('classname'), case.get('name')) == ('source', 'cell.mcap')
    assert case[0].attrib == {'message': 'it ends in the middle', 'type': 'bag_damaged'}


def test_runs_of_one_name_stay_apart(tmp_path: Path) -> None:
    root = written(tmp_path, replayed(result_of('success'), result_of('failure')))
    assert [case.get('name') for case in root[0]] == ['run/0', 'run/0 (2)']


def test_what_was_only_read_took_no_time(tmp_path: Path) -> None:
    read = replace(result_of('success'), seconds=float('nan'))
    root = written(tmp_path, replayed(read, result_of('success', 'b')))
    assert (root[0][0].get('time'), root.get('time')) == ('0.000', '0.250')


def test_no_path_of_this_machine_is_in_it(tmp_path: Path) -> None:
    place = str(tmp_path / 'weights.pt')
    result = result_of('failure', reason=f'cannot open {place}', evidence=(f"'{place}' is gone",))
    root = written(tmp_path, replayed(result, skipped=(Skipped('a', 'b', place),)))
    text = ET.tostring(root, encoding='unicode')
    assert str(tmp_path) not in text
    assert text.count('weights.pt') == 4


texts = st.text(max_size=40) | st.sampled_from(['\x00\x1b[31m', '\ud800', ']]>', '<a b="&">', '￾'])


@given(texts, texts, texts)
@settings(max_examples=60)
def test_whatever_is_written_it_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, run_id: str, tool: str, text: str
) -> None:
    folder = tmp_path_factory.getbasetemp()
    results = [
        result_of('failure', run_id, tool=tool, reason=f'r{text}', evidence=(text,)),
        result_of('error', run_id, tool=tool, source=text, reason=text),
    ]
    root = written(folder, replayed(*results, config=text, skipped=(Skipped(text, text, text),)))
    assert [tag_of(case) for case in root[0]] == ['failure', 'error', 'error']


# --- a comparison -----------------------------------------------------------------------------


def compared(folder: Path, base: str, candidate: str) -> list[tuple[str | None, str]]:
    words = {'r': 'success', 'w': 'failure', 'e': 'error', 'a': 'abstained'}
    sides = [
        replayed(*(result_of(words[one], f'run_{n}', truth=True) for n, one in enumerate(side)))
        for side in (base, candidate)
    ]
    path = folder / 'junit.xml'
    write_comparison_junit(path, compare(*sides))
    root = checked(ET.parse(path).getroot())
    return [(case.get('name'), tag_of(case)) for case in root[0]]


def test_a_promotion_is_green(tmp_path: Path) -> None:
    assert {tag for _, tag in compared(tmp_path, 'wwwwwr', 'rrrrrr')} == {''}


def test_a_regression_fails_its_run_and_the_decision(tmp_path: Path) -> None:
    assert compared(tmp_path, 'wr', 'rw') == [
        ('run_0/0', ''),
        ('run_1/0', 'failure'),
        ('decision', 'failure'),
    ]


def test_holding_is_an_error_of_the_decision_and_no_pass(tmp_path: Path) -> None:
    assert compared(tmp_path, 'rra', 'rea') == [
        ('run_0/0', ''),
        ('run_1/0', 'error'),
        ('run_2/0', 'skipped'),
        ('decision', 'error'),
    ]
    assert compared(tmp_path, '', '') == [('decision', 'error')]
