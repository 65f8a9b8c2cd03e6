"""The completions of a bag, from every kind of source; read as they are, nothing mended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdr_messages import JOINT_STATE, joint_state
from pipeline_world import COMPLETION
from pipeline_world import DECODER as PIPELINE_DECODER
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import get_types_from_msg, get_typestore, Stores

from harness_eval.completions import GOAL_STATUS
from harness_eval.config import Config
from harness_eval.decode import Decoder
from harness_eval.replay.bags import decoder_for, open_bag, read_completions
from harness_eval.replay.results import Skipped
from harness_eval.runs import Completion

SECOND = 10**9
Recorded = tuple[str, str, int, bytes]
"""Topic, type, receipt and bytes."""


def completion(run_id: str, stamp: int = 0, tool: str = 'pick') -> bytes:
    sec, nanosec = divmod(stamp, SECOND)
    new = PIPELINE_DECODER.new
    time = new('builtin_interfaces/msg/Time', sec=sec, nanosec=nanosec)
    message = new(
        COMPLETION,
        header=new('std_msgs/msg/Header', stamp=time, frame_id=''),
        run_id=run_id,
        tool=tool,
        segment=0,
        arguments=[new('diagnostic_msgs/msg/KeyValue', key='target', value='cup')],
    )
    return PIPELINE_DECODER.serialize(COMPLETION, message)


def status(goals: dict[int, tuple[int, int]]) -> bytes:
    """A status message: for each goal its stamp and its status."""
    import numpy as np

    new = PIPELINE_DECODER.new
    listed = [
        new(
            'action_msgs/msg/GoalStatus',
            goal_info=new(
                'action_msgs/msg/GoalInfo',
                goal_id=new('unique_identifier_msgs/msg/UUID', uuid=np.full(16, goal, np.uint8)),
                stamp=new('builtin_interfaces/msg/Time', sec=stamp // SECOND, nanosec=0),
            ),
            status=state,
        )
        for goal, (stamp, state) in goals.items()
    ]
    return PIPELINE_DECODER.serialize(GOAL_STATUS, new(GOAL_STATUS, status_list=listed))


def read(
    folder: Path,
    recorded: Sequence[Recorded],
    namespace: str = '',
    plugin: StoragePlugin = StoragePlugin.MCAP,
    **config: Any,
) -> tuple[list[tuple[Completion, int]], list[Skipped]]:
    with Writer(folder / 'bag', version=9, storage_plugin=plugin) as writer:
        topics = {
            (topic, kind): writer.add_connection(
                topic, kind, typestore=PIPELINE_DECODER.typestore_for(kind)
            )
            for topic, kind in dict.fromkeys(item[:2] for item in recorded)
        }
        for topic, kind, receipt, data in recorded:
            writer.write(topics[topic, kind], receipt, data)
    with open_bag(folder / 'bag') as bag:
        decoder, notes = decoder_for(bag, environment={})
        assert notes == []
        return read_completions(bag, Config(**config), decoder, namespace)


def test_completions_come_in_order_of_receipt_without_ros(tmp_path: Path) -> None:
    recorded = [
        ('/tool_completions', COMPLETION, (9 - n) * SECOND, completion(f'run_{n}'))
        for n in range(3)
    ]
    found, skipped = read(tmp_path, recorded)
    assert [(c.run_id, receipt) for c, receipt in found] == [
        ('run_2', 7 * SECOND),
        ('run_1', 8 * SECOND),
        ('run_0', 9 * SECOND),
    ]
    assert found[0][0].arguments == (('target', 'cup'),)
    assert skipped == []


def test_two_at_one_time_and_one_twice_are_all_given(tmp_path: Path) -> None:
    topic = ('/tool_completions', COMPLETION)
    recorded = [(*topic, 5, completion(run)) for run in ('one', 'other', 'one')]
    found, _ = read(tmp_path, recorded)
    assert [(c.run_id, receipt) for c, receipt in found] == [
        ('one', 5),
        ('other', 5),
        ('one', 5),
    ]


def test_a_stamp_hours_from_its_receipt_is_left_as_it_is(tmp_path: Path) -> None:
    stamp = 3600 * SECOND
    recorded = [('/tool_completions', COMPLETION, 9 * stamp, completion('run', stamp))]
    ((one, receipt),), _ = read(tmp_path, recorded)
    assert (one.stamp, receipt) == (stamp, 9 * stamp)


def test_every_source_of_the_configuration_is_read(tmp_path: Path) -> None:
    done = joint_state({'insert': 0.0, 'peg': 0.0}, stamp=3 * SECOND, frame_id='mapped')
    recorded = [
        ('/tool_completions', COMPLETION, 2 * SECOND, completion('own')),
        ('/skills/done', JOINT_STATE, 3 * SECOND, done),
        # Goal 1 ended before the recording, 2 within it, 3 is running at its end.
        (
            '/navigate/_action/status',
            GOAL_STATUS,
            2 * SECOND,
            status({1: (SECOND, 4), 2: (2 * SECOND, 2)}),
        ),
        (
            '/navigate/_action/status',
            GOAL_STATUS,
            4 * SECOND,
            status({1: (SECOND, 4), 2: (2 * SECOND, 6), 3: (3 * SECOND, 2)}),
        ),
    ]
    sources = [
        {'topic': 'tool_completions'},
        {'action': 'navigate', 'tool': 'drive'},
        {
            'topic': 'skills/done',
            'type': JOINT_STATE,
            'run_id': 'header.frame_id',
            'tool': 'name[0]',
            'arguments': {'target': 'name[1]'},
        },
    ]
    found, skipped = read(tmp_path, recorded, completions=sources)
    assert skipped == []
    assert found == [
        (Completion('own', 'pick', arguments=(('target', 'cup'),)), 2 * SECOND),
        (Completion('mapped', 'insert', 0, 3 * SECOND, (('target', 'peg'),)), 3 * SECOND),
        (Completion('02' * 16, 'drive', unique=True), 4 * SECOND),
    ]


def test_a_malformed_completion_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    topic = ('/tool_completions', COMPLETION)
    recorded = [
        (*topic, 1 * SECOND, completion('one')),
        (*topic, 2 * SECOND, completion('cut')[:20]),
        (*topic, 3 * SECOND, completion('other')),
    ]
    found, (note,) = read(tmp_path, recorded)
    assert [c.run_id for c, _ in found] == ['one', 'other']
    assert (note.source, note.kind) == ('bag', 'malformed_message')
    assert note.message.startswith('/tool_completions at 2.000 s: ')


def test_a_completion_that_the_bag_defines_otherwise_is_named(tmp_path: Path) -> None:
    store = get_typestore(Stores.EMPTY)
    store.register(get_types_from_msg('string run_id\nstring tool\n', COMPLETION))
    message = store.types[COMPLETION](run_id='one', tool='pick')
    with Writer(tmp_path / 'bag', version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        topic = writer.add_connection('/tool_completions', COMPLETION, typestore=store)
        writer.write(topic, SECOND, bytes(store.serialize_cdr(message, COMPLETION)))
    with open_bag(tmp_path / 'bag') as bag:
        decoder, _ = decoder_for(bag, environment={})
        found, (note,) = read_completions(bag, Config(), decoder)
    assert (found, note.kind) == ([], 'wrong_definition')
    assert 'ToolCompletion is defined otherwise in the bag' in note.message


@pytest.mark.parametrize('plugin', StoragePlugin)
def test_completions_that_a_damaged_index_hides_are_told(
    plugin: StoragePlugin, tmp_path: Path
) -> None:
    recorded = [('/tool_completions', COMPLETION, n, completion(f'{n}')) for n in (1, 2)]
    assert read(tmp_path, recorded, plugin=plugin)[1] == []
    metadata = tmp_path / 'bag' / 'metadata.yaml'
    metadata.write_text(metadata.read_text().replace('message_count: 2', 'message_count: 5'))
    with open_bag(tmp_path / 'bag') as bag:
        found, (note,) = read_completions(bag, Config(), decoder_for(bag, environment={})[0])
    assert (len(found), note.kind) == (2, 'bag_damaged')
    assert 'has 5 messages by what the bag says of itself, but 2 are found' in note.message


def test_of_many_malformed_ones_a_few_are_named(tmp_path: Path) -> None:
    recorded = [('/tool_completions', COMPLETION, n, b'\0\1\0\0') for n in range(1, 500)]
    found, skipped = read(tmp_path, recorded)
    assert (found, len(skipped)) == ([], 21)
    assert '479 more' in skipped[-1].message


def test_a_source_that_is_not_in_the_bag_says_what_would_fit(tmp_path: Path) -> None:
    recorded = [('/cell/tool_completions', COMPLETION, SECOND, completion('run'))]
    found, (note,) = read(tmp_path, recorded)
    assert found == []
    assert note.kind == 'no_such_topic'
    assert '/cell/tool_completions' in note.message


def test_an_action_that_was_not_recorded_says_how_to_record_it(tmp_path: Path) -> None:
    recorded = [('/tool_completions', COMPLETION, SECOND, completion('run'))]
    sources = [{'topic': 'tool_completions'}, {'action': 'navigate', 'tool': 'drive'}]
    found, (note,) = read(tmp_path, recorded, completions=sources)
    assert [c.run_id for c, _ in found] == ['run']
    assert note.kind == 'no_such_topic'
    assert '/navigate/_action/status is not in the bag' in note.message
    assert '--include-hidden-topics' in note.message


def test_a_namespace_leads_to_the_topic(tmp_path: Path) -> None:
    recorded = [('/cell/tool_completions', COMPLETION, SECOND, completion('run'))]
    found, skipped = read(tmp_path, recorded, namespace='cell')
    assert [c.run_id for c, _ in found] == ['run']
    assert skipped == []


def test_a_source_of_another_type_than_configured_is_named(tmp_path: Path) -> None:
    recorded = [('/tool_completions', JOINT_STATE, SECOND, joint_state({'a': 0.0}))]
    found, (note,) = read(tmp_path, recorded)
    assert (found, note.kind) == ([], 'wrong_type')
    assert JOINT_STATE in note.message


def test_a_type_that_nothing_defines_is_named_once(tmp_path: Path) -> None:
    recorded = [('/done', JOINT_STATE, n, joint_state({'a': 0.0})) for n in (1, 2)]
    source = {'topic': 'done', 'type': 'lost_msgs/msg/Done', 'run_id': 'id', 'tool': 'name'}
    read(tmp_path, recorded, completions=[source])
    # The same bag with the name of a type that nobody has.
    file = tmp_path / 'bag' / 'bag.mcap'
    (tmp_path / 'bag' / 'metadata.yaml').unlink()
    data = file.read_bytes().replace(JOINT_STATE.encode(), b'sensor_msgs/msg/LostStates')
    file.write_bytes(data)
    source['type'] = 'sensor_msgs/msg/LostStates'
    assert len(source['type']) == len(JOINT_STATE)
    with open_bag(tmp_path / 'bag') as bag:
        assert bag.topics['/done'].type == source['type']
        found, (note,) = read_completions(bag, Config(completions=[source]), Decoder())
    assert (found, note.kind) == ([], 'unknown_type')
    assert 'sensor_msgs/msg/LostStates' in note.message
