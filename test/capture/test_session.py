"""The wait of one run: what is evidence, what ends the wait, and when."""

from __future__ import annotations

import random
import weakref

from capture_streams import capture, frame, graph, MS, outcome, poll, state, T_END, view
import pytest

from harness_eval.capture import Capture, Captured, Frame, TopicFacts
from harness_eval.config.models import CaptureSettings
from harness_eval.contract import CaptureError

FRONT = view('front')
WRIST = view('wrist')
STILL = view('still', may_repeat=True)
JOINTS = state('joints')


def stamps(found: Captured | CaptureError) -> dict[str, float]:
    assert isinstance(found, Captured), found
    return {name: (each.stamp - T_END) / MS for name, each in found.frames.items()}


def kind(found: Captured | CaptureError) -> str:
    assert isinstance(found, CaptureError), found
    assert not found.retryable
    return found.kind


def test_two_cameras_and_a_state_give_the_first_complete_set_after_settle() -> None:
    running = capture(FRONT, WRIST, JOINTS)
    for number in range(10):
        running.add(frame(FRONT, 33 * number, 33 * number + 8))
        assert poll(running, 33 * number + 8) is None
    running.add(frame(FRONT, 330, 338))
    running.add(frame(WRIST, 280, 290))
    running.add(frame(WRIST, 313, 323))
    running.add(frame(WRIST, 346, 356))
    assert poll(running, 356) is None
    running.add(frame(JOINTS, 340))
    found = poll(running, 357)
    assert found is not None
    assert stamps(found) == {'front': 330, 'wrist': 313, 'joints': 340}
    assert found.t_end == T_END
    assert found.spread == 0.027
    assert found.seen == {'front': 11, 'wrist': 3, 'joints': 1}


def test_the_deadline_is_settle_and_timeout_after_the_end() -> None:
    running = capture(JOINTS, settle=0.3, timeout=3.0, wall_timeout=30.0)
    assert running.t_end == T_END
    assert running.ros_deadline == T_END + 3300 * MS
    assert running.wall_deadline == 30.0


@pytest.mark.parametrize(
    ('stamp', 'taken'),
    [(299.999999, False), (300, True), (3300, True), (3300.000001, False)],
)
def test_stamps_from_settle_to_the_deadline_count_both_included(stamp: float, taken: bool) -> None:
    found = outcome(capture(JOINTS), [frame(JOINTS, stamp)])
    assert isinstance(found, Captured) == taken


@pytest.mark.parametrize(('apart', 'taken'), [(50, True), (50.000001, False)])
def test_a_spread_of_slop_is_allowed_and_no_more(apart: float, taken: bool) -> None:
    found = outcome(capture(JOINTS, STILL), [frame(JOINTS, 400), frame(STILL, 400 + apart)])
    assert isinstance(found, Captured) == taken


def test_a_tool_host_that_runs_slow_gets_no_frame_from_before_its_end() -> None:
    """The end is the receipt of a completion whose own stamp lies 0.8 s before it."""
    found = outcome(capture(JOINTS), [frame(JOINTS, 10 * n - 800) for n in range(150)])
    assert stamps(found) == {'joints': 300}


def test_a_frame_received_before_the_end_is_no_evidence_whatever_its_stamp_says() -> None:
    found = outcome(capture(JOINTS, settle=0.1, max_ahead=0.5), [frame(JOINTS, 200, receipt=-1)])
    assert kind(found) == 'stale'


def test_frames_from_before_the_first_clock_are_dropped_without_a_word() -> None:
    early = frame(JOINTS, 400, receipt=-T_END / MS)
    assert early.receipt == 0
    found = outcome(capture(JOINTS), [early, frame(JOINTS, 410)])
    assert stamps(found) == {'joints': 410}
    assert isinstance(found, Captured)
    assert found.seen == {'joints': 2}


@pytest.mark.parametrize(
    ('stream', 'expected'), [(FRONT, 'unstamped_view'), (JOINTS, 'unstamped_state')]
)
def test_a_zero_stamp_is_an_error_at_once_and_receipt_does_not_replace_it(
    stream: object, expected: str
) -> None:
    spec = FRONT if stream is FRONT else JOINTS
    running = capture(STILL, spec)
    running.add(frame(spec, -T_END / MS, receipt=10))
    with pytest.raises(CaptureError, match=f"'{spec.name}'.*stamp of zero") as caught:
        poll(running, 11)
    assert caught.value.kind == expected


def test_a_stamp_taken_from_the_receipt_is_refused_where_the_header_is_asked_for() -> None:
    plain = frame(JOINTS, 400)
    running = capture(JOINTS)
    running.add(
        Frame(
            'joints',
            plain.topic,
            plain.type,
            plain.stamp,
            plain.receipt,
            b'',
            stamp_source='receipt',
        )
    )
    with pytest.raises(CaptureError, match='stamp: receipt') as caught:
        poll(running, 401)
    assert caught.value.kind == 'unstamped_state'


@pytest.mark.parametrize(('ahead', 'refused'), [(50, False), (50.000001, True), (3.6e6, True)])
def test_a_stamp_ahead_of_its_receipt_beyond_max_ahead_is_clock_skew_at_once(
    ahead: float, refused: bool
) -> None:
    running = capture(FRONT)
    running.add(frame(FRONT, 20 + ahead, receipt=20))
    if refused:
        with pytest.raises(CaptureError, match=r"'front'.*offset \+\d+\.\d{3} s") as caught:
            poll(running, 20)
        assert caught.value.kind == 'clock_skew'
        if ahead > 1000:
            assert '+3600.000 s' in caught.value.message
    else:
        assert poll(running, 20) is None


def test_a_camera_hours_behind_is_clock_skew_with_the_smallest_offset_at_the_deadline() -> None:
    hours = 7_200_000
    frames = [frame(FRONT, 33 * n - hours - (n % 3) * 100, 33 * n) for n in range(100)]
    running = capture(FRONT, JOINTS)
    found = outcome(running, [*frames, frame(JOINTS, 500)])
    assert kind(found) == 'clock_skew'
    assert isinstance(found, CaptureError)
    assert "view 'front'" in found.message
    assert 'offset -7200.000 s' in found.message


@pytest.mark.parametrize(('behind', 'taken'), [(1000, True), (1000.000001, False)])
def test_a_stamp_up_to_max_clock_skew_before_its_receipt_counts(
    behind: float, taken: bool
) -> None:
    found = outcome(capture(JOINTS), [frame(JOINTS, 400, 400 + behind)])
    assert isinstance(found, Captured) == taken


def test_a_frame_not_newer_than_the_last_of_its_view_is_dropped() -> None:
    frames = [frame(STILL, 250), frame(STILL, 1500), frame(STILL, 1000), frame(JOINTS, 1000)]
    found = outcome(capture(STILL, JOINTS), frames)
    assert kind(found) == 'unsynchronised'
    assert isinstance(found, CaptureError)
    assert '1 not newer' in found.message


def test_a_camera_is_alive_once_a_picture_differs_from_the_one_before() -> None:
    running = capture(FRONT)
    for stamp, picture in [(100, b'a'), (310, b'a'), (340, b'a')]:
        running.add(frame(FRONT, stamp, payload=picture))
        assert poll(running, stamp) is None
    running.add(frame(FRONT, 370, payload=b'b'))
    found = poll(running, 370)
    assert found is not None
    assert stamps(found) == {'front': 370}


def test_a_picture_from_before_settle_proves_the_first_one_after_it() -> None:
    found = outcome(
        capture(FRONT), [frame(FRONT, 100, payload=b'a'), frame(FRONT, 310, payload=b'b')]
    )
    assert stamps(found) == {'front': 310}


def test_only_what_follows_the_header_tells_whether_a_picture_repeats() -> None:
    long, short = b'\x00\x01\x00\x00camera_front', b'\x00\x01\x00\x00cam'
    running = capture(FRONT)
    for number, header in enumerate([long, short, long]):
        stamp = T_END + (300 + number) * MS
        running.add(
            Frame(
                'front',
                'topic',
                'type',
                stamp,
                stamp,
                header + b'same picture',
                payload_offset=len(header),
            )
        )
    assert poll(running, 303) is None
    with pytest.raises(CaptureError) as caught:
        poll(running, 3301)
    assert caught.value.kind == 'frozen'


@pytest.mark.parametrize('place', [0, 65_535, 65_536, 200_000, 299_999])
def test_a_difference_in_any_one_byte_of_a_picture_proves_it(place: int) -> None:
    picture = bytearray(300_000)
    before = frame(FRONT, 310, payload=bytes(picture))
    picture[place] = 1
    found = outcome(capture(FRONT), [before, frame(FRONT, 320, payload=bytes(picture))])
    assert stamps(found) == {'front': 320}


@pytest.mark.parametrize(('before', 'after'), [(b'aaaa', b'aaa'), (b'aaa', b'aaaa')])
def test_a_picture_of_another_length_is_another_picture(before: bytes, after: bytes) -> None:
    frames = [frame(FRONT, 310, payload=before), frame(FRONT, 320, payload=after)]
    assert stamps(outcome(capture(FRONT), frames)) == {'front': 320}


@pytest.mark.parametrize('stamp', [305, 310])
def test_a_frame_that_was_dropped_proves_nothing(stamp: float) -> None:
    frames = [
        frame(FRONT, 310, payload=b'a'),
        frame(FRONT, stamp, payload=b'b'),
        frame(FRONT, 320, payload=b'a'),
    ]
    assert kind(outcome(capture(FRONT), frames)) == 'frozen'


@pytest.mark.parametrize('ring', [2, 3, 8, 16])
def test_a_driver_that_goes_round_a_ring_of_old_buffers_is_frozen(ring: int) -> None:
    frames = [
        frame(FRONT, 33 * number - 33 * ring, payload=b'buffer %d' % (number % ring))
        for number in range(90)
    ]
    assert kind(outcome(capture(FRONT), frames)) == 'frozen'


def test_a_dead_publisher_beside_a_live_one_on_the_same_topic_gives_no_evidence() -> None:
    live = [frame(FRONT, 20 * number, payload=b'live %d' % number) for number in range(15)]
    dead = [frame(FRONT, 20 * number + 5, payload=b'old') for number in range(150)]
    assert kind(outcome(capture(FRONT), sorted([*live, *dead], key=lambda f: f.stamp))) == 'frozen'


def test_states_and_views_that_may_repeat_count_with_their_first_frame() -> None:
    frames = [frame(STILL, 310, payload=b'a'), frame(JOINTS, 311, payload=b'a')]
    assert stamps(outcome(capture(STILL, JOINTS), frames)) == {'still': 310, 'joints': 311}


def test_the_answer_stays_the_same_after_the_end() -> None:
    running = capture(JOINTS)
    running.add(frame(JOINTS, 300))
    first = poll(running, 301)
    running.add(frame(JOINTS, 310))
    assert first is not None
    assert poll(running, 9000) is first
    assert poll(running, -9000) is first
    assert first.seen == {'joints': 1}

    failed = capture(JOINTS)
    with pytest.raises(CaptureError) as caught:
        poll(failed, 3301)
    failed.add(frame(JOINTS, 400))
    with pytest.raises(CaptureError) as again:
        poll(failed, 400)
    assert again.value is caught.value


def test_a_complete_observation_is_given_even_when_the_poll_comes_after_the_deadline() -> None:
    running = capture(JOINTS)
    running.add(frame(JOINTS, 400))
    assert stamps(_found(running, 5000, wall=100.0)) == {'joints': 400}


def _found(running: Capture, ros: float, wall: float) -> Captured:
    found = poll(running, ros, wall)
    assert found is not None
    return found


def test_a_poll_at_the_deadline_still_waits_and_one_nanosecond_later_is_an_error() -> None:
    running = capture(JOINTS)
    assert poll(running, 3300) is None
    with pytest.raises(CaptureError):
        running.poll(running.ros_deadline + 1, 3.3, graph())


def test_a_clock_set_back_ends_the_wait_even_if_a_set_was_found_just_then() -> None:
    running = capture(JOINTS, FRONT)
    assert poll(running, 400) is None
    running.add(frame(JOINTS, 390))
    with pytest.raises(CaptureError, match=r"back by 0\.150 s.*'joints'.*'front'") as caught:
        poll(running, 250)
    assert caught.value.kind == 'clock_jumped'
    assert not caught.value.retryable


def test_a_clock_set_back_to_before_the_start_is_seen_by_the_first_poll() -> None:
    with pytest.raises(CaptureError) as caught:
        poll(capture(JOINTS), -5000)
    assert caught.value.kind == 'clock_jumped'


def test_a_jump_explains_the_stamps_that_it_made_look_skewed() -> None:
    running = capture(JOINTS)
    assert poll(running, 200) is None
    running.add(frame(JOINTS, 200, receipt=-5000))
    with pytest.raises(CaptureError) as caught:
        poll(running, -5000)
    assert caught.value.kind == 'clock_jumped'


def test_jitter_below_a_millisecond_is_no_jump_and_its_sum_is_one() -> None:
    running = capture(JOINTS)
    assert poll(running, 100) is None
    assert poll(running, 99.000001) is None
    with pytest.raises(CaptureError) as caught:
        poll(running, 99)
    assert caught.value.kind == 'clock_jumped'


def test_a_paused_simulation_pauses_the_wait_until_it_goes_on() -> None:
    running = capture(JOINTS)
    for wall in range(29):
        assert poll(running, 100, wall=float(wall)) is None
    running.add(frame(JOINTS, 305))
    assert stamps(_found(running, 306, wall=29.5)) == {'joints': 305}


@pytest.mark.parametrize('start', [0, 100])
def test_a_clock_that_stands_still_ends_at_the_wall_clock_limit(start: float) -> None:
    running = capture(JOINTS, FRONT)
    assert poll(running, start, wall=1.0) is None
    assert poll(running, start, wall=30.0) is None
    with pytest.raises(CaptureError, match=r"stood still.*'joints'.*'front'") as caught:
        poll(running, start, wall=30.1)
    assert caught.value.kind == 'clock_stopped'


def test_a_slow_simulation_at_the_wall_clock_limit_is_told_from_a_stopped_one() -> None:
    running = capture(JOINTS, FRONT)
    for step in range(300):
        assert poll(running, step / 10, wall=step / 10) is None
        running.add(frame(JOINTS, step / 10, payload=b''))
        running.add(frame(FRONT, step / 10))
    with pytest.raises(CaptureError, match=r"capture\.wall_timeout.*'joints'") as caught:
        poll(running, 31, wall=30.1)
    assert caught.value.kind == 'capture_timeout'


def test_a_jump_forward_beyond_the_deadline_is_a_time_out() -> None:
    running = capture(JOINTS)
    running.add(frame(JOINTS, 100))
    assert poll(running, 100) is None
    with pytest.raises(CaptureError) as caught:
        poll(running, 3_600_000)
    assert caught.value.kind == 'stale'


def test_the_graph_is_asked_by_stream_and_only_when_a_time_out_is_explained() -> None:
    asked: list[str] = []

    def facts(name: str) -> TopicFacts:
        asked.append(name)
        return TopicFacts(publishers=1)

    running = capture(FRONT, JOINTS)
    running.add(frame(FRONT, 100))
    assert poll(running, 1000, facts=facts) is None
    assert asked == []
    with pytest.raises(CaptureError):
        poll(running, 3301, facts=facts)
    assert sorted(asked) == ['front', 'joints']


def test_the_choice_does_not_depend_on_when_or_how_often_the_time_is_told() -> None:
    frames = {
        'front': [frame(FRONT, 33 * n, 33 * n + 40) for n in range(60)],
        'wrist': [frame(WRIST, 50 * n + 20, 50 * n + 900) for n in range(40)],
        'joints': [frame(JOINTS, 700 + n, 700 + n) for n in range(50)],
    }
    expected = {'front': 660, 'wrist': 670, 'joints': 700}
    for seed in range(50):
        order = random.Random(seed)
        names = [name for name, each in frames.items() for _ in each]
        order.shuffle(names)
        position = dict.fromkeys(frames, 0)
        running = capture(FRONT, WRIST, JOINTS)
        now = 0.0
        for name in names:
            each = frames[name][position[name]]
            position[name] += 1
            running.add(each)
            if order.random() < 0.3:
                now = max(now, (each.receipt - T_END) / MS)
                found = poll(running, now, wall=0.0)
                if found is not None:
                    break
        assert stamps(_found(running, max(now, 3000), wall=0.0)) == expected


def test_a_silent_camera_does_not_make_the_others_pile_up() -> None:
    running = capture(FRONT, WRIST, timeout=600.0, wall_timeout=700.0)
    alive: weakref.WeakSet[Frame] = weakref.WeakSet()
    for number in range(3000):
        each = frame(FRONT, 33 * number)
        alive.add(each)
        running.add(each)
        del each
        assert poll(running, 33 * number) is None
        assert len(alive) <= 3050 / 33 + 3


def test_no_streams_two_of_a_name_and_a_frame_of_another_stream_are_refused() -> None:
    settings = CaptureSettings()
    with pytest.raises(ValueError, match='at least one stream'):
        Capture([], T_END, settings, ros_start=T_END, wall_start=0.0)
    with pytest.raises(ValueError, match='unique'):
        capture(FRONT, view('front'))
    with pytest.raises(KeyError):
        capture(FRONT).add(frame(WRIST, 300))
