"""The ``state`` check: a reading lies within bounds."""

from __future__ import annotations

import math

from harness_eval.config.checks import StateCheck
from harness_eval.contract import EvaluationRequest, EvaluatorError
from harness_eval.evaluators.checks.result import interval, Measurement
from harness_eval.lines import show


def measure_state(request: EvaluationRequest, settings: StateCheck) -> Measurement:
    """Compare a reading with its bounds; of several values each must lie within.

    Infinity is a reading (a laser that sees nothing); "not a number" is none.

    Raises:
        EvaluatorError: ``missing_state``, ``empty_reading`` (no value would lie within any
            bounds) or ``not_a_number``.
    """
    states = request.observation.states
    if settings.name not in states:
        known = ', '.join(sorted(states)) or 'none'
        raise EvaluatorError(
            'missing_state', f'a check reads state {settings.name!r}; the observation has {known}'
        )
    reading = states[settings.name].value
    values = reading if isinstance(reading, tuple) else (reading,)
    if not values:
        raise EvaluatorError('empty_reading', f'state {settings.name!r} holds no value at all')
    for index, value in enumerate(values):
        if math.isnan(value):
            raise EvaluatorError(
                'not_a_number',
                f'value {index + 1} of {len(values)} of state {settings.name!r} is not a number',
            )
    low, high = settings.between
    outside = [value for value in values if not low <= value <= high]
    wanted = f'wanted within {interval(low, high)}'
    if len(values) == 1:
        return Measurement(not outside, f'{show(values[0], low, high)}, {wanted}')
    least, most = show(min(values), low, high), show(max(values), low, high)
    found = f'{len(values)} values from {least} to {most}, {len(outside)} outside'
    return Measurement(not outside, f'{found}, {wanted}')
