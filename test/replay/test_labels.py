"""What people say really happened: from a CSV file to the results that it is about."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
import pytest
from scored_results import result

from harness_eval.cases import CaseError, CaseStore
from harness_eval.decode import Decoder
from harness_eval.replay.case_labels import read_labelled_case, write_label
from harness_eval.replay.label_file import parse_labels, read_labels
from harness_eval.replay.labels import assign, Label, LabelsError, match_labels
from harness_eval.replay.results import Truth


def parse(text: str | bytes) -> tuple[Label, ...]:
    return parse_labels(text.encode() if isinstance(text, str) else text, 'labels.csv')


def refused(text: str | bytes) -> LabelsError:
    with pytest.raises(LabelsError) as caught:
        parse(text)
    assert 'labels.csv' in caught.value.message
    return caught.value


def test_a_row_says_what_is_true_of_a_segment() -> None:
    labels = parse('run_id,segment,source,label,note\nrun-1,2,tuesday,failure,"slipped, twice"\n')
    assert labels == (Label('run-1', False, 2, 'tuesday', 'slipped, twice', 2),)
    assert labels[0].truth == Truth(False, 'label', 'slipped, twice')


@pytest.mark.parametrize(
    ('word', 'correct'),
    [('success', True), ('SUCCESS', True), ('true', True), ('1', True), ('Yes', True),
     ('failure', False), ('Failure', False), ('FALSE', False), ('0', False), ('no', False)],
)  # fmt: skip
def test_words_for_success_and_failure(word: str, correct: bool) -> None:
    assert parse(f'run_id,label\nrun-1, {word} ')[0].correct is correct


@pytest.mark.parametrize(
    'text',
    [
        'run_id,label\nrun-1,success\nrun-2,failure\n',
        '\ufeffrun_id,label\nrun-1,success\nrun-2,failure\n',
        'run_id,label\r\nrun-1,success\r\nrun-2,failure\r\n',
        'run_id,label\rrun-1,success\rrun-2,failure',
        '\n\nRun_ID , LABEL\n\nrun-1,success\n,\n"run-2","failure"\n\n',
        'label,run_id\nsuccess,run-1\nfailure,run-2',
    ],
)
def test_spreadsheets_may_write_the_file_as_they_do(text: str) -> None:
    assert [(one.run_id, one.correct) for one in parse(text)] == [
        ('run-1', True), ('run-2', False),
    ]  # fmt: skip


def test_a_note_may_hold_line_breaks_and_lines_are_still_counted_right() -> None:
    text = 'run_id,label,note\nrun-1,success,"one\ntwo\r\nthree"\nrun-2,perhaps,\n'
    assert 'line 5: expected success or failure' in refused(text).message
    assert parse(text.replace('perhaps', 'no'))[0].note == 'one\ntwo\r\nthree'


@pytest.mark.parametrize(
    ('text', 'kind', 'words'),
    [
        ('', 'labels_columns', 'is empty; expected a first line with the columns run_id'),
        ('\n\n', 'labels_columns', 'is empty'),
        ('run-1,success\n', 'labels_columns', "unknown column 'run-1'"),
        ('run_id,lable\n', 'labels_columns', "unknown column 'lable', did you mean 'label'?"),
        ('run_id,note\n', 'labels_columns', "the column 'label' is missing, found run_id, note"),
        ('run_id,label,label\n', 'labels_columns', "the column 'label' is there twice"),
        ('run_id;label\nrun-1;success\n', 'labels_columns', 'expected commas'),
        ('run_id\tlabel\nrun-1\tsuccess\n', 'labels_columns', 'expected commas'),
        ('run_id,label\nrun-1\n', 'labels_malformed', 'line 2: expected 2 cells, found 1'),
        ('run_id,label\nr,success,x\n', 'labels_malformed', 'line 2: expected 2 cells, found 3'),
        ('run_id,label\n,success\n', 'labels_malformed', 'line 2: the run_id is empty'),
        ('run_id,label\nrun-1,\n', 'labels_malformed', '(or true, false, 1, 0, yes, no)'),
        ('run_id,label\nrun-1,"suc"cess\n', 'labels_malformed', 'begins on line 2'),
        ('run_id,label\nrun-1,"success\n', 'labels_malformed', 'begins on line 2'),
        ('run_id,label,segment\nr,no,-1\n', 'labels_malformed', "from 0, found '-1'"),
        ('run_id,label,segment\nr,no,1.0\n', 'labels_malformed', "from 0, found '1.0'"),
        ('run_id,label,segment\nr,no,٣\n', 'labels_malformed', "from 0, found '٣'"),
        ('run_id,label,segment\nr,no,4294967296\n', 'labels_malformed', 'number of a segment'),
        ('run_id,label,segment\nr,no,' + '9' * 5000, 'labels_malformed', 'number of a segment'),
        ('run_id,label\nr,no\n\nr,no\n', 'labels_malformed',
         "line 4: 'r' is labelled already on line 2"),
        ('run_id,label\nr,no\nr,yes\n', 'labels_malformed',
         "line 3: 'r' is labelled otherwise on line 2"),
        ('run_id,label,note\nr,no,' + 'x' * 200_000, 'labels_malformed', 'field larger than'),
        ('run_id,label\nr,s\0', 'labels_encoding', 'line 2: found a null character'),
        ('run_id,label\nGröße,no\n'.encode('latin-1'), 'labels_encoding',
         'line 2: expected UTF-8, found the byte 0xf6'),
        ('run_id,label\nr,no\n'.encode('utf-16'), 'labels_encoding', 'is UTF-16; save it as CSV'),
    ],
)  # fmt: skip
def test_a_file_that_is_not_understood_is_refused_with_the_place(
    text: str | bytes, kind: str, words: str
) -> None:
    error = refused(text)
    assert error.kind == kind
    assert words in error.message
    assert error.message.isprintable()
    assert len(error.message) < 1000


def test_all_problems_are_told_up_to_a_few() -> None:
    error = refused('run_id,label\n' + ''.join(f'run-{i},maybe\n' for i in range(9)))
    assert error.message.count('expected success') == 5
    assert error.message.endswith('; and 4 more')


def test_a_file_that_is_not_there_is_named_by_its_base_name(tmp_path: Path) -> None:
    for path in (tmp_path / 'nothing.csv', tmp_path):
        with pytest.raises(LabelsError) as caught:
            read_labels(path)
        assert caught.value.kind == 'labels_unreadable'
        assert path.name in caught.value.message
        assert str(tmp_path.parent) not in caught.value.message


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(exclude_categories=('Cs',), exclude_characters='\0'), min_size=1)
            .map(str.strip)
            .filter(bool),
            st.booleans(),
            st.integers(0, 2**32 - 1),
        ),
        unique_by=lambda row: (row[0], row[2]),
    )
)
def test_what_a_csv_writer_writes_is_read_as_it_was(rows: list[tuple[str, bool, int]]) -> None:
    file = io.StringIO(newline='')
    writer = csv.writer(file)
    writer.writerow(['run_id', 'label', 'segment'])
    writer.writerows(rows)
    labels = parse(file.getvalue())
    assert [(one.run_id, one.correct, one.segment) for one in labels] == rows


@given(st.binary(max_size=200))
def test_no_file_raises_anything_but_an_error_of_labels(data: bytes) -> None:
    try:
        parse_labels(b'run_id,label\n' + data, 'labels.csv')
    except LabelsError as error:
        assert error.kind.startswith('labels_')


# --- to which segment a label belongs ------------------------------------------------------------


def test_a_label_without_a_segment_is_of_the_last_one_of_its_run() -> None:
    keys = [('bag', 'a', 0), ('bag', 'a', 1), ('bag', 'b', 0)]
    found, unmatched = assign([Label('a', True), Label('b', False)], keys)
    assert {place: label.correct for place, label in found.items()} == {1: True, 2: False}
    assert unmatched == []


def test_segments_of_one_run_may_lie_in_cases_of_their_own() -> None:
    found, _ = assign([Label('a', True)], [('a-0', 'a', 0), ('a-1', 'a', 1)])
    assert list(found) == [1]


def test_a_source_says_which_where_run_ids_repeat() -> None:
    keys = [('mon.mcap', 'a', 0), ('tue.mcap', 'a', 0), ('tue.mcap', 'a', 1)]
    labels = [Label('a', True, source='mon.mcap'), Label('a', False, source='tue.mcap')]
    found, _ = assign(labels, keys)
    assert {place: label.correct for place, label in found.items()} == {0: True, 2: False}
    assert parse('run_id,label,source\na,no,bags/mon.mcap/\n')[0].source == 'bags/mon.mcap'


@pytest.mark.parametrize(
    ('said', 'name', 'meant'),
    [
        ('bags/mon', 'mon', True),
        ('mon', 'bags/mon', True),
        ('bags/mon', 'bags/mon', True),
        ('other/mon', 'bags/mon', False),
        ('bags/tue', 'mon', False),
        ('on', 'mon', False),
    ],
)
def test_a_source_may_be_said_with_folders(said: str, name: str, meant: bool) -> None:
    found, unmatched = assign([Label('a', True, source=said)], [(name, 'a', 0)])
    assert (len(found), len(unmatched)) == ((1, 0) if meant else (0, 1))


@pytest.mark.parametrize('segment', [None, 0])
def test_a_label_that_may_mean_two_segments_is_refused(segment: int | None) -> None:
    keys = [('mon', 'a', 0), ('tue', 'a', 0), ('tue', 'a', 1)]
    with pytest.raises(LabelsError) as caught:
        assign([Label('a', True, segment, line=7)], keys)
    assert caught.value.kind == 'labels_ambiguous'
    assert 'line 7' in caught.value.message
    assert "'mon', 'tue'; say which in the column source" in caught.value.message


def test_two_labels_of_one_segment_are_refused() -> None:
    labels = [Label('a', True, 0, line=2), Label('a', True, line=3)]
    with pytest.raises(LabelsError, match=r'line 2 .* and line 3 .* mean the same segment'):
        assign(labels, [('bag', 'a', 0)])


def test_labels_that_belong_to_nothing_are_given_back() -> None:
    labels = [Label('b', True), Label('a', True, 4), Label('a', True, source='elsewhere')]
    found, unmatched = assign(labels, [('bag', 'a', 0)])
    assert found == {}
    assert unmatched == labels


def test_a_label_goes_before_the_oracle_and_contradictions_are_told() -> None:
    results = [
        result('success', True, run_id='a', truth_from='oracle'),
        result('success', True, run_id='b', truth_from='oracle'),
        result('success', run_id='c'),
    ]
    labels = [Label('a', False, note='fell later'), Label('b', True), Label('c', False)]
    matched = match_labels(results, labels)
    assert [one.truth for one in matched.results] == [
        Truth(False, 'label', 'fell later'), Truth(True, 'label'), Truth(False, 'label'),
    ]  # fmt: skip
    (contradiction,) = matched.contradictions
    assert contradiction.result == matched.results[0]
    assert contradiction.recorded == Truth(True, 'oracle')


# --- labels within cases -------------------------------------------------------------------------


def make_case(folder: Path, **extra: object) -> Path:
    folder.mkdir(parents=True)
    completion = {'run_id': 'run-1', 'tool': 'pick', 'segment': 3}
    (folder / 'case.json').write_text(json.dumps({'completion': completion, **extra}))
    (folder / 'frames.mcap').write_bytes(b'x' * 1000)
    return folder


def test_a_label_travels_with_its_case_and_keeps_it_from_deletion(tmp_path: Path) -> None:
    for name in ('older', 'newer'):
        make_case(tmp_path / name, outcome=None)
    write_label(tmp_path / 'older', Truth(False, 'label', 'fell'))
    assert read_labelled_case(tmp_path / 'older').truth == Truth(False, 'label', 'fell')
    assert read_labelled_case(tmp_path / 'older').key == ('older', 'run-1', 3)
    assert sorted(path.name for path in (tmp_path / 'older').iterdir()) == [
        'case.json', 'frames.mcap',
    ]  # fmt: skip
    store = CaseStore(tmp_path, 0, Decoder())
    assert store.enforce_bound() == ['newer']
    assert not store.remove('older')
    assert (tmp_path / 'older' / 'case.json').exists()


def test_the_label_of_a_case_goes_before_its_oracle(tmp_path: Path) -> None:
    oracle = {'ref': 'oracle:sim', 'outcome_correct': True, 'error': ''}
    folder = make_case(tmp_path / 'case', oracle=oracle)
    assert read_labelled_case(folder).truth == Truth(True, 'oracle')
    write_label(folder, Truth(False, 'label'))
    assert read_labelled_case(folder).truth == Truth(False, 'label')
    assert json.loads((folder / 'case.json').read_text())['oracle'] == oracle
    write_label(folder, Truth(True, 'label'))
    assert read_labelled_case(folder).truth == Truth(True, 'label')


@pytest.mark.parametrize('oracle', [None, {'outcome_correct': None}, 'yes', {'label': 1}])
def test_a_case_of_which_nobody_knows_has_no_truth(tmp_path: Path, oracle: object) -> None:
    folder = make_case(tmp_path / 'case', oracle=oracle, label={'correct': 'yes'})
    assert read_labelled_case(folder).truth is None


@pytest.mark.parametrize('text', [None, '', '[]', '{', '{"completion": 1}', '[' * 100_000])
def test_what_is_no_case_is_refused_without_a_path(tmp_path: Path, text: str | None) -> None:
    folder = tmp_path / 'case'
    folder.mkdir()
    if text is not None:
        (folder / 'case.json').write_text(text)
    with pytest.raises(CaseError) as caught:
        read_labelled_case(folder)
    assert 'case' in caught.value.message
    assert str(tmp_path) not in caught.value.message
