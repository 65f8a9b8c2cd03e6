"""What a completion means for what is on record, sentence by sentence."""

from __future__ import annotations

import dataclasses
import json
import math
from types import MappingProxyType
from typing import Any

from hypothesis import given
import hypothesis.strategies as st
import pytest

from harness_eval.config.models import EvaluationSettings
from harness_eval.contract import Abstention, EvaluatorError, Status, Verdict
from harness_eval.runs import (
    admit,
    Arrival,
    Completion,
    id_problem,
    internal_error,
    interruption,
    MAX_ID_LENGTH,
    Outcome,
    outcome_of,
    OutcomeKind,
    PENDING,
    REPEAT_SECONDS,
    REPEAT_WINDOW,
    Ruling,
    Run,
    screen,
    Segment,
    SegmentState,
    settle_budget,
)

SECOND = 10**9
NOW = 1_700_000_000 * SECOND
WALL = 1_700_000_000.0
SETTINGS = EvaluationSettings(
    required_tools=('pick', 'insert'), segment_tools=('insert',), max_segments=3
)
PROCESS = Verdict(Status.PROCESS, ('half',))
SUCCESS = Verdict(Status.SUCCESS, ('all',))


def completion(
    segment: int = 0, tool: str = 'insert', run_id: str = 'run', **more: Any
) -> Completion:
    return Completion(run_id, tool, segment, **{'stamp': NOW, **more})


def run_of(*states: SegmentState, tool: str = 'insert', **more: Any) -> Run:
    segments = tuple(
        Segment(completion(number, tool), number + 1, NOW, state)
        for number, state in enumerate(states)
    )
    return Run('run', segments, **more)


def ruling(
    one: Completion, run: Run | None = None, receipt: int = NOW, wall: float = WALL, era: int = 0
) -> tuple[Ruling, str]:
    made = admit(one, run, SETTINGS, Arrival(receipt, wall, era))
    return made.ruling, made.reason


TAKE = (Ruling.TAKE, '')
ANSWER = (Ruling.ANSWER, '')


def rejected(reason: str) -> tuple[Ruling, str]:
    return Ruling.REJECT, reason


def test_the_first_completion_of_a_required_tool_is_taken() -> None:
    assert ruling(completion(tool='pick')) == TAKE


def test_a_mistyped_tool_is_ignored_with_the_tool_that_may_be_meant() -> None:
    made = screen(completion(tool='pikc'), SETTINGS)
    assert made is not None
    assert made.detail == "'pikc' is not required, did you mean 'pick'?"


def test_a_completion_of_a_tool_that_is_not_required_is_ignored_whatever_it_holds() -> None:
    assert ruling(completion(tool='wave', run_id='')) == (Ruling.IGNORE, 'not_required')
    made = screen(completion(tool='w' * 10**6), SETTINGS)
    assert made is not None
    assert len(made.detail) < 400


@pytest.mark.parametrize(
    'run_id', ['', ' ', 'x' * (MAX_ID_LENGTH + 1), 'a\x00', 'a\nb', '\ud800', '\u2028', 'a\u202e']
)
def test_an_impossible_run_id_is_an_error_that_is_not_recorded(run_id: str) -> None:
    made = admit(completion(run_id=run_id), None, SETTINGS, Arrival(NOW, WALL))
    assert (made.ruling, made.recorded) == (Ruling.FAIL, False)
    assert made.reason in ('empty_run_id', 'invalid_run_id')
    assert made.detail.isprintable()


@pytest.mark.parametrize('run_id', ['../../etc/passwd', 'Größe 7', '日本', 'a b', '%s', "'; drop"])
def test_a_run_id_may_look_like_anything_that_can_be_seen(run_id: str) -> None:
    assert ruling(completion(run_id=run_id)) == TAKE


@pytest.mark.parametrize(
    'arguments',
    [
        tuple((f'a{n}', '') for n in range(1000)),
        (('a', 'x' * 10**6),),
        (('a', '1'), ('a', '2')),
    ],
)
def test_arguments_beyond_measure_are_an_error(arguments: tuple[tuple[str, str], ...]) -> None:
    assert ruling(completion(arguments=arguments)) == (Ruling.FAIL, 'invalid_completion')


def test_arguments_with_lone_surrogates_and_control_characters_have_a_fingerprint() -> None:
    odd = completion(arguments=(('a', '\ud800\x00'),))
    assert ruling(odd) == TAKE
    assert odd.fingerprint != completion(arguments=(('a', '\x00'),)).fingerprint


@pytest.mark.parametrize(
    'more', [{'segment': 2**32}, {'segment': -1}, {'stamp': 10**400}, {'stamp': -(10**20)}]
)
def test_numbers_that_no_message_holds_are_an_error(more: dict[str, int]) -> None:
    one = dataclasses.replace(completion(), **more)
    assert ruling(one) == (Ruling.FAIL, 'invalid_completion')


def test_the_same_completion_again_is_answered_whatever_became_of_the_run() -> None:
    for state in SegmentState:
        assert ruling(completion(), run_of(state), NOW + 10**18) == ANSWER
        assert ruling(completion(), run_of(state, interrupted=True)) == ANSWER


@pytest.mark.parametrize(
    'other', [{'stamp': NOW + 1}, {'arguments': (('target', 'cup'),)}, {'tool': 'pick'}]
)
def test_another_completion_under_the_same_name_conflicts(other: dict[str, Any]) -> None:
    for state in SegmentState:
        assert ruling(completion(**other), run_of(state)) == rejected('conflicting_completion')


def test_the_order_of_arguments_makes_no_other_completion() -> None:
    one = completion(arguments=(('a', '1'), ('b', '2')))
    assert one.fingerprint == completion(arguments=(('b', '2'), ('a', '1'))).fingerprint


CONFLICT = rejected('conflicting_completion')


def unstamped(state: SegmentState, **more: Any) -> tuple[Completion, Run]:
    one = completion(stamp=0, **more)
    return one, Run('run', (Segment(one, 1, NOW, state, accepted=WALL),))


@pytest.mark.parametrize('state', sorted(set(SegmentState) - PENDING))
def test_an_unstamped_completion_is_answered_for_moments_and_then_conflicts(
    state: SegmentState,
) -> None:
    one, run = unstamped(state)
    moments = round(REPEAT_SECONDS * SECOND)
    assert ruling(one, run, NOW + moments, WALL + REPEAT_SECONDS) == ANSWER
    assert ruling(one, run, NOW + moments + 1, WALL) == CONFLICT
    assert ruling(one, run, NOW - 1, WALL) == CONFLICT
    # A simulation that runs slowly, or stands still, keeps nobody from starting anew.
    assert ruling(one, run, NOW, WALL + REPEAT_SECONDS + 0.1) == CONFLICT


@pytest.mark.parametrize('state', sorted(PENDING))
def test_an_unstamped_completion_is_answered_while_it_waits_but_no_longer_than_a_minute(
    state: SegmentState,
) -> None:
    one, run = unstamped(state)
    assert ruling(one, run, NOW + 3600 * SECOND, WALL + REPEAT_WINDOW) == ANSWER
    assert ruling(one, run, NOW, WALL + REPEAT_WINDOW + 0.1) == CONFLICT
    assert ruling(one, run, NOW - 1, WALL) == CONFLICT


@pytest.mark.parametrize('state', SegmentState)
@pytest.mark.parametrize('stamp', [0, NOW])
def test_a_completion_from_before_the_clock_went_back_conflicts(
    state: SegmentState, stamp: int
) -> None:
    one = completion(stamp=stamp)
    run = Run('run', (Segment(one, 1, NOW, state, era=3, accepted=WALL),))
    assert ruling(one, run, NOW + 1, era=3) == ANSWER
    assert ruling(one, run, NOW + 1, era=4) == CONFLICT


def test_a_completion_with_a_unique_id_is_answered_for_ever() -> None:
    one, run = unstamped(SegmentState.SUCCESS, unique=True)
    assert ruling(one, run, NOW + 10**18, WALL + 10**9, era=7) == ANSWER


def test_a_run_that_ended_long_ago_is_never_taken_again() -> None:
    assert ruling(completion(), Run('run', retired=True)) == rejected('conflicting_completion')


@pytest.mark.parametrize('state', list(SegmentState))
def test_what_follows_each_state(state: SegmentState) -> None:
    expected = {
        SegmentState.PROCESS: TAKE,
        SegmentState.ERROR: TAKE,
        SegmentState.ABSTAINED: TAKE,
        SegmentState.SUCCESS: rejected('run_closed'),
        SegmentState.FAILURE: rejected('run_closed'),
        SegmentState.INTERRUPTED: rejected('run_closed'),
    }.get(state, rejected('segment_pending'))
    assert ruling(completion(1), run_of(state)) == expected


def test_after_an_interruption_no_segment_is_taken() -> None:
    assert ruling(completion(), Run('run', interrupted=True)) == rejected('run_interrupted')
    run = run_of(SegmentState.PROCESS, interrupted=True)
    assert ruling(completion(1), run) == rejected('run_interrupted')


def test_a_gap_is_an_error_of_the_run_on_record() -> None:
    for run in (None, run_of(SegmentState.PROCESS)):
        made = admit(completion(2), run, SETTINGS, Arrival(NOW, WALL))
        assert (made.ruling, made.reason, made.recorded) == (Ruling.FAIL, 'missing_segment', True)


def test_a_segment_that_comes_after_its_gap_was_reported_is_out_of_order() -> None:
    late = Segment(completion(2), 1, NOW, SegmentState.ERROR)
    assert ruling(completion(1), Run('run', (late,))) == rejected('segment_out_of_order')


def test_only_segment_tools_have_segments() -> None:
    assert ruling(completion(1, 'pick')) == rejected('not_a_segment_tool')
    run = run_of(SegmentState.ERROR, tool='pick')
    assert ruling(completion(1, 'pick'), run) == rejected('not_a_segment_tool')


def test_every_segment_counts_against_the_budget() -> None:
    run = run_of(SegmentState.ERROR, SegmentState.ABSTAINED, SegmentState.PROCESS)
    assert ruling(completion(3), run) == rejected('segment_budget')


@given(
    st.lists(st.sampled_from(list(SegmentState)), max_size=3),
    st.booleans(),
    st.integers(0, 4),
    st.sampled_from(['pick', 'insert', 'wave']),
)
def test_a_completion_is_taken_only_as_the_next_segment_of_an_open_run(
    states: list[SegmentState], interrupted: bool, number: int, tool: str
) -> None:
    run = run_of(*states, interrupted=interrupted) if states or interrupted else None
    made = admit(completion(number, tool), run, SETTINGS, Arrival(NOW, WALL))
    if made.ruling is Ruling.TAKE:
        assert tool in SETTINGS.required_tools
        assert number == len(states)
        assert not interrupted
        assert all(s not in (SegmentState.SUCCESS, SegmentState.FAILURE) for s in states[-1:])
        assert number == 0 or tool == 'insert'
    if made.ruling in (Ruling.REJECT, Ruling.FAIL):
        assert made.reason
        assert made.detail.isprintable()


def test_the_end_is_the_later_of_stamp_and_receipt() -> None:
    assert Segment(completion(stamp=NOW - SECOND), 1, NOW).t_end == NOW
    assert Segment(completion(stamp=NOW + SECOND), 1, NOW).t_end == NOW + SECOND
    assert Segment(completion(stamp=0), 1, NOW).t_end == NOW


def test_the_state_of_a_run_is_that_of_its_last_segment_unless_interrupted() -> None:
    assert run_of(SegmentState.PROCESS, SegmentState.STARTED).state is SegmentState.STARTED
    assert run_of(SegmentState.ERROR, interrupted=True).state is SegmentState.INTERRUPTED
    assert run_of(SegmentState.SUCCESS, interrupted=True).state is SegmentState.SUCCESS
    assert Run('run', interrupted=True).state is SegmentState.INTERRUPTED


def test_process_at_the_last_segment_becomes_a_failure() -> None:
    assert settle_budget(PROCESS, completion(1), 3) is PROCESS
    last = settle_budget(PROCESS, completion(2), 3)
    assert (last.status, last.failure_kind) == (Status.FAILURE, 'segment_budget')
    assert last.evidence == PROCESS.evidence
    assert settle_budget(SUCCESS, completion(2), 3) is SUCCESS


@pytest.mark.parametrize(
    ('answer', 'kind', 'state'),
    [
        (SUCCESS, OutcomeKind.VERDICT, SegmentState.SUCCESS),
        (PROCESS, OutcomeKind.VERDICT, SegmentState.PROCESS),
        (EvaluatorError('down', 'why'), OutcomeKind.ERROR, SegmentState.ERROR),
        (Abstention('unsure', 'why'), OutcomeKind.ABSTAINED, SegmentState.ABSTAINED),
    ],
)
def test_an_answer_becomes_an_outcome(answer: Any, kind: OutcomeKind, state: SegmentState) -> None:
    segment = Segment(completion(stamp=0), 1, NOW, attempt=4)
    outcome = outcome_of(answer, segment, decided_at=NOW + 1, max_segments=3, observed=(1, 2))
    assert (outcome.kind, outcome.state, outcome.attempt) == (kind, state, 4)
    assert (outcome.completed_at, outcome.observed_from, outcome.observed_to) == (NOW, 1, 2)
    assert (outcome.verdict is None) == (kind is not OutcomeKind.VERDICT)


def test_the_score_that_left_a_judge_unsure_is_kept_with_the_outcome() -> None:
    segment = Segment(completion(), 1, NOW)
    unsure = outcome_of(
        Abstention('unsure', 'why', score=0.7), segment, decided_at=NOW, max_segments=3
    )
    assert unsure.score == 0.7
    assert Outcome.from_json(unsure.to_json()) == unsure
    older = json.loads(unsure.to_json())
    del older['score']
    assert Outcome.from_json(json.dumps(older)).score is None
    assert outcome_of(SUCCESS, segment, decided_at=NOW, max_segments=3).score is None


def test_an_outcome_has_a_verdict_exactly_when_it_is_one() -> None:
    with pytest.raises(ValueError, match='exactly'):
        Outcome('run', 'pick', 0, 1, OutcomeKind.VERDICT, NOW)
    with pytest.raises(ValueError, match='exactly'):
        Outcome('run', 'pick', 0, 1, OutcomeKind.ERROR, NOW, verdict=SUCCESS)


def test_the_reason_of_an_interruption_is_one_line_of_bounded_length() -> None:
    outcome = interruption(Segment(completion(), 1, NOW), 'stop\n' + 'x' * 10**6, NOW)
    assert outcome.message.isprintable()
    assert len(outcome.message) <= 500
    assert outcome.state is SegmentState.INTERRUPTED


def test_an_internal_error_names_no_file_of_the_machine() -> None:
    error = internal_error(FileNotFoundError(2, 'No such file or directory', '/home/me/secret'))
    assert '/home/me' not in error.message
    assert 'No such file' in error.message


texts = st.text(max_size=30)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
numbers = st.integers(0, 2**62)
verdicts = st.builds(
    lambda status, evidence, reason, score, report, cost: Verdict(
        status,
        tuple(evidence),
        failure_reason=f'because {reason}' if status is Status.FAILURE else '',
        score=score,
        report=report,
        cost=cost,
    ),
    st.sampled_from(Status),
    st.lists(texts, max_size=3),
    texts,
    st.none() | st.floats(0, 1),
    st.none() | st.dictionaries(texts, plain, max_size=3),
    st.none() | st.floats(0, 1e6),
)
outcomes = st.one_of(
    st.builds(
        Outcome, texts, texts, numbers, numbers, st.just(OutcomeKind.VERDICT), numbers, verdicts
    ),
    st.builds(
        Outcome,
        texts,
        texts,
        numbers,
        numbers,
        st.sampled_from([k for k in OutcomeKind if k is not OutcomeKind.VERDICT]),
        numbers,
        st.none(),
        texts,
        texts,
        texts,
        st.booleans(),
    ),
)


@given(outcomes)
def test_an_outcome_comes_back_from_its_json_as_it_was(outcome: Outcome) -> None:
    text = outcome.to_json()
    assert text.isascii()
    assert Outcome.from_json(text) == outcome


def test_a_report_that_cannot_be_changed_can_be_written() -> None:
    report = MappingProxyType({'grasp': 0.5})
    verdict = dataclasses.replace(SUCCESS, report=report)
    outcome = Outcome('run', 'pick', 0, 1, OutcomeKind.VERDICT, NOW, verdict)
    assert json.loads(outcome.to_json())['verdict']['report'] == {'grasp': 0.5}


def test_an_outcome_with_a_number_that_json_lacks_is_refused() -> None:
    verdict = dataclasses.replace(SUCCESS, report={'x': math.nan})
    with pytest.raises(ValueError, match='JSON'):
        Outcome('run', 'pick', 0, 1, OutcomeKind.VERDICT, NOW, verdict).to_json()


@pytest.mark.parametrize('text', ['', '{}', '[]', '3', 'null', '{"kind": "verdict"}', '[' * 99999])
def test_what_is_no_outcome_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        Outcome.from_json(text)


@given(st.text())
def test_a_name_without_a_problem_is_short_and_visible(name: str) -> None:
    if not id_problem(name):
        assert len(name) <= MAX_ID_LENGTH
        name.encode()
        assert '\n' not in name
