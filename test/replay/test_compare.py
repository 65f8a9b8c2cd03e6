"""A candidate is promoted for a gain that is no chance, and never with a regression."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
import json
import math

from hypothesis import given, settings
import hypothesis.strategies as st
from judged_results import LABELS, replayed, result_of, runs
import numpy as np
import pytest
from scipy.stats import binom

from harness_eval.replay.compare import compare, CompareError
from harness_eval.replay.comparison import Comparison, Decision, Pair
from harness_eval.replay.decision import decide, Rule
from harness_eval.replay.paired_test import fewest_differing, paired_test
from harness_eval.replay.results import Metric, Replayed, Skipped, Truth

WRONG, RIGHT = 'failure', 'success'  # of runs that really succeeded


def labelled(base: str, candidate: str) -> Comparison:
    """Compare runs that really succeeded: ``r`` is right, ``w`` wrong, ``a`` abstained …."""
    words = {'r': RIGHT, 'w': WRONG, 'a': 'abstained'}
    first, second = ([words[one] for one in side] for side in (base, candidate))
    return compare(
        runs(*first, truth=True, config='base.yaml'),
        runs(*second, truth=True, config='candidate.yaml'),
    )


def scored(base: list[float], candidate: list[float], **options: float) -> Comparison:
    sides = [
        replayed(*(result_of('success', f'run_{n}', score=one) for n, one in enumerate(side)))
        for side in (base, candidate)
    ]
    return compare(*sides, **options)


# --- promotion --------------------------------------------------------------------------------


def test_five_wrong_verdicts_put_right_and_none_made_wrong_promote() -> None:
    found = labelled('wwwwwrrrrr', 'rrrrrrrrrr')
    assert found.decision is Decision.PROMOTE
    assert found.mean == 0.5
    assert found.test.method == 'exact binomial (McNemar)'
    assert found.test.better == 0.5**5
    assert len(found.corrections) == 5
    assert found.reasons == (
        'better by 0.5 on average over 10 segments, p = 0.031, and no labelled segment got worse',
    )


def test_four_put_right_may_be_chance_and_hold() -> None:
    found = labelled('wwwwrrrrrr', 'rrrrrrrrrr')
    assert found.decision is Decision.HOLD
    assert found.test.better == 0.0625
    assert found.reasons == (
        'the gain of 0.4 on average over 10 segments may be chance: p = 0.062, above 0.05; 4 '
        'segments differ, and fewer than 5 show nothing',
    )


def test_two_that_do_not_differ_hold() -> None:
    found = labelled('rrwr', 'rrwr')
    assert found.decision is Decision.HOLD
    assert found.reasons == ('neither better nor worse on any of 4 segments',)


def test_a_sure_gain_that_is_too_small_holds() -> None:
    found = labelled('w' * 5 + 'r' * 100, 'r' * 105)
    assert found.test.better < 0.05
    assert found.decision is Decision.HOLD
    assert found.reasons == (
        'the gain of 0.04762 on average over 105 segments is less than the 0.05 that a promotion '
        'takes',
    )


def test_a_gain_of_exactly_what_is_asked_for_is_enough() -> None:
    assert labelled('w' * 5 + 'r' * 95, 'r' * 100).decision is Decision.PROMOTE


def test_the_gain_and_the_probability_that_are_needed_can_be_chosen() -> None:
    base = runs(*[WRONG] * 4, *[RIGHT] * 6, truth=True)
    better = runs(*[RIGHT] * 10, truth=True)
    assert compare(base, better, significance=0.1).decision is Decision.PROMOTE
    assert compare(base, better, significance=0.1, min_gain=0.41).decision is Decision.HOLD
    assert compare(better, better, min_gain=0.0).decision is Decision.HOLD
    for bad in ({'min_gain': -0.1}, {'min_gain': math.nan}, {'significance': 0.0}):
        with pytest.raises(ValueError, match='out of range'):
            compare(base, better, **bad)


# --- several tools ----------------------------------------------------------------------------


def of_tools(**tools: tuple[str, str]) -> Comparison:
    """Compare runs of several tools that really succeeded: ``r`` is right, ``w`` wrong."""
    words = {'r': RIGHT, 'w': WRONG}
    sides = [
        replayed(
            *(
                result_of(words[one], f'{tool}_{number}', tool=tool, truth=True)
                for tool, said in tools.items()
                for number, one in enumerate(said[side])
            )
        )
        for side in (0, 1)
    ]
    return compare(*sides)


def scored_tools(**tools: tuple[list[float], list[float]]) -> Comparison:
    sides = [
        replayed(
            *(
                result_of('success', f'{tool}_{number}', tool=tool, score=one)
                for tool, scores in tools.items()
                for number, one in enumerate(scores[side])
            )
        )
        for side in (0, 1)
    ]
    return compare(*sides)


def test_a_gain_within_one_tool_promotes_however_many_others_lie_beside_it() -> None:
    same = ('r' * 150, 'r' * 150)
    found = of_tools(pick=('w' * 10 + 'r' * 40, 'r' * 50), place=same, pour=same)
    assert found.mean < 0.05
    assert found.decision is Decision.PROMOTE
    assert found.reasons == (
        'better by 0.2 on average over 50 segments of pick, p = 0.00098, and by 0.02857 on '
        'average over 350 segments, and no labelled segment got worse',
    )


def test_a_gain_within_one_tool_that_may_be_chance_holds() -> None:
    found = of_tools(pick=('wwwwrr', 'rrrrrr'), place=('r' * 150 + 'w', 'r' * 151))
    assert found.test.better < 0.05
    assert found.decision is Decision.HOLD
    assert found.reasons == (
        'the gain of 0.03185 on average over 157 segments is less than the 0.05 that a promotion '
        'takes',
        'the gain of 0.6667 on average over 6 segments of pick may be chance: p = 0.062, above '
        '0.025; 4 segments differ, and fewer than 6 show nothing',
    )


def test_a_tool_that_surely_gets_worse_rejects_though_all_together_gain() -> None:
    lower = ([0.9] * 10, [0.6] * 10)
    found = scored_tools(pick=([0.1] * 30, [0.9] * 30), place=lower)
    assert found.mean > 0.5
    assert found.decision is Decision.REJECT
    assert found.reasons == ('worse by 0.3 on average over 10 segments of place, p = 0.00098',)


def test_a_gain_within_one_tool_holds_where_all_together_have_none() -> None:
    place = ([0.5] * 20, [0.8] * 9 + [0.2] * 11)
    found = scored_tools(pick=([0.5] * 8, [0.6] * 8), place=place)
    assert found.decision is Decision.HOLD
    assert [reason.partition(' over ')[0] for reason in found.reasons] == [
        'the gain of 0.007143 on average',
    ] * 2
    assert 'is less than the 0.05' in found.reasons[0]
    assert 'may be chance' in found.reasons[1]


def test_equally_good_configurations_are_promoted_no_more_often_than_chance_may() -> None:
    """However many tools there are; with any gain enough, so that only the tests stand between."""
    rng, draws, rule = np.random.default_rng(4), 150, Rule(min_gain=0.0, significance=0.2)
    sides = [result_of('success', tool=f'tool_{number}') for number in range(6)]
    decisions = []
    for _ in range(draws):
        signs = rng.choice([-1.0, 1.0], (len(sides), 12))
        pairs = [
            Pair(one, one, metric='score', difference=0.5 * sign)
            for one, row in zip(sides, signs, strict=True)
            for sign in row
        ]
        decisions.append(decide(pairs, rule)[0])
    # A rate at its limit stays below these with a probability of 1 - 1e-4.
    promoted, rejected = decisions.count(Decision.PROMOTE), decisions.count(Decision.REJECT)
    assert 0 < promoted <= binom.ppf(1 - 1e-4, draws, rule.significance)
    assert 0 < rejected <= binom.ppf(1 - 1e-4, draws, 2 * rule.significance)


# --- rejection --------------------------------------------------------------------------------


def test_one_regression_rejects_whatever_the_gain() -> None:
    found = labelled('w' * 50 + 'r', 'r' * 50 + 'w')
    assert found.decision is Decision.REJECT
    assert [pair.candidate.completion.run_id for pair in found.regressions] == ['run_50']
    assert found.reasons[0].startswith('1 labelled segment got worse')


@pytest.mark.parametrize(
    ('truth', 'base', 'candidate', 'regression'),
    [
        (True, 'success', 'failure', True),
        (False, 'failure', 'success', True),
        (False, 'error', 'success', True),
        (False, 'abstained', 'success', True),
        (True, 'abstained', 'failure', True),
        (False, 'process', 'success', True),
        (True, 'success', 'success', False),
        (False, 'success', 'success', False),
        (True, 'failure', 'failure', False),
        (True, 'success', 'error', False),
        (True, 'success', 'abstained', False),
        (True, 'success', 'process', False),
        (True, 'failure', 'success', False),
        (None, 'success', 'failure', False),
        (None, 'failure', 'success', False),
    ],
)
def test_a_regression_is_a_verdict_that_is_newly_wrong(
    truth: bool | None, base: str, candidate: str, regression: bool
) -> None:
    found = compare(
        replayed(result_of(base, truth=truth)), replayed(result_of(candidate, truth=truth))
    )
    assert found.pairs[0].regression is regression
    assert (found.decision is Decision.REJECT) is regression


def test_scores_that_are_surely_lower_reject() -> None:
    found = scored([0.9, 0.91, 0.92, 0.93, 0.94, 0.95], [0.8, 0.7, 0.6, 0.5, 0.4, 0.3])
    assert found.decision is Decision.REJECT
    assert found.test.worse == pytest.approx(1 / 64)
    assert found.reasons == ('worse by 0.375 on average over 6 segments, p = 0.016',)


def test_scores_that_are_a_little_lower_hold() -> None:
    assert scored([0.9, 0.8], [0.8, 0.85]).decision is Decision.HOLD


# --- nothing to compare -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ('base', 'candidate'),
    [
        (replayed(), replayed()),
        (replayed(skipped=(Skipped('a', 'bag_damaged', 'cut'),)), replayed()),
        (runs('error', 'error', truth=True), runs('success', 'success')),
        (runs('success'), runs('success')),
        (runs('abstained', truth=True), runs('success', truth=True)),
        (replayed(result_of('success', 'a')), replayed(result_of('success', 'b'))),
    ],
)
def test_nothing_comparable_is_no_pass(base: Replayed, candidate: Replayed) -> None:
    found = compare(base, candidate)
    assert found.decision is Decision.HOLD
    assert found.reasons[0].startswith('nothing to compare')
    assert found.to_plain()['mean_gain'] is None


def test_what_was_skipped_is_told_once() -> None:
    one, two = Skipped('a', 'bag_damaged', 'cut'), Skipped('b', 'not_a_bag', 'text')
    found = compare(replayed(skipped=(one,)), replayed(skipped=(one, two)))
    assert found.skipped == (one, two)


def test_segments_of_one_replay_alone_are_counted_and_not_compared() -> None:
    base = replayed(result_of('success', 'a', score=1.0), result_of('success', 'b', score=1.0))
    found = compare(base, replayed(result_of('success', 'b', score=0.0)))
    assert found.unpaired == (('case', 'a', 0),)
    assert [pair.difference for pair in found.pairs] == [-1.0]


def test_cases_of_one_name_are_paired_one_after_the_other() -> None:
    base = replayed(result_of('success', score=0.2), result_of('success', score=0.4))
    candidate = replayed(result_of('success', score=0.3), result_of('success', score=0.9))
    assert [round(pair.difference, 3) for pair in compare(base, candidate).pairs] == [0.1, 0.5]
    alone = compare(base, replayed(result_of('success', score=0.3)))
    assert (alone.pairs, alone.unpaired) == ((), (('case', 'run', 0),))


def test_losing_a_verdict_is_told_and_is_no_gain() -> None:
    found = labelled('wwwwwwrr', 'aaaaaarr')
    assert (found.decision, found.mean) == (Decision.HOLD, 0.0)
    assert found.verdicts() == (8, 2)
    assert found.notes == ('the candidate has no verdict on 6 segments on which the base has one',)


# --- which metric decides ---------------------------------------------------------------------


def pair_of(metrics: dict[str, Metric] | None = None, **sides: dict[str, object]):
    base, candidate = (
        replayed(result_of(**{'said': 'success', **side}), metrics=metrics or {})
        for side in (sides['base'], sides['candidate'])
    )
    return compare(base, candidate).pairs[0]


DEPTH = {'pick': Metric('depth', scale=4.0)}


def test_the_truth_goes_before_the_metric_and_that_before_the_score() -> None:
    base = {'score': 0.2, 'report': {'depth': 1.0}, 'truth': True}
    candidate = {'score': 0.9, 'report': {'depth': 3.0}, 'truth': True}
    one = pair_of(DEPTH, base=base, candidate=candidate)
    assert (one.metric, one.difference) == ('truth', 0.0)
    del base['truth'], candidate['truth']
    one = pair_of(DEPTH, base=base, candidate=candidate)
    assert (one.metric, one.name, one.difference) == ('report', 'depth', 0.5)
    assert (one.base_value, one.candidate_value) == (1.0, 3.0)
    one = pair_of({}, base=base, candidate=candidate)
    assert (one.metric, one.difference) == ('score', pytest.approx(0.7))


def test_a_metric_counts_only_where_both_have_it() -> None:
    one = pair_of(
        DEPTH,
        base={'score': 0.2, 'report': {'depth': 1.0}},
        candidate={'score': 0.4},
    )
    assert one.metric == 'score'
    one = pair_of(DEPTH, base={'report': {'depth': 1.0}}, candidate={'score': 0.4})
    assert (one.metric, one.difference) == ('', 0.0)
    one = pair_of(
        DEPTH,
        base={'said': 'error', 'truth': True},
        candidate={'score': 0.4, 'truth': True, 'report': {'depth': 1.0}},
    )
    assert one.metric == ''


@pytest.mark.parametrize(
    ('metric', 'base', 'candidate', 'difference'),
    [
        (Metric('m', 'maximize', 4.0), 1, 2, 0.25),
        (Metric('m', 'minimize', 4.0), 1, 2, -0.25),
        (Metric('m', 'maximize', 0.5), 0.0, 9.0, 1.0),
        (Metric('m', 'minimize', 1e-300), 0.0, 1e308, -1.0),
        (Metric('m'), False, True, 1.0),
        (Metric('m', 'minimize'), False, True, -1.0),
        (Metric('m'), 'low', 'high', None),
        (Metric('m'), 10**400, 1, None),
        (Metric('m'), math.inf, 1.0, None),
        (Metric('m'), None, 1.0, None),
    ],
)
def test_the_difference_of_a_metric_is_scaled_and_cut(
    metric: Metric, base: object, candidate: object, difference: float | None
) -> None:
    one = pair_of(
        {'pick': metric}, base={'report': {'m': base}}, candidate={'report': {'m': candidate}}
    )
    assert (one.difference if one.metric else None) == difference


def test_a_metric_that_only_one_configuration_names_is_used() -> None:
    base = replayed(result_of('success', report={'depth': 1.0}))
    candidate = replayed(result_of('success', report={'depth': 3.0}), metrics=DEPTH)
    assert compare(base, candidate).pairs[0].difference == 0.5
    assert compare(candidate, base).pairs[0].difference == -0.5


def test_a_candidate_cannot_choose_another_metric_to_win_by() -> None:
    report = {'depth': 1.0, 'hits': 0}
    base = replayed(result_of('success', report=report, score=0.5), metrics=DEPTH)
    other = {'pick': Metric('hits', 'minimize')}
    candidate = replayed(result_of('success', report=report, score=0.6), metrics=other)
    found = compare(base, candidate)
    assert found.pairs[0].metric == 'score'
    assert found.notes == ('the metric of pick is another in the candidate, so neither is used',)


def test_the_truth_that_one_replay_knows_holds_for_both() -> None:
    found = compare(
        replayed(result_of('failure', truth=True)), replayed(result_of('success', truth=None))
    )
    assert found.pairs[0].difference == 1.0
    assert found.pairs[0].correction


def test_a_verdict_that_the_oracle_gave_proves_nothing() -> None:
    known = Truth(True, 'oracle')
    base = replace(result_of('failure'), truth=known)
    outcome = result_of('success').outcome
    assert outcome.verdict is not None
    by_oracle = replace(outcome, verdict=replace(outcome.verdict, route='oracle:sim'))
    candidate = replace(base, outcome=by_oracle)
    assert compare(replayed(base), replayed(candidate)).pairs[0].metric == ''
    label = Truth(True, 'label')
    found = compare(
        replayed(replace(base, truth=label)), replayed(replace(candidate, truth=label))
    )
    assert found.pairs[0].difference == 1.0


def test_the_score_of_an_abstention_counts() -> None:
    unsure = result_of('abstained')
    unsure = replace(unsure, outcome=replace(unsure.outcome, score=0.6))
    found = compare(replayed(unsure), replayed(result_of('success', score=0.9)))
    assert found.pairs[0].difference == pytest.approx(0.3)


@pytest.mark.parametrize(('truth', 'difference'), [(None, -0.5), (True, -0.5), (False, 0.5)])
def test_a_lower_score_of_a_run_that_truly_failed_is_the_better_one(
    truth: bool | None, difference: float
) -> None:
    unsure = result_of('abstained', truth=truth)
    unsure = replace(unsure, outcome=replace(unsure.outcome, score=0.75))
    sure = result_of('failure', truth=truth, score=0.25)
    one = compare(replayed(unsure), replayed(sure)).pairs[0]
    assert (one.metric, one.difference) == ('score', difference)
    assert (one.base_value, one.candidate_value) == (0.75, 0.25)


def test_two_truths_of_one_segment_are_an_error() -> None:
    with pytest.raises(CompareError, match='replay both with the same labels') as caught:
        compare(
            replayed(result_of('success', truth=True)), replayed(result_of('success', truth=False))
        )
    assert caught.value.kind == 'conflicting_truth'


# --- the paired test --------------------------------------------------------------------------


@given(st.lists(st.integers(-4, 4).map(lambda n: n / 4), max_size=8))
def test_the_test_is_exact_for_few_pairs(differences: list[float]) -> None:
    found = paired_test(differences)
    total = math.fsum(differences)
    sums = [
        math.fsum(sign * one for sign, one in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=len(differences))
    ]
    assert found.better == pytest.approx(sum(one >= total for one in sums) / len(sums))
    assert found.worse == pytest.approx(sum(one <= total for one in sums) / len(sums))


def test_many_pairs_are_drawn_and_give_the_same_figure_on_every_run() -> None:
    differences = [0.01 * (n % 7) - 0.02 for n in range(60)]
    first, second = paired_test(differences), paired_test(differences)
    assert first == second
    assert first.method == 'sign-flip permutation, 16384 draws'
    assert 0.0 < first.better < 0.05 < 0.95 < first.worse


@pytest.mark.parametrize(('significance', 'fewest'), [(0.05, 5), (0.0625, 4), (0.5, 1), (0.9, 1)])
def test_how_many_must_differ(significance: float, fewest: int) -> None:
    assert fewest_differing(significance) == fewest
    assert paired_test([1.0] * fewest).better <= significance


# --- properties -------------------------------------------------------------------------------

words = st.sampled_from(['success', 'failure', 'process', 'error', 'abstained'])
segments = st.lists(
    st.tuples(words, words, st.sampled_from(sorted(LABELS, key=str)), st.booleans()), max_size=8
)


def sides(drawn: list[tuple[str, str, bool | None, bool]]) -> tuple[Replayed, Replayed]:
    made: tuple[list, list] = ([], [])
    for number, (base, candidate, truth, has_score) in enumerate(drawn):
        for side, said in zip(made, (base, candidate), strict=True):
            score = 0.25 if has_score and side is made[0] else 0.5 if has_score else None
            side.append(result_of(said, f'run_{number}', truth=truth, score=score))
    return replayed(*made[0], config='a'), replayed(*made[1], config='b')


@given(segments)
@settings(max_examples=60)
def test_comparing_the_other_way_round_gives_the_opposite(drawn) -> None:
    there, back = compare(*sides(drawn)), compare(*reversed(sides(drawn)))
    assert there.to_plain()['mean_gain'] == pytest.approx(-(back.mean) if back.compared else None)
    assert (there.test.better, there.test.worse) == pytest.approx(
        (back.test.worse, back.test.better)
    )
    assert {there.decision, back.decision} != {Decision.PROMOTE}


@given(segments)
@settings(max_examples=60)
def test_no_promotion_with_a_regression_without_a_gain_or_with_nothing_compared(drawn) -> None:
    found = compare(*sides(drawn))
    if found.regressions:
        assert found.decision is Decision.REJECT
    if not found.compared:
        assert found.decision is not Decision.PROMOTE
    if found.decision is Decision.PROMOTE:
        assert found.mean >= 0.05 - 1e-9
        assert found.test.better <= 0.05
    assert found.reasons


@given(segments)
@settings(max_examples=30)
def test_a_comparison_is_plain_data(drawn) -> None:
    found = compare(*sides(drawn))
    plain = json.loads(json.dumps(found.to_plain(), allow_nan=False))
    assert plain['decision'] == found.decision.value
    assert plain['segments'] == len(drawn) == len(plain['pairs'])
    assert sum(plain['compared'].values()) == len(found.compared)


def test_metrics_go_with_the_results_and_bad_ones_are_no_results(tmp_path) -> None:
    from harness_eval.replay.results import ResultsError

    kept = runs('success', metrics=DEPTH)
    text = kept.to_json(tmp_path)
    assert Replayed.from_json(text, tmp_path).metrics == DEPTH
    for old, new in (('"scale": 4.0', '"scale": 0'), ('"scale": 4.0', '"scale": "x"')):
        with pytest.raises(ResultsError):
            Replayed.from_json(text.replace(old, new), tmp_path)
