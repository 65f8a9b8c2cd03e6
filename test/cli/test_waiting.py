"""Which outcome a waiting command takes, from what is on record and what was published."""

from __future__ import annotations

import pytest

from harness_eval.cli.waiting import (
    answer,
    heard,
    is_old,
    merged,
    NeverComesError,
    OnRecord,
    Wanted,
)
from harness_eval.contract import Status, Verdict
from harness_eval.runs import Outcome, OutcomeKind, SegmentState

PROCESS = Verdict(Status.PROCESS)
SUCCESS = Verdict(Status.SUCCESS)


def outcome(segment: int = 0, verdict: Verdict | None = None, attempt: int = 1) -> Outcome:
    """A verdict, or an error if there is none."""
    kind = OutcomeKind.ERROR if verdict is None else OutcomeKind.VERDICT
    return Outcome('run-1', 'insert', segment, attempt, kind, decided_at=1, verdict=verdict)


def on_record(state: str, *outcomes: Outcome, segment: int | None = None) -> OnRecord:
    """A run whose last segment is that of its last outcome, unless another is given."""
    last = outcomes[-1].segment if segment is None and outcomes else segment or 0
    return OnRecord('run-1', 'insert', SegmentState(state), last, outcomes)


@pytest.mark.parametrize('state', ['RECEIVED', 'CAPTURED', 'STARTED'])
def test_a_segment_that_is_judged_again_has_no_outcome_yet(state: str) -> None:
    assert answer(on_record(state, outcome()), Wanted()) is None


def test_an_earlier_segment_has_its_outcome_while_the_last_is_pending() -> None:
    run = on_record('STARTED', outcome(0, PROCESS), segment=1)
    assert answer(run, Wanted(0)) == outcome(0, PROCESS)
    assert answer(run, Wanted()) is None
    assert answer(run, Wanted(1)) is None


def test_the_end_of_a_run_is_not_process_but_may_be_an_error() -> None:
    assert answer(on_record('PROCESS', outcome(0, PROCESS)), Wanted(final=True)) is None
    assert answer(on_record('ERROR', outcome()), Wanted(final=True)) == outcome()


def test_an_earlier_attempt_does_not_count() -> None:
    run = on_record('ERROR', outcome(attempt=2))
    assert answer(run, Wanted(0, attempt=2)) == outcome(attempt=2)
    assert answer(run, Wanted(0, attempt=3)) is None


def test_an_interruption_overrules_everything_but_a_closed_segment() -> None:
    for run, wanted in (
        (on_record('INTERRUPTED'), Wanted()),
        (on_record('INTERRUPTED', outcome(0, PROCESS)), Wanted()),
        (on_record('INTERRUPTED', outcome(0, PROCESS)), Wanted(0)),
        (on_record('INTERRUPTED', outcome()), Wanted(final=True)),
        (on_record('INTERRUPTED', outcome(0, PROCESS)), Wanted(3)),
    ):
        found = answer(run, wanted)
        assert found is not None
        assert found.state is SegmentState.INTERRUPTED
    closed = on_record('SUCCESS', outcome(0, SUCCESS))
    assert answer(closed, Wanted()) == outcome(0, SUCCESS)


@pytest.mark.parametrize('state', ['SUCCESS', 'FAILURE'])
def test_a_segment_after_the_end_never_comes(state: str) -> None:
    verdict = SUCCESS if state == 'SUCCESS' else Verdict(Status.FAILURE, failure_reason='no')
    with pytest.raises(NeverComesError, match='segment 1 will never come'):
        answer(on_record(state, outcome(0, verdict)), Wanted(1))


def test_of_what_was_published_the_newest_attempt_at_each_segment_counts() -> None:
    late = [outcome(1, SUCCESS, attempt=2), outcome(0, PROCESS), outcome(1)]
    run = heard('run-1', late)
    assert run is not None
    assert run.outcomes == (outcome(0, PROCESS), outcome(1, SUCCESS, attempt=2))
    assert (run.state, run.segment) == (SegmentState.SUCCESS, 1)
    assert heard('run-2', late) is None


def test_the_record_is_never_overruled_by_an_older_attempt_that_was_published() -> None:
    again = on_record('STARTED', outcome(attempt=1))
    assert merged(again, heard('run-1', [outcome(attempt=1)])) == again


def test_an_error_that_could_not_be_put_on_record_ends_the_wait() -> None:
    run = merged(on_record('STARTED'), heard('run-1', [outcome()]))
    assert run is not None
    assert answer(run, Wanted()) == outcome()


def test_a_published_success_never_overrules_a_record_that_has_none() -> None:
    run = merged(on_record('STARTED'), heard('run-1', [outcome(0, SUCCESS)]))
    assert run is not None
    assert answer(run, Wanted()) is None


def test_what_was_published_counts_where_nothing_is_on_record() -> None:
    refused = heard('run-1', [outcome(attempt=0)])
    run = merged(None, refused)
    assert run is not None
    assert answer(run, Wanted()) == outcome(attempt=0)
    assert merged(None, None) is None


def test_an_age_on_another_clock_is_as_old_as_one_that_is_long_ago() -> None:
    assert [is_old(age, 60.0) for age in (0.0, 60.0, 61.0, -61.0)] == [False, False, True, True]
    assert not is_old(1e9, float('inf'))
