"""Evidence on a disk: whole or not at all, under safe names, within bounds."""

from __future__ import annotations

import dataclasses
import errno
import json
from pathlib import Path
import re

from capture_streams import T_END
from cdr_messages import IMAGE, image_of, JOINT_STATE, joint_state
from hypothesis import given
import hypothesis.strategies as st
import numpy as np
from pipeline_world import DECODER
import pytest

from harness_eval import cases
from harness_eval.capture import Captured, Frame
from harness_eval.cases import case_name, CaseError, CaseStore
from harness_eval.contract import EvaluatorError, Status, Verdict
from harness_eval.runs import Completion, Outcome, outcome_of, Segment

SUCCESS = Verdict(Status.SUCCESS, ('seen',))


def segment(run_id: str = 'run', number: int = 0) -> Segment:
    completion = Completion(run_id, 'pick', number, T_END, (('target', 'cup'),))
    return Segment(completion, 1, T_END)


def frame(stream: str, topic: str, kind: str, data: bytes, receipt: int = T_END + 5) -> Frame:
    return Frame(stream, topic, kind, T_END + 4, receipt, data, 'camera', payload_offset=28)


def captured(value: float = 0.02, size: int = 8) -> Captured:
    pixels = np.random.default_rng(1).integers(0, 255, (size, size, 3), np.uint8)
    frames = [
        frame('front', 'cell/front', IMAGE, image_of(pixels, 'bgr8', stamp=T_END + 4)),
        frame('gripper', 'joints', JOINT_STATE, joint_state({'finger': value})),
    ]
    return Captured({f.stream: f for f in frames}, T_END, 0.0, {'front': 3, 'gripper': 9})


def outcome(attempt: int = 1) -> Outcome:
    one = dataclasses.replace(segment(), attempt=attempt)
    return outcome_of(SUCCESS, one, decided_at=T_END, max_segments=8)


@pytest.fixture
def store(tmp_path: Path) -> CaseStore:
    return CaseStore(tmp_path / 'evidence', 10**9, DECODER)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / 'evidence'


def test_a_case_comes_back_as_it_was_kept(store: CaseStore) -> None:
    kept = captured()
    name = store.write(segment(), kept)
    case = store.read(name)
    assert case.completion == segment().completion
    assert case.receipt == T_END
    assert dict(case.captured.frames) == dict(kept.frames)
    assert (case.captured.t_end, case.captured.spread) == (T_END, 0.0)
    assert dict(case.captured.seen) == dict(kept.seen)
    assert case.outcome is None
    store.finish(name, outcome())
    assert store.read(name).outcome == outcome()


def test_a_case_is_a_bag_that_players_read(store: CaseStore, folder: Path) -> None:
    from rosbags.highlevel import AnyReader

    name = store.write(segment(), captured())
    with AnyReader([folder / name]) as bag:
        found = {(c.topic, c.msgtype) for c in bag.connections}
        messages = [bag.deserialize(data, c.msgtype) for c, _, data in bag.messages()]
    assert found == {
        ('/tool_completions', 'harness_eval_msgs/msg/ToolCompletion'),
        ('/cell/front', IMAGE),
        ('/joints', JOINT_STATE),
    }
    assert messages[0].run_id == 'run'


def test_messages_of_one_topic_that_came_at_one_simulated_instant_are_all_kept_each_once(
    store: CaseStore, folder: Path
) -> None:
    from rosbags.highlevel import AnyReader

    first, second = joint_state({'finger': 0.01}), joint_state({'finger': 0.02})
    again = bytes(bytearray(second))
    frames = {
        name: frame(name, 'joints', JOINT_STATE, data)
        for name, data in {'a': first, 'b': second, 'c': second, 'd': again}.items()
    }
    name = store.write(segment(), Captured(frames, T_END, 0.0, {}))
    read = store.read(name).captured.frames
    assert {stream: one.data for stream, one in read.items()} == {
        'a': first,
        'b': second,
        'c': second,
        'd': second,
    }
    with AnyReader([folder / name]) as bag:
        stored = [bytes(data) for c, _, data in bag.messages() if c.topic == '/joints']
    assert stored == [first, second]


@given(st.text(max_size=300), st.integers(0, 9))
def test_no_run_id_makes_a_name_that_leaves_the_folder(run_id: str, number: int) -> None:
    name = case_name(segment(run_id, number))
    assert re.fullmatch(r'[A-Za-z0-9][A-Za-z0-9_.-]*', name)
    assert len(name) < 80
    assert case_name(segment(run_id + 'x', number)) != name


@pytest.mark.parametrize('run_id', ['../../etc', '.part-x', '/', '..', 'con', '日本', 'a' * 256])
def test_a_run_id_is_never_a_path(store: CaseStore, folder: Path, run_id: str) -> None:
    name = store.write(segment(run_id), captured())
    assert [p.name for p in folder.iterdir()] == [name]
    assert store.read(name).completion.run_id == run_id


@pytest.mark.parametrize('name', ['../x', '', '.part-x', 'a/b', '/etc', '..'])
def test_no_other_folder_is_read_or_deleted(store: CaseStore, folder: Path, name: str) -> None:
    folder.mkdir()
    for act in (store.read, store.remove):
        with pytest.raises(CaseError):
            act(name)


def test_the_same_run_under_another_clock_keeps_its_own_case(store: CaseStore) -> None:
    first = store.write(segment(), captured())
    second = store.write(dataclasses.replace(segment(), receipt=T_END + 1), captured())
    assert first != second


@pytest.mark.parametrize('what', ['file in the way', 'full'])
def test_evidence_that_cannot_be_written_is_an_error_and_leaves_nothing(
    store: CaseStore, folder: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    if what == 'full':

        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, 'No space left on device', str(folder))

        monkeypatch.setattr(cases, 'write_json', full)
    else:
        folder.write_text('')
    with pytest.raises(CaseError) as raised:
        store.write(segment(), captured())
    assert raised.value.kind == 'evidence_not_stored'
    assert str(folder) not in raised.value.message
    if what == 'full':
        assert list(folder.iterdir()) == []
        assert store.enforce_bound() == []


@pytest.mark.parametrize('damage', ['{', '[]', '{}', '{"completion": 3}'])
def test_a_damaged_description_is_lost_evidence(
    store: CaseStore, folder: Path, damage: str
) -> None:
    name = store.write(segment(), captured())
    (folder / name / 'case.json').write_text(damage)
    with pytest.raises(CaseError) as raised:
        store.read(name)
    assert raised.value.kind == 'evidence_lost'
    assert str(folder) not in raised.value.message


def size_of(folder: Path) -> int:
    return sum(p.stat().st_size for p in folder.rglob('*') if p.is_file())


def finished(store: CaseStore, run_id: str) -> str:
    name = store.write(segment(run_id), captured(size=40))
    store.finish(name, outcome())
    return name


def test_the_oldest_cases_go_first_until_the_rest_fits(folder: Path) -> None:
    store = CaseStore(folder, 10**9, DECODER)
    names = [finished(store, f'run {n}') for n in range(6)]
    bound = size_of(folder) // 2
    small = CaseStore(folder, bound, DECODER)
    assert small.enforce_bound() == names[:3]
    assert sorted(p.name for p in folder.iterdir()) == sorted(names[3:])
    assert size_of(folder) <= bound


@pytest.mark.parametrize('needed', ['in use', 'labelled', 'named', 'being read'])
def test_a_case_that_is_needed_is_kept_whatever_the_bound(folder: Path, needed: str) -> None:
    store = CaseStore(folder, 1, DECODER)
    name = store.write(segment('needed'), captured())
    if needed != 'in use':
        store.finish(name, outcome())
    if needed == 'labelled':
        path = folder / name / 'case.json'
        path.write_text(json.dumps({**json.loads(path.read_text()), 'labelled': True}))
        assert not store.remove(name)
    if needed == 'being read':
        store.hold(name)
    other = finished(store, 'other')
    assert store.enforce_bound(keep={name} if needed == 'named' else ()) == [other]
    assert store.read(name).completion.run_id == 'needed'


def test_half_written_cases_are_no_cases(folder: Path) -> None:
    half = folder / '.part-x'
    half.mkdir(parents=True)
    (half / 'case.json').write_text('{}')
    (folder / 'README').write_text('of the user')
    store = CaseStore(folder, 1, DECODER)
    assert store.enforce_bound() == []
    store.clear_leftovers()
    assert [p.name for p in folder.iterdir()] == ['README']


def test_the_note_of_an_earlier_attempt_does_not_hide_a_later_one(store: CaseStore) -> None:
    name = store.write(segment(), captured())
    store.finish(name, outcome(2))
    store.finish(name, outcome(1))
    noted = store.read(name).outcome
    assert noted is not None
    assert noted.attempt == 2


def test_noting_on_a_case_that_is_gone_says_so(store: CaseStore) -> None:
    name = store.write(segment(), captured())
    assert store.remove(name)
    assert store.remove(name)
    with pytest.raises(CaseError) as raised:
        store.finish(name, outcome())
    assert raised.value.kind == 'evidence_not_stored'


@pytest.mark.parametrize(
    ('keep', 'answers', 'kept'),
    [
        ('all', 'SFE', 'SFE'),
        ('failures', 'SFE', 'FE'),
        ('none', 'SFE', 'E'),
    ],
)
def test_what_is_kept_of_runs_that_are_decided(
    tmp_path: Path, keep: str, answers: str, kept: str
) -> None:
    from pipeline_world import FAILURE, World

    given_answers = {'S': SUCCESS, 'F': FAILURE, 'E': EvaluatorError('judge_down', '')}
    world = World(tmp_path, evidence=f'{{keep: {keep}}}')
    for letter in answers:
        world.run(letter, given_answers[letter], 'bare')
    world.drain()
    assert sorted(p.name[0] for p in world.evidence.iterdir()) == sorted(kept)
    for letter in answers:
        last = world.on_record(letter).last  # type: ignore[union-attr]
        assert last is not None
        assert bool(last.evidence) == (letter in kept)
    world.close()


def test_evidence_over_the_bound_is_deleted_and_no_longer_promised(tmp_path: Path) -> None:
    from pipeline_world import World

    world = World(tmp_path, evidence='{max_bytes: 1}')
    world.run('a', EvaluatorError('judge_down', ''), 'bare')
    world.run('b', EvaluatorError('judge_down', ''), 'bare')
    world.drain()
    assert [p.name[0] for p in world.evidence.iterdir()] == ['b']
    assert world.pipeline.judge_again('a', 0)[0] == 0
    assert world.pipeline.judge_again('b', 0)[0] == 2
    world.close()
