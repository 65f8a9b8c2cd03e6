"""What is known, and what it means for each tool: pure, told the time."""

from __future__ import annotations

from pathlib import Path

from fake_cell import cell_yaml
from hypothesis import given
from hypothesis import strategies as st
import pytest

from harness_eval.config import Config, load_config
from harness_eval.contract import EvaluatorError
from harness_eval.doctor import Level, Remark
from harness_eval.evaluators.probing import Probed
from harness_eval.readiness import Readiness, unready
from harness_eval.watches import FIRST_RETRY, JudgeWatch, LONGEST_RETRY, Retry, StreamWatch

EVALUATORS = """
    one: {kind: endpoint, url: "http://127.0.0.1:9/a"}
    two: {kind: endpoint, url: "http://127.0.0.1:9/b"}
    both: {kind: vote, members: [one, two], needed: 2}
    either: {kind: vote, members: [one, two], needed: 1}
    next: {kind: cascade, members: [one, two], on_error: next}
    strict: {kind: cascade, members: [one, two]}
"""
FROZEN = Remark(Level.FAIL, 'frozen', "view 'front'", 'it repeats', 'restart it')
UNEVEN = Remark(Level.WARN, 'uneven', "view 'front'", 'frames are lost', 'look at the load')
DOWN = Probed(fault=EvaluatorError('endpoint_unreachable', 'no connection; start it'))
UP = Probed(found='it answers')


@pytest.fixture
def config(tmp_path: Path) -> Config:
    path = tmp_path / 'evaluation.yaml'
    path.write_text(cell_yaml(evaluators=EVALUATORS))
    return load_config(path)


def known(config: Config, judge: str = 'one') -> Readiness:
    tool = config.tool('pick').model_copy(update={'evaluator': judge})
    evaluation = config.evaluation.model_copy(update={'tools': {'pick': tool}})
    changed = config.model_copy(update={'evaluation': evaluation})
    readiness = Readiness(
        changed,
        {'pick': ('front', 'gripper')},
        {'front': "view 'front'", 'gripper': "state 'gripper'"},
        0.0,
    )
    for stream in readiness.streams.values():
        stream.graph(0.0, 'there', ())
    return readiness


def well(config: Config, judge: str = 'one') -> Readiness:
    readiness = known(config, judge)
    for name in readiness.to_hear(0.0):
        readiness.streams[name].retry.begun()
    readiness.heard(0.1, {'front': [], 'gripper': []}, lambda names: None)
    for name in readiness.to_probe(0.0):
        readiness.judges[name].retry.begun()
        readiness.judges[name].probed(0.1, UP)
    assert kinds(readiness) == []
    return readiness


def kinds(readiness: Readiness, *, active: bool = True, ledger: str = '') -> list[str]:
    (tool,) = readiness.tools(active=active, ledger_fault=ledger)
    assert tool.ready == (not tool.reasons)
    return [reason.kind for reason in tool.reasons]


def test_what_was_not_looked_at_is_not_ready(config: Config) -> None:
    assert kinds(known(config)) == ['not_seen_yet'] * 3


def test_an_inactive_node_and_a_broken_ledger_come_first(config: Config) -> None:
    readiness = well(config)
    assert kinds(readiness, active=False, ledger='disk full') == ['inactive', 'ledger']
    (tool,) = readiness.tools(active=True, ledger_fault='disk full')
    assert 'disk full' in tool.reasons[0].text
    assert unready((tool,)) == ('pick (ledger)',)


def test_what_is_wrong_with_a_stream_is_told_until_it_is_heard_well(config: Config) -> None:
    readiness = well(config)
    readiness.heard(1.0, {'front': [FROZEN], 'gripper': []}, lambda names: None)
    assert kinds(readiness) == ['frozen']
    readiness.heard(9.0, {'front': [], 'gripper': []}, lambda names: None)
    assert kinds(readiness) == []


def test_a_doubt_keeps_no_tool_from_being_ready(config: Config) -> None:
    readiness = well(config)
    readiness.heard(1.0, {'front': [UNEVEN]}, lambda names: None)
    assert kinds(readiness) == []


def test_streams_apart_are_told_of_the_tool(config: Config) -> None:
    readiness = well(config)
    apart = Remark(Level.FAIL, 'unsynchronised', 'front, gripper', 'never together', 'trigger')
    readiness.heard(1.0, {'front': [], 'gripper': []}, lambda names: apart)
    assert kinds(readiness) == ['unsynchronised']
    assert readiness.to_hear(1.0 + FIRST_RETRY) == {'front', 'gripper'}


def test_a_stream_is_heard_together_with_those_of_its_tools(config: Config) -> None:
    readiness = well(config)
    assert readiness.to_hear(100.0) == frozenset()
    readiness.streams['front'].graph(100.0, 'another driver', ())
    assert kinds(readiness) == []
    assert readiness.to_hear(100.0) == {'front', 'gripper'}


def test_a_publisher_that_is_gone_is_told_at_once_and_not_listened_for(config: Config) -> None:
    readiness = well(config)
    gone = Remark(Level.FAIL, 'no_publisher', "view 'front'", 'nobody', 'start it')
    readiness.streams['front'].graph(5.0, 'nobody', (gone,))
    assert kinds(readiness) == ['no_publisher']
    assert readiness.to_hear(5.0) == frozenset()
    readiness.streams['front'].graph(6.0, 'there', ())
    assert kinds(readiness) == ['not_seen_yet']
    assert readiness.to_hear(6.0) == {'front', 'gripper'}


def test_what_is_known_holds_while_everything_is_looked_at_again(config: Config) -> None:
    readiness = well(config)
    readiness.look_again(9.0)
    assert kinds(readiness) == []
    assert readiness.to_hear(9.0) == {'front', 'gripper'}
    assert readiness.to_probe(9.0) == ('one',)


def test_a_failed_capture_is_told_until_the_streams_were_heard(config: Config) -> None:
    readiness = well(config)
    readiness.capture_failed(5.0, 'pick', 'stale', 'the newest frame is 9 s old')
    assert kinds(readiness) == ['stale']
    assert readiness.to_hear(5.0) == {'front', 'gripper'}
    readiness.heard(5.5, {'front': [], 'gripper': []}, lambda names: None)
    assert kinds(readiness) == []


def test_a_capture_that_succeeds_is_better_than_any_listening(config: Config) -> None:
    readiness = well(config)
    readiness.heard(1.0, {'front': [FROZEN], 'gripper': []}, lambda names: None)
    readiness.captured('pick')
    assert kinds(readiness) == []
    assert readiness.to_hear(1000.0) == frozenset()


def test_the_outcome_of_a_tool_that_is_not_known_changes_nothing(config: Config) -> None:
    readiness = well(config)
    readiness.capture_failed(1.0, 'other', 'stale', 'old')
    readiness.captured('other')
    assert kinds(readiness) == []


def test_the_third_error_in_a_row_makes_a_judge_unfit_until_a_probe_succeeds(
    config: Config,
) -> None:
    readiness = well(config)
    judge = readiness.judges['one']
    judge.counted(1.0, 2, 0, quarantined=False)
    assert kinds(readiness) == []
    assert readiness.to_probe(1.0) == ()
    judge.told('endpoint_failed: HTTP 503')
    judge.counted(2.0, 3, 0, quarantined=False)
    assert kinds(readiness) == ['judge_failing']
    (tool,) = readiness.tools(active=True, ledger_fault='')
    assert '3 errors in a row' in tool.reasons[0].text
    assert 'HTTP 503' in tool.reasons[0].text
    assert readiness.to_probe(2.0) == ('one',)
    judge.retry.begun()
    judge.probed(3.0, DOWN)
    assert kinds(readiness) == ['endpoint_unreachable']
    assert readiness.to_probe(3.0 + FIRST_RETRY) == ('one',)
    judge.retry.begun()
    judge.probed(9.0, UP)
    assert kinds(readiness) == []
    assert readiness.to_probe(1000.0) == ()


def test_errors_with_an_answer_in_between_are_not_in_a_row(config: Config) -> None:
    readiness = well(config)
    judge = readiness.judges['one']
    judge.counted(1.0, 2, 0, quarantined=False)
    judge.counted(2.0, 2, 1, quarantined=False)
    judge.counted(3.0, 4, 1, quarantined=False)
    assert kinds(readiness) == []


def test_an_answer_is_better_than_any_probe(config: Config) -> None:
    readiness = well(config)
    judge = readiness.judges['one']
    judge.counted(1.0, 3, 0, quarantined=False)
    judge.counted(2.0, 3, 1, quarantined=False)
    assert kinds(readiness) == []
    assert readiness.to_probe(100.0) == ()


def test_quarantine_is_told_whatever_a_probe_says(config: Config) -> None:
    readiness = well(config)
    judge = readiness.judges['one']
    judge.counted(1.0, 0, 0, quarantined=True)
    judge.probed(1.0, UP)
    assert kinds(readiness) == ['quarantined']


@pytest.mark.parametrize(
    ('judge', 'one_down', 'both_down'),
    [
        ('both', False, False),
        ('either', True, False),
        ('next', True, False),
        ('strict', False, False),
    ],
)
def test_a_judge_that_asks_others_is_as_fit_as_those_that_it_needs(
    config: Config, judge: str, one_down: bool, both_down: bool
) -> None:
    readiness = well(config, judge)
    readiness.judges['two'].probed(1.0, DOWN)
    assert (kinds(readiness) == []) == one_down
    readiness.judges['one'].probed(1.0, DOWN)
    assert (kinds(readiness) == []) == both_down
    (tool,) = readiness.tools(active=True, ledger_fault='')
    assert "evaluator '" + judge in tool.reasons[-1].text


@given(st.lists(st.booleans(), min_size=1, max_size=30))
def test_what_is_not_good_is_looked_at_again_ever_less_and_at_least_every_minute(
    goods: list[bool],
) -> None:
    retry, now, pause = Retry(0.0), 0.0, 0.0
    for good in goods:
        retry.soon(now) if pause == 0.0 else None
        assert retry.due(now)
        retry.begun()
        assert not retry.due(now + 1e6)
        retry.ended(now, good=good)
        if good:
            assert not retry.due(now + 1e6)
            pause = 0.0
            continue
        pause = FIRST_RETRY if pause == 0.0 else min(2 * pause, LONGEST_RETRY)
        assert not retry.due(now + pause - 0.01)
        now += pause
        assert pause <= LONGEST_RETRY


def test_what_happens_during_a_look_is_looked_at_after_it() -> None:
    retry = Retry(0.0)
    retry.begun()
    retry.soon(0.5)
    retry.ended(1.0, good=True)
    assert retry.due(1.0)


def test_a_stream_and_a_judge_that_were_never_seen_say_so() -> None:
    assert [reason.kind for reason in StreamWatch("view 'x'", 0.0).reasons] == ['not_seen_yet']
    fault = JudgeWatch('x', 0.0).fault
    assert fault is not None
    assert fault.kind == 'not_seen_yet'
