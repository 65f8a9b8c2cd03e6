"""Members of a vote judge at the same time, and enough of them must agree on one status."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
import threading
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from judged_world import make_request
from member_judges import Members, outcome_of, PATIENCE, raises, waits_for
import pytest

from harness_eval.calls import JudgeCalls, Outcome
from harness_eval.config.evaluators import VoteSettings
from harness_eval.contract import Abstention, EvaluationError, EvaluatorError, Status, Verdict
from harness_eval.evaluators.vote import counted, decided, VoteEvaluator
from harness_eval.judging import Thresholds

SHORT = 4.0
"""Seconds of a deadline that the test wants to pass."""


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def vote(members: Members, needed: int, *, timeout: float = PATIENCE, **request: Any) -> Outcome:
    settings = VoteSettings(
        kind='vote', members=tuple(members.judges), needed=needed, timeout=timeout
    )
    evaluator = VoteEvaluator('jury', settings, members.context)
    return outcome_of(evaluator, settings, make_request(**request))


def verdict_of(outcome: Outcome) -> Verdict:
    assert isinstance(outcome, Verdict), outcome
    return outcome


def failure(reason: str, kind: str = '', **fields: Any) -> Verdict:
    return Verdict(Status.FAILURE, failure_reason=reason, failure_kind=kind, **fields)


def test_enough_members_that_agree_give_the_verdict_with_the_mean_of_their_scores() -> None:
    found = verdict_of(vote(Members(a=0.95, b=0.91, c=0.1), 2))
    assert found.status is Status.SUCCESS
    assert found.score == pytest.approx(0.93)


def test_the_evidence_says_who_said_what_and_the_route_who_agreed() -> None:
    members = Members(
        checks=Verdict(Status.SUCCESS, ('marker 7 is seen', 'grip holds'), score=0.93),
        vlm=Verdict(Status.SUCCESS, route='model-x', cost=0.002),
        grader=failure('it lies on the floor', cost=0.001),
    )
    found = verdict_of(vote(members, 2))
    assert 'checks: success (score 0.93): marker 7 is seen' in found.evidence
    assert 'vlm: success' in found.evidence
    assert 'checks: grip holds' in found.evidence
    assert found.route == 'checks, vlm (model-x)'
    assert found.score == 0.93


def test_the_costs_of_all_members_are_added_up_whatever_they_said() -> None:
    ballots = [
        ('a', Verdict(Status.SUCCESS, cost=0.25)),
        ('b', Verdict(Status.SUCCESS)),
        ('c', failure('no', cost=0.5)),
    ]
    assert counted(ballots, 2, 'vote:jury').cost == 0.75


def test_a_failure_gives_the_reasons_of_those_who_agree_and_the_kind_they_name() -> None:
    ballots = [
        ('a', failure('not in the hand', 'dropped')),
        ('b', failure('nothing is held')),
        ('c', Verdict(Status.SUCCESS)),
    ]
    found = counted(ballots, 2, 'vote:jury')
    assert found.failure_reason == 'a: not in the hand; b: nothing is held'
    assert found.failure_kind == 'dropped'


def test_two_kinds_of_failure_are_none() -> None:
    ballots = [('a', failure('x', 'dropped')), ('b', failure('y', 'missed_grasp'))]
    assert counted(ballots, 2, 'vote:jury').failure_kind == 'post_condition'


def test_without_a_majority_it_abstains_and_says_who_said_what() -> None:
    found = vote(Members(a=True, b=False, c=None), 2)
    assert isinstance(found, Abstention)
    assert found.kind == 'no_majority'
    for words in ('a: success', 'b: failure', 'c: abstained, no_answer'):
        assert words in found.message


def test_two_statuses_with_enough_votes_are_no_majority() -> None:
    found = vote(Members(a=True, b=False), 1)
    assert isinstance(found, Abstention)
    assert found.kind == 'no_majority'


def test_a_member_that_fails_has_no_vote() -> None:
    members = Members(a=True, b=True, c=raises(RuntimeError('down')))
    assert verdict_of(vote(members, 2)).status is Status.SUCCESS


def test_so_few_answers_that_none_can_win_are_an_error_that_names_who_failed_and_why() -> None:
    members = Members(a=True, b=raises(ConnectionError('refused')), c=raises(OSError('gone')))
    found = vote(members, 2)
    assert isinstance(found, EvaluatorError)
    assert found.kind == 'too_few_votes'
    assert found.retryable
    assert 'b: error, evaluator_raised: ConnectionError: refused' in found.message
    assert 'c: error, evaluator_raised: OSError: gone' in found.message
    assert 'a: ' not in found.message


def test_a_score_in_a_members_unsure_band_is_no_vote() -> None:
    members = Members(a=0.95, b=0.95).set('b', unsure=[0.4, 0.96])
    found = vote(members, 2)
    assert isinstance(found, Abstention)
    assert 'b: abstained, unsure: score 0.95, in the unsure band [0.4, 0.96]' in found.message


def test_a_score_between_the_thresholds_is_process_only_for_a_tool_with_segments() -> None:
    members = Members(a=0.7, b=0.7)
    assert isinstance(vote(members, 2), Abstention)
    found = verdict_of(vote(members, 2, process_allowed=True))
    assert found.status is Status.PROCESS


def test_a_member_that_hangs_is_not_waited_for_when_it_cannot_change_the_result(
    release: threading.Event,
) -> None:
    members = Members(a=True, b=waits_for(release, False), c=True)
    found = verdict_of(vote(members, 2))
    assert found.status is Status.SUCCESS
    assert 'b: not waited for' in found.evidence


def test_members_that_hang_end_in_an_error_before_the_time_of_the_vote_is_over(
    release: threading.Event,
) -> None:
    members = Members(a=True, b=waits_for(release), c=waits_for(release))
    found = vote(members, 2, timeout=SHORT)
    assert isinstance(found, EvaluatorError)
    assert found.kind == 'too_few_votes'
    assert 'b: error, judge_timeout: no answer within 3.8 s' in found.message


def test_all_members_are_asked_at_the_same_time() -> None:
    together = threading.Barrier(3)

    def meets(request: Any) -> bool:
        together.wait(PATIENCE)
        return True

    found = verdict_of(vote(Members(a=meets, b=meets, c=meets), 3))
    assert found.status is Status.SUCCESS


def test_a_vote_that_is_cancelled_cancels_its_asynchronous_members() -> None:
    entered, cancelled = threading.Event(), threading.Event()

    async def hangs(request: Any) -> bool:
        entered.set()
        try:
            await asyncio.sleep(PATIENCE)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return True

    settings = VoteSettings(kind='vote', members=('a',), needed=1, timeout=PATIENCE)
    evaluator = VoteEvaluator('jury', settings, Members(a=hangs).context)
    handle = JudgeCalls(evaluator, settings, Thresholds()).call(make_request(), print)
    assert entered.wait(PATIENCE)
    assert handle.cancel()
    assert cancelled.wait(PATIENCE)


_SUCCESSES = [Verdict(Status.SUCCESS, score=0.9375), Verdict(Status.SUCCESS)]

SAID = st.sampled_from(
    [
        Verdict(Status.SUCCESS, score=0.9375),
        Verdict(Status.SUCCESS),
        failure('no', score=0.25),
        Verdict(Status.PROCESS),
        Abstention('no_answer', 'none'),
        EvaluatorError('down', 'it is down', retryable=True),
    ]
)
JURY = st.lists(SAID, min_size=1, max_size=6).flatmap(
    lambda said: st.tuples(
        st.just([(f'm{index}', one) for index, one in enumerate(said)]),
        st.integers(1, len(said)),
    )
)


def result(ballots: list[Any], needed: int) -> Any:
    """What a vote comes to, without the words."""
    try:
        found = counted(ballots, needed, 'vote:jury')
    except EvaluationError as error:
        return type(error), error.kind
    return found.status, found.score, found.cost


def statuses(ballots: list[Any]) -> list[Status]:
    return [outcome.status for _, outcome in ballots if isinstance(outcome, Verdict)]


@given(JURY, st.randoms())
def test_the_order_of_the_ballots_changes_nothing(jury: Any, random: Any) -> None:
    ballots, needed = jury
    shuffled = random.sample(ballots, len(ballots))
    assert result(shuffled, needed) == result(ballots, needed)


@given(JURY)
def test_a_status_is_the_verdict_exactly_if_it_alone_has_the_votes(jury: Any) -> None:
    ballots, needed = jury
    enough = [status for status in Status if statuses(ballots).count(status) >= needed]
    found = result(ballots, needed)
    assert (found[0] in tuple(Status)) == (len(enough) == 1)
    if len(enough) == 1:
        assert found[0] is enough[0]


@given(JURY, st.data())
def test_one_more_vote_for_the_winner_never_takes_the_verdict_from_it(
    jury: Any, data: st.DataObject
) -> None:
    ballots, needed = jury
    before = result(ballots, needed)
    index = data.draw(st.integers(0, len(ballots) - 1))
    if before[0] not in (Status.SUCCESS, Status.PROCESS):
        return
    more = [*ballots]
    more[index] = (ballots[index][0], Verdict(before[0]))
    assert result(more, needed)[0] is before[0]


@given(JURY, st.data())
def test_a_vote_that_is_lost_never_makes_a_success(jury: Any, data: st.DataObject) -> None:
    ballots, needed = jury
    before = result(ballots, needed)
    successes = [i for i, (_, one) in enumerate(ballots) if one in _SUCCESSES]
    if before[0] is Status.SUCCESS or not successes:
        return
    index = data.draw(st.sampled_from(successes))
    fewer = [*ballots]
    fewer[index] = (ballots[index][0], Abstention('no_answer', 'none'))
    assert result(fewer, needed)[0] is not Status.SUCCESS


@given(JURY, st.data())
def test_what_is_decided_early_stays_so_whatever_is_still_to_come(
    jury: Any, data: st.DataObject
) -> None:
    ballots, needed = jury
    heard = data.draw(st.integers(0, len(ballots)))
    if decided(dict(ballots[:heard]), len(ballots) - heard, needed):
        assert result(ballots[:heard], needed)[0] is result(ballots, needed)[0]
