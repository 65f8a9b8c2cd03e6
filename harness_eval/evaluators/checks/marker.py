"""The ``marker`` check: a fiducial is visible or absent, in a region, at a position."""

from __future__ import annotations

from typing import Literal

from harness_eval.config.checks import MarkerCheck, UsableMarker
from harness_eval.contract import View
from harness_eval.evaluators.checks.fiducials import Fiducials, Sighting
from harness_eval.evaluators.checks.pose import marker_position
from harness_eval.evaluators.checks.result import interval, Measurement
from harness_eval.lines import show

AXES: tuple[Literal['x', 'y', 'z'], ...] = ('x', 'y', 'z')

MAX_LISTED = 8
"""Other markers named when the wanted one is not seen."""


def measure_marker(view: View, settings: UsableMarker, fiducials: Fiducials) -> Measurement:
    """Look for a marker.

    Of several markers with the number all are reported. The check holds if one of them lies
    within every bound that is given; with ``visible: false`` it holds if none of them does.
    Whether an absent marker is only hidden, the check cannot know: the view's ``usable``
    condition is there for that.

    Args:
        view: Where to look.
        settings: What is looked for; for a usable condition without position.
        fiducials: Finds markers.

    Raises:
        DecodeError: The view cannot be decoded.
        EvaluatorError: See :class:`Fiducials` and :func:`marker_position`.
    """
    seen = fiducials.seen(view, settings.dictionary, settings.id)
    ours = [sighting for sighting in seen if sighting.id == settings.id]
    looked = [_look(view, settings, sighting) for sighting in ours]
    visible = not isinstance(settings, MarkerCheck) or settings.visible
    holds = any(match.holds for match in looked) == visible
    found = '; and '.join(match.found for match in looked) or _not_seen(seen)
    return Measurement(holds, f'{found}, wanted {_wanted(settings, visible)}')


def _look(view: View, settings: UsableMarker, sighting: Sighting) -> Measurement:
    x, y = sighting.centre
    holds = True
    bounds_x: tuple[float, ...] = ()
    bounds_y: tuple[float, ...] = ()
    if settings.region is not None:
        x0, y0, x1, y1 = settings.region
        holds = x0 <= x <= x1 and y0 <= y <= y1
        bounds_x, bounds_y = (x0, x1), (y0, y1)
    found = f'centre ({show(x, *bounds_x)}, {show(y, *bounds_y)})'
    position = settings.position if isinstance(settings, MarkerCheck) else None
    if position is not None and isinstance(settings, MarkerCheck) and settings.size is not None:
        shown = []
        measured = marker_position(view, sighting.corners, settings.size)
        for axis, value in zip(AXES, measured, strict=True):
            bounds = position.get(axis)
            holds = holds and (bounds is None or bounds[0] <= value <= bounds[1])
            shown.append(f'{axis} {show(value, *(bounds or ()))}')
        found += f' at {", ".join(shown)} m'
    return Measurement(holds, found)


def _not_seen(seen: tuple[Sighting, ...]) -> str:
    numbers = sorted({sighting.id for sighting in seen})
    if not numbers:
        return 'not seen, nor any other marker of its dictionary'
    listed = ', '.join(map(str, numbers[:MAX_LISTED]))
    more = ' …' if len(numbers) > MAX_LISTED else ''
    return f'not seen (seen: {listed}{more})'


def _wanted(settings: UsableMarker, visible: bool) -> str:
    parts = []
    if settings.region is not None:
        parts.append(f'within [{", ".join(map(_edge, settings.region))}]')
    if isinstance(settings, MarkerCheck) and settings.position is not None:
        axes = ', '.join(f'{axis} in {interval(*b)}' for axis, b in settings.position.items())
        parts.append(f'{axes} m')
    where = ' and '.join(parts)
    if visible:
        return where or 'visible'
    return f'none {where}'.rstrip() if where else 'absent'


def _edge(value: float) -> str:
    """Write an edge with two digits, like the centre, unless that would not be what was given."""
    text = f'{value:.2f}'
    return text if float(text) == value else f'{value:.12g}'
