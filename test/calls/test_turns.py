"""Whose turn it is and what calls come to, with a clock that the test moves."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from judged_world import make_request

from harness_eval.calls.back_off import BackOff, FIRST_PAUSE
from harness_eval.calls.call import Call, Outcome
from harness_eval.calls.turns import QUARANTINE_AFTER, Turns, WAITED_TIMEOUTS
from harness_eval.config.evaluators import (
    EvaluatorSettings,
    ModelSettings,
    PluginSettings,
    VoteSettings,
)
from harness_eval.contract import EvaluatorError, Status, Verdict

TIMEOUT = 10.0
LONGEST_WAIT = TIMEOUT * WAITED_TIMEOUTS
REQUEST = make_request()
YES = Verdict(Status.SUCCESS)
LIMITED = EvaluatorError('rate_limited', 'too often', retryable=True)


def plugin(slots: int | None = 1) -> EvaluatorSettings:
    return PluginSettings(kind='plugin', ref='a:b', timeout=TIMEOUT, max_concurrency=slots)


def turns_of(settings: EvaluatorSettings) -> Turns:
    return Turns('test:judge', settings, BackOff(chance=lambda: 0.5))


def turns(slots: int | None = 1) -> Turns:
    return turns_of(plugin(slots))


def enter(queue: Turns, now: float) -> Call:
    return queue.enter(REQUEST, ignore, now)


def ignore(outcome: Outcome) -> None:
    """Nobody waits."""


def begun(queue: Turns, now: float) -> list[int]:
    """Numbers of the calls whose turn it is."""
    found = iter(lambda: queue.begin(now), None)
    return [call.number for call in found if call is not None]


def told(queue: Turns, now: float) -> list[tuple[int, str]]:
    """Numbers of the calls that are over without an answer, and what is said of them."""
    found = iter(lambda: queue.due(now), None)
    return [(due[0].number, due[1].kind if due[1] else '') for due in found if due is not None]


def test_no_more_calls_begin_than_there_are_slots_and_they_begin_in_order() -> None:
    queue = turns(2)
    calls = [enter(queue, 0.0) for _ in range(4)]
    assert begun(queue, 0.0) == [1, 2]
    assert queue.answered(calls[1], YES, 1.0).settled
    assert begun(queue, 1.0) == [3]
    assert (queue.health().running, queue.health().waiting) == (2, 1)


def test_without_a_limit_all_begin() -> None:
    queue = turns(None)
    for _ in range(50):
        enter(queue, 0.0)
    assert len(begun(queue, 0.0)) == 50


def test_the_deadline_begins_with_the_call_not_with_its_wait() -> None:
    queue = turns(1)
    first, second = enter(queue, 0.0), enter(queue, 0.0)
    begun(queue, 0.0)
    queue.answered(first, YES, TIMEOUT - 1.0)
    assert begun(queue, TIMEOUT - 1.0) == [2]
    assert told(queue, 2 * TIMEOUT - 1.5) == []
    assert second.deadline == queue.next_time(0.0) == 2 * TIMEOUT - 1.0
    assert told(queue, 2 * TIMEOUT - 1.0) == [(2, 'judge_timeout')]


def test_a_hanging_call_holds_its_slot_until_its_deadline_and_counts_from_then_on() -> None:
    queue = turns(1)
    hanging = enter(queue, 0.0)
    enter(queue, 0.0)
    assert begun(queue, 0.0) == [1]
    assert begun(queue, TIMEOUT - 0.1) == []
    assert told(queue, TIMEOUT) == [(1, 'judge_timeout')]
    assert begun(queue, TIMEOUT) == [2]
    assert queue.hanging == 1
    late = queue.answered(hanging, YES, TIMEOUT + 1.0)
    assert (late.late, late.settled) == (True, False)
    assert queue.hanging == 0


def test_a_call_that_waits_too_long_for_its_turn_is_told_that_the_judge_is_busy() -> None:
    queue = turns(1)
    calls = [enter(queue, 0.0) for _ in range(7)]
    slow = TIMEOUT - 0.5
    for turn, call in enumerate(calls[:5]):
        assert begun(queue, turn * slow) == [call.number]
        queue.answered(call, YES, (turn + 1) * slow)
    assert begun(queue, 5 * slow) == [6]
    assert queue.due(LONGEST_WAIT - 0.1) is None
    due = queue.due(LONGEST_WAIT)
    assert due is not None
    call, error = due
    assert error is not None
    assert (call.number, error.kind, error.retryable) == (7, 'judge_busy', True)
    assert 'waited 50 s for a turn' in error.message
    assert 'max_concurrency' in error.message
    assert queue.health().busy == 1


def test_the_wait_is_bounded_by_five_timeouts() -> None:
    queue = turns(1)
    call = enter(queue, 3.0)
    assert call.patience == 3.0 + 5 * TIMEOUT == 3.0 + LONGEST_WAIT


def test_a_cancelled_call_leaves_the_line() -> None:
    queue = turns(1)
    first, second, _third = (enter(queue, 0.0) for _ in range(3))
    begun(queue, 0.0)
    assert queue.cancel(second) is True
    assert queue.cancel(second) is False
    queue.answered(first, YES, 1.0)
    assert begun(queue, 1.0) == [3]
    assert (queue.health().cancelled, queue.health().waiting) == (1, 0)


def test_quarantine_refuses_the_calls_that_wait_too() -> None:
    queue = turns(QUARANTINE_AFTER)
    calls = [enter(queue, 0.0) for _ in range(QUARANTINE_AFTER + 2)]
    begun(queue, 0.0)
    assert [kind for _, kind in told(queue, TIMEOUT)] == ['judge_timeout'] * QUARANTINE_AFTER
    assert queue.quarantined
    assert begun(queue, TIMEOUT) == []
    assert told(queue, TIMEOUT) == [(5, 'quarantined'), (6, 'quarantined')]
    assert queue.answered(calls[0], YES, TIMEOUT + 1.0).lifted
    enter(queue, TIMEOUT + 1.0)
    assert begun(queue, TIMEOUT + 1.0) == [7]


def test_a_call_that_came_too_often_is_made_again_before_all_that_wait() -> None:
    queue = turns(1)
    first = enter(queue, 0.0)
    enter(queue, 0.0)
    begun(queue, 0.0)
    assert not queue.answered(first, LIMITED, 1.0).settled
    assert begun(queue, 1.0) == []
    assert queue.next_time(1.0) == 1.0 + FIRST_PAUSE
    assert begun(queue, 1.0 + FIRST_PAUSE) == [1]
    assert first.deadline == TIMEOUT
    assert queue.answered(first, YES, 2.0).settled
    assert queue.health().rate_limited == 1


def test_a_pause_holds_back_every_call_of_the_evaluator() -> None:
    queue = turns(None)
    first = enter(queue, 0.0)
    begun(queue, 0.0)
    queue.answered(first, LIMITED, 0.0)
    enter(queue, 0.1)
    assert begun(queue, 0.1) == []
    assert begun(queue, FIRST_PAUSE) == [1, 2]


def test_a_call_whose_deadline_comes_before_the_end_of_the_pause_is_told_at_once() -> None:
    queue = turns(None)
    call = enter(queue, 0.0)
    begun(queue, 0.0)
    error = EvaluatorError('rate_limited', 'too often', retry_after=TIMEOUT)
    assert queue.answered(call, error, 1.0).settled


def test_a_call_that_waits_less_long_than_the_pause_is_refused_at_once() -> None:
    settings = PluginSettings(kind='plugin', ref='a:b', timeout=1.0)
    queue = turns_of(settings)
    first = enter(queue, 0.0)
    begun(queue, 0.0)
    queue.answered(first, EvaluatorError('rate_limited', '', retry_after=30.0), 0.0)
    enter(queue, 1.0)
    assert begun(queue, 1.0) == []
    due = queue.due(1.0)
    assert due is not None
    assert due[1] is not None
    assert (due[1].kind, due[1].retry_after, due[1].retryable) == ('rate_limited', 29.0, True)


def test_a_call_made_again_in_vain_until_its_deadline_says_that_it_came_too_often() -> None:
    queue = turns(1)
    first = enter(queue, 0.0)
    begun(queue, 0.0)
    queue.answered(first, LIMITED, TIMEOUT - 1.0)
    assert told(queue, TIMEOUT) == [(1, 'rate_limited')]
    assert queue.hanging == queue.health().busy == 0


def test_a_model_has_tried_again_itself_but_holds_back_the_others() -> None:
    model = ModelSettings(
        kind='model', model='m', base_url='http://a/v1', api_key_env='KEY', timeout=TIMEOUT
    )
    queue = turns_of(model)
    first = enter(queue, 0.0)
    begun(queue, 0.0)
    assert queue.answered(first, LIMITED, 0.0).settled
    enter(queue, 0.1)
    assert begun(queue, 0.1) == []


def test_a_vote_does_not_pause_since_its_members_do() -> None:
    queue = turns_of(VoteSettings(kind='vote', members=('a', 'b'), needed=1, timeout=TIMEOUT))
    first = enter(queue, 0.0)
    begun(queue, 0.0)
    assert queue.answered(first, LIMITED, 0.0).settled
    enter(queue, 0.1)
    assert begun(queue, 0.1) == [2]


def test_after_the_end_nobody_has_a_turn() -> None:
    queue = turns(1)
    first = enter(queue, 0.0)
    enter(queue, 0.0)
    begun(queue, 0.0)
    queue.close()
    enter(queue, 1.0)
    assert told(queue, 1.0) == [(2, 'judge_closed'), (3, 'judge_closed')]
    assert queue.answered(first, YES, 1.0).settled
    assert begun(queue, 1.0) == []


class Story:
    """Steps in any order, and what must hold after each."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.queue = turns(slots)
        self.now = 0.0
        self.running: list[Call] = []
        self.outcomes: dict[int, int] = {}
        self.order: list[int] = []

    def count(self, call: Call, outcome: Any) -> None:
        if outcome is not None:
            self.outcomes[call.number] = self.outcomes.get(call.number, 0) + 1

    def step(self, what: str, which: int) -> None:
        if what == 'enter':
            enter(self.queue, self.now)
        elif what == 'wait':
            self.now += which
        elif self.running:
            call = self.running[which % len(self.running)]
            if what == 'cancel':
                if self.queue.cancel(call):
                    self.count(call, 'cancelled')
            else:
                self.running.remove(call)
                answer = LIMITED if what == 'limited' else YES
                if self.queue.answered(call, answer, self.now).settled:
                    self.count(call, answer)
        self.settle()

    def settle(self) -> None:
        while True:
            while (call := self.queue.begin(self.now)) is not None:
                self.running.append(call)
                if call.refusal is None:
                    self.order.append(call.number)
            due = self.queue.due(self.now)
            if due is None:
                break
            self.count(*due)
        holding = [call for call in self.running if not call.abandoned]
        assert len(holding) <= self.slots
        assert self.order == sorted(self.order)
        assert set(self.outcomes.values()) <= {1}

    def end(self) -> None:
        """Let everything come to an end: every call has had exactly one outcome."""
        for _ in range(1000):
            if not (self.running or self.queue.health().waiting):
                break
            self.step('answer', 0)
            self.step('wait', 1)
        assert self.outcomes == dict.fromkeys(range(1, self.queue.counts.calls + 1), 1)


STEPS = st.tuples(
    st.sampled_from(['enter', 'enter', 'wait', 'answer', 'limited', 'cancel']), st.integers(0, 15)
)


@given(st.integers(1, 3), st.lists(STEPS, max_size=60))
def test_whatever_happens_each_call_comes_to_one_end_within_the_limits(
    slots: int, steps: list[tuple[str, int]]
) -> None:
    story = Story(slots)
    for what, which in steps:
        story.step(what, which)
    story.end()
