"""No malformed answer is ever read as a success: tens of thousands of them, by a seed."""

from __future__ import annotations

from collections.abc import Callable
import json
from random import Random
from typing import Any

from asked_model import failure, success
from hypothesis import given
from hypothesis import strategies as st
from mangled_answers import Body, body_of, scrambled, spoilt
import pytest

from harness_eval.config.tool_judging import ReportSettings
from harness_eval.contract import Abstention, Criterion, EvaluatorError, Status, Verdict
from harness_eval.evaluators.model import ModelError
from harness_eval.evaluators.model.deciding import decide
from harness_eval.evaluators.model.reply import answer_text, read_body
from harness_eval.evaluators.model.verdict_form import VerdictForm
from harness_eval.evaluators.rubric.criteria_form import CriteriaForm
from harness_eval.evaluators.rubric.scoring import weigh
from harness_eval.judging import Thresholds
from harness_eval.reports import with_report

COUNT = 12_000
"""Answers of each of the six kinds below: 72,000 in all, 48,000 of them certainly malformed."""

THRESHOLDS = Thresholds()
PLAIN = VerdictForm(sources=('front',))
FULL = VerdictForm(
    sources=('front', 'gripper'),
    process_allowed=True,
    failure_kinds=('dropped',),
    outputs=(('fill', 'number'),),
    rubric=True,
)
REPORT = ReportSettings.model_validate(
    {'outputs': [{'key': 'fill', 'title': 'How full.', 'type': 'number'}]}
)
CRITERIA = CriteriaForm((Criterion('held', 'Held.'), Criterion('dry', 'Dry.')), 1, ('front',))


def full(answer: dict[str, Any]) -> dict[str, Any]:
    kind = 'dropped' if answer['status'] == 'failure' else None
    return {**answer, 'failure_kind': kind, 'applies': True, 'report': {'fill': 0.5}}


def criteria(word: str) -> dict[str, Any]:
    said = {'reasons': 'As seen.', 'answer': word}
    return {
        'observations': [{'source': 'front', 'seen': 'A cup.'}],
        'reasons': 'They are about the cup.',
        'applies': True,
        'criteria': {'c1': said, 'c2': dict(said)},
    }


def verdict_of(form: VerdictForm) -> Callable[[bytes], Verdict]:
    def judged(data: bytes) -> Verdict:
        text = answer_text(read_body(data, 'application/json'))
        return decide(form.read(text), THRESHOLDS, evaluator='model:vlm')

    return judged


def criteria_verdict(data: bytes) -> Verdict:
    read = CRITERIA.read(answer_text(read_body(data, 'application/json')))
    if not read.applies:
        raise EvaluatorError('not_applicable', 'no')
    return weigh(read.judged, THRESHOLDS, process_allowed=False, evaluator='rubric:r')


def reported(data: bytes) -> Verdict:
    return with_report(REPORT, verdict_of(FULL)(data), 'model:vlm')


KINDS = {
    'a verdict': (verdict_of(PLAIN), success(), failure()),
    'a verdict with everything': (reported, full(success()), full(failure())),
    'criteria': (criteria_verdict, criteria('met'), criteria('not_met')),
}


def succeeds(judged: Callable[[bytes], Verdict], data: bytes) -> bool:
    """Judge; an error of any other class than ours fails the test."""
    try:
        return judged(data).status is Status.SUCCESS
    except (EvaluatorError, Abstention):
        return False


@pytest.mark.parametrize('kind', KINDS)
def test_the_answers_that_are_mangled_are_read_as_what_they_say(kind: str) -> None:
    judged, yes, no = KINDS[kind]
    assert judged(_whole(yes)).status is Status.SUCCESS
    assert judged(_whole(no)).status is Status.FAILURE


def _whole(answer: dict[str, Any]) -> bytes:
    return body_of(json.dumps(answer))


@pytest.mark.parametrize('kind', KINDS)
def test_a_success_that_is_spoilt_is_an_error_each_of_twelve_thousand_times(kind: str) -> None:
    judged, yes, _no = KINDS[kind]
    random = Random(f'spoilt {kind}')
    read: list[Body] = []
    for _ in range(COUNT):
        data, how = spoilt(yes, random)
        try:
            judged(data)
        except EvaluatorError:
            continue
        read.append((data, how))
    assert read == []


@pytest.mark.parametrize('kind', KINDS)
def test_a_failure_that_is_scrambled_never_succeeds_in_twelve_thousand_times(kind: str) -> None:
    judged, _yes, no = KINDS[kind]
    random = Random(f'scrambled {kind}')
    bodies = (scrambled(no, random) for _ in range(COUNT))
    assert [data for data, _how in bodies if succeeds(judged, data)] == []


@given(st.binary(max_size=400))
def test_any_bytes_are_an_error_of_ours(data: bytes) -> None:
    with pytest.raises(ModelError):
        verdict_of(PLAIN)(data)


@given(st.text(max_size=400))
def test_any_text_is_an_error_of_ours(text: str) -> None:
    with pytest.raises(ModelError):
        verdict_of(PLAIN)(body_of(text))


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*success(), 'report', 'x']), _json))
def test_any_values_under_the_right_keys_are_no_success(value: dict[str, Any]) -> None:
    assert not succeeds(verdict_of(PLAIN), _whole(value))


@pytest.mark.parametrize(
    'text',
    ['[' * 100_000, '{"a":' * 50_000, '{"score": ' + '9' * 399 + '}', '"' + 'x' * 300_000 + '"'],
    ids=['deep lists', 'deep objects', 'a long number', 'a long text'],
)
def test_monstrous_texts_are_an_error_of_ours(text: str) -> None:
    with pytest.raises(ModelError) as caught:
        verdict_of(PLAIN)(body_of(text))
    assert len(caught.value.message) <= 500


@pytest.mark.parametrize('clamp', [False, True])
@pytest.mark.parametrize('score', ['9' * 399, '-' + '9' * 399, '1e308', '1' + '0' * 308])
def test_a_monstrous_score_is_no_success_unless_it_is_to_be_cut(score: str, clamp: bool) -> None:
    text = json.dumps(failure(status='failure')).replace('0.03', score)
    judged = verdict_of(VerdictForm(sources=('front',), clamp=clamp))
    assert not succeeds(judged, body_of(text))
