"""From messages that say that a run ended to completions; never a claim of success among them."""

from __future__ import annotations

from typing import Any

from cdr_messages import JOINT_STATE, joint_state
from pipeline_world import COMPLETION, DECODER
import pytest

from harness_eval.completions import CompletionReader, GOAL_STATUS
from harness_eval.config.models import CompletionSource
from harness_eval.contract import DecodeError
from harness_eval.runs import Completion

SECOND = 10**9


def reader(started: int = 100 * SECOND, **source: Any) -> CompletionReader:
    return CompletionReader(CompletionSource(**source), DECODER, started)


def stamp(nanoseconds: int) -> Any:
    sec, nanosec = divmod(nanoseconds, SECOND)
    return DECODER.new('builtin_interfaces/msg/Time', sec=sec, nanosec=nanosec)


def header(nanoseconds: int) -> Any:
    return DECODER.new('std_msgs/msg/Header', stamp=stamp(nanoseconds), frame_id='')


def tool_completion(**more: Any) -> bytes:
    pairs = [DECODER.new('diagnostic_msgs/msg/KeyValue', key='target', value='cup')]
    fields = {'run_id': 'run', 'tool': 'pick', 'segment': 3, 'arguments': pairs, **more}
    return DECODER.serialize(
        COMPLETION, DECODER.new(COMPLETION, header=header(5 * SECOND + 7), **fields)
    )


def test_a_tool_completion_is_read_as_it_stands() -> None:
    source = reader(topic='tool_completions')
    assert (source.topic, source.type) == ('tool_completions', COMPLETION)
    assert source.read(tool_completion()) == [
        Completion('run', 'pick', 3, 5 * SECOND + 7, (('target', 'cup'),))
    ]


def test_fields_of_any_message_are_mapped() -> None:
    source = reader(
        topic='done',
        type=JOINT_STATE,
        run_id='header.frame_id',
        tool='name[0]',
        stamp='header.stamp',
        segment='header.stamp.sec',
        arguments={'target': 'name[1]'},
    )
    data = joint_state({'pick': 0.0, 'cup': 0.0}, stamp=5 * SECOND + 7, frame_id='run')
    assert source.read(data) == [
        Completion('run', 'pick', 5, 5 * SECOND + 7, (('target', 'cup'),))
    ]


@pytest.mark.parametrize('segment', ['x', '', '-1', '1_0', '1.0', '٣', '9' * 5000, '9' * 11])
def test_what_is_no_number_of_a_segment_is_an_error(segment: str) -> None:
    source = reader(
        topic='done', type=JOINT_STATE, run_id='name[0]', tool_name='pick', segment='name[0]'
    )
    with pytest.raises(DecodeError) as raised:
        source.read(joint_state({segment: 0.0}))
    assert raised.value.kind == 'not_a_segment'
    assert len(raised.value.message) < 200


@pytest.mark.parametrize('cut', [0, 3, 20, 60])
def test_a_message_that_is_cut_is_an_error(cut: int) -> None:
    with pytest.raises(DecodeError):
        reader(topic='tool_completions').read(tool_completion()[:cut])


def test_a_field_that_is_not_there_is_an_error() -> None:
    source = reader(topic='done', type=JOINT_STATE, run_id='nothing', tool_name='pick')
    with pytest.raises(DecodeError):
        source.read(joint_state({'a': 0.0}))


def statuses(*goals: tuple[int, int, int]) -> bytes:
    """Goals by their number, status, and when they were accepted, in seconds."""
    import numpy as np

    listed = []
    for number, status, accepted in goals:
        uuid = DECODER.new('unique_identifier_msgs/msg/UUID', uuid=np.full(16, number, np.uint8))
        info = DECODER.new(
            'action_msgs/msg/GoalInfo', goal_id=uuid, stamp=stamp(accepted * SECOND)
        )
        listed.append(DECODER.new('action_msgs/msg/GoalStatus', goal_info=info, status=status))
    return DECODER.serialize(GOAL_STATUS, DECODER.new(GOAL_STATUS, status_list=listed))


ACCEPTED, EXECUTING, CANCELING, SUCCEEDED, CANCELED, ABORTED = range(1, 7)


def action(started: int = 100 * SECOND) -> CompletionReader:
    return reader(started, action='navigate', tool='go')


def names(found: list[Completion]) -> list[str]:
    return [completion.run_id[:2] for completion in found]


@pytest.mark.parametrize('end', [SUCCEEDED, CANCELED, ABORTED])
def test_however_a_goal_ended_it_only_counts_that_it_ended(end: int) -> None:
    source = action()
    assert (source.topic, source.type) == ('navigate/_action/status', GOAL_STATUS)
    for status in (ACCEPTED, EXECUTING, CANCELING):
        assert source.read(statuses((1, status, 50))) == []
    assert source.read(statuses((1, end, 50))) == [Completion('01' * 16, 'go', unique=True)]
    assert source.read(statuses((1, end, 50))) == []


def test_a_goal_that_ended_before_anybody_listened_is_not_taken() -> None:
    source = action()
    assert source.read(statuses((1, SUCCEEDED, 99), (2, EXECUTING, 99))) == []
    assert names(source.read(statuses((1, SUCCEEDED, 99), (2, SUCCEEDED, 99)))) == ['02']


def test_a_goal_that_came_and_went_between_two_messages_is_taken() -> None:
    assert names(action().read(statuses((1, SUCCEEDED, 100)))) == ['01']


def test_before_the_simulated_clock_began_old_goals_are_not_taken() -> None:
    source = action(started=0)
    assert source.read(statuses((1, SUCCEEDED, 99), (2, EXECUTING, 99))) == []
    assert names(source.read(statuses((2, ABORTED, 99)))) == ['02']


def test_goals_that_end_together_are_all_taken_and_forgotten_with_the_server() -> None:
    source = action()
    running = [(n, EXECUTING, 101) for n in (1, 2, 3)]
    source.read(statuses(*running))
    assert names(source.read(statuses(*[(n, SUCCEEDED, 101) for n in (1, 2, 3)]))) == [
        '01',
        '02',
        '03',
    ]
    source.read(statuses())
    assert (source._running, source._ended) == (set(), set())


def test_a_mapped_message_is_stamped_by_its_header_unless_receipt_is_asked_for() -> None:
    fields = {'topic': 'done', 'type': JOINT_STATE, 'run_id': 'header.frame_id', 'tool': 'name[0]'}
    data = joint_state({'pick': 0.0}, stamp=5 * SECOND + 7, frame_id='run')
    assert [c.stamp for c in reader(**fields).read(data)] == [5 * SECOND + 7]
    assert [c.stamp for c in reader(**fields, stamp='receipt').read(data)] == [0]
