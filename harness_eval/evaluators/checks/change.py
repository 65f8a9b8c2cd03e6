"""The ``change`` check: a share of the pixels changed against a reference picture."""

from __future__ import annotations

import numpy as np

from harness_eval.config.checks import ChangeCheck
from harness_eval.contract import Image, View
from harness_eval.evaluators.checks.pictures import grey, pixel_region, same_size
from harness_eval.evaluators.checks.result import interval, Measurement
from harness_eval.lines import show


def measure_change(view: View, reference: Image, settings: ChangeCheck) -> Measurement:
    """Measure which share of a region differs from the reference in grey level.

    Raises:
        DecodeError: The view cannot be decoded.
        EvaluatorError: ``reference_size`` if the two differ in size.
    """
    picture = grey(view.image, f'view {view.name!r}')
    before = grey(reference, f'reference {settings.reference!r}')
    same_size(picture, before, view.name, settings.reference)
    region = pixel_region(settings.region, picture.shape[1], picture.shape[0])
    changed = changed_share(region.of(picture), region.of(before), settings.threshold)
    low, high = settings.fraction
    where = 'picture' if settings.region is None else 'region'
    return Measurement(
        low <= changed <= high,
        f'{show(changed, low, high)} of the {where} changed by {settings.threshold} levels or '
        f'more, wanted within {interval(low, high)}',
    )


def changed_share(now: Image, before: Image, threshold: int) -> float:
    """Give the share of pixels whose grey levels differ by ``threshold`` or more.

    Args:
        now: ``HxW uint8``.
        before: ``HxW uint8`` of the same size.
        threshold: Grey levels, 1 to 255.
    """
    difference = np.abs(now.astype(np.int16) - before.astype(np.int16))
    return int(np.count_nonzero(difference >= threshold)) / difference.size
