"""Settings of ``capture`` that the measured streams suggest, with the figures behind them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
import math

from harness_eval.capture import StreamKind
from harness_eval.config.models import CaptureSettings
from harness_eval.doctor.streams import quantile, StreamStatistics
from harness_eval.times import seconds

NEARLY_ALL = 0.99
"""Share of the frames that are to find partners within the proposed ``slop``."""
SLOP_MARGIN = 0.2
"""Share that is added to a spread as measured, since a few seconds do not show the worst."""
LEAST_SLOP_MARGIN = 0.005
"""Seconds that are added at least."""
AHEAD_MARGIN = 0.02
"""Seconds that are added to the latest stamp: what a clock under NTP drifts and jumps."""
SETTLE_MARGIN = 0.05
"""Seconds between ``max_ahead`` and one frame on the one side, and ``settle`` on the other."""


@dataclass(frozen=True)
class Proposal:
    """One setting.

    Attributes:
        key: Its key under ``capture``.
        value: What it should be, seconds.
        now: What it is, seconds.
        figures: What was measured, and how the value follows from it.
    """

    key: str
    value: float
    now: float
    figures: str


def propose(
    capture: CaptureSettings,
    streams: Sequence[StreamStatistics],
    tools: Mapping[str, Sequence[StreamStatistics]],
) -> tuple[Proposal, ...]:
    """Propose ``settle``, ``slop`` and ``max_ahead``; what was not seen is not proposed.

    Args:
        capture: The settings as they are.
        streams: Every stream.
        tools: The streams that the observation of each tool needs.
    """
    stamped = [one for one in streams if one.stamps]
    if not stamped:
        return ()
    ahead = _max_ahead(capture, stamped)
    return (_settle(capture, stamped, ahead.value), *_slop(capture, tools), ahead)


def best_spreads(streams: Sequence[StreamStatistics]) -> list[float]:
    """Spread of each frame of the slowest stream with its nearest neighbours in the others.

    Frames at the ends, where another stream has no neighbour on one side, are left out.

    Args:
        streams: Streams that are to be seen together.

    Returns:
        Seconds; empty with fewer than two streams, or if one of them sent nothing in between.
    """
    if len(streams) < 2 or not all(one.stamps for one in streams):
        return []
    slowest = min(streams, key=lambda one: len(one.stamps))
    others = [one for one in streams if one is not slowest]
    first = max(one.stamps[0] for one in others)
    last = min(one.stamps[-1] for one in others)
    found = []
    for stamp in slowest.stamps:
        if first <= stamp <= last:
            chosen = [stamp, *(_nearest(one.stamps, stamp) for one in others)]
            found.append(seconds(max(chosen) - min(chosen)))
    return found


def _max_ahead(capture: CaptureSettings, streams: Sequence[StreamStatistics]) -> Proposal:
    latest = max(streams, key=lambda one: one.offset[2])
    most = latest.offset[2]
    value = _up(max(most, 0.0) + AHEAD_MARGIN, 0.01)
    side = 'after' if most > 0.0 else 'before'
    return Proposal(
        'max_ahead',
        value,
        capture.max_ahead,
        f'the latest stamp ({latest.spec.name}) lies {abs(most) * 1e3:.1f} ms {side} its receipt; '
        f'{AHEAD_MARGIN * 1e3:.0f} ms more for clocks that drift',
    )


def _settle(
    capture: CaptureSettings, streams: Sequence[StreamStatistics], ahead: float
) -> Proposal:
    # Only a picture may be stamped a while after the moment that it shows.
    views = [one for one in streams if one.spec.kind is StreamKind.VIEW]
    periods = {one.spec.name: one.period for one in views if not math.isnan(one.period)}
    slowest = max(periods, key=lambda name: periods[name], default='')
    period = min(periods.get(slowest, 0.0), capture.timeout)
    least = _up(ahead + period + SETTLE_MARGIN, 0.05)
    return Proposal(
        'settle',
        max(least, capture.settle),
        capture.settle,
        f'at least {least:.2f} s: max_ahead ({ahead:.2f} s), one frame of the slowest view '
        f'({slowest or "none"}, {period * 1e3:.0f} ms), which may be stamped when it was read '
        f'out, and {SETTLE_MARGIN * 1e3:.0f} ms; how long the scene takes to come to rest is not '
        'seen here',
    )


def _slop(
    capture: CaptureSettings, tools: Mapping[str, Sequence[StreamStatistics]]
) -> Iterator[Proposal]:
    spreads = {tool: best_spreads(streams) for tool, streams in tools.items()}
    spreads = {tool: found for tool, found in spreads.items() if found}
    if not spreads:
        return
    widest = max(spreads, key=lambda tool: quantile(spreads[tool], NEARLY_ALL))
    found = spreads[widest]
    nearly = quantile(found, NEARLY_ALL)
    value = _up(nearly + max(LEAST_SLOP_MARGIN, SLOP_MARGIN * nearly), 0.001)
    yield Proposal(
        'slop',
        value,
        capture.slop,
        f'spread over {len(found)} frames ({widest}): median {quantile(found, 0.5) * 1e3:.1f} ms, '
        f'p99 {nearly * 1e3:.1f} ms; a margin of {SLOP_MARGIN:.0%}, at least '
        f'{LEAST_SLOP_MARGIN * 1e3:.0f} ms, is added',
    )


def _nearest(stamps: Sequence[int], wanted: int) -> int:
    index = bisect_left(stamps, wanted)
    around = stamps[max(0, index - 1) : index + 1]
    return min(around, key=lambda stamp: abs(stamp - wanted))


def _up(value: float, step: float) -> float:
    """The next multiple of a step, but for what binary fractions add to a value."""
    return round(math.ceil(value / step - 1e-9) * step, 6)
