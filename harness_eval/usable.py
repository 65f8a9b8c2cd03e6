"""Whether anything may be concluded from the views: their ``usable`` conditions.

An occluded camera makes "object absent" true. So each view may say what is always to be seen in
it, and where that is missing nobody judges.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness_eval.config.checks import UsableCondition
from harness_eval.contract import Abstention, Observation, View
from harness_eval.evaluators.checks.color import measure_color
from harness_eval.evaluators.checks.fiducials import Fiducials
from harness_eval.evaluators.checks.marker import measure_marker


def check_usable(observation: Observation, conditions: Mapping[str, UsableCondition]) -> None:
    """Raise unless every view of the observation that has a condition meets it.

    Args:
        observation: What was captured.
        conditions: Usable conditions by the name of the view; those of views that the
            observation does not have are not looked at.

    Raises:
        Abstention: ``view_unusable``, naming every view that fails and what was seen of it.
        DecodeError: A view cannot be decoded.
        EvaluatorError: The condition cannot be looked at in this view (a color in a picture of
            one channel, for example).
    """
    fiducials = Fiducials()
    unusable = []
    for name, view in observation.views.items():
        condition = conditions.get(name)
        if condition is None:
            continue
        found = _what_is_missing(view, condition, fiducials)
        if found:
            unusable.append(f'view {name!r} ({view.topic}) is not usable: {found}')
    if unusable:
        raise Abstention('view_unusable', '; '.join(unusable))


def _what_is_missing(view: View, condition: UsableCondition, fiducials: Fiducials) -> str:
    """Say what is not seen as it must be; empty if the view is usable."""
    if condition.marker is not None:
        measured = measure_marker(view, condition.marker, fiducials)
        name = f'marker {condition.marker.id} of {condition.marker.dictionary}'
        if not measured.holds:
            return f'{name} {measured.found}'
    if condition.color is not None:
        measured = measure_color(view, condition.color)
        if not measured.holds:
            return f'its color {measured.found}'
    return ''
