"""A judge that gives every run the same score tells nothing apart."""

from __future__ import annotations

from harness_eval.calls.constant_scores import ConstantScores, WATCHED


def test_the_twentieth_equal_score_in_a_row_is_told_once() -> None:
    scores = ConstantScores()
    assert [scores.add(0.7) for _ in range(WATCHED + 5)].index(True) == WATCHED - 1 == 19
    assert scores.constant == 0.7
    assert scores.add(0.7) is False


def test_fewer_scores_say_nothing() -> None:
    scores = ConstantScores()
    assert not any(scores.add(1.0) for _ in range(WATCHED - 1))
    assert scores.constant is None


def test_another_score_ends_it_and_it_is_told_again_when_it_comes_back() -> None:
    scores = ConstantScores(watched=3)
    told = [scores.add(score) for score in (1.0, 1.0, 1.0, 0.2, 0.2, 0.2, 0.2)]
    assert told == [False, False, True, False, False, True, False]
    assert scores.constant == 0.2


def test_a_score_that_differs_in_the_last_bit_differs() -> None:
    scores = ConstantScores(watched=2)
    assert not scores.add(0.1 + 0.2)
    assert not scores.add(0.3)
