"""How long an evaluator is left alone that asks to be called less often."""

from __future__ import annotations

import pytest

from harness_eval.calls.back_off import (
    asks_for_a_pause,
    BackOff,
    FIRST_PAUSE,
    JITTER,
    LONGEST_ASKED_FOR,
    LONGEST_PAUSE,
)
from harness_eval.contract import Abstention, EvaluatorError, Status, Verdict

LIMITED = EvaluatorError('rate_limited', 'too often')


def limited(seconds: float) -> EvaluatorError:
    return EvaluatorError('rate_limited', 'too often', retry_after=seconds)


def middle() -> BackOff:
    """One that chance does not change."""
    return BackOff(chance=lambda: 0.5)


@pytest.mark.parametrize(
    ('outcome', 'asks'),
    [
        (LIMITED, True),
        (EvaluatorError('endpoint_failed', 'HTTP 503', retry_after=3.0), True),
        (EvaluatorError('endpoint_failed', 'HTTP 503'), False),
        (Abstention('rate', 'no'), False),
        (Verdict(Status.SUCCESS), False),
    ],
)
def test_an_evaluator_asks_for_a_pause_by_kind_or_by_a_time(outcome: object, asks: bool) -> None:
    assert asks_for_a_pause(outcome) is asks


def test_a_pause_that_is_asked_for_is_kept() -> None:
    back_off = middle()
    back_off.refused(limited(7.0), began=9.0, now=10.0)
    assert back_off.until == 17.0


@pytest.mark.parametrize(('asked', 'kept'), [(0.0, FIRST_PAUSE), (86_400.0, LONGEST_ASKED_FOR)])
def test_a_pause_that_is_asked_for_is_bounded(asked: float, kept: float) -> None:
    back_off = middle()
    back_off.refused(limited(asked), began=0.0, now=10.0)
    assert back_off.until == 10.0 + kept


def test_pauses_that_nobody_asked_for_double_up_to_the_longest() -> None:
    back_off, now, pauses = middle(), 0.0, []
    for _ in range(9):
        back_off.refused(LIMITED, began=now, now=now)
        pauses.append(back_off.until - now)
        now = back_off.until
    assert pauses[:4] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE, 8 * FIRST_PAUSE]
    assert pauses[-2:] == [LONGEST_PAUSE, LONGEST_PAUSE]


@pytest.mark.parametrize(('chance', 'share'), [(0.0, 1 - JITTER), (1.0, 1 + JITTER)])
def test_chance_parts_evaluators_that_were_refused_together(chance: float, share: float) -> None:
    back_off = BackOff(chance=lambda: chance)
    back_off.refused(LIMITED, began=0.0, now=0.0)
    assert back_off.until == FIRST_PAUSE * share


def test_calls_that_are_refused_together_count_once() -> None:
    back_off = middle()
    for now in (10.0, 10.1, 10.2):
        back_off.refused(LIMITED, began=9.0, now=now)
    assert back_off.until == 10.0 + FIRST_PAUSE
    back_off.refused(LIMITED, began=11.0, now=11.0)
    assert back_off.until == 11.0 + 2 * FIRST_PAUSE


def test_of_several_pauses_the_longest_is_kept() -> None:
    back_off = middle()
    back_off.refused(limited(9.0), began=0.0, now=1.0)
    back_off.refused(limited(2.0), began=0.0, now=2.0)
    assert back_off.until == 10.0


def test_an_answer_makes_the_next_pause_short_again() -> None:
    back_off = middle()
    back_off.refused(LIMITED, began=0.0, now=0.0)
    back_off.refused(LIMITED, began=1.0, now=1.0)
    back_off.answered(began=3.0)
    back_off.refused(LIMITED, began=4.0, now=4.0)
    assert back_off.until == 4.0 + FIRST_PAUSE


def test_an_answer_to_a_call_from_before_the_refusal_says_nothing() -> None:
    back_off = middle()
    back_off.refused(LIMITED, began=0.0, now=1.0)
    back_off.answered(began=0.5)
    back_off.refused(LIMITED, began=2.0, now=2.0)
    assert back_off.until == 2.0 + 2 * FIRST_PAUSE
