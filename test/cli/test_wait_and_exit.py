"""Which answer a wait takes when the record, what is published and the clocks disagree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
import time
from typing import Any, cast

import pytest
import typer

from harness_eval.cli.wait import wait_and_exit
from harness_eval.cli.waiting import OnRecord, Wanted
from harness_eval.contract import Status, Verdict
from harness_eval.runs import Outcome, OutcomeKind, SegmentState

SUCCESS = Outcome(
    'run-1', 'insert', 0, 1, OutcomeKind.VERDICT, decided_at=1, verdict=Verdict(Status.SUCCESS)
)
PROCESS = replace(SUCCESS, verdict=Verdict(Status.PROCESS))
RECORDED = OnRecord('run-1', 'insert', SegmentState.SUCCESS, 0, (SUCCESS,))
PENDING = replace(RECORDED, state=SegmentState.STARTED, outcomes=())
NOBODY = TimeoutError()


class Played:
    """A link on which one look after the other gives what the test says."""

    def __init__(
        self,
        looks: Sequence[Any],
        published: Sequence[Outcome] = (),
        age: float = 0.0,
        unreadable: str = '',
    ) -> None:
        self.heard: list[Outcome] = []
        self.unreadable = unreadable
        self._looks = list(looks)
        self._published = list(published)
        self._age = age

    def look(self, deadline: float) -> Any:
        answer = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if isinstance(answer, TimeoutError):
            raise answer
        return answer

    def spin_until_heard(self, count: int, deadline: float) -> bool:
        if self._published:
            self.heard.append(self._published.pop(0))
        return len(self.heard) > count

    def age(self, stamp: int) -> float:
        return self._age


@pytest.fixture
def code_of(capsys: pytest.CaptureFixture[str]) -> Callable[..., int]:
    def code(link: Played, wanted: Wanted | None = None, *, seconds: float = 5.0) -> int:
        with pytest.raises(typer.Exit) as end:
            wait_and_exit(
                cast(Any, link),
                'run-1',
                wanted or Wanted(),
                time.monotonic() + seconds,
                'harness_eval',
                as_json=False,
                max_age=60.0,
            )
        return end.value.exit_code

    return code


@pytest.mark.parametrize('age', [3600.0, -3600.0])
def test_a_success_that_was_there_before_and_is_old_is_refused(
    code_of: Callable[..., int], age: float, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(Played([RECORDED], age=age)) == 2
    assert capsys.readouterr().out == ''


def test_a_success_that_was_there_before_and_is_young_is_taken(
    code_of: Callable[..., int],
) -> None:
    assert code_of(Played([RECORDED], age=59.0)) == 0


@pytest.mark.parametrize('before', [PENDING, None])
def test_what_is_decided_while_we_wait_is_taken_whatever_the_clocks_say(
    code_of: Callable[..., int], before: OnRecord | None
) -> None:
    assert code_of(Played([before, RECORDED], age=3600.0)) == 0


def test_old_outcomes_that_are_published_one_after_the_other_are_not_news(
    code_of: Callable[..., int],
) -> None:
    later = replace(SUCCESS, segment=1)
    link = Played([NOBODY], [PROCESS, later], age=3600.0)
    assert code_of(link, Wanted(1)) == 2


def test_a_young_outcome_counts_though_nobody_answers(code_of: Callable[..., int]) -> None:
    assert code_of(Played([NOBODY], [SUCCESS])) == 0


def test_an_old_error_is_no_answer_but_the_next_attempt_may_be(
    code_of: Callable[..., int],
) -> None:
    error = replace(SUCCESS, kind=OutcomeKind.ERROR, verdict=None, error_kind='no_frames')
    old = replace(RECORDED, state=SegmentState.ERROR, outcomes=(error,))
    assert code_of(Played([old], age=3600.0), seconds=0.05) == 124
    again = replace(old, state=SegmentState.STARTED)
    assert code_of(Played([old, again, RECORDED], age=3600.0)) == 0


def test_an_answer_that_cannot_be_read_is_an_error_and_no_verdict(
    code_of: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(Played(['the kind of an outcome is 9'])) == 4
    assert code_of(Played([None], unreadable='the kind of an outcome is 9')) == 4
    assert 'kind of an outcome is 9' in capsys.readouterr().err
