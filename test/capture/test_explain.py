"""What a failed capture says: the most specific kind, the stream, and what was seen of it."""

from __future__ import annotations

import dataclasses

from capture_streams import capture, frame, graph, outcome, state, view
import pytest

from harness_eval.capture import Capture, Frame, StreamKind, StreamSpec, TopicFacts
from harness_eval.contract import CaptureError

FRONT = view('front')
WRIST = view('wrist')
STILL = view('still', may_repeat=True)
JOINTS = state('joints')

GONE = TopicFacts()
THERE = TopicFacts(publishers=1, types=('sensor_msgs/msg/Image',))
GOOD = [frame(FRONT, 33 * n) for n in range(110)]


def failure(running: Capture, frames: list[Frame], **facts: TopicFacts) -> CaptureError:
    error = outcome(running, frames, facts=graph(facts))
    assert isinstance(error, CaptureError), error
    assert not error.retryable
    return error


@pytest.mark.parametrize(
    ('facts', 'kind', 'words'),
    [
        (GONE, 'no_publisher', 'nobody publishes'),
        (
            TopicFacts(1, types=('std_msgs/msg/String',)),
            'wrong_type',
            'found std_msgs/msg/String',
        ),
        (
            dataclasses.replace(THERE, incompatible_qos='durability volatile'),
            'incompatible_qos',
            'durability volatile',
        ),
        (dataclasses.replace(THERE, undecodable='4 bytes'), 'undecodable', '4 bytes'),
        (dataclasses.replace(THERE, publishers=2), 'no_frames', '2 publishers are there'),
    ],
)
def test_a_camera_of_which_nothing_came_is_explained_by_the_graph(
    facts: TopicFacts, kind: str, words: str
) -> None:
    error = failure(capture(FRONT, WRIST), GOOD, wrist=facts)
    assert error.kind == kind
    assert error.message.startswith("view 'wrist' (topic cell/wrist/image_raw): ")
    assert words in error.message


def test_no_frames_names_the_publishers_the_count_and_the_transport_of_large_images() -> None:
    error = failure(capture(FRONT), [], front=THERE)
    assert '): the camera may have stopped: 0 frames came though 1 publisher' in error.message
    assert 'config/fastdds.xml' in error.message


def test_every_error_lists_what_was_seen_of_every_stream() -> None:
    error = failure(capture(FRONT, WRIST, JOINTS), GOOD[:20], wrist=GONE, joints=THERE)
    assert error.message.endswith(
        "Seen: view 'front' (topic cell/front/image_raw) 20 frames (10 usable, 10 too early, "
        "newest 2.674 s old, 1 publisher); view 'wrist' (topic cell/wrist/image_raw) 0 frames "
        "(0 publishers); state 'joints' (topic cell/joints) 0 frames (1 publisher)"
    )


def test_the_most_specific_kind_comes_first_whatever_the_order_of_the_streams() -> None:
    frozen = [frame(FRONT, 33 * n, payload=b'same') for n in range(110)]
    error = failure(capture(FRONT, WRIST), frozen, wrist=GONE)
    assert (error.kind, "view 'wrist'" in error.message.split(':')[0]) == ('no_publisher', True)


def test_of_two_streams_with_the_same_fault_the_first_of_the_configuration_is_named() -> None:
    error = failure(capture(FRONT, WRIST), [], front=GONE, wrist=GONE)
    assert error.message.startswith("view 'front'")
    error = failure(capture(WRIST, FRONT), [], front=GONE, wrist=GONE)
    assert error.message.startswith("view 'wrist'")


def test_a_type_given_in_the_configuration_must_be_there() -> None:
    spec = dataclasses.replace(FRONT, type='sensor_msgs/msg/CompressedImage')
    error = failure(capture(spec), [], front=THERE)
    assert error.kind == 'wrong_type'
    assert 'expected sensor_msgs/msg/CompressedImage, found sensor_msgs/msg/Image' in error.message


def test_frames_of_another_type_than_the_one_given_are_no_evidence() -> None:
    spec = dataclasses.replace(FRONT, type='sensor_msgs/msg/CompressedImage')
    error = failure(capture(spec), GOOD, front=THERE)
    assert error.kind == 'wrong_type'
    assert '110 of another type' in error.message


def test_a_camera_info_topic_must_have_camera_info() -> None:
    spec = StreamSpec('front/camera_info', 'cell/front/info', StreamKind.CAMERA_INFO)
    error = failure(capture(FRONT, spec), GOOD, **{'front/camera_info': THERE})
    assert error.kind == 'wrong_type'
    assert error.message.startswith("camera_info of view 'front' (topic cell/front/info): ")
    assert 'sensor_msgs/msg/CameraInfo' in error.message


def test_a_state_takes_any_type_but_two_types_on_its_topic_need_a_choice() -> None:
    one = TopicFacts(1, types=('a/msg/A',))
    assert failure(capture(JOINTS), [], joints=one).kind == 'no_frames'
    error = failure(capture(JOINTS), [], joints=TopicFacts(2, types=('a/msg/A', 'b/msg/B')))
    assert error.kind == 'wrong_type'
    assert 'a/msg/A, b/msg/B' in error.message


def test_a_sender_that_stopped_at_the_end_is_stale_with_the_age_of_its_newest_frame() -> None:
    error = failure(capture(FRONT, WRIST), [*GOOD, frame(WRIST, 100), frame(WRIST, 133)])
    assert error.kind == 'stale'
    assert error.message.startswith("view 'wrist'")
    assert 'the newest is 3.168 s old, 0.167 s too early' in error.message


def test_a_camera_that_repeats_one_picture_is_frozen_and_the_way_out_is_named() -> None:
    frozen = [frame(WRIST, 33 * n, payload=b'same') for n in range(90)]
    error = failure(capture(FRONT, WRIST), [*GOOD, *frozen])
    assert error.kind == 'frozen'
    assert error.message.startswith("view 'wrist'")
    assert '80 frames repeat an earlier picture' in error.message
    assert 'may_repeat: true' in error.message


def test_a_camera_that_froze_before_its_first_frame_is_frozen_after_two() -> None:
    same = [frame(WRIST, stamp, payload=b'same') for stamp in (400, 1400)]
    assert failure(capture(WRIST), same).kind == 'frozen'


def test_one_frame_alone_is_unproven() -> None:
    error = failure(capture(FRONT, WRIST), [*GOOD, frame(WRIST, 400)])
    assert error.kind == 'unproven_view'
    assert error.message.startswith("view 'wrist'")
    assert 'one frame alone cannot be told from a frozen camera' in error.message


def test_streams_that_never_meet_are_unsynchronised_with_the_exact_smallest_spread() -> None:
    frames = [frame(STILL, 400 + 200 * n) for n in range(11)]
    frames += [frame(JOINTS, 500 + 203.5 * n) for n in range(10)]
    error = failure(capture(STILL, JOINTS), frames)
    assert error.kind == 'unsynchronised'
    assert 'the smallest spread seen is 0.068500 s' in error.message
    assert '0.050000 s (capture.slop)' in error.message
    assert "'still'" in error.message
    assert "'joints'" in error.message


def test_a_few_skewed_frames_are_named_when_nothing_else_explains_the_time_out() -> None:
    frames = [frame(STILL, 400), frame(JOINTS, 600), frame(JOINTS, 700, receipt=1950)]
    error = failure(capture(STILL, JOINTS), frames)
    assert error.kind == 'clock_skew'
    assert error.message.startswith("state 'joints'")
    assert 'offset -1.250 s' in error.message


def test_a_skewed_frame_of_a_good_camera_does_not_hide_that_another_is_frozen() -> None:
    frozen = [frame(WRIST, 33 * n, payload=b'same') for n in range(90)]
    skewed = frame(FRONT, 10, receipt=2000)
    error = failure(capture(FRONT, WRIST), [skewed, *GOOD, *frozen])
    assert error.kind == 'frozen'
    assert error.message.startswith("view 'wrist'")


def test_only_frames_from_before_the_first_clock_are_no_frames() -> None:
    before = [dataclasses.replace(each, receipt=0) for each in GOOD[:3]]
    error = failure(capture(FRONT), before, front=THERE)
    assert error.kind == 'no_frames'
    assert 'all 3 frames came before the first /clock' in error.message


def test_what_no_other_kind_explains_is_a_capture_timeout_naming_the_stream() -> None:
    error = failure(capture(FRONT, JOINTS), [*GOOD, frame(JOINTS, 3301)])
    assert error.kind == 'capture_timeout'
    assert error.message.startswith("state 'joints'")
    assert '1 too late' in error.message


def test_a_skewed_camera_is_not_called_stale_for_its_old_stamps() -> None:
    frames = [frame(JOINTS, 100, receipt=100), frame(JOINTS, 200, receipt=1400)]
    assert failure(capture(JOINTS), frames).kind == 'clock_skew'


def test_one_message_that_cannot_be_read_does_not_hide_a_frozen_camera() -> None:
    frozen = [frame(WRIST, 33 * n, payload=b'same') for n in range(90)]
    facts = dataclasses.replace(THERE, undecodable='cut short')
    assert failure(capture(WRIST), frozen, wrist=facts).kind == 'frozen'
    early = frozen[:3]
    assert failure(capture(WRIST), early, wrist=facts).kind == 'undecodable'
