"""Why a capture failed, in words: the most specific cause, and what was seen of every stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness_eval.capture.choice import smallest_spread
from harness_eval.capture.frames import StreamKind, TopicFacts
from harness_eval.capture.intake import Intake, Window
from harness_eval.config.models import CaptureSettings
from harness_eval.contract import CaptureError
from harness_eval.message_types import CAMERA_INFO, COMPRESSED_IMAGE, IMAGE
from harness_eval.times import seconds

_STILL = 0.5
"""Share of ``wall_timeout`` for which a clock must not have moved to be called stopped. A slow
simulation advances every few milliseconds; half of the wait is far from that."""

TYPES_OF_KINDS: dict[StreamKind, tuple[str, ...]] = {
    StreamKind.VIEW: (IMAGE, COMPRESSED_IMAGE),
    StreamKind.CAMERA_INFO: (CAMERA_INFO,),
    StreamKind.STATE: (),
}
"""Message types that a stream of each kind may have; none named: any."""


@dataclass(frozen=True)
class Moment:
    """When and under which limits a capture ended.

    Attributes:
        window: The window of the stamps.
        settings: The limits in seconds.
        ros_start: Nanoseconds of the ROS clock when the capture began.
        ros_now: Nanoseconds of the ROS clock now.
        wall_still: Seconds of the wall clock since the ROS clock last moved.
    """

    window: Window
    settings: CaptureSettings
    ros_start: int
    ros_now: int
    wall_still: float


Diagnosis = Callable[[Intake, TopicFacts, Moment], 'str | None']
"""Says in words why a stream has no eligible frame, or None when that is not the reason."""


def clock_jumped(intakes: Sequence[Intake], moment: Moment, back: int) -> CaptureError:
    """Make the error for a clock that was set back.

    Args:
        intakes: The streams in the order of the configuration.
        moment: When it was seen.
        back: Nanoseconds by which the clock went back.
    """
    return CaptureError(
        'clock_jumped',
        f'the ROS clock went back by {seconds(back):.3f} s during the capture (a bag that '
        'loops, a simulation that was reset, or a clock that was set); its frames are dropped. '
        f'Run the tool again. {_seen(intakes, {}, moment)}',
    )


def timed_out(
    intakes: Sequence[Intake], moment: Moment, facts: Callable[[str], TopicFacts]
) -> CaptureError:
    """Make the error for a deadline that passed without an observation.

    Args:
        intakes: The streams in the order of the configuration.
        moment: When the deadline passed.
        facts: Gives what the graph says about the topic of a stream, by the stream's name.
    """
    graph = {intake.spec.name: facts(intake.spec.name) for intake in intakes}
    kind, message = _most_specific(intakes, graph, moment)
    return CaptureError(kind, f'{message}. {_seen(intakes, graph, moment)}')


def _most_specific(
    intakes: Sequence[Intake], graph: Mapping[str, TopicFacts], moment: Moment
) -> tuple[str, str]:
    by_wall = moment.ros_now <= moment.window.closes
    if by_wall and moment.wall_still >= _STILL * moment.settings.wall_timeout:
        return 'clock_stopped', _clock_stopped(moment)
    wanting = [intake for intake in intakes if not intake.eligible]
    for kind, diagnosis in _DIAGNOSES:
        for intake in wanting:
            words = diagnosis(intake, graph[intake.spec.name], moment)
            if words is not None:
                return kind, f'{intake.describe()}: {words}'
    if by_wall:
        names = ', '.join(intake.describe() for intake in wanting or intakes)
        return 'capture_timeout', (
            f'no complete observation within {moment.settings.wall_timeout:.1f} s of wall time '
            f'(capture.wall_timeout), in which the ROS clock went on by only '
            f'{seconds(moment.ros_now - moment.ros_start):.3f} s; raise capture.wall_timeout for '
            f'a slow simulation. Still wanting: {names}'
        )
    if wanting:
        return 'capture_timeout', (
            f'{wanting[0].describe()}: no frame that may be evidence came within '
            f'{moment.settings.timeout:.3f} s (capture.timeout)'
        )
    for intake in intakes:
        words = _clock_skew(intake, graph[intake.spec.name], moment)
        if words is not None:
            return 'clock_skew', f'{intake.describe()}: {words}'
    return 'unsynchronised', _unsynchronised(intakes, moment)


def _no_publisher(intake: Intake, facts: TopicFacts, _: Moment) -> str | None:
    if intake.seen or facts.publishers:
        return None
    return (
        'nobody publishes the topic; start the camera or driver, and compare the topic with '
        "'ros2 topic list' (relative names are resolved in the node's namespace)"
    )


def _wrong_type(intake: Intake, facts: TopicFacts, _: Moment) -> str | None:
    wanted = (intake.spec.type,) if intake.spec.type else TYPES_OF_KINDS[intake.spec.kind]
    if intake.mistyped and intake.mistyped == intake.seen:
        return f'expected {" or ".join(wanted)}, found messages of another type'
    if intake.seen or not facts.types:
        return None
    found = ', '.join(facts.types)
    if not wanted and len(facts.types) > 1:
        return f'expected one message type, found {found}; name the one to use as its type'
    if not wanted or set(wanted) & set(facts.types):
        return None
    return (
        f'expected {" or ".join(wanted)}, found {found}; correct the topic or the type in the '
        'configuration'
    )


def _incompatible_qos(intake: Intake, facts: TopicFacts, _: Moment) -> str | None:
    if intake.seen or not facts.incompatible_qos:
        return None
    return f'no subscription matches the QoS of its publishers: {facts.incompatible_qos}'


def _undecodable(intake: Intake, facts: TopicFacts, _: Moment) -> str | None:
    if not facts.undecodable or intake.repeated or intake.unproven:
        return None
    return f'messages came that cannot be read: {facts.undecodable}'


def _no_frames(intake: Intake, facts: TopicFacts, _: Moment) -> str | None:
    if intake.seen > intake.before_clock:
        return None
    if intake.before_clock:
        return (
            f'all {_frames(intake.before_clock)} came before the first /clock, when no time is '
            'known; is the simulation running?'
        )
    who = 'driver' if intake.spec.kind is StreamKind.STATE else 'camera'
    return (
        f'the {who} may have stopped: 0 frames came though {_publishers(facts)} there. Or they '
        'were lost: large images that are sent best effort are lost on the default DDS transport, '
        'whose shared memory is smaller than one picture; publish reliably or compressed, and '
        'give publisher and node a transport profile (Fast DDS: config/fastdds.xml)'
    )


def _stale(intake: Intake, _: TopicFacts, moment: Moment) -> str | None:
    in_window = intake.repeated + intake.unproven + intake.beyond
    opened = moment.ros_now >= moment.window.opens
    if not intake.early or intake.skewed or in_window or not opened or intake.newest is None:
        return None
    before = max(0.0, seconds(moment.window.opens - intake.newest))
    age = seconds(moment.ros_now - intake.newest)
    return (
        f'every frame is from before the time that counts (end of the execution and '
        f'capture.settle); the newest is {age:.3f} s old, {before:.3f} s too early. Has the '
        'sender stopped?'
    )


def _clock_skew(intake: Intake, _: TopicFacts, moment: Moment) -> str | None:
    if intake.offset is None:
        return None
    return (
        f'{_frames(intake.skewed)} came with a stamp at least {-seconds(intake.offset):.3f} s '
        f'before receipt (offset {seconds(intake.offset):+.3f} s), more than the '
        f'{moment.settings.max_clock_skew:.3f} s of capture.max_clock_skew; synchronise the clock '
        'of the sending host with this one (chrony, PTP), see that use_sim_time is the same '
        'everywhere, or make the driver faster'
    )


def _frozen(intake: Intake, facts: TopicFacts, _: Moment) -> str | None:
    if not intake.repeated:
        return None
    several = f'{_publishers(facts)} on the topic. ' if facts.publishers > 1 else ''
    return (
        f'{_frames(intake.repeated)} repeat an earlier picture byte for byte under new stamps. '
        f'{several}Restart the camera or its driver. If the camera is simulated without noise or '
        'only publishes on change, set may_repeat: true'
    )


def _unproven(intake: Intake, _: TopicFacts, __: Moment) -> str | None:
    if not intake.unproven:
        return None
    return (
        'only one frame came, and one frame alone cannot be told from a frozen camera; let it '
        'publish continuously or raise capture.timeout. If the camera is simulated without '
        'noise or only publishes on change, set may_repeat: true'
    )


_DIAGNOSES: tuple[tuple[str, Diagnosis], ...] = (
    ('no_publisher', _no_publisher),
    ('wrong_type', _wrong_type),
    ('incompatible_qos', _incompatible_qos),
    ('undecodable', _undecodable),
    ('no_frames', _no_frames),
    ('stale', _stale),
    ('clock_skew', _clock_skew),
    ('frozen', _frozen),
    ('unproven_view', _unproven),
)


def _unsynchronised(intakes: Sequence[Intake], moment: Moment) -> str:
    spread = smallest_spread({intake.spec.name: intake.stamps for intake in intakes})
    names = ', '.join(intake.describe() for intake in intakes)
    found = 0.0 if spread is None else seconds(spread)
    return (
        f'{names}: every stream sends, but no set of frames lies within '
        f'{moment.settings.slop:.6f} s (capture.slop); the smallest spread seen is '
        f'{found:.6f} s. Trigger the cameras together, or raise capture.slop if the scene is at '
        'rest by then'
    )


def _clock_stopped(moment: Moment) -> str:
    moved = seconds(moment.ros_now - moment.ros_start)
    return (
        f'the ROS clock has stood still for {moment.wall_still:.1f} s of the '
        f'{moment.settings.wall_timeout:.1f} s of wall time (capture.wall_timeout) and went on '
        f'by {moved:.3f} s in all; is the simulation paused, is /clock published?'
    )


def _seen(intakes: Sequence[Intake], graph: Mapping[str, TopicFacts], moment: Moment) -> str:
    lines = (_line(intake, graph.get(intake.spec.name), moment) for intake in intakes)
    return f'Seen: {"; ".join(lines)}'


def _line(intake: Intake, facts: TopicFacts | None, moment: Moment) -> str:
    counts = (
        (intake.eligible, 'usable'),
        (intake.before_clock, 'before /clock'),
        (intake.mistyped, 'of another type'),
        (intake.not_newer, 'not newer'),
        (intake.skewed, 'skewed'),
        (intake.early, 'too early'),
        (intake.beyond, 'too late'),
        (intake.repeated, 'repeated'),
        (intake.unproven, 'first'),
    )
    parts = [f'{number} {what}' for number, what in counts if number]
    if intake.newest is not None:
        parts.append(f'newest {seconds(moment.ros_now - intake.newest):.3f} s old')
    if facts is not None:
        parts.append(f'{facts.publishers} publisher{"" if facts.publishers == 1 else "s"}')
    details = f' ({", ".join(parts)})' if parts else ''
    return f'{intake.describe()} {_frames(intake.seen)}{details}'


def _frames(number: int) -> str:
    return f'{number} frame' if number == 1 else f'{number} frames'


def _publishers(facts: TopicFacts) -> str:
    return '1 publisher is' if facts.publishers == 1 else f'{facts.publishers} publishers are'
