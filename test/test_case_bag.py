"""The bag of a case: what players, viewers and a process that was killed find in it."""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import json
from pathlib import Path
import re
import threading

from cdr_messages import IMAGE, image_of, JOINT_STATE, joint_state
from hypothesis import given
import hypothesis.strategies as st
import numpy as np
import pytest
import yaml

from harness_eval import cases
from harness_eval.capture import Captured, Frame
from harness_eval.cases import CaseError, CaseStore
from harness_eval.contract import Abstention, DecodeError, EvaluatorError, Status, Verdict
from harness_eval.decode import Decoder
from harness_eval.decode.own_types import OWN_DEFINITIONS
from harness_eval.judging import Thresholds
from harness_eval.outcome_messages import (
    outcome_bytes,
    outcome_of_bytes,
    OUTCOME_TYPE,
    VERDICT_TYPE,
)
from harness_eval.runs import Completion, interruption, Outcome, outcome_of, Segment

END = 1_700_000_000_000_000_000
MESSAGES = Path(__file__).parents[1] / 'harness_eval_msgs' / 'msg'
DECODER = Decoder()

SEGMENT = Segment(Completion('run', 'pick', 0, END, (('target', 'cup'),)), 1, END)
SUCCESS = Verdict(Status.SUCCESS, ('seen', 'twice'), score=0.97, cost=0.01, route='a model')
ANSWERS = (
    SUCCESS,
    Verdict(Status.FAILURE, failure_reason='it fell', failure_kind='dropped'),
    Verdict(Status.PROCESS, report={'depth': 0.5, 'list': [1, None]}),
    EvaluatorError('judge_down', 'no answer', evaluator='judge', retryable=True),
    Abstention('unsure', 'between', evaluator='judge', score=0.7),
)


def decided(answer: Verdict | EvaluatorError | Abstention, attempt: int = 1) -> Outcome:
    """What a segment comes to."""
    return outcome_of(
        answer,
        dataclasses.replace(SEGMENT, attempt=attempt),
        decided_at=END + 9,
        max_segments=8,
        evaluator='judge',
        input_digest='0f' * 32,
        observed=(END + 4, END + 5),
    )


@pytest.fixture
def store(tmp_path: Path) -> CaseStore:
    return CaseStore(tmp_path / 'evidence', 10**9, DECODER, Thresholds(0.8, 0.3))


@pytest.fixture
def kept(store: CaseStore, tmp_path: Path) -> Path:
    """A case without an outcome yet."""
    picture = image_of(np.zeros((4, 4, 3), np.uint8), 'bgr8', stamp=END + 4)
    frames = [
        Frame('front', 'cell/front', IMAGE, END + 4, END + 5, picture),
        Frame('grip', '/joints', JOINT_STATE, END + 5, END + 6, joint_state({'finger': 0.1})),
    ]
    name = store.write(SEGMENT, Captured({f.stream: f for f in frames}, END, 0.0, {}))
    return tmp_path / 'evidence' / name


def read(folder: Path) -> list[tuple[str, str, int, bytes]]:
    """All messages of a bag, as a foreign reader finds them."""
    from rosbags.highlevel import AnyReader

    with AnyReader([folder]) as bag:
        return [(c.topic, c.msgtype, stamp, bytes(data)) for c, stamp, data in bag.messages()]


@pytest.mark.parametrize('answer', ANSWERS, ids=lambda one: type(one).__name__)
def test_the_outcome_is_in_the_bag_of_its_case(
    store: CaseStore, kept: Path, answer: Verdict | EvaluatorError | Abstention
) -> None:
    before = read(kept)
    outcome = decided(answer)
    store.finish(kept.name, outcome)
    *others, last = read(kept)
    assert others == before
    assert last[:3] == ('/harness_eval/outcomes', OUTCOME_TYPE, END + 9)
    assert outcome_of_bytes(OUTCOME_TYPE, last[3], DECODER) == outcome
    case = store.read(kept.name)
    assert case.outcome == outcome
    assert case.thresholds == Thresholds(0.8, 0.3)


def test_the_bag_describes_itself_as_one(store: CaseStore, kept: Path) -> None:
    store.finish(kept.name, decided(SUCCESS))
    about = yaml.safe_load((kept / 'metadata.yaml').read_text())['rosbag2_bagfile_information']
    assert about['relative_file_paths'] == ['evidence.mcap', 'outcome.mcap']
    assert about['message_count'] == 4
    assert about['starting_time']['nanoseconds_since_epoch'] == END
    assert about['duration']['nanoseconds'] == 9
    assert {
        one['topic_metadata']['name']: one['message_count']
        for one in about['topics_with_message_count']
    } == {'/tool_completions': 1, '/cell/front': 1, '/joints': 1, '/harness_eval/outcomes': 1}
    assert sorted(path.name for path in kept.iterdir()) == [
        'case.json',
        'evidence.mcap',
        'metadata.yaml',
        'outcome.mcap',
    ]


def test_each_file_of_a_case_can_be_opened_alone(store: CaseStore, kept: Path) -> None:
    from harness_eval.replay.bags import open_bag

    store.finish(kept.name, decided(SUCCESS))
    with open_bag(kept / 'outcome.mcap') as bag:
        assert list(bag.topics) == ['/harness_eval/outcomes']
    with open_bag(kept / 'evidence.mcap') as bag:
        assert '/cell/front' in bag.topics
    with open_bag(kept) as bag:
        assert len(list(bag.messages(bag.topics))) == 4
        assert bag.skipped == ()


def test_a_reader_of_mcap_finds_the_messages_that_a_reader_of_bags_finds(
    store: CaseStore, kept: Path
) -> None:
    from mcap.reader import make_reader

    store.finish(kept.name, decided(SUCCESS))
    found = []
    for name in ('evidence.mcap', 'outcome.mcap'):
        with (kept / name).open('rb') as file:
            for schema, channel, message in make_reader(file, validate_crcs=True).iter_messages():
                found.append((channel.topic, schema.name, message.log_time, message.data))
    assert found == read(kept)


def test_a_later_attempt_takes_the_place_of_the_earlier_one(store: CaseStore, kept: Path) -> None:
    error = decided(EvaluatorError('judge_down', ''))
    store.finish(kept.name, error)
    second = decided(SUCCESS, attempt=2)
    store.finish(kept.name, second)
    store.finish(kept.name, error)  # written by a slower thread
    found = [one for one in read(kept) if one[1] == OUTCOME_TYPE]
    assert [outcome_of_bytes(*one[1::2], DECODER) for one in found] == [second]
    assert store.read(kept.name).outcome == second


Step = Callable[..., object]


@pytest.mark.parametrize('step', range(5))
def test_a_case_can_be_read_wherever_a_process_ends(
    store: CaseStore, kept: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Files come by renaming: stop before the first, the second and so on."""
    renamed = 0
    real = Path.replace

    def stopping(path: Path, target: Path) -> Path:
        nonlocal renamed
        if renamed == step:
            raise OSError('killed')
        renamed += 1
        return real(path, target)

    monkeypatch.setattr(Path, 'replace', stopping)
    try:
        store.finish(kept.name, decided(SUCCESS))
        finished = True
    except CaseError as error:
        finished = False
        assert error.kind == 'evidence_not_stored'
    monkeypatch.undo()
    assert finished == (step >= 3)
    assert {one[0] for one in read(kept)} >= {'/tool_completions', '/cell/front', '/joints'}
    case = store.read(kept.name)
    assert set(case.captured.frames) == {'front', 'grip'}
    assert case.outcome == (decided(SUCCESS) if step >= 1 else None)
    store.finish(kept.name, decided(SUCCESS, attempt=2))
    assert len(read(kept)) == 4


def test_no_evidence_waits_for_an_outcome_that_is_written(
    store: CaseStore, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        begun.set()
        assert go_on.wait(20)

    monkeypatch.setattr(cases, 'add_outcome', slow)
    thread = threading.Thread(target=store.finish, args=(kept.name, decided(SUCCESS)))
    thread.start()
    try:
        assert begun.wait(20)
        other = dataclasses.replace(SEGMENT, completion=Completion('other', 'pick', 0, END))
        name = store.write(other, store.read(kept.name).captured)
        # Nor is it deleted meanwhile, though there is room for nothing.
        monkeypatch.setattr(store, '_max_bytes', 0)
        store.remove(name)
        assert store.enforce_bound() == []
    finally:
        go_on.set()
        thread.join()
    assert store.enforce_bound() == [kept.name]


def test_a_full_disk_in_the_bag_leaves_the_outcome_in_the_description(
    store: CaseStore, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, 'No space left on device', str(kept))

    monkeypatch.setattr(cases, 'add_outcome', full)
    with pytest.raises(CaseError) as caught:
        store.finish(kept.name, decided(SUCCESS))
    assert str(kept) not in caught.value.message
    assert store.read(kept.name).outcome == decided(SUCCESS)


def test_metadata_that_is_not_ours_is_not_rewritten(store: CaseStore, kept: Path) -> None:
    (kept / 'metadata.yaml').write_text('rosbag2_bagfile_information: {files: 3}\n')
    with pytest.raises(CaseError):
        store.finish(kept.name, decided(SUCCESS))
    assert 'files: 3' in (kept / 'metadata.yaml').read_text()


def test_a_case_of_the_first_format_can_be_read_and_finished(store: CaseStore, kept: Path) -> None:
    """Its file had the temporary name of the folder, and there were no thresholds."""
    old = f'.part-{kept.name}.mcap'
    (kept / 'evidence.mcap').rename(kept / old)
    metadata = kept / 'metadata.yaml'
    metadata.write_text(metadata.read_text().replace('evidence.mcap', old))
    description = json.loads((kept / 'case.json').read_text())
    description['outcome'] = json.loads(decided(SUCCESS).to_json())
    del description['outcome']['score']
    (kept / 'case.json').write_text(json.dumps(description))
    case = store.read(kept.name)
    assert case.outcome == decided(SUCCESS)
    assert case.thresholds is None
    second = decided(ANSWERS[1], attempt=2)
    store.finish(kept.name, second)
    assert store.read(kept.name).outcome == second
    assert len(read(kept)) == 4


# --- outcomes as messages ------------------------------------------------------------------------

_TEXT = st.text(st.characters(exclude_categories=['Cs']), max_size=30)


@given(
    _TEXT,
    st.sampled_from(Status),
    st.none() | st.floats(0, 1),
    st.lists(_TEXT, max_size=3),
    st.integers(0, 2**31 * 10**9 - 1),
)
def test_an_outcome_comes_back_from_its_message(
    run_id: str, status: Status, score: float | None, evidence: list[str], stamp: int
) -> None:
    failed = status is Status.FAILURE
    verdict = Verdict(
        status,
        tuple(line.replace('\0', '') for line in evidence),
        failure_reason='why' if failed else '',
        score=score,
    )
    completion = Completion(run_id.replace('\0', ''), 'tool', 3, stamp)
    segment = Segment(completion, 1, stamp, attempt=2)
    outcome = outcome_of(verdict, segment, decided_at=stamp, max_segments=9, evaluator='judge')
    data = outcome_bytes(outcome, DECODER)
    assert outcome_of_bytes(OUTCOME_TYPE, data, DECODER) == outcome


def test_an_interruption_comes_back_from_its_message() -> None:
    outcome = interruption(SEGMENT, 'enough', END)
    data = outcome_bytes(outcome, DECODER)
    assert outcome_of_bytes(OUTCOME_TYPE, data, DECODER) == outcome


def test_a_verdict_alone_is_an_outcome_too() -> None:
    outcome = decided(SUCCESS)
    inner = DECODER.message(OUTCOME_TYPE, outcome_bytes(outcome, DECODER)).verdict
    data = DECODER.serialize(VERDICT_TYPE, inner)
    assert outcome_of_bytes(VERDICT_TYPE, data, DECODER) == outcome


@pytest.mark.parametrize('field', ['kind', 'status'])
def test_a_message_with_an_unset_kind_holds_no_outcome(field: str) -> None:
    message = DECODER.message(OUTCOME_TYPE, outcome_bytes(decided(SUCCESS), DECODER))
    object.__setattr__(message if field == 'kind' else message.verdict, field, 0)
    with pytest.raises(DecodeError) as caught:
        outcome_of_bytes(OUTCOME_TYPE, DECODER.serialize(OUTCOME_TYPE, message), DECODER)
    assert caught.value.kind == 'not_an_outcome'


@pytest.mark.parametrize('name', OWN_DEFINITIONS)
def test_our_own_definitions_are_those_of_the_interface_package(name: str) -> None:
    def meant(text: str) -> list[str]:
        lines = (re.sub(r'\s+', ' ', line.partition('#')[0]).strip() for line in text.split('\n'))
        return [line for line in lines if line]

    path = MESSAGES / f'{name.rpartition("/")[2]}.msg'
    assert meant(OWN_DEFINITIONS[name]) == meant(path.read_text())
