"""Cases judged again: from what they hold, by the rules of now, without being touched."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
from dataclasses import dataclass
import hashlib
import json
from pathlib import Path
import shutil
from typing import Any

from pipeline_world import DECODER, SECOND
import pytest
from replayed_cell import Message, RecordedCell, write_bag, write_config
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import get_types_from_msg, get_typestore, Stores

from harness_eval.capture import Captured, Frame
from harness_eval.case_file import describe_case
from harness_eval.cases import (
    Case,
    CaseLabel,
    CaseStore,
    completion_message,
    COMPLETION_TOPIC,
    COMPLETION_TYPE,
    read_case,
)
from harness_eval.contract import EvaluationError
from harness_eval.decode import Decoder
from harness_eval.oracle import OracleAnswer
from harness_eval.replay.case_labels import write_label
from harness_eval.replay.jobs import replay
from harness_eval.replay.recorded import recorded
from harness_eval.replay.results import Replayed, Truth
from harness_eval.replay.sources import BagSource, CaseSource, find_sources
from harness_eval.replay.stage import Stage
from harness_eval.replay.stored_cases import StoredCases
from harness_eval.runs import Completion, Outcome, Segment


@dataclass
class Lived:
    """What a live cell left behind.

    Attributes:
        folder: Where everything lies.
        recorded: What came, in order.
        outcomes: What was published.
    """

    folder: Path
    recorded: list[Message]
    outcomes: list[Outcome]

    @property
    def path(self) -> Path:
        return self.folder / 'cell.yaml'

    @property
    def evidence(self) -> Path:
        return self.folder / 'evidence'

    def note_oracle(self, name: str, answer: OracleAnswer) -> None:
        CaseStore(self.evidence, 10**9, Decoder()).note_oracle(name, answer)


@pytest.fixture(scope='module')
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    """A live cell that has judged a few runs."""
    made = RecordedCell(tmp_path_factory.mktemp('live'))
    made.whole_run('good')
    made.whole_run('bad', finger=0.02)
    made.whole_run('middle', finger=0.7)
    for number, finger in enumerate((0.7, 0.95)):
        made.whole_run('long', finger, tool='insert', segment=number)
    made.close()
    return Lived(made.folder, made.recorded, made.outcomes)


@pytest.fixture
def cell(lived: Lived, tmp_path: Path) -> Lived:
    """A copy of what it left behind."""
    folder = tmp_path / 'live'
    shutil.copytree(lived.folder, folder)
    return dataclasses.replace(lived, folder=folder)


def again(cell: Lived, config: Path | None = None, **more: object) -> Replayed:
    """All cases of a cell, judged again."""
    sources, skipped = find_sources([str(cell.evidence)])
    assert not skipped
    return replay(sources, config or cell.path, **more)  # type: ignore[arg-type]


def labels(found: Replayed) -> dict[tuple[str, int], str]:
    """What each segment came to."""
    return {(one.outcome.run_id, one.outcome.segment): one.outcome.label for one in found.results}


def changed(cell: Lived, **more: object) -> Path:
    """The configuration of a cell with a change."""
    return write_config(cell.folder / 'changed.yaml', **more)


def content(folder: Path) -> dict[str, str]:
    """Digests of all files below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob('*'))
        if path.is_file()
    }


def test_by_the_same_rules_a_case_comes_to_what_is_on_record(cell: Lived) -> None:
    before = content(cell.evidence)
    found = again(cell)
    assert not found.skipped
    assert len(found.results) == 5
    for one in found.results:
        assert one.recorded is not None
        known = dataclasses.replace(one.recorded, decided_at=one.outcome.decided_at)
        assert one.outcome == known
        assert one.case == cell.evidence / one.source
    assert content(cell.evidence) == before


def test_a_case_comes_to_what_its_bag_comes_to(cell: Lived) -> None:
    bag = write_bag(cell.folder / 'bag', cell.recorded)
    of_bag = replay([BagSource(bag)], cell.path)
    of_cases = again(cell)
    assert {one.completion: one.outcome for one in of_bag.results} == {
        one.completion: one.outcome for one in of_cases.results
    }


def test_new_thresholds_give_new_verdicts(cell: Lived) -> None:
    assert labels(again(cell)) == {
        ('good', 0): 'success',
        ('bad', 0): 'failure',
        ('middle', 0): 'abstained unsure',
        ('long', 0): 'process',
        ('long', 1): 'success',
    }
    assert labels(again(cell, changed(cell, outcome=0.6, failure=0.01))) == {
        ('good', 0): 'success',
        ('bad', 0): 'abstained unsure',
        ('middle', 0): 'success',
        ('long', 0): 'success',
        ('long', 1): 'success',
    }


def test_a_segment_is_judged_without_those_before_it(cell: Lived) -> None:
    last = next(path for path in cell.evidence.iterdir() if path.name.endswith('-1'))
    found = replay([CaseSource(last)], cell.path)
    assert labels(found) == {('long', 1): 'success'}


def test_one_case_may_come_under_two_names(cell: Lived) -> None:
    first = next(cell.evidence.glob('good-*'))
    copy = shutil.copytree(first, cell.folder / 'copy')
    found = replay([CaseSource(first), CaseSource(copy)], cell.path)
    assert [(one.source, one.outcome.label) for one in found.results] == [
        (first.name, 'success'),
        ('copy', 'success'),
    ]


@pytest.mark.parametrize(
    ('text', 'by', 'kind', 'named'),
    [
        ('front: {topic: cell/front}', 'top: {topic: cell/top}', 'evidence_incomplete', "'top'"),
        (
            'front: {topic: cell/front}',
            'front: {topic: cell/left}',
            'configuration_changed',
            '/cell/front, not from cell/left',
        ),
        (
            'front: {topic: cell/front}',
            'front: {topic: cell/front, type: sensor_msgs/msg/CompressedImage}',
            'configuration_changed',
            'sensor_msgs/msg/CompressedImage',
        ),
        (
            'front: {topic: cell/front}',
            'front: {topic: cell/front, stamp: receipt}',
            'configuration_changed',
            'from the receipt',
        ),
        ('pick', 'lift', 'not_required', "'pick'"),
    ],
)
def test_what_a_case_does_not_hold_is_named(
    cell: Lived, text: str, by: str, kind: str, named: str
) -> None:
    path = changed(cell)
    new = path.read_text().replace(text, by)
    path.write_text(new.replace('[front]', '[top]') if by.startswith('top') else new)
    found = replay([CaseSource(next(cell.evidence.glob('good-*')))], path)
    assert not found.results
    assert [one.kind for one in found.skipped] == [kind]
    assert named in found.skipped[0].message


def test_a_tool_may_be_judged_by_fewer_streams_than_then(cell: Lived) -> None:
    path = changed(cell)
    path.write_text(path.read_text().replace('target, place]', 'target, place], views: [front]'))
    found = replay([CaseSource(next(cell.evidence.glob('good-*')))], path)
    assert [one.outcome.label for one in found.results] == ['abstained no_answer']
    assert found.results[0].outcome.input_digest != ''


def test_frames_that_are_no_evidence_by_the_limits_of_now_are_not_judged(
    cell: Lived,
) -> None:
    path = changed(cell)
    path.write_text(path.read_text().replace('settle: 0.3', 'settle: 0.6'))
    assert set(labels(again(cell, path)).values()) == {'error configuration_changed'}


def test_a_case_of_any_namespace_fits_unless_one_is_named(cell: Lived) -> None:
    folder = next(cell.evidence.glob('good-*'))
    path = changed(cell)
    path.write_text(path.read_text().replace('cell/front', 'front'))  # as in namespace /cell
    path.write_text(path.read_text().replace('topic: joints', 'topic: /joints'))
    assert not replay([CaseSource(folder)], path).skipped
    assert not replay([CaseSource(folder)], path, namespace='cell').skipped
    other = replay([CaseSource(folder)], path, namespace='/robot')
    assert [one.kind for one in other.skipped] == ['configuration_changed']


@pytest.mark.parametrize('damage', ['cut', 'altered', 'no json', 'empty'])
def test_a_broken_case_is_told_and_the_others_are_judged(cell: Lived, damage: str) -> None:
    folder = next(cell.evidence.glob('good-*'))
    bag = next(path for path in folder.glob('*.mcap') if path.name != 'outcome.mcap')
    data = bag.read_bytes()
    if damage == 'cut':
        bag.write_bytes(data[: len(data) // 8])
    elif damage == 'altered':
        place = data.index(b'finger')
        bag.write_bytes(data[:place] + b'FINGER' + data[place + 6 :])
    elif damage == 'no json':
        (folder / 'case.json').write_text('{')
    else:
        (folder / 'case.json').write_text('{}')
    found = again(cell)
    assert len(found.results) == 4
    assert [one.source for one in found.skipped] == [folder.name]
    assert str(cell.folder) not in found.skipped[0].message
    if damage in ('no json', 'empty'):
        assert [one.source for one in recorded([CaseSource(folder)]).skipped] == [folder.name]


def alter(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change ``case.json`` of a case."""
    description = json.loads((folder / 'case.json').read_text())
    change(description)
    (folder / 'case.json').write_text(json.dumps(description))


def later_end(case: dict[str, Any]) -> None:
    """The frames that showed the failed run seem to be from after its end, which they are not."""
    for key in ('receipt', 't_end'):
        case[key] -= SECOND
    case['completion']['stamp'] -= SECOND
    case['outcome']['completed_at'] -= SECOND


def fresh_stamp(case: dict[str, Any]) -> None:
    case['streams']['gripper']['stamp'] += 1


def another_frame_id(case: dict[str, Any]) -> None:
    case['streams']['front']['frame_id'] = 'other_camera'


def stamp_of_receipt(case: dict[str, Any]) -> None:
    case['t_end'] -= 1


def other_argument(case: dict[str, Any]) -> None:
    case['completion']['arguments'] = [['target', 'whatever is held']]


def other_run(case: dict[str, Any]) -> None:
    case['completion']['run_id'] = case['outcome']['run_id'] = 'bad'


def other_segment(case: dict[str, Any]) -> None:
    case['completion']['segment'] = case['outcome']['segment'] = 1


def other_outcome(case: dict[str, Any]) -> None:
    case['outcome']['verdict']['score'] = 0.99


def outcome_of_another(case: dict[str, Any]) -> None:
    case['outcome']['run_id'] = 'bad'


def no_outcome(case: dict[str, Any]) -> None:
    """As if it had never been judged, though its bag has what it came to."""
    del case['outcome']


@pytest.mark.parametrize(
    'change',
    [
        later_end,
        fresh_stamp,
        another_frame_id,
        stamp_of_receipt,
        other_argument,
        other_run,
        other_segment,
        other_outcome,
        outcome_of_another,
        no_outcome,
    ],
)
def test_a_case_that_contradicts_its_bag_is_not_judged(
    cell: Lived, change: Callable[[dict[str, Any]], None]
) -> None:
    folder = next(cell.evidence.glob('good-*'))
    alter(folder, change)
    found = again(cell)
    assert len(found.results) == 4
    assert [(one.source, one.kind) for one in found.skipped] == [(folder.name, 'evidence_altered')]
    assert 'replay the bag' in found.skipped[0].message


@pytest.mark.parametrize('change', [other_outcome, outcome_of_another, stamp_of_receipt])
def test_an_outcome_on_record_that_was_altered_does_not_count(
    cell: Lived, change: Callable[[dict[str, Any]], None]
) -> None:
    folder = next(cell.evidence.glob('good-*'))
    alter(folder, change)
    found = recorded([CaseSource(folder)])
    assert not found.results
    assert [one.kind for one in found.skipped] == ['evidence_altered']


def test_frames_of_another_run_do_not_pass_for_its_own(cell: Lived) -> None:
    good, bad = next(cell.evidence.glob('good-*')), next(cell.evidence.glob('bad-*'))
    shutil.copy(good / 'evidence.mcap', bad / 'evidence.mcap')
    seen = json.loads((good / 'case.json').read_text())

    def take(case: dict[str, Any]) -> None:
        run_id = case['completion']['run_id']
        case.update(seen)
        del case['outcome']
        case['completion']['run_id'] = run_id

    alter(bad, take)
    (bad / 'outcome.mcap').unlink()
    found = replay([CaseSource(bad)], cell.path)
    assert not found.results
    assert [one.kind for one in found.skipped] == ['evidence_altered']


def test_a_case_without_the_completion_in_its_bag_is_not_judged(cell: Lived) -> None:
    good, bad = next(cell.evidence.glob('good-*')), next(cell.evidence.glob('bad-*'))
    shutil.copy(good / 'evidence.mcap', bad / 'further.mcap')  # so that there are two
    (bad / 'metadata.yaml').unlink()
    found = replay([CaseSource(bad)], cell.path)
    assert not found.results
    assert [one.kind for one in found.skipped] == ['evidence_lost']
    assert 'holds 2 completions' in found.skipped[0].message


@pytest.mark.parametrize(
    'change',
    [
        lambda case: case['completion'].update(stamp=None),
        lambda case: case['completion'].update(segment='0'),
        lambda case: case['completion'].update(run_id=7),
        lambda case: case['completion'].update(more=1),
        lambda case: case.update(receipt=True),
        lambda case: case.update(t_end=1.5e18),
        lambda case: case.update(seen=None),
        lambda case: case.update(version=2),
        lambda case: case.update(outcome={'attempt': 'x'}),
        lambda case: case.update(streams=[]),
        lambda case: case['streams']['front'].update(stamp=None),
        lambda case: case['streams']['front'].update(type=['sensor_msgs/msg/Image']),
    ],
)
def test_what_is_not_well_formed_is_told_and_stops_no_other(
    cell: Lived, change: Callable[[dict[str, Any]], None]
) -> None:
    folder = next(cell.evidence.glob('good-*'))
    alter(folder, change)
    found = again(cell)
    assert len(found.results) == 4
    assert [(one.source, one.kind) for one in found.skipped] == [(folder.name, 'case_damaged')]


def test_a_fault_in_one_case_stops_no_other(cell: Lived, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Stage.judge

    def faulty(self: Stage, case: Case) -> Outcome:
        if case.completion.run_id == 'good':
            raise RuntimeError('a fault')
        return real(self, case)

    monkeypatch.setattr(Stage, 'judge', faulty)
    found = again(cell)
    assert len(found.results) == 4
    assert [one.kind for one in found.skipped] == ['internal_error']


@pytest.mark.parametrize('damage', ['missing', 'half written', 'not there yet'])
def test_a_process_that_ended_while_it_noted_an_outcome_leaves_a_case_that_counts(
    cell: Lived, damage: str
) -> None:
    folder = next(cell.evidence.glob('good-*'))
    path = folder / 'outcome.mcap'
    data = path.read_bytes()
    path.unlink()
    if damage == 'half written':
        path.write_bytes(data[: len(data) // 2])
    elif damage == 'not there yet':
        alter(folder, lambda case: case.pop('outcome'))
    found = replay([CaseSource(folder)], cell.path)
    assert labels(found) == {('good', 0): 'success'}
    assert (found.results[0].recorded is None) == (damage == 'not there yet')
    known = recorded([CaseSource(folder)])
    assert [one.outcome.label for one in known.results] == (
        [] if damage == 'not there yet' else ['success']
    )


def test_the_truth_on_record_comes_with_the_result(cell: Lived) -> None:
    good, bad = next(cell.evidence.glob('good-*')), next(cell.evidence.glob('bad-*'))
    cell.note_oracle(bad.name, OracleAnswer('oracle', outcome_correct=True))
    description = json.loads((good / 'case.json').read_text())
    description['label'] = {'correct': False, 'note': 'it slipped'}
    (good / 'case.json').write_text(json.dumps(description))
    sources = [CaseSource(good), CaseSource(bad)]
    truths = [Truth(False, 'label', 'it slipped'), Truth(True, 'oracle')]
    assert [one.truth for one in replay(sources, cell.path).results] == truths
    assert [one.truth for one in recorded(sources).results] == truths


def test_what_an_oracle_decided_is_decided_by_its_recorded_answer(cell: Lived) -> None:
    bad = next(cell.evidence.glob('bad-*'))
    oracle = 'oracle:plugin:nobody:asked'
    cell.note_oracle(bad.name, OracleAnswer(oracle, outcome_correct=True))
    path = changed(cell, pick=', oracle: {kind: plugin, ref: "nobody:asked", decides: true}')
    outcome = replay([CaseSource(bad)], path).results[0].outcome
    assert outcome.label == 'success'
    assert outcome.evaluator == oracle


def test_recorded_results_are_those_of_the_cases(cell: Lived) -> None:
    sources, _ = find_sources([str(cell.evidence)])
    found = recorded(sources)
    assert not found.skipped
    assert [one.outcome for one in found.results] == [one.recorded for one in found.results]
    assert sorted(one.run_id for one in cell.outcomes) == sorted(
        one.outcome.run_id for one in found.results
    )
    name = next(cell.evidence.glob('good-*')) / 'case.json'
    description = json.loads(name.read_text())
    del description['outcome']
    name.write_text(json.dumps(description))
    assert [one.kind for one in recorded(sources).skipped] == ['no_outcome']


@pytest.mark.parametrize(
    ('evidence', 'kept'),
    [
        ('{}', {'good', 'bad', 'middle', 'long'}),
        ('{keep: failures}', {'bad', 'middle', 'long'}),
        ('{keep: none}', {'middle'}),
    ],
)
@pytest.mark.parametrize('source', ['bag', 'cases'])
def test_new_cases_are_kept_as_the_configuration_says(
    cell: Lived, evidence: str, kept: set[str], source: str
) -> None:
    path = changed(cell, evidence=evidence, outcome=0.94)
    folder = cell.folder / 'kept'
    if source == 'bag':
        bag = write_bag(cell.folder / 'bag', cell.recorded)
        found = replay([BagSource(bag)], path, keep_cases=folder)
    else:
        found = again(cell, path, keep_cases=folder)
    assert {one.completion.run_id for one in found.results if one.case is not None} == kept
    for one in found.results:
        if one.case is not None:
            assert one.case.parent == folder
            case = read_case(one.case, Decoder())
            assert case.outcome == one.outcome
            assert case.thresholds is not None
            assert case.thresholds.outcome == 0.94
    names = {path.name for path in folder.iterdir()}
    assert names == {one.case.name for one in found.results if one.case is not None}
    assert labels(replay([CaseSource(folder / name) for name in names], path)) == {
        (one.completion.run_id, one.completion.segment): one.outcome.label
        for one in found.results
        if one.case is not None
    }


def test_new_cases_never_take_the_place_of_their_sources(cell: Lived) -> None:
    before = content(cell.evidence)
    with pytest.raises(EvaluationError) as caught:
        again(cell, keep_cases=cell.evidence)
    assert caught.value.kind == 'cases_are_sources'
    assert str(cell.folder) not in caught.value.message
    assert content(cell.evidence) == before


@pytest.mark.parametrize('below', ['', 'new/cases'])
@pytest.mark.parametrize('kind', ['case', 'bag'])
def test_new_cases_are_not_put_into_their_source(cell: Lived, kind: str, below: str) -> None:
    folder = next(cell.evidence.glob('good-*'))
    source: CaseSource | BagSource = CaseSource(folder)
    if kind == 'bag':
        folder = write_bag(cell.folder / 'bag', cell.recorded)
        source = BagSource(folder)
    before = content(folder)
    with pytest.raises(EvaluationError, match='cases_are_sources') as caught:
        replay([source], cell.path, keep_cases=folder / below)
    assert str(cell.folder) not in caught.value.message
    assert content(folder) == before
    assert not (folder / 'new').exists()


def test_a_truth_goes_with_the_new_case(cell: Lived) -> None:
    folder = next(cell.evidence.glob('good-*'))
    write_label(folder, Truth(False, 'label', 'it slipped'))
    cell.note_oracle(folder.name, OracleAnswer('oracle', outcome_correct=True))
    found = replay([CaseSource(folder)], cell.path, keep_cases=cell.folder / 'kept')
    kept = found.results[0].case
    assert kept is not None
    case = read_case(kept, Decoder())
    assert case.label == CaseLabel(False, 'it slipped')
    assert case.labelled
    assert case.oracle == OracleAnswer('oracle', outcome_correct=True)


def test_new_cases_stay_within_their_bound(cell: Lived) -> None:
    path = changed(cell, evidence='{max_bytes: 30000}')
    folder = cell.folder / 'kept'
    found = again(cell, path, keep_cases=folder)
    kept = [one.case for one in found.results if one.case is not None]
    assert 1 <= len(kept) < len(found.results) == 5
    assert all(case.is_dir() for case in kept)
    size = sum(path.stat().st_size for path in folder.rglob('*') if path.is_file())
    assert size <= 30000


def test_a_case_is_read_by_the_definitions_that_it_brings(cell: Lived) -> None:
    """Of two cases whose types differ under one name, and of two of which they do not."""

    def write(name: str, definition: str, **fields: float) -> bytes:
        store = get_typestore(Stores.EMPTY)
        completion = Completion('a', 'pick')
        store.register(get_types_from_msg(definition, 'own/msg/Grip'))
        message = store.types['own/msg/Grip'](**fields)
        data = bytes(store.serialize_cdr(message, 'own/msg/Grip'))
        folder = cell.folder / name
        with Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
            known = DECODER.typestore_for(COMPLETION_TYPE)
            ends = bag.add_connection(COMPLETION_TOPIC, COMPLETION_TYPE, typestore=known)
            bag.write(ends, 5, completion_message(completion, DECODER))
            bag.write(bag.add_connection('/grip', 'own/msg/Grip', typestore=store), 7, data)
        frame = Frame('grip', '/grip', 'own/msg/Grip', 6, 7, data)
        description = describe_case(
            Segment(completion, 1, 5), Captured({'grip': frame}, 5, 0.0, {})
        )
        (folder / 'case.json').write_text(json.dumps(description))
        return data

    old = write('old', 'float64 force', force=2.5)
    new = write('new', 'float32 width\nfloat64 force', width=0.5, force=3.5)
    stored = StoredCases()
    for name, data, force in (('old', old, 2.5), ('new', new, 3.5), ('old', old, 2.5)):
        case, decoder = stored.read(cell.folder / name)
        assert case.captured.frames['grip'].data == data
        assert decoder.message('own/msg/Grip', data).force == force
    first = stored.read(next(cell.evidence.glob('good-*')))[1]
    assert stored.read(next(cell.evidence.glob('bad-*')))[1] is first


def test_a_damaged_outcome_does_not_keep_a_case_from_being_judged(cell: Lived) -> None:
    folder = next(cell.evidence.glob('good-*'))
    (folder / 'outcome.mcap').write_bytes(b'nothing')
    assert labels(replay([CaseSource(folder)], cell.path)) == {('good', 0): 'success'}
