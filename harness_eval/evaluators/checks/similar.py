"""The ``similar`` check: a region looks like the same region of a reference picture."""

from __future__ import annotations

import math

import numpy as np

from harness_eval.config.checks import SimilarCheck
from harness_eval.contract import EvaluatorError, Image, View
from harness_eval.evaluators.checks.pictures import grey, pixel_region, same_size
from harness_eval.evaluators.checks.result import Measurement
from harness_eval.lines import show


def measure_similar(view: View, reference: Image, settings: SimilarCheck) -> Measurement:
    """Measure how well a region correlates with the reference.

    Raises:
        DecodeError: The view cannot be decoded.
        EvaluatorError: ``reference_size`` if the two differ in size, ``flat_region`` if one of
            the regions has a single grey level: the correlation is not defined then.
    """
    picture = grey(view.image, f'view {view.name!r}')
    wanted = grey(reference, f'reference {settings.reference!r}')
    same_size(picture, wanted, view.name, settings.reference)
    region = pixel_region(settings.region, picture.shape[1], picture.shape[0])
    value = correlation(region.of(picture), region.of(wanted))
    if value is None:
        flat = region.of(picture)
        whose = f'view {view.name!r}'
        if flat.min() != flat.max():
            flat, whose = region.of(wanted), f'reference {settings.reference!r}'
        raise EvaluatorError(
            'flat_region',
            f'{whose} has the one grey level {int(flat.flat[0])} in the whole region '
            f'({flat.shape[1]}x{flat.shape[0]} pixels); correlation is not defined there, choose '
            'a region with structure or a color check',
        )
    bound = settings.at_least
    return Measurement(
        value >= bound, f'correlation {show(value, bound)}, wanted at least {bound:.12g}'
    )


def correlation(first: Image, second: Image) -> float | None:
    """Give the zero-mean normalised cross-correlation of two pictures, -1 to 1.

    It does not change with brightness or contrast. Method: Lewis, Fast normalized
    cross-correlation, Vision Interface (1995), without the search over shifts.

    Args:
        first: ``HxW uint8``.
        second: ``HxW uint8`` of the same size.

    Returns:
        ``None`` if one of the two is flat.
    """
    if first.min() == first.max() or second.min() == second.max():
        return None
    a = first.astype(np.float64) - first.mean(dtype=np.float64)
    b = second.astype(np.float64) - second.mean(dtype=np.float64)
    value = float(np.sum(a * b)) / math.sqrt(float(np.sum(a * a)) * float(np.sum(b * b)))
    return min(max(value, -1.0), 1.0)  # rounding may leave 1 by an ulp
