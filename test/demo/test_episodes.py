"""Episodes of the cell are planned by their seed alone and recorded as a robot would have."""

from __future__ import annotations

import csv
from dataclasses import replace
from itertools import groupby
from pathlib import Path
import re

from hypothesis import given
from hypothesis import strategies as st
import pytest

from harness_eval.demo.episode_plan import Episode, plan, RUNS_PER_BAG, Session
from harness_eval.demo.episodes import LABEL_COLUMNS, main, record_all
from harness_eval.demo.faults import Fault, Mishap
from harness_eval.demo.scenario import Step

BOTTLE = {'target': 'bottle'}
SHORT = Session(
    name='short',
    number=0,
    seed=7,
    noise=1.6,
    episodes=(
        Episode(Step('pick_object', BOTTLE, Fault.MISSED_GRASP, reset=True)),
        Episode(Step('survey_cell', fault=Fault.CAMERA_CLOCK_WRONG, reset=True)),
        Episode(Step('open_drawer', reset=True), Mishap.PUSHED_BACK, light=0.7),
    ),
)


@given(count=st.integers(1, 200), seed=st.integers(0, 2**31))
def test_a_plan_has_the_runs_asked_for_and_never_places_what_was_not_picked(
    count: int, seed: int
) -> None:
    sessions = plan(count, seed)
    runs = [episode for session in sessions for episode in session.episodes]
    assert count <= len(runs) <= count + len(sessions)
    assert len({session.name for session in sessions}) == len(sessions)
    for session in sessions:
        assert len(session.episodes) <= RUNS_PER_BAG + 1
        before = None
        for episode in session.episodes:
            if episode.step.tool == 'place_object':
                assert before == ('pick_object', Fault.NONE)
            else:
                assert episode.step.reset
            before = (episode.step.tool, episode.step.fault)


def test_the_same_seed_gives_the_same_plan_and_another_one_another() -> None:
    assert plan(60, 1) == plan(60, 1)
    assert plan(60, 1) != plan(60, 2)


def test_hundred_runs_hold_every_tool_every_fault_of_a_tool_and_every_mishap() -> None:
    runs = [episode for session in plan(100, 3) for episode in session.episodes]
    assert {episode.step.fault for episode in runs} >= {f for f in Fault if not f.spoils_view}
    assert {episode.mishap for episode in runs} == set(Mishap)
    assert any(episode.step.fault.spoils_view for episode in runs)
    assert len({episode.step.tool for episode in runs}) == 5


@pytest.mark.parametrize('count', [0, -4])
def test_a_count_that_is_not_positive_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f'found {count}'):
        plan(count, 1)


@pytest.fixture(scope='module')
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('recorded')
    assert record_all([SHORT], folder, jpeg=60, rate=5.0, jobs=1) == 3
    return folder


def messages(folder: Path) -> list[tuple[str, int, bytes]]:
    from rosbags.rosbag2 import Reader

    with Reader(folder) as bag:
        return [(one.topic, stamp, bytes(data)) for one, stamp, data in bag.messages()]


def test_labels_say_what_really_happened(recorded: Path) -> None:
    with (recorded / 'labels.csv').open(newline='') as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == LABEL_COLUMNS
    assert [(row['run_id'], row['segment'], row['source']) for row in rows] == [
        ('short-01-pick_object', '0', 'short'),
        ('short-02-survey_cell', '0', 'short'),
        ('short-03-open_drawer', '0', 'short'),
    ]
    assert [row['label'] for row in rows[:2]] == ['failure', 'success']
    assert [row['note'] for row in rows] == [
        'missed grasp',
        'camera clock wrong',
        'drawer pushed back',
    ]


def test_a_segment_after_which_the_tool_has_to_go_on_is_no_success(tmp_path: Path) -> None:
    peg = Episode(Step('insert_peg', fault=Fault.PEG_BLOCKED, reset=True))
    record_all([replace(SHORT, episodes=(peg,))], tmp_path, jpeg=50, rate=2.0, jobs=1)
    with (tmp_path / 'labels.csv').open(newline='') as file:
        rows = [(row['segment'], row['label'], row['note']) for row in csv.DictReader(file)]
    assert rows == [
        ('0', 'failure', 'not done yet, peg blocked'),
        ('1', 'failure', 'peg blocked'),
    ]


def test_a_bag_holds_what_a_robot_would_have_recorded_around_each_end(recorded: Path) -> None:
    heard = messages(recorded / 'short')
    topics = {topic for topic, _, _ in heard}
    assert topics == {
        '/cell/front/camera_info',
        '/cell/front/image_raw/compressed',
        '/cell/wrist/camera_info',
        '/cell/wrist/image_raw/compressed',
        '/joint_states',
        '/tool_completions',
    }
    stamps = [stamp for _, stamp, _ in heard]
    assert stamps == sorted(stamps)
    ends = [stamp for topic, stamp, _ in heard if topic == '/tool_completions']
    assert len(ends) == 3
    for end in ends:
        for camera in ('front', 'wrist'):
            seen = [
                (stamp - end) / 1e9
                for topic, stamp, _ in heard
                if topic == f'/cell/{camera}/image_raw/compressed' and abs(stamp - end) < 2e9
            ]
            assert len([t for t in seen if t > 0.3]) >= 2
            assert min(seen) < 0.2 < 0.5 < max(seen)


def test_no_two_pictures_of_a_camera_are_the_same(recorded: Path) -> None:
    pictures = sorted(m for m in messages(recorded / 'short') if 'compressed' in m[0])
    for _, group in groupby(pictures, key=lambda one: one[0]):
        payloads = [data[40:] for _, _, data in group]
        assert len(set(payloads)) == len(payloads)


def test_the_same_seed_records_the_same_bytes(recorded: Path, tmp_path: Path) -> None:
    record_all([SHORT], tmp_path, jpeg=60, rate=5.0, jobs=1)
    for name in ('labels.csv', 'short/short.mcap', 'short/metadata.yaml'):
        assert (tmp_path / name).read_bytes() == (recorded / name).read_bytes(), name


def test_raw_views_come_as_images_and_a_dead_camera_gives_none(tmp_path: Path) -> None:
    dead = Episode(Step('survey_cell', fault=Fault.CAMERA_DEAD, reset=True))
    record_all([replace(SHORT, episodes=(dead,))], tmp_path, jpeg=None, rate=2.0, jobs=1)
    heard = messages(tmp_path / 'short')
    by_topic = {topic: [m for m in heard if m[0] == topic] for topic, _, _ in heard}
    front = by_topic['/cell/front/image_raw']
    assert '/cell/wrist/image_raw' not in by_topic
    assert all(len(data) > 640 * 480 * 3 for _, _, data in front)
    end = by_topic['/tool_completions'][0][1]
    # Long enough for a capture to give up: settle 0.3 s and timeout 3 s.
    assert heard[-1][1] - end > 3.4e9


def test_the_completion_that_is_recorded_is_the_one_of_the_interfaces(recorded: Path) -> None:
    from rosbags.rosbag2 import Reader

    root = Path(__file__).parents[2]
    text = (root / 'harness_eval_msgs' / 'msg' / 'ToolCompletion.msg').read_text()
    fields = [line.split('#')[0].split() for line in text.splitlines()]
    with Reader(recorded / 'short') as bag:
        (connection,) = (c for c in bag.connections if c.topic == '/tool_completions')
    written = re.split(r'\n=+\n', connection.msgdef.data)[0]
    assert [line.split() for line in written.splitlines()] == [one for one in fields if one]


@pytest.mark.parametrize(
    ('arguments', 'said'),
    [
        (['--count', '0'], 'at least 1'),
        (['--jobs', '0'], 'at least 1'),
        (['--jpeg', '101'], 'quality from 1 to 100, not 101'),
        (['--frame-rate', '0.5'], 'from 1 to 100, not 0.5'),
    ],
)
def test_bad_usage_is_told_and_ends_with_2(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(['--out', str(tmp_path / 'new'), *arguments])
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_folder_that_holds_something_is_not_written_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / 'mine.txt').write_text('mine')
    with pytest.raises(SystemExit) as ended:
        main(['--out', str(tmp_path)])
    assert ended.value.code == 2
    assert 'is not empty' in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ['mine.txt']
