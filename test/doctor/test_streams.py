"""What is measured of a stream, and what is said about it."""

from __future__ import annotations

from dataclasses import replace
import math

from hypothesis import given
from hypothesis import strategies as st
from measured_streams import (
    DECODER,
    FRONT,
    IMAGE,
    JOINTS,
    joints,
    measured,
    MS,
    picture,
    START,
    THERE,
)
import pytest

from harness_eval.capture import StreamKind, StreamSpec, TopicFacts
from harness_eval.config.models import CaptureSettings
from harness_eval.decode import FieldPath
from harness_eval.doctor import Level, stream_remarks, StreamMeter, StreamStatistics, tool_remarks
from harness_eval.doctor.streams import quantile


def kinds(
    found: StreamStatistics, facts: TopicFacts = THERE, level: Level = Level.FAIL, **capture: float
) -> list[str]:
    remarks = stream_remarks(found, facts, CaptureSettings(**capture))
    return [remark.kind for remark in remarks if remark.level is level]


def test_rate_offset_size_and_encoding_are_measured() -> None:
    found = measured()
    assert found.frames == 10
    assert found.rate == pytest.approx(25.0)
    assert found.period == pytest.approx(0.04)
    assert found.jitter == pytest.approx(0.0)
    assert found.offset == pytest.approx((-0.005, -0.005, -0.005))
    assert (found.width, found.height, found.encoding) == (6, 4, 'mono8')
    assert not found.frozen
    assert kinds(found) == []
    assert kinds(found, level=Level.WARN) == []


@pytest.mark.parametrize(
    ('found', 'kind'),
    [
        (measured(frozen=True), 'frozen'),
        (measured(zero=True), 'unstamped'),
        (measured(offset=60 * MS), 'clock_skew'),
        (measured(offset=-1100 * MS), 'clock_skew'),
        (measured(period=1600 * MS), 'too_slow'),
        (measured(receipt=0), 'no_clock'),
        (measured(encoding='nonsense'), 'undecodable'),
        (measured(0), 'no_frames'),
    ],
)
def test_what_makes_every_capture_fail_is_told(found: StreamStatistics, kind: str) -> None:
    assert kinds(found) == [kind]


def test_limits_themselves_are_still_good() -> None:
    assert kinds(measured(offset=50 * MS)) == []
    assert kinds(measured(offset=-1000 * MS)) == []
    assert kinds(measured(period=1500 * MS)) == []


def test_a_camera_that_may_repeat_is_not_frozen() -> None:
    assert kinds(measured(frozen=True, spec=replace(FRONT, may_repeat=True))) == []


@pytest.mark.parametrize(
    ('facts', 'kind'),
    [
        (TopicFacts(), 'no_publisher'),
        (TopicFacts(1, (JOINTS,)), 'wrong_type'),
        (TopicFacts(1, (IMAGE,), incompatible_qos='durability'), 'incompatible_qos'),
        (TopicFacts(1, (IMAGE,), undecodable='not installed'), 'undecodable'),
        (THERE, 'no_frames'),
    ],
)
def test_why_nothing_came_is_read_from_the_graph(facts: TopicFacts, kind: str) -> None:
    assert kinds(measured(0), facts) == [kind]


def test_messages_of_another_type_are_told_and_not_read() -> None:
    meter = StreamMeter(FRONT, DECODER)
    meter.add(JOINTS, joints(START), START)
    assert kinds(meter.statistics()) == ['wrong_type']


def test_a_state_without_its_field_is_told_with_the_field() -> None:
    spec = StreamSpec('gripper', '/joints', StreamKind.STATE)
    meter = StreamMeter(spec, DECODER, FieldPath.parse('position[name=finger]'))
    meter.add(JOINTS, joints(START, ('arm',)), START)
    remark = next(stream_remarks(meter.statistics(), THERE, CaptureSettings()))
    assert remark.kind == 'undecodable'
    assert remark.subject == "state 'gripper'"
    assert 'finger' in remark.text


def test_a_type_without_a_header_needs_stamps_of_the_receipt() -> None:
    text = 'std_msgs/msg/Float64'
    data = DECODER.serialize(text, DECODER.new(text, data=1.0))
    spec = StreamSpec('force', '/force', StreamKind.STATE)
    for source, expected in (('header', ['no_header']), ('receipt', [])):
        meter = StreamMeter(replace(spec, stamp_source=source), DECODER, FieldPath.parse('data'))
        for number in range(3):
            meter.add(text, data, START + number * MS)
        assert kinds(meter.statistics()) == expected


def test_one_stamp_on_all_messages_is_told() -> None:
    meter = StreamMeter(FRONT, DECODER)
    for number in range(5):
        meter.add(IMAGE, picture(START, number), START + number * 33 * MS)
    assert kinds(meter.statistics()) == ['stamp_stands_still']


def test_a_gap_is_a_warning_and_no_failure() -> None:
    meter = StreamMeter(FRONT, DECODER)
    for number in (0, 1, 2, 3, 9, 10):
        stamp = START + number * 40 * MS
        meter.add(IMAGE, picture(stamp, number), stamp)
    found = meter.statistics()
    assert found.jitter == pytest.approx(0.2)
    assert kinds(found) == []
    assert kinds(found, level=Level.WARN) == ['uneven']


def test_streams_of_a_tool_that_are_never_together_are_told_with_the_spread() -> None:
    other = replace(FRONT, name='wrist')
    apart = [measured(period=200 * MS), measured(period=200 * MS, spec=other, offset=-85 * MS)]
    (remark,) = tool_remarks(apart, CaptureSettings(slop=0.05))
    assert remark.kind == 'unsynchronised'
    assert '0.0800 s' in remark.text
    assert list(tool_remarks(apart, CaptureSettings(slop=0.08))) == []


@given(st.lists(st.floats(-1e3, 1e3), min_size=1), st.floats(0.01, 1.0))
def test_a_quantile_is_one_of_the_values_and_bounds_its_share(
    values: list[float], share: float
) -> None:
    found = quantile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6
    assert sum(value < found for value in values) < share * len(values) + 1e-6


def test_no_quantile_of_nothing() -> None:
    assert math.isnan(quantile([], 0.5))
