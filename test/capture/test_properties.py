"""Whatever comes, in whatever order: the rules of evidence hold, and an error names a stream."""

from __future__ import annotations

from collections.abc import Mapping
import itertools
import random

from capture_streams import graph, HEADER, MS, state, T_END, view
from hypothesis import given
from hypothesis import strategies as st

from harness_eval.capture import Capture, Captured, Frame, StreamSpec, TopicFacts
from harness_eval.capture.intake import REMEMBERED
from harness_eval.config.models import CaptureSettings
from harness_eval.contract import CaptureError

SETTINGS = CaptureSettings(
    settle=0.010,
    slop=0.004,
    timeout=0.020,
    wall_timeout=10.0,
    max_clock_skew=0.015,
    max_ahead=0.003,
)
SETTLE, SLOP, TIMEOUT, BEHIND, AHEAD = 10, 4, 20, 15, 3

STREAMS = {
    spec.name: spec for spec in (view('camera'), view('still', may_repeat=True), state('joints'))
}
KINDS = {
    'no_publisher',
    'wrong_type',
    'incompatible_qos',
    'undecodable',
    'no_frames',
    'stale',
    'clock_skew',
    'frozen',
    'unproven_view',
    'unsynchronised',
    'capture_timeout',
    'unstamped_view',
    'unstamped_state',
}


def make(name: str, stamp: int, receipt: int, picture: int) -> Frame:
    return Frame(
        stream=name,
        topic=name,
        type='x',
        stamp=stamp,
        receipt=receipt,
        data=HEADER + bytes([picture]),
        payload_offset=len(HEADER),
    )


def frames(name: str, *, poison: bool) -> st.SearchStrategy[list[Frame]]:
    """Frames of a stream: mostly plausible, some old, skewed, repeated or out of order."""
    moment = st.integers(-5, 40)
    offset = st.one_of(st.just(0), st.integers(-25, AHEAD + (2 if poison else 0)))
    clocked = st.sampled_from([True] * 9 + [False])
    stamped = st.sampled_from([True] * 30 + [False]) if poison else st.just(True)
    raw = st.tuples(moment, offset, st.integers(0, 1), clocked, stamped)

    def build(values: list[tuple[int, int, int, bool, bool]], in_order: bool) -> list[Frame]:
        rows = sorted(values, key=lambda row: row[0]) if in_order else values
        return [
            make(
                name,
                T_END + moment * MS if stamped else 0,
                T_END + (moment - offset) * MS if clocked else 0,
                picture,
            )
            for moment, offset, picture, clocked, stamped in rows
        ]

    return st.builds(build, st.lists(raw, max_size=9), st.booleans())


def streams(*, poison: bool) -> st.SearchStrategy[dict[str, list[Frame]]]:
    return st.sets(st.sampled_from(sorted(STREAMS)), min_size=1).flatmap(
        lambda names: st.fixed_dictionaries(
            {name: frames(name, poison=poison) for name in sorted(names)}
        )
    )


def is_poison(frame: Frame) -> bool:
    ahead = frame.stamp - frame.receipt > AHEAD * MS
    return frame.receipt > 0 and (frame.stamp == 0 or ahead)


def evidence(spec: StreamSpec, came: list[Frame]) -> list[Frame]:
    """Say from the words of the rules, one after the other, which frames are evidence."""
    clocked = [frame for frame in came if frame.receipt > 0]
    alive: list[Frame] = []
    for number, frame in enumerate(clocked):
        newest = max((each.stamp for each in clocked[:number]), default=None)
        newer = newest is None or frame.stamp > newest
        pictures = [each.data for each in reversed(clocked[:number])]
        lately = list(dict.fromkeys(pictures))[:REMEMBERED]
        if newer and (spec.may_repeat or (pictures and frame.data not in lately)):
            alive.append(frame)
    opens = T_END + SETTLE * MS
    return [
        frame
        for frame in alive
        if opens <= frame.stamp <= opens + TIMEOUT * MS
        and frame.receipt >= T_END
        and frame.receipt - frame.stamp <= BEHIND * MS
    ]


def least(eligible: Mapping[str, list[Frame]]) -> dict[str, Frame] | None:
    valid = [
        chosen
        for chosen in itertools.product(*eligible.values())
        if max(f.stamp for f in chosen) - min(f.stamp for f in chosen) <= SLOP * MS
    ]
    if not valid:
        return None
    return {
        name: min(column, key=lambda frame: frame.stamp)
        for name, column in zip(eligible, zip(*valid, strict=True), strict=True)
    }


def interleave(came: Mapping[str, list[Frame]], order: random.Random) -> list[Frame]:
    names = [name for name, stream in came.items() for _ in stream]
    order.shuffle(names)
    queues = {name: iter(stream) for name, stream in came.items()}
    return [next(queues[name]) for name in names]


def run(
    came: Mapping[str, list[Frame]], order: random.Random, facts: TopicFacts | None = None
) -> tuple[Captured | CaptureError, list[Frame]]:
    """Feed the frames in some order, poll now and then, and let the deadline pass."""
    answer = graph() if facts is None else lambda _: facts
    running = Capture(
        [STREAMS[name] for name in came], T_END, SETTINGS, ros_start=T_END, wall_start=0.0
    )
    fed: list[Frame] = []
    now = T_END
    try:
        for frame in interleave(came, order):
            running.add(frame)
            fed.append(frame)
            now = min(now + order.randrange(2 * MS), running.ros_deadline)
            found = running.poll(now, 0.0, answer) if order.random() < 0.5 else None
            if found is not None:
                return found, fed
        found = running.poll(running.ros_deadline + 1, 1.0, answer)
    except CaptureError as error:
        return error, fed
    assert found is not None
    return found, fed


FACTS = st.builds(
    TopicFacts,
    publishers=st.integers(0, 2),
    types=st.sampled_from([(), ('a/msg/A',), ('a/msg/A', 'sensor_msgs/msg/Image')]),
    incompatible_qos=st.sampled_from(['', 'reliability']),
    undecodable=st.sampled_from(['', 'cut short']),
)


@given(streams(poison=False), st.randoms(use_true_random=False))
def test_the_observation_is_the_least_valid_set_of_the_evidence_in_any_order_of_arrival(
    came: dict[str, list[Frame]], order: random.Random
) -> None:
    expected = least({name: evidence(STREAMS[name], each) for name, each in came.items()})
    found, _ = run(came, order)
    if expected is None:
        assert isinstance(found, CaptureError)
    else:
        assert isinstance(found, Captured)
        assert found.frames == expected


@given(streams(poison=True), st.randoms(use_true_random=False))
def test_no_chosen_frame_breaks_a_rule(came: dict[str, list[Frame]], order: random.Random) -> None:
    found, fed = run(came, order)
    if not isinstance(found, Captured):
        return
    assert set(found.frames) == set(came)
    taken = [frame.stamp for frame in found.frames.values()]
    assert max(taken) - min(taken) <= SLOP * MS
    assert found.spread == (max(taken) - min(taken)) / 1e9
    for name, chosen in found.frames.items():
        assert chosen.receipt >= T_END
        assert T_END + SETTLE * MS <= chosen.stamp <= T_END + (SETTLE + TIMEOUT) * MS
        assert -BEHIND * MS <= chosen.stamp - chosen.receipt <= AHEAD * MS
        earlier = [each for each in fed if each.stream == name]
        earlier = earlier[: next(i for i, each in enumerate(earlier) if each is chosen)]
        if not STREAMS[name].may_repeat:
            assert any(each.data != chosen.data for each in earlier)


@given(streams(poison=True), st.randoms(use_true_random=False), FACTS)
def test_an_error_has_a_known_kind_and_names_a_stream_that_is_at_fault(
    came: dict[str, list[Frame]], order: random.Random, facts: TopicFacts
) -> None:
    found, fed = run(came, order, facts)
    if not isinstance(found, CaptureError):
        return
    assert found.kind in KINDS
    named = found.message.split(': ')[0]
    at_fault = {name for name in came if f"'{name}'" in named}
    assert at_fault
    poisoned = {frame.stream for frame in fed if is_poison(frame)}
    if poisoned:
        assert at_fault <= poisoned
        return
    usable = {name: evidence(STREAMS[name], each) for name, each in came.items()}
    if all(usable.values()):
        assert found.kind in {'unsynchronised', 'clock_skew'}
    else:
        assert all(not usable[name] for name in at_fault)
