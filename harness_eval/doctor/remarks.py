"""What is wrong with a stream as it was measured, or with the streams of a tool together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
import math

from harness_eval.capture import smallest_spread, StreamKind, TopicFacts
from harness_eval.capture.explain import TYPES_OF_KINDS
from harness_eval.config.models import CaptureSettings
from harness_eval.doctor.streams import StreamStatistics
from harness_eval.times import seconds

FRAMES_NEEDED = 2
"""Frames of a view in one capture: the first one only proves that the second differs from it."""

UNEVEN = 2.0
"""Periods. A gap of more than so many between two frames is worth a word."""


class Level(str, Enum):
    """How bad it is."""

    FAIL = 'FAIL'
    WARN = 'warn'


@dataclass(frozen=True)
class Remark:
    """One thing that is wrong.

    Attributes:
        level: ``FAIL``: runs will end in an error. ``warn``: they may.
        kind: Machine-readable name in ``snake_case``.
        subject: What it is about, for example ``view 'front'``.
        text: What was expected and what was found.
        remedy: What to do.
    """

    level: Level
    kind: str
    subject: str
    text: str
    remedy: str

    @property
    def line(self) -> str:
        """All of it in one line."""
        return f'{self.subject}: {self.text}; {self.remedy}'


Words = tuple[str, str, str]
"""Kind, text and remedy of a remark."""


def graph_remarks(measured: StreamStatistics, facts: TopicFacts) -> Iterator[Remark]:
    """Say what the graph alone tells to be wrong with a stream, most telling first.

    Args:
        measured: The stream; what came of it is not looked at.
        facts: What the graph says about its topic.
    """
    spec = measured.spec
    wanted = (spec.type,) if spec.type else TYPES_OF_KINDS[spec.kind]
    if not facts.publishers:
        words = (
            'no_publisher',
            f'nobody publishes {spec.topic}',
            'start the camera or driver, or correct the topic (a relative one is resolved in the '
            "node's namespace)",
        )
    elif wanted and not set(wanted) & set(facts.types):
        words = (
            'wrong_type',
            f'expected {" or ".join(wanted)} on {spec.topic}, found {", ".join(facts.types)}',
            'correct the topic or the type in the configuration',
        )
    elif not wanted and len(facts.types) > 1:
        words = (
            'wrong_type',
            f'expected one message type on {spec.topic}, found {", ".join(facts.types)}',
            'name the one to use as its type',
        )
    elif facts.incompatible_qos:
        words = (
            'incompatible_qos',
            f'no subscription matches its publishers: {facts.incompatible_qos}',
            'change the QoS that the publisher offers',
        )
    elif facts.undecodable:
        words = ('undecodable', facts.undecodable, 'install that type, or correct the topic')
    else:
        return
    yield _fail(measured, words)


def stream_remarks(
    measured: StreamStatistics, facts: TopicFacts, capture: CaptureSettings
) -> Iterator[Remark]:
    """Say what is wrong with a stream, most telling first; a cause hides its consequences.

    Args:
        measured: What it was like.
        facts: What the graph says about its topic.
        capture: The limits that a capture will set.
    """
    if not measured.frames:
        known = list(graph_remarks(measured, facts))
        yield from known or [_fail(measured, _silent(measured))]
        return
    fault = _untrusted(measured, capture) or _unusable(measured, capture)
    if fault is not None:
        yield _fail(measured, fault)
    yield from _doubts(measured)


def _silent(measured: StreamStatistics) -> Words:
    """Why nothing that can be read came from a publisher that is there."""
    if measured.mistyped:
        return (
            'wrong_type',
            f'expected {measured.spec.type}, found messages of another type',
            'correct the topic or the type in the configuration',
        )
    if measured.unreadable:
        return 'undecodable', measured.unreadable, 'correct the topic, field or driver'
    if measured.before_clock:
        return (
            'no_clock',
            f'{measured.before_clock} messages came, but the clock reads zero',
            'is the simulation running, is /clock published?',
        )
    return (
        'no_frames',
        f'a publisher of {measured.spec.topic} is there, and nothing came',
        'is it sending? Large best-effort images are lost on the default DDS transport: publish '
        'reliably or compressed, and give both sides a transport profile (config/fastdds.xml)',
    )


def _untrusted(measured: StreamStatistics, capture: CaptureSettings) -> Words | None:
    """Why its stamps make an error of every capture."""
    if measured.headerless:
        return (
            'no_header',
            f'messages of {measured.type} have no header to take a stamp from',
            "set 'stamp: receipt' for it",
        )
    if measured.unstamped:
        return (
            'unstamped',
            f'{measured.unstamped} of {measured.frames} stamps are zero',
            'make the driver fill header.stamp (receipt cannot replace it)',
        )
    least, _, most = measured.offset
    if most > capture.max_ahead:
        return (
            'clock_skew',
            f'a stamp lies {most:.3f} s after its receipt, more than max_ahead '
            f'({capture.max_ahead:g} s)',
            'synchronise the clocks (chrony, PTP); use_sim_time must be the same everywhere',
        )
    if most < -capture.max_clock_skew:
        return (
            'clock_skew',
            f'every stamp lies {-most:.3f} s to {-least:.3f} s before its receipt, more than '
            f'max_clock_skew ({capture.max_clock_skew:g} s)',
            'synchronise the clocks (chrony, PTP); use_sim_time must be the same everywhere',
        )
    return None


def _unusable(measured: StreamStatistics, capture: CaptureSettings) -> Words | None:
    """Why its frames, though their stamps are good, do not make an observation."""
    if measured.unreadable:
        return 'undecodable', measured.unreadable, 'correct the topic, field or driver'
    if measured.frozen:
        return (
            'frozen',
            f'{measured.repeated} of {measured.compared} pictures repeat the one before them '
            'byte for byte',
            'restart the camera; for one simulated without noise set may_repeat: true',
        )
    if measured.frames > FRAMES_NEEDED and len(measured.stamps) < FRAMES_NEEDED:
        return (
            'stamp_stands_still',
            f'{measured.frames} messages came with one and the same stamp',
            'make the driver stamp each message with the time of its measurement',
        )
    needs_two = measured.spec.kind is StreamKind.VIEW and not measured.spec.may_repeat
    needed = FRAMES_NEEDED if needs_two else 1
    if measured.period * needed > capture.timeout:
        return (
            'too_slow',
            f'{needed} frames take {measured.period * needed:.1f} s, and capture.timeout is '
            f'{capture.timeout:g} s',
            'make it send more often, or raise capture.timeout',
        )
    return None


def _doubts(measured: StreamStatistics) -> Iterator[Remark]:
    if measured.repeated and not measured.frozen:
        yield _warn(
            measured,
            'repeats',
            f'{measured.repeated} of {measured.compared} pictures repeat the one before them',
            'they do not count as evidence; let the driver send each picture once',
        )
    if measured.not_newer and len(measured.stamps) >= FRAMES_NEEDED:
        yield _warn(
            measured,
            'not_newer',
            f'{measured.not_newer} of {measured.frames} stamps are not after the one before',
            'they do not count as evidence; is there a second publisher?',
        )
    if measured.jitter > (UNEVEN - 1.0) * measured.period:
        yield _warn(
            measured,
            'uneven',
            f'the time between two frames is off its median of {measured.period * 1e3:.0f} ms by '
            f'up to {measured.jitter * 1e3:.0f} ms',
            'frames are lost or late: look at the load, the network and the DDS transport',
        )


def tool_remarks(
    measured: Sequence[StreamStatistics], capture: CaptureSettings
) -> Iterator[Remark]:
    """Say what is wrong with the streams of a tool together.

    Args:
        measured: The streams that its observation needs.
        capture: The limits that a capture will set.
    """
    spread = closest(measured)
    if spread > capture.slop:
        names = ', '.join(one.spec.name for one in measured)
        yield Remark(
            Level.FAIL,
            'unsynchronised',
            names,
            f'no frames of these lie within slop ({capture.slop:g} s); the smallest spread is '
            f'{spread:.4f} s',
            'trigger the cameras together, or raise slop if the scene is at rest by then',
        )


def closest(measured: Sequence[StreamStatistics]) -> float:
    """Smallest spread of one frame of each stream, seconds; NaN if one has none."""
    if not measured:
        return math.nan
    spread = smallest_spread({one.spec.name: one.stamps for one in measured})
    return math.nan if spread is None else seconds(spread)


def subject_of(measured: StreamStatistics) -> str:
    """How remarks name a stream."""
    return f'{measured.spec.kind.value} {measured.spec.name!r}'


def _fail(measured: StreamStatistics, words: Words) -> Remark:
    return Remark(Level.FAIL, words[0], subject_of(measured), words[1], words[2])


def _warn(measured: StreamStatistics, kind: str, text: str, remedy: str) -> Remark:
    return Remark(Level.WARN, kind, subject_of(measured), text, remedy)
