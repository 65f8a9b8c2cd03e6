"""A bag judged again: what the live node decided, bit for bit, by the time of the bag alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
import dataclasses
from pathlib import Path
import time
from typing import Any

from cdr_messages import IMAGE, image_of
from hypothesis import given, settings
import hypothesis.strategies as st
import numpy as np
from pipeline_world import DECODER, SECOND, START
import pytest
from replayed_cell import FRONT, JOINTS, Message, RecordedCell, write_bag, write_config

from harness_eval.capture.choice import least_valid_set
from harness_eval.cases import (
    completion_message,
    COMPLETION_TOPIC,
    COMPLETION_TYPE,
    read_case,
)
from harness_eval.decode import Decoder
from harness_eval.outcome_messages import outcome_bytes, OUTCOME_TYPE, VERDICT_TYPE
from harness_eval.replay.bags import Bag
from harness_eval.replay.jobs import replay
from harness_eval.replay.labels import Label, LabelsError, match_labels
from harness_eval.replay.recorded import recorded
from harness_eval.replay.results import Replayed
from harness_eval.replay.sources import BagSource
from harness_eval.runs import Completion, Outcome


@pytest.fixture
def make_cell(tmp_path: Path) -> Iterator[Callable[..., RecordedCell]]:
    """A function that makes the live cell of a test."""
    made: list[RecordedCell] = []

    def make(**options: Any) -> RecordedCell:
        made.append(RecordedCell(tmp_path, **options))
        return made[-1]

    yield make
    for cell in made:
        cell.close()


def replayed(cell: RecordedCell, **more: Any) -> Replayed:
    """What the recording of a cell comes to by its own configuration."""
    folder = write_bag(cell.folder / f'bag_{len(list(cell.folder.iterdir()))}', cell.recorded)
    return replay([BagSource(folder)], cell.path, **more)


def timeless(outcome: Outcome) -> Outcome:
    """An outcome but for the moment of its decision."""
    return dataclasses.replace(outcome, decided_at=0)


def test_a_replay_comes_to_what_the_live_node_came_to(
    make_cell: Callable[..., RecordedCell],
) -> None:
    cell = make_cell()
    cell.whole_run('good')
    cell.whole_run('bad', finger=0.02)
    cell.whole_run('unsure', finger=0.7)
    cell.whole_run('no argument', place='shelf')
    for number, finger in enumerate((0.7, 0.6, 0.6)):
        cell.whole_run('long', finger, tool='insert', segment=number)
    cell.whole_run('blind', tool='bare')
    found = replayed(cell)
    assert not found.skipped
    assert [timeless(one.outcome) for one in found.results] == [
        timeless(one) for one in cell.outcomes
    ]
    assert [one.outcome.label for one in found.results] == [
        'success',
        'failure',
        'abstained unsure',
        'error missing_argument',
        'process',
        'process',
        'failure',
        'abstained no_answer',
    ]
    assert found.results[6].outcome.verdict is not None
    assert found.results[6].outcome.verdict.failure_kind == 'segment_budget'


def test_runs_that_overlap_are_judged_as_live(make_cell: Callable[..., RecordedCell]) -> None:
    cell = make_cell()
    cell.end('a')
    cell.pass_time(0.1)
    cell.end('b', 'bare')
    cell.pass_time(0.15)
    cell.look(0.1, pictures=1)
    cell.end('c')
    cell.pass_time(0.1)
    cell.look(0.97, pictures=20)
    cell.pass_time(4)
    assert len(cell.outcomes) == 3
    live = {one.run_id: timeless(one) for one in cell.outcomes}
    found = replayed(cell)
    assert [one.completion.run_id for one in found.results] == ['a', 'b', 'c']
    assert {one.outcome.run_id: timeless(one.outcome) for one in found.results} == live


def nothing(cell: RecordedCell) -> None:
    """Nobody publishes."""


def stops(cell: RecordedCell) -> None:
    cell.look(pictures=3)


def frozen(cell: RecordedCell) -> None:
    cell.pass_time(0.4)
    for _ in range(9):
        pixels = np.full((6, 8, 3), 7, np.uint8)
        cell.message(FRONT, IMAGE, image_of(pixels, 'bgr8', stamp=cell.ros))
        cell.joints_now()
        cell.pass_time(0.1)


def unsynchronised(cell: RecordedCell) -> None:
    cell.pass_time(0.4)
    for _ in range(9):
        cell.picture_now()
        cell.pass_time(0.1)
        cell.joints_now()
        cell.pass_time(0.1)


def late(cell: RecordedCell) -> None:
    cell.pass_time(0.4)
    for _ in range(5):
        cell.picture_now(delay=1.5)
        cell.joints_now()
        cell.pass_time(0.1)


def unstamped(cell: RecordedCell) -> None:
    cell.pass_time(0.4)
    cell.message(FRONT, IMAGE, image_of(np.zeros((6, 8, 3), np.uint8), 'bgr8', stamp=0))


def ahead(cell: RecordedCell) -> None:
    cell.pass_time(0.4)
    cell.picture_now(delay=-0.5)


def torn(cell: RecordedCell) -> None:
    for _ in range(4):
        cell.message(FRONT, IMAGE, b'\0\1\0\0 no picture')
        cell.pass_time(0.3)


@pytest.mark.parametrize(
    ('happens', 'kind'),
    [
        (nothing, 'no_frames'),
        (stops, 'stale'),
        (frozen, 'frozen'),
        (unsynchronised, 'unsynchronised'),
        (late, 'clock_skew'),
        (unstamped, 'unstamped_view'),
        (ahead, 'clock_skew'),
        (torn, 'undecodable'),
    ],
)
def test_a_capture_fails_for_the_reason_that_the_live_node_gave(
    make_cell: Callable[..., RecordedCell], happens: Callable[[RecordedCell], None], kind: str
) -> None:
    cell = make_cell()
    cell.look(pictures=1)  # so that the bag knows both topics
    cell.pass_time(1)
    cell.end('a')
    happens(cell)
    cell.pass_time(5)
    live = cell.outcomes[0]
    assert live.error_kind == kind
    again = replayed(cell).results[0].outcome
    assert again.error_kind == kind
    # Live the clock is looked at every 20 ms; here the wait ends to the nanosecond.
    assert abs(again.decided_at - live.decided_at) <= 0.04 * SECOND
    assert again.message.partition(': ')[0] == live.message.partition(': ')[0]


def test_the_limit_on_the_wall_clock_counts_the_time_of_the_bag(
    make_cell: Callable[..., RecordedCell],
) -> None:
    cell = make_cell(capture='wall_timeout: 1.0')
    cell.end('a')
    cell.pass_time(1.2)
    cell.look()
    cell.pass_time(3)
    again = replayed(cell).results[0].outcome
    assert again.error_kind == cell.outcomes[0].error_kind == 'no_frames'
    assert 0 < again.decided_at - START - SECOND < 1000


def test_a_replay_is_the_same_each_time(
    make_cell: Callable[..., RecordedCell], tmp_path: Path
) -> None:
    cell = make_cell()
    cell.whole_run('a')
    cell.end('b')
    cell.pass_time(4)
    bag = BagSource(write_bag(tmp_path / 'bag', cell.recorded))
    first, second = (replay([bag], cell.path) for _ in range(2))
    assert len(first.results) == 2
    assert _timeless_text(first, tmp_path) == _timeless_text(second, tmp_path)


def _timeless_text(found: Replayed, folder: Path) -> str:
    """The results as JSON without the seconds that judging took on this machine."""
    results = tuple(dataclasses.replace(one, seconds=0.0) for one in found.results)
    return dataclasses.replace(found, results=results).to_json(folder)


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(['front', 'gripper']),
            st.integers(1, 120),  # ms since the message before
            st.integers(0, 80),  # ms from stamp to receipt
        ),
        min_size=2,
        max_size=60,
    ),
    st.integers(0, 120),
)
def test_the_chosen_frames_are_the_least_valid_set_of_the_recorded_streams(
    tmp_path_factory: pytest.TempPathFactory, arrivals: list[tuple[str, int, int]], slop: int
) -> None:
    folder = tmp_path_factory.mktemp('streams')
    config = write_config(folder / 'cell.yaml', slop=slop / 1000, timeout=2.0)
    completion = Completion('a', 'pick', 0, START, (('target', 'cup'),))
    messages: list[Message] = [
        (COMPLETION_TOPIC, COMPLETION_TYPE, START, completion_message(completion, DECODER))
    ]
    # Some frames of the time before, so that each view is known to be alive.
    stamps: dict[str, list[int]] = {'front': [], 'gripper': []}
    receipt = START
    cell = _Recorder(messages)
    cell.send('front', START + 1, START + 1)
    for stream, gap, delay in arrivals:
        receipt += gap * 1_000_000
        stamp = receipt - delay * 1_000_000
        cell.send(stream, stamp, receipt)
        known = stamps[stream]
        newest = cell.newest[stream]
        if receipt <= START + 2.3 * SECOND and newest < stamp:
            cell.newest[stream] = stamp
            if stamp >= START + 0.3 * SECOND:
                known.append(stamp)
    best = least_valid_set(stamps, slop=slop * 1_000_000)
    bag = write_bag(folder / 'bag', messages)
    found = replay([BagSource(bag)], config, keep_cases=folder / 'cases')
    result = found.results[0]
    if best is None:
        assert result.outcome.verdict is None
        assert result.case is None
    else:
        assert result.case is not None
        frames = read_case(result.case, Decoder()).captured.frames
        assert {name: frame.stamp for name, frame in frames.items()} == {
            name: stamps[name][place] for name, place in best.items()
        }


_DELAYS = st.sampled_from([0.0, 0.0, 0.01, 0.05, 0.2])
_STEPS = st.tuples(
    st.one_of(
        st.tuples(st.just('picture'), _DELAYS),
        st.tuples(st.just('joints'), _DELAYS, st.sampled_from([0.95, 0.7, 0.02])),
        st.tuples(
            st.just('end'),
            st.sampled_from([('a', 'pick', 0), ('b', 'pick', 0), ('c', 'bare', 0)])
            | st.tuples(st.sampled_from(['d', 'e']), st.just('insert'), st.integers(0, 2)),
        ),
    ),
    st.sampled_from([0.001, 0.01, 0.033, 0.1, 0.3]),
)


@settings(max_examples=15)
@given(st.lists(_STEPS, min_size=10, max_size=60))
def test_whatever_happens_in_whatever_order_a_replay_comes_to_the_same(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[tuple[Any, ...], float]]
) -> None:
    cell = RecordedCell(tmp_path_factory.mktemp('cell'), timeout=1.0)
    cell.look(pictures=1)  # so that the bag knows both topics
    cell.end('first')
    for (what, *how), gap in steps:
        if what == 'picture':
            cell.picture_now(delay=how[0])
        elif what == 'joints':
            cell.joints_now(how[1], delay=how[0])
        else:
            run_id, tool, number = how[0]
            cell.end(run_id, tool, number)
        cell.drain()
        cell.pass_time(gap)
    cell.pass_time(3)
    cell.close()
    live: dict[tuple[str, int], Outcome] = {}
    for one in cell.outcomes:
        live.setdefault((one.run_id, one.segment), one)
    found = {(one.outcome.run_id, one.outcome.segment): one for one in replayed(cell).results}
    assert found.keys() == live.keys()
    for key, one in live.items():
        # Of errors the words hold times at which the clock was looked at.
        message = one.message if one.verdict is None else ''
        again = dataclasses.replace(found[key].outcome, message=message)
        assert timeless(again) == timeless(one)


class _Recorder:
    """Sends pictures and readings with any stamp and receipt."""

    def __init__(self, messages: list[Message]) -> None:
        from cdr_messages import JOINT_STATE, joint_state

        self._messages = messages
        self._joints = (JOINT_STATE, joint_state)
        self._number = 0
        self.newest = {'front': START + 1, 'gripper': 0}

    def send(self, stream: str, stamp: int, receipt: int) -> None:
        self._number += 1
        if stream == 'front':
            pixels = np.full((2, 2, 3), self._number, np.uint8)
            self._messages.append((FRONT, IMAGE, receipt, image_of(pixels, 'bgr8', stamp=stamp)))
        else:
            kind, make = self._joints
            self._messages.append((JOINTS, kind, receipt, make({'finger': 0.95}, stamp=stamp)))


def test_no_more_is_read_than_runs_need(
    make_cell: Callable[..., RecordedCell], monkeypatch: pytest.MonkeyPatch
) -> None:
    cell = make_cell()
    cell.look(pictures=300)
    cell.whole_run('a')
    cell.look(pictures=300)
    given: list[int] = []
    real = Bag.messages

    def counted(self: Bag, topics: Any, *window: Any) -> Iterator[Any]:
        for message in real(self, topics, *window):
            if message.topic == FRONT:
                given.append(message.receipt)
            yield message

    monkeypatch.setattr(Bag, 'messages', counted)
    assert replayed(cell).results[0].outcome.label == 'success'
    assert 2 <= len(given) <= 4


def test_a_run_whose_time_was_recorded_twice_comes_to_no_verdict(
    make_cell: Callable[..., RecordedCell], tmp_path: Path
) -> None:
    """A loop: frames of the first time round would pass for evidence of the second one."""
    (tmp_path / 'second').mkdir()
    first, second = make_cell(), RecordedCell(tmp_path / 'second')
    first.look(0.95, pictures=60)
    second.whole_run('b', 0.02)
    second.pass_time(9)
    second.whole_run('later', 0.97)
    second.close()
    first.recorded += second.recorded
    found = replayed(first)
    assert [one.outcome.label for one in found.results] == ['error clock_jumped', 'success']
    assert 'went back by' in found.results[0].outcome.message
    first.recorded = second.recorded
    assert [one.outcome.label for one in replayed(first).results] == ['failure', 'success']


def test_messages_that_were_written_topic_by_topic_are_judged_as_any(
    make_cell: Callable[..., RecordedCell],
) -> None:
    cell = make_cell()
    cell.look(pictures=60)
    cell.whole_run('a')
    cell.recorded.sort(key=lambda message: message[0])
    assert [one.outcome.label for one in replayed(cell).results] == ['success']


def test_what_waits_for_nothing_ends_with_the_bag(
    make_cell: Callable[..., RecordedCell],
) -> None:
    cell = make_cell()
    cell.look(pictures=2)
    cell.end('a')  # the recording ends here
    again = replayed(cell).results[0].outcome
    assert again.error_kind == 'no_frames'
    assert again.decided_at == cell.ros + 3_300_000_001


def test_a_topic_that_is_not_in_the_bag_is_told_with_those_that_would_fit(
    make_cell: Callable[..., RecordedCell],
) -> None:
    cell = make_cell()
    cell.whole_run('a')
    cell.recorded = [
        (topic.replace(FRONT, '/robot_1/cell/front'), *rest) for topic, *rest in cell.recorded
    ]
    outcome = replayed(cell).results[0].outcome
    assert outcome.error_kind == 'no_publisher'
    assert '/cell/front is not in the bag' in outcome.message
    assert '/robot_1/cell/front' in outcome.message


def test_a_namespace_leads_to_the_topics(make_cell: Callable[..., RecordedCell]) -> None:
    cell = make_cell()
    cell.whole_run('a')
    cell.recorded = [(f'/robot_1{topic}', *rest) for topic, *rest in cell.recorded]
    assert replayed(cell, namespace='/robot_1').results[0].outcome.label == 'success'


def test_a_completion_that_comes_twice_is_judged_once_and_another_one_is_named(
    make_cell: Callable[..., RecordedCell],
) -> None:
    cell = make_cell()
    first = cell.end('a')
    cell.pass_time(0.31)
    cell.report(first)
    cell.look()
    cell.report(first)
    cell.end('a', target='something else')
    cell.end('other', tool='unheard of')
    cell.end('', tool='pick')
    found = replayed(cell)
    assert [one.outcome.label for one in found.results] == ['success', 'error empty_run_id']
    assert [one.kind for one in found.skipped] == ['conflicting_completion']
    assert "run 'a' segment 0" in found.skipped[0].message


def test_outcomes_in_a_bag_are_those_on_record(make_cell: Callable[..., RecordedCell]) -> None:
    cell = make_cell()
    cell.whole_run('a')
    cell.whole_run('b', finger=0.1)
    first = dataclasses.replace(cell.outcomes[0], attempt=2)
    for outcome in (first, *cell.outcomes):
        data = outcome_bytes(outcome, DECODER)
        cell.recorded.append(('/judge/outcomes', OUTCOME_TYPE, cell.ros, data))
    found = replayed(cell)
    assert [one.recorded for one in found.results] == [first, cell.outcomes[1]]
    assert [one.recorded for one in found.results] != [one.outcome for one in found.results]
    bag = next(path for path in cell.folder.glob('bag_*'))
    known = recorded([BagSource(bag)])
    assert [one.outcome for one in known.results] == [first, cell.outcomes[1]]
    assert not known.skipped


def test_bags_of_one_name_keep_their_results_and_labels_apart(tmp_path: Path) -> None:
    config = write_config(tmp_path / 'cell.yaml')
    for folder, finger in (('monday', 0.95), ('friday', 0.02)):
        part = tmp_path / folder
        part.mkdir()
        one = RecordedCell(part)
        one.whole_run('a', finger)
        one.close()
        write_bag(part / 'bag', one.recorded)
    bags = [BagSource(tmp_path / folder / 'bag') for folder in ('monday', 'friday')]
    results = replay(bags, config)
    assert [(one.key, one.outcome.label) for one in results.results] == [
        (('monday/bag', 'a', 0), 'success'),
        (('friday/bag', 'a', 0), 'failure'),
    ]
    label = Label('a', correct=False, source='friday/bag')
    assert [one.truth for one in match_labels(results.results, [label]).results] == [
        None,
        label.truth,
    ]
    with pytest.raises(LabelsError, match='labels_ambiguous'):
        match_labels(results.results, [dataclasses.replace(label, source='bag')])


def test_verdicts_in_a_bag_count_where_it_has_no_outcomes(
    make_cell: Callable[..., RecordedCell],
) -> None:
    cell = make_cell()
    cell.whole_run('a')
    cell.whole_run('b', finger=0.1)
    for outcome in cell.outcomes:
        inner = DECODER.message(OUTCOME_TYPE, outcome_bytes(outcome, DECODER)).verdict
        data = DECODER.serialize(VERDICT_TYPE, inner)
        cell.recorded.append(('/judge/verdicts', VERDICT_TYPE, cell.ros, data))
    second = dataclasses.replace(cell.outcomes[1], retryable=True)
    cell.recorded.append(
        ('/judge/outcomes', OUTCOME_TYPE, cell.ros - 1, outcome_bytes(second, DECODER))
    )
    cell.recorded.append(('/judge/outcomes', OUTCOME_TYPE, cell.ros, b'\0\1\0\0 torn'))
    cell.recorded.sort(key=lambda message: message[2])
    assert [one.recorded for one in replayed(cell).results] == [cell.outcomes[0], second]


def test_a_bag_without_completions_or_outcomes_says_so(
    make_cell: Callable[..., RecordedCell],
) -> None:
    cell = make_cell()
    cell.look()
    found = replayed(cell)
    assert not found.results
    assert [one.kind for one in found.skipped] == ['no_such_topic']
    bag = next(path for path in cell.folder.glob('bag_*'))
    assert [one.kind for one in recorded([BagSource(bag)]).skipped] == ['no_outcome']


def test_completions_may_come_from_a_file(
    make_cell: Callable[..., RecordedCell], tmp_path: Path
) -> None:
    cell = make_cell()
    cell.look(pictures=2)
    at = cell.ros / SECOND
    cell.pass_time(0.31)
    cell.look(pictures=8)
    table = tmp_path / 'completions.csv'
    table.write_text(
        f'time,tool,run_id,argument.target\n{at:.9f},pick,typed,cup\n{at + 500:.9f},pick,x,cup\n'
    )
    found = replayed(cell, completions=table)
    assert [(one.completion.run_id, one.outcome.label) for one in found.results] == [
        ('typed', 'success')
    ]
    assert [(one.source, one.kind) for one in found.skipped] == [
        ('completions.csv', 'outside_bags')
    ]


def test_a_judge_keeps_its_deadline_on_the_clock_of_the_machine(
    make_cell: Callable[..., RecordedCell],
) -> None:
    cell = make_cell()
    cell.whole_run('a')
    path = write_config(cell.folder / 'slow.yaml', evaluator='stuck')
    bag = write_bag(cell.folder / 'bag', cell.recorded)
    before = time.monotonic()
    outcome = replay([BagSource(bag)], path).results[0].outcome
    assert outcome.error_kind == 'judge_timeout'
    assert 0.2 <= time.monotonic() - before < 20
