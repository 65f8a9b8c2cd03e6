"""Promote, hold or reject, from the differences of a comparison. Pure.

One configuration takes the place of another as a whole, and its tools fare apart:

* Rejected is what gets a labelled segment newly wrong, and what is worse beyond chance over all
  that is compared or within one tool.
* Promoted is what is better beyond chance over all that is compared, with a mean gain of what is
  asked for either over all of it, or within one tool in which the gain is beyond chance too. Most
  changes concern one tool, and how many segments of others lie beside it says nothing of them.

Of several tools each is tested at the level that Bonferroni gives it, among those in which
something differs: in the others the test cannot find anything (Tarone, Biometrics 46, 1990; that
something differs is known without the signs, on which alone the test rests). Tools are only asked
for a gain where all together have one, so that of two configurations that are equally good the
second is promoted with at most the probability that counts as chance, however many tools there
are; it is rejected with at most twice that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
import math

from harness_eval.replay.comparison import by_tool, Decision, differences, mean_gain, Pair
from harness_eval.replay.paired_test import fewest_differing, paired_test, PairedTest

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Rule:
    """What a decision takes.

    Attributes:
        min_gain: Mean difference that a promotion takes, at least 0.
        significance: Largest probability of chance that counts as none, above 0 and below 1.

    Raises:
        ValueError: Out of range.
    """

    min_gain: float
    significance: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.min_gain < math.inf or not 0.0 < self.significance < 1.0:
            raise ValueError(
                f'min_gain {self.min_gain} or significance {self.significance} is out of range'
            )


@dataclass(frozen=True)
class _Gain:
    """The mean of some differences.

    Attributes:
        where: Over which segments, in words.
        mean: The mean; NaN: there are none.
        test: Whether it is more than chance.
        compared: How many differences there are.
        level: The largest probability of chance that counts as none.
    """

    where: str
    mean: float
    test: PairedTest
    compared: int
    level: float

    @property
    def is_better(self) -> bool:
        """Better, beyond chance."""
        return self.test.better <= self.level

    @property
    def is_worse(self) -> bool:
        """Worse, beyond chance."""
        return self.mean < 0.0 and self.test.worse <= self.level

    def reaches(self, least: float) -> bool:
        """Whether the mean is at least this, but for rounding."""
        return self.mean >= least - _ROUNDING

    def __str__(self) -> str:
        return f'{self.mean:.4g} on average {self.where}'


def decide(
    pairs: Sequence[Pair], rule: Rule
) -> tuple[Decision, tuple[str, ...], float, PairedTest]:
    """Decide about the candidate of a comparison.

    Args:
        pairs: Every segment that both configurations have.
        rule: What it takes.

    Returns:
        The decision; why, the weightiest reason first; the mean difference over all that is
        compared (NaN: nothing is), and whether that is more than chance.
    """
    overall = _gain('segments', pairs, rule.significance)
    tools = by_tool(pairs)
    differing = {tool: these for tool, these in tools.items() if any(differences(these))}
    gains = [
        _gain(f'segments of {tool}', these, rule.significance / len(differing))
        for tool, these in differing.items()
        if len(tools) > 1
    ]
    decision, reasons = _decided(pairs, overall, gains, rule)
    return decision, tuple(reasons), overall.mean, overall.test


def _gain(what: str, pairs: Sequence[Pair], level: float) -> _Gain:
    found = differences(pairs)
    return _Gain(
        f'over {len(found)} {what}', mean_gain(pairs), paired_test(found), len(found), level
    )


def _decided(
    pairs: Sequence[Pair], overall: _Gain, tools: Sequence[_Gain], rule: Rule
) -> tuple[Decision, list[str]]:
    rejections = _rejections(pairs, overall, tools)
    if rejections:
        return Decision.REJECT, rejections
    if not overall.compared:
        found = f'{len(pairs)} segments, none of them' if pairs else 'no segment at all'
        return Decision.HOLD, [
            f'nothing to compare: found {found} with a truth, a metric or a score in both'
        ]
    if not overall.test.differing:
        return Decision.HOLD, [f'neither better nor worse on any of {overall.compared} segments']
    enough = [one for one in (overall, *tools) if one.reaches(rule.min_gain) and one.is_better]
    if not enough or not overall.is_better:
        return Decision.HOLD, _holds(overall, tools, rule)
    gain = enough[0]
    also = '' if gain is overall else f', and by {overall}'
    return Decision.PROMOTE, [
        f'better by {gain}, p = {gain.test.better:.2g}{also}, and no labelled segment got worse'
    ]


def _rejections(pairs: Sequence[Pair], overall: _Gain, tools: Sequence[_Gain]) -> list[str]:
    found = []
    regressions = sum(pair.regression for pair in pairs)
    if regressions:
        many = f'{regressions} labelled segments' if regressions > 1 else '1 labelled segment'
        found.append(f'{many} got worse, which nothing else makes up for')
    found += [
        f'worse by {-one.mean:.4g} on average {one.where}, p = {one.test.worse:.2g}'
        for one in (overall, *tools)
        if one.is_worse
    ]
    return found


def _holds(overall: _Gain, tools: Sequence[_Gain], rule: Rule) -> list[str]:
    """Why the candidate is neither promoted nor rejected."""
    found = []
    if not overall.reaches(rule.min_gain):
        found.append(
            f'the gain of {overall} is less than the {rule.min_gain:g} that a promotion takes'
        )
        found += [
            _by_chance(one) for one in tools if one.reaches(rule.min_gain) and not one.is_better
        ]
    if not overall.is_better:
        found.append(_by_chance(overall))
    return found


def _by_chance(gain: _Gain) -> str:
    why = f'the gain of {gain} may be chance: p = {gain.test.better:.2g}, above {gain.level:.4g}'
    needed = fewest_differing(gain.level)
    if gain.test.differing < needed:
        differ = 'segment differs' if gain.test.differing == 1 else 'segments differ'
        why += f'; {gain.test.differing} {differ}, and fewer than {needed} show nothing'
    return why
