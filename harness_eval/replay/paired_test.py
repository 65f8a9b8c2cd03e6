"""Is a mean of paired differences more than chance? One-sided, in both directions. Pure.

Under the hypothesis that two configurations are equally good, each difference would as likely have
come out with the other sign. The test goes through all ways to choose the signs and asks how often
their sum is at least as large as the one that was found (Fisher's randomisation test; "exact" for
every number of pairs, and nothing is assumed about how the differences are distributed, which are
mostly zeros and ones here; Wilcoxon's test would throw away how large they are).

Where all differences that are not 0 have one size, as with verdicts that are right or wrong, this
is McNemar's test in its exact (binomial) form, and is computed as that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math
from typing import Any

DRAWS = 2**14
"""Ways to choose the signs that are gone through: all of them up to 14 pairs that differ."""

_BATCH = 1024
_SEED = 0
_SAME = 1e-12


@dataclass(frozen=True)
class PairedTest:
    """What the test gives.

    Attributes:
        method: Name of the test; empty if nothing differs.
        better: Probability of a sum at least as large, were both equally good.
        worse: Probability of a sum at most as large.
        differing: How many differences are not 0.
    """

    method: str
    better: float
    worse: float
    differing: int


def paired_test(differences: Sequence[float]) -> PairedTest:
    """Test whether the mean of paired differences is above 0, and whether it is below.

    Args:
        differences: Finite numbers, one a pair.
    """
    differing = [one for one in differences if one != 0.0]
    if not differing:
        return PairedTest('', 1.0, 1.0, 0)
    sizes = [abs(one) for one in differing]
    if math.isclose(min(sizes), max(sizes), rel_tol=_SAME):
        from scipy.stats import binomtest

        ups, count = sum(one > 0.0 for one in differing), len(differing)
        return PairedTest(
            'exact binomial (McNemar)',
            float(binomtest(ups, count, 0.5, alternative='greater').pvalue),
            float(binomtest(ups, count, 0.5, alternative='less').pvalue),
            count,
        )
    how = 'exact' if 2 ** len(differing) <= DRAWS else f'{DRAWS} draws'
    return PairedTest(
        f'sign-flip permutation, {how}',
        _permuted(differing, 'greater'),
        _permuted(differing, 'less'),
        len(differing),
    )


def fewest_differing(significance: float) -> int:
    """How many pairs must differ, all of them for the better, before it can be more than chance.

    Args:
        significance: Largest probability that counts as more than chance, in (0, 1).
    """
    return max(1, math.ceil(math.log(significance, 0.5) - _SAME))


def _permuted(differing: Sequence[float], alternative: str) -> float:
    import numpy as np
    from scipy.stats import permutation_test

    def total(sample: Any, axis: int) -> Any:
        return np.sum(sample, axis=axis)

    result = permutation_test(
        (np.asarray(differing),),
        total,
        permutation_type='samples',
        n_resamples=DRAWS,
        batch=_BATCH,
        alternative=alternative,
        vectorized=True,
        random_state=np.random.default_rng(_SEED),  # the same figures on every run
    )
    return float(result.pvalue)
