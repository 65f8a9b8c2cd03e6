"""A cascade asks its next member only when the one before has no answer."""

from __future__ import annotations

from collections.abc import Iterator
import threading
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from judged_world import make_request
from member_judges import Members, outcome_of, PATIENCE, raises, waits_for
import pytest

from harness_eval.calls import Outcome
from harness_eval.config.evaluators import CascadeSettings
from harness_eval.contract import Abstention, EvaluatorError, Status, Verdict
from harness_eval.evaluators.cascade import CascadeEvaluator

DOWN = ConnectionError('refused')


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def cascade(
    members: Members, on_error: str = 'error', *, timeout: float = PATIENCE, **request: Any
) -> Outcome:
    settings = CascadeSettings.model_validate(
        {
            'kind': 'cascade',
            'members': list(members.judges),
            'on_error': on_error,
            'timeout': timeout,
        }
    )
    evaluator = CascadeEvaluator('cheap_first', settings, members.context)
    return outcome_of(evaluator, settings, make_request(**request))


def test_the_first_member_that_answers_decides_and_the_others_are_not_asked() -> None:
    members = Members(checks=False, vlm=True)
    found = cascade(members)
    assert isinstance(found, Verdict)
    assert found.status is Status.FAILURE
    assert members.asked() == ['checks']
    assert found.route == 'checks'


def test_an_abstention_asks_the_next_member_and_stays_in_the_evidence() -> None:
    members = Members(checks=None, vlm=Verdict(Status.SUCCESS, ('it is held', 'by two fingers')))
    found = cascade(members)
    assert isinstance(found, Verdict)
    assert found.status is Status.SUCCESS
    assert found.evidence == (
        'checks: abstained, no_answer: the evaluator gave no answer (None)',
        'vlm: success: it is held',
        'vlm: by two fingers',
    )
    assert members.asked() == ['checks', 'vlm']


@pytest.mark.parametrize(
    ('score', 'decides'), [(0.9, 'vlm'), (0.96, 'vlm'), (0.97, 'checks'), (0.3, 'checks')]
)
def test_a_score_in_the_unsure_band_asks_the_next_member(score: float, decides: str) -> None:
    members = Members(checks=score, vlm=True).set('checks', unsure=[0.4, 0.96])
    found = cascade(members)
    assert isinstance(found, Verdict)
    assert found.route == decides
    assert (members.asked() == ['checks']) == (decides == 'checks')


def test_the_last_member_abstains_for_the_cascade_with_the_whole_chain() -> None:
    members = Members(checks=None, vlm=0.92).set('vlm', unsure=[0.4, 0.95])
    found = cascade(members)
    assert isinstance(found, Abstention)
    assert found.kind == 'unsure'
    assert found.message == (
        'checks: abstained, no_answer: the evaluator gave no answer (None); '
        'vlm: abstained, unsure: score 0.92, in the unsure band [0.4, 0.95]'
    )


def test_an_error_of_a_member_is_an_error_and_nobody_stands_in() -> None:
    members = Members(vlm=raises(DOWN), checks=True)
    found = cascade(members)
    assert isinstance(found, EvaluatorError)
    assert not isinstance(found, Abstention)
    assert (found.kind, found.retryable) == ('evaluator_raised', True)
    assert 'vlm: error, evaluator_raised: ConnectionError: refused' in found.message
    assert members.asked() == ['vlm']


def test_with_on_error_next_another_stands_in_and_the_evidence_says_so() -> None:
    found = cascade(Members(vlm=raises(DOWN), checks=True), 'next')
    assert isinstance(found, Verdict)
    assert found.evidence[0] == ('warning: checks stood in for vlm, which failed (on_error: next)')
    assert 'vlm: error, evaluator_raised: ConnectionError: refused' in found.evidence


def test_the_error_of_the_last_member_is_that_of_the_cascade() -> None:
    found = cascade(Members(checks=None, vlm=raises(DOWN)), 'next')
    assert isinstance(found, EvaluatorError)
    assert found.message.startswith('checks: abstained')


def test_the_costs_of_the_chain_are_added_up_also_of_one_that_was_unsure() -> None:
    members = Members(
        small=Verdict(Status.SUCCESS, score=0.5, cost=0.25),
        large=Verdict(Status.SUCCESS, score=0.99, cost=0.5, route='model-x'),
    ).set('small', unsure=[0.2, 0.8])
    found = cascade(members)
    assert isinstance(found, Verdict)
    assert (found.cost, found.score, found.route) == (0.75, 0.99, 'large (model-x)')


def test_a_member_that_hangs_ends_the_cascade_in_time_with_what_was_said_before(
    release: threading.Event,
) -> None:
    found = cascade(Members(checks=None, vlm=waits_for(release)), timeout=4.0)
    assert isinstance(found, EvaluatorError)
    assert found.kind == 'judge_timeout'
    assert found.retryable
    assert found.message.startswith('vlm had not answered when the 3.8 s')
    assert 'checks: abstained' in found.message


def reference(said: list[str], on_error: str) -> tuple[str, int]:
    """What a cascade has to come to, and how many members it asks."""
    for number, word in enumerate(said, 1):
        last = number == len(said)
        if word in ('success', 'failure'):
            return word, number
        if word == 'abstain' and last:
            return 'abstain', number
        if word == 'error' and (last or on_error == 'error'):
            return 'error', number
    raise AssertionError('a cascade has members')


ANSWERS = {'success': True, 'failure': False, 'abstain': None, 'error': raises(DOWN)}


@given(
    st.lists(st.sampled_from(sorted(ANSWERS)), min_size=1, max_size=5),
    st.sampled_from(['error', 'next']),
)
def test_a_cascade_comes_to_what_the_rules_say(said: list[str], on_error: str) -> None:
    members = Members(**{f'm{index}': ANSWERS[word] for index, word in enumerate(said)})
    found = cascade(members, on_error)
    if isinstance(found, Verdict):
        came = found.status.value
    else:
        came = 'abstain' if isinstance(found, Abstention) else 'error'
    assert (came, len(members.asked())) == reference(said, on_error)
