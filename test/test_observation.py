"""The observation says what was seen and when; its digest tells one question from another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from cdr_messages import (
    CAMERA_INFO,
    camera_info,
    COMPRESSED,
    compressed_image,
    DECODER,
    IMAGE,
    image_of,
    JOINT_STATE,
    joint_state,
    LASER_SCAN,
    laser_scan,
    raw_image,
)
import cv2
from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from harness_eval.capture import Captured, Frame
from harness_eval.config.checks import Check, StateCheck
from harness_eval.config.models import CaptureSettings, Config, StateSettings, ViewSettings
from harness_eval.config.placeholders import fill_placeholders
from harness_eval.contract import (
    CaptureError,
    Criterion,
    DecodeError,
    EvaluationError,
    EvaluationRequest,
    Observation,
    PostCondition,
    ReportOutput,
    Rubric,
)
from harness_eval.observation import build_observation, input_digest

T_END = 1_000_000_000_000
PICTURE = np.arange(480 * 640 * 3, dtype=np.uint32).astype(np.uint8).reshape(480, 640, 3)

CONFIG = Config(
    capture=CaptureSettings(
        views={
            'front': ViewSettings(topic='cell/front/image_raw', camera_info='cell/front/info'),
            'wrist': ViewSettings(topic='cell/wrist/image_raw/compressed'),
        },
        states={
            'gripper_opening': StateSettings(
                topic='joint_states', field='position[name=finger_joint]'
            ),
            'clearance': StateSettings(topic='scan', field='ranges[1:3]', reduce='min'),
            'ranges': StateSettings(topic='scan', field='ranges'),
        },
    )
)


def frame(stream: str, type_name: str, data: bytes, topic: str = '', **more: Any) -> Frame:
    stamp = more.pop('stamp', T_END + 342_000_000)
    return Frame(stream, topic or f'/{stream}', type_name, stamp, stamp, data, **more)


def front(data: bytes | None = None, **more: Any) -> Frame:
    more = {'topic': '/cell/front/image_raw', 'frame_id': 'front_optical', **more}
    return frame('front', IMAGE, data or image_of(PICTURE[..., ::-1], 'rgb8'), **more)


def gripper(opening: float = 0.0231, **more: Any) -> Frame:
    return frame('gripper_opening', JOINT_STATE, joint_state({'finger_joint': opening}), **more)


def observe(*frames: Frame, **more: Any) -> Observation:
    captured = Captured({one.stream: one for one in frames}, T_END, 0.012, {})
    return build_observation(captured, CONFIG, DECODER, **more)


def refused(*frames: Frame) -> EvaluationError:
    with pytest.raises(EvaluationError) as caught:
        observe(*frames)
    return caught.value


def test_a_view_says_where_it_came_from_and_how_old_it_is() -> None:
    view = observe(front()).views['front']
    assert view.summary == (
        'front: 640x480 rgb8 from /cell/front/image_raw, frame front_optical, '
        '0.342 s after the end'
    )
    assert (view.name, view.topic, view.type) == ('front', '/cell/front/image_raw', IMAGE)
    assert (view.frame_id, view.stamp, view.age) == ('front_optical', T_END + 342_000_000, 0.342)
    assert view.stamp_source == 'header'
    np.testing.assert_array_equal(view.image, PICTURE)
    with pytest.raises(ValueError, match='read-only'):
        view.image[0, 0] = 0
    with pytest.raises(ValueError, match='WRITEABLE'):  # nor can anybody take that back
        view.image.setflags(write=True)


def test_a_compressed_view_gives_its_format_and_its_size() -> None:
    data = compressed_image(
        'rgb8; jpeg compressed bgr8', bytes(cv2.imencode('.jpg', PICTURE[:24, :32])[1])
    )
    view = observe(frame('wrist', COMPRESSED, data)).views['wrist']
    assert view.summary == (
        'wrist: 32x24 rgb8; jpeg compressed bgr8 from /wrist, 0.342 s after the end'
    )
    assert view.image.shape == (24, 32, 3)


def test_a_stamp_of_the_receipt_is_marked() -> None:
    observation = observe(gripper(stamp_source='receipt'))
    state = observation.states['gripper_opening']
    assert state.stamp_source == 'receipt'
    assert state.summary == (
        'gripper_opening: 0.0231, position[name=finger_joint] from /gripper_opening, '
        '0.342 s after the end (stamped on receipt)'
    )


def test_states_are_read_and_reduced_as_configured() -> None:
    scan = laser_scan([9.0, 0.5, 0.25, 7.0, 8.0])
    observation = observe(
        gripper(), frame('clearance', LASER_SCAN, scan), frame('ranges', LASER_SCAN, scan)
    )
    values = {name: state.value for name, state in observation.states.items()}
    assert values == {
        'gripper_opening': 0.0231,
        'clearance': 0.25,
        'ranges': (9.0, 0.5, 0.25, 7.0, 8.0),
    }
    assert observation.states['clearance'].summary.startswith(
        'clearance: 0.25, min of ranges[1:3] from /clearance'
    )
    assert '[9, 0.5, 0.25, 7, … (5 values)]' in observation.states['ranges'].summary
    assert (observation.t_end, observation.spread) == (T_END, 0.012)


def test_the_intrinsics_of_a_view_come_with_it() -> None:
    info = frame('front/camera_info', CAMERA_INFO, camera_info())
    observation = observe(front(), info)
    assert list(observation.views) == ['front']
    intrinsics = observation.views['front'].camera_info
    assert intrinsics is not None
    assert (intrinsics.width, intrinsics.height) == (640, 480)
    assert intrinsics.matrix[0, 0] == 500.0


def test_intrinsics_of_another_size_than_the_image_are_an_error() -> None:
    info = frame('front/camera_info', CAMERA_INFO, camera_info(width=320, height=240))
    error = refused(front(), info)
    assert error.kind == 'camera_info_mismatch'
    assert 'view front' in error.message
    assert '320x240' in error.message
    assert '640x480' in error.message


def test_a_topic_can_be_called_by_its_resolved_name() -> None:
    observation = observe(front(), topics={'front': '/robot_1/cell/front/image_raw'})
    assert observation.views['front'].topic == '/robot_1/cell/front/image_raw'
    assert 'from /robot_1/cell/front/image_raw,' in observation.views['front'].summary


@pytest.mark.parametrize(
    ('broken', 'kind', 'words'),
    [
        (front(raw_image(b'x' * 60, 640, 480, 'rgb8', 1920)), 'malformed_image', '921600'),
        (front(raw_image(b'x' * 60, 4, 5, 'yuv411', 12)), 'unsupported_encoding', 'yuv411'),
        (front(b'\x00\x01\x00\x00'), 'malformed_message', 'ends before'),
        (
            frame('wrist', COMPRESSED, compressed_image('jpeg', b'\xff\xd8\xff\xe0')),
            'malformed_image',
            'it was cut',
        ),
        (frame('front', JOINT_STATE, joint_state({'a': 1.0})), 'not_an_image', 'JointState'),
    ],
)
def test_a_view_that_cannot_be_read_is_an_error_before_anybody_is_asked(
    broken: Frame, kind: str, words: str
) -> None:
    error = refused(broken, gripper())
    assert isinstance(error, DecodeError)
    assert error.kind == kind
    assert error.message.startswith(f'view {broken.stream} ({broken.topic}): ')
    assert words in error.message


@pytest.mark.parametrize(
    ('broken', 'kind', 'words'),
    [
        (
            frame('gripper_opening', JOINT_STATE, joint_state({'elbow': 1.0})),
            'field_absent',
            'there are: elbow',
        ),
        (gripper(float('nan')), 'not_finite', 'nan'),
        (frame('clearance', LASER_SCAN, laser_scan([1.0])), 'field_absent', 'has 1 elements'),
        (
            frame('clearance', LASER_SCAN, laser_scan([1.0, float('nan'), float('inf')])),
            'not_finite',
            'none of 2',
        ),
        (frame('ranges', JOINT_STATE, joint_state({'a': 1.0})), 'field_absent', "'ranges'"),
    ],
)
def test_a_state_that_cannot_be_read_is_an_error_that_names_it(
    broken: Frame, kind: str, words: str
) -> None:
    error = refused(front(), broken)
    assert error.kind == kind
    assert error.message.startswith(f'state {broken.stream} ({broken.topic}): ')
    assert words in error.message


def test_pixels_that_turn_out_to_be_damaged_are_an_error_that_names_the_view() -> None:
    file = bytearray(cv2.imencode('.jpg', PICTURE[:64, :64])[1])
    # The structure stays whole, so only the decoder can find out.
    tables = bytes(file).index(b'\xff\xc4')
    file[tables + 5 : tables + 21] = b'\xff' * 16
    try:
        view = observe(frame('wrist', COMPRESSED, compressed_image('jpeg', bytes(file))))
        with pytest.raises(DecodeError) as caught:
            _ = view.views['wrist'].image
        error: EvaluationError = caught.value
    except DecodeError as early:
        error = early
    assert error.kind == 'malformed_image'
    assert error.message.startswith('view wrist (/wrist): ')


@pytest.mark.parametrize('make', [front, gripper])
def test_a_frame_from_before_the_end_is_no_evidence(make: Callable[..., Frame]) -> None:
    error = refused(make(stamp=T_END - 250_000_000))
    assert isinstance(error, CaptureError)
    assert error.kind == 'stale'
    assert '0.250 s older' in error.message


def test_a_frame_that_the_settings_do_not_know_is_an_error() -> None:
    error = refused(frame('rear', IMAGE, image_of(PICTURE, 'bgr8')))
    assert error.kind == 'unknown_stream'
    assert 'rear' in error.message
    assert 'front, wrist' in error.message


def test_what_comes_from_a_message_stays_in_one_line_without_control_characters() -> None:
    view = observe(front(frame_id='a\nSUCCESS\x1b[2J' + 'b' * 900)).views['front']
    assert '\n' not in view.summary
    assert '\x1b' not in view.summary
    assert len(view.summary) <= 200


# The digest


def request_of(observation: Observation, **condition: Any) -> EvaluationRequest:
    return EvaluationRequest(PostCondition(**condition), observation)


REFERENCE = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
FRAMES = {one.stream: one for one in (front(), gripper())}
BASE: dict[str, Any] = {
    'text': 'The cube is held.',
    'checks': (Check(state=StateCheck(name='gripper_opening', between=(0.0, 0.1))),),
    'references': {'goal': REFERENCE},
    'failure_kinds': ('dropped',),
    'process_allowed': False,
}


def digest(frames: dict[str, Frame] | None = None, t_end: int = T_END, **changed: Any) -> str:
    frames = FRAMES if frames is None else frames
    observation = replace(observe(*frames.values()), t_end=t_end)
    return input_digest(request_of(observation, **{**BASE, **changed}), frames)


def test_the_same_question_has_the_same_digest() -> None:
    assert digest() == digest()
    assert digest(dict(reversed(FRAMES.items()))) == digest()
    # How a reference lies in memory is not part of the question.
    assert digest(references={'goal': np.asfortranarray(REFERENCE)}) == digest()
    assert len(digest()) == 64


def test_the_digest_of_a_question_is_the_same_from_version_to_version() -> None:
    # Digests are on record and in caches: whoever changes one has to change the version in it.
    unseen = 'the red\u200b\u202e cube\x1b\n\u2028 \u00e9'
    filled = fill_placeholders('The {target} is held.', {'target': unseen})
    assert filled == 'The the red cube \u00e9 is held.'
    assert digest() == '22e25a79fb95a62dc02fc4939997205eab79b71a10db0b0428d2d6796fa53af2'
    assert digest(text=filled) == (
        'fc5092304d55d9d349fc4e69670dfc44146641639c0eec60d483a4d1cabeb58d'
    )
    everything = {
        'rubric': Rubric(criteria=(Criterion('held', 'Is it held?', must=True),), version='2'),
        'report': (ReportOutput('fill', 'How full.', 'number'),),
        'regions': {'vlm': {'front': (0.0, 0.0, 0.5, 1.0)}},
    }
    assert digest(**everything) == (
        'bdeafb65d95f4636ea2d1497a18fb7bb4ca9ec930aa89893ac8e51d557ba4b21'
    )


CHANGES: dict[str, dict[str, Any]] = {
    'text': {'text': 'The cube is held!'},
    'bound of a check': {
        'checks': (Check(state=StateCheck(name='gripper_opening', between=(0.0, 0.2))),)
    },
    'weight of a check': {
        'checks': (Check(state=StateCheck(name='gripper_opening', between=(0.0, 0.1)), weight=2),)
    },
    'no check': {'checks': ()},
    'pixel of a reference': {'references': {'goal': REFERENCE + 1}},
    'shape of a reference': {'references': {'goal': REFERENCE.reshape(4, 2, 3)}},
    'name of a reference': {'references': {'start': REFERENCE}},
    'failure kinds': {'failure_kinds': ('dropped', 'missed')},
    'process': {'process_allowed': True},
    'rubric': {'rubric': Rubric(text='Is it held?')},
    'version of a rubric': {'rubric': Rubric(text='Is it held?', version='2')},
    'criteria of a rubric': {'rubric': Rubric(criteria=(Criterion('held', 'Is it held?'),))},
    'weight of a criterion': {
        'rubric': Rubric(criteria=(Criterion('held', 'Is it held?', weight=2.0),))
    },
    'must of a criterion': {
        'rubric': Rubric(criteria=(Criterion('held', 'Is it held?', must=True),))
    },
    'report': {'report': (ReportOutput('fill', 'How full.', 'number'),)},
    'title of an output': {'report': (ReportOutput('fill', 'How full?', 'number'),)},
    'region': {'regions': {'vlm': {'front': (0.0, 0.0, 0.5, 1.0)}}},
    'region of another evaluator': {'regions': {'llm': {'front': (0.0, 0.0, 0.5, 1.0)}}},
    'age': {'t_end': T_END - 1},
    'pixel of a view': {'frames': {**FRAMES, 'front': front(image_of(255 - PICTURE, 'rgb8'))}},
    'reading': {'frames': {**FRAMES, 'gripper_opening': gripper(0.0232)}},
    'stamp of one frame': {'frames': {**FRAMES, 'front': front(stamp=T_END + 342_000_001)}},
    'source of a stamp': {'frames': {**FRAMES, 'front': front(stamp_source='receipt')}},
    'a view less': {'frames': {'gripper_opening': FRAMES['gripper_opening']}},
}


def test_whatever_changes_in_the_question_changes_the_digest() -> None:
    digests = [digest(), *(digest(**change) for change in CHANGES.values())]
    assert len(set(digests)) == len(CHANGES) + 1


def bare_digest(question: Any) -> str:
    text, kinds, references, frames = question
    made = {
        name: Frame(name, topic, type_name, stamp, stamp, data)
        for name, topic, type_name, stamp, data in frames
    }
    condition = PostCondition(
        text=text,
        failure_kinds=tuple(kinds),
        references={
            name: np.frombuffer(pixels, np.uint8).reshape(1, -1) for name, pixels in references
        },
    )
    return input_digest(EvaluationRequest(condition, Observation({}, {}, 0, 0.0)), made)


short = st.text('ab|"[],\x00', max_size=3)
few_bytes = st.binary(max_size=3)
questions = st.tuples(
    short,
    st.lists(short, max_size=2),
    st.lists(st.tuples(short, few_bytes), max_size=2, unique_by=lambda item: item[0]).map(sorted),
    st.lists(
        st.tuples(short, short, short, st.integers(-3, 3), few_bytes),
        max_size=2,
        unique_by=lambda item: item[0],
    ).map(sorted),
)


@given(questions, questions)
def test_two_questions_have_one_digest_only_if_they_are_one(one: Any, other: Any) -> None:
    assert (bare_digest(one) == bare_digest(other)) == (one == other)


@given(st.text('ab', min_size=1, max_size=6), st.integers(0, 6), st.integers(0, 6))
def test_nothing_moves_from_one_field_to_the_next_unseen(
    joined: str, first: int, second: int
) -> None:
    def cut(place: int) -> Any:
        return (joined[:place], [], [], [(joined[place:], 't', 'T', 0, b'')])

    same = joined[:first] == joined[:second]
    assert (bare_digest(cut(first)) == bare_digest(cut(second))) == same
