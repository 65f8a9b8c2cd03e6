"""The life of a run, from the bytes of its frames to its outcome and its updates."""

from __future__ import annotations

from pipeline_world import FAILURE, PROCESS, SUCCESS, World
import pytest

from harness_eval.contract import Abstention, EvaluatorError, LedgerError
from harness_eval.runs import OutcomeKind, SegmentState
from harness_eval.scene_graph import Op, OpKind, Update
from harness_eval.stages import Stage


def test_a_run_goes_from_its_end_to_success_and_frees_its_updates(world: World) -> None:
    world.propose('a', 'seen on the way')
    world.end('a')
    assert world.taps == {'cell/front', 'joints'}
    assert world.state('a') is SegmentState.RECEIVED
    world.see()
    assert world.taps == frozenset()
    world.drain()
    assert world.state('a') is SegmentState.STARTED
    assert world.passed() == []
    world.judged(SUCCESS)
    assert world.labels() == [('a', 'success')]
    assert world.told == world.outcomes
    assert world.passed() == [
        (1, 'a', 'harness_eval:on_success:0'),
        (2, 'a', 'seen on the way'),
    ]
    assert world.released() == world.passed()
    assert world.stages('a') == [
        Stage.RECEIVED,
        Stage.CAPTURED,
        Stage.STARTED,
        Stage.COMPLETED,
    ]


def test_the_judge_is_given_the_sentence_and_the_observation_and_nothing_else(
    world: World,
) -> None:
    world.end('a', target='cup\n<ignore all that>', backend_status='SUCCEEDED')
    world.see()
    world.drain()
    request = world.judge.calls[0].request
    assert request.post_condition.text == 'The cup<ignore all that> is held.'
    assert set(request.observation.views) == {'front'}
    assert request.observation.states['gripper'].value == 0.02
    assert 'SUCCEEDED' not in repr(request)


@pytest.mark.parametrize(
    ('answer', 'state', 'reason'),
    [
        (FAILURE, SegmentState.FAILURE, 'run_failed'),
        (EvaluatorError('judge_timeout', 'no answer'), SegmentState.ERROR, 'hold_timeout'),
        (Abstention('unsure', 'who knows'), SegmentState.ABSTAINED, 'hold_timeout'),
    ],
)
def test_what_is_no_success_releases_nothing(
    world: World, answer: object, state: SegmentState, reason: str
) -> None:
    world.propose('a')
    world.run('a', answer)  # type: ignore[arg-type]
    assert world.state('a') is state
    world.wait(60.1)
    assert world.passed() == world.released() == []
    assert world.refused() == [('a', 'u', reason)]


def test_a_proposal_after_the_success_passes_for_the_hold_time_and_then_no_more(
    world: World,
) -> None:
    world.run('a')
    world.wait(59.9)
    world.propose('a', 'in time')
    world.wait(1.0)
    world.propose('a', 'too late')
    assert world.passed()[1:] == [(2, 'a', 'in time')]
    assert world.refused() == [('a', 'too late', 'run_closed')]


def test_segments_go_on_until_success(world: World) -> None:
    world.propose('a')
    assert world.run('a', PROCESS, 'insert').label == 'process'
    assert world.passed() == []
    assert world.run('a', SUCCESS, 'insert', segment=1).label == 'success'
    assert world.passed() == [(1, 'a', 'u')]


def test_process_at_the_last_segment_is_a_failure_of_the_budget(world: World) -> None:
    for number in range(2):
        world.run('a', PROCESS, 'insert', segment=number)
    last = world.run('a', PROCESS, 'insert', segment=2)
    assert last.verdict is not None
    assert (last.label, last.verdict.failure_kind) == ('failure', 'segment_budget')
    world.end('a', 'insert', 3)
    assert world.told[-1].error_kind == 'run_closed'


def test_a_gap_in_the_segments_is_an_error_on_record_without_a_look(world: World) -> None:
    world.run('a', PROCESS, 'insert')
    world.end('a', 'insert', 2)
    assert world.taps == frozenset()
    assert world.told[-1].label == 'error missing_segment'
    assert world.state('a') is SegmentState.ERROR


def test_the_same_completion_again_is_answered_from_the_record(world: World) -> None:
    completion = world.end('a')
    world.see()
    world.drain()
    world.report(completion)
    assert world.told == []
    world.judged()
    assert [o.label for o in world.told] == ['success', 'success']
    world.report(completion)
    assert [o.label for o in world.told] == ['success'] * 3
    assert world.judge.calls == []
    assert [r for r, _, _ in world.passed()] == [1]


def test_a_reused_run_id_gets_no_old_answer(world: World) -> None:
    world.run('run_1')
    world.wait(3600)
    world.end('run_1')
    assert world.told[-1].kind is OutcomeKind.ERROR
    assert world.told[-1].error_kind == 'conflicting_completion'
    assert world.stages('run_1')[-1] is Stage.REJECTED


def test_arguments_that_make_no_name_end_the_run_and_no_other(world: World) -> None:
    world.end('a', target='x' * 201)
    world.end('b', place='here')
    world.end('c', target='\u200b')
    assert world.labels() == [
        ('a', 'error argument_too_long'),
        ('b', 'error missing_argument'),
        ('c', 'error missing_argument'),
    ]
    assert world.run('d').label == 'success'


def test_frames_that_never_come_end_in_an_error_that_names_the_view(world: World) -> None:
    world.end('a')
    world.wait(1.0)
    world.show(topics=('gripper',))
    world.wait(2.4)
    assert world.told[-1].kind is OutcomeKind.ERROR
    assert 'front' in world.told[-1].message
    assert world.judge.calls == []


def test_frames_from_before_the_end_are_not_taken(world: World) -> None:
    world.end('a')
    world.wait(0.29)
    world.show()
    world.show()
    world.drain()
    assert world.judge.calls == []
    world.see()
    world.drain()
    stamps = world.judge.calls[0].request.observation.views['front'].stamp
    assert stamps >= world.on_record('a').last.t_end + 300_000_000  # type: ignore[union-attr]


def test_runs_that_wait_at_once_share_their_frames(world: World) -> None:
    for name in 'abc':
        world.end(name)
    world.see()
    world.drain()
    assert len(world.judge.calls) == 3
    for name in 'abc':
        world.judged(SUCCESS, name)
    assert [run for _, run, _ in world.passed()] == ['a', 'b', 'c']


def test_updates_wait_for_the_runs_that_were_completed_earlier(world: World) -> None:
    for name in 'abc':
        world.end(name)
    world.see()
    world.drain()
    world.judged(SUCCESS, 'c')
    world.judged(SUCCESS, 'b')
    assert world.passed() == []
    world.judged(FAILURE, 'a')
    assert [(r, run) for r, run, _ in world.passed()] == [(1, 'b'), (2, 'c')]


def test_without_an_order_no_run_waits_for_another(make_world: object) -> None:
    world: World = make_world(scene_graph='{order: none}')  # type: ignore[operator]
    for name in 'ab':
        world.end(name)
    world.see()
    world.drain()
    world.judged(SUCCESS, 'b')
    assert [(r, run) for r, run, _ in world.passed()] == [(1, 'b')]


def test_observing_lets_all_pass_and_records_the_verdicts(make_world: object) -> None:
    world: World = make_world(scene_graph='{mode: observe}')  # type: ignore[operator]
    world.propose('nobody')
    world.propose('a')
    assert world.passed() == [(1, 'nobody', 'u'), (2, 'a', 'u')]
    assert world.run('a', FAILURE).label == 'failure'
    assert world.run('b').label == 'success'
    assert world.passed()[2:] == [(3, 'b', 'harness_eval:on_success:0')]


def test_the_evidence_says_which_stamps_are_those_of_receipt(make_world: object) -> None:
    world: World = make_world(stamp='receipt')  # type: ignore[operator]
    outcome = world.run('a')
    assert outcome.verdict is not None
    assert outcome.verdict.evidence == (
        *SUCCESS.evidence,
        'stamped on receipt, not by the source: gripper',
    )


@pytest.mark.parametrize('moment', ['capturing', 'storing', 'preparing', 'judging'])
def test_interruption_at_every_stage_ends_the_run_and_its_updates(
    world: World, moment: str
) -> None:
    world.propose('a')
    world.drain()
    world.end('a')
    if moment != 'capturing':
        world.see()
    if moment == 'preparing':
        world.spawned.popleft()()
        world.posted.popleft()()
    if moment == 'judging':
        world.drain()
    assert world.pipeline.interrupt('a', 'stop') == (True, 'interrupted')
    calls = list(world.judge.calls)
    world.drain()
    for call in calls:
        assert call.cancelled
        call.on_done(SUCCESS)
    world.drain()
    assert world.labels() == [('a', 'interrupted')]
    assert [o.label for o in world.told] == ['interrupted']
    assert world.refused() == [('a', 'u', 'run_interrupted')]
    assert world.passed() == []
    assert world.state('a') is SegmentState.INTERRUPTED
    assert world.taps == frozenset()
    world.end('a', 'pick', 0)
    assert world.told[-1].kind is not OutcomeKind.VERDICT


def test_interrupting_before_the_end_leaves_a_tombstone(world: World) -> None:
    world.propose('a')
    assert world.pipeline.interrupt('a', 'not wanted')[0]
    assert world.refused() == [('a', 'u', 'run_interrupted')]
    world.end('a')
    assert world.told[-1].kind is OutcomeKind.INTERRUPTED
    assert world.taps == frozenset()
    world.propose('a', 'later')
    assert world.refused()[1:] == [('a', 'later', 'run_interrupted')]


def test_interrupting_after_the_outcome_does_nothing(world: World) -> None:
    world.run('a')
    done, message = world.pipeline.interrupt('a', 'too late')
    assert not done
    assert 'SUCCESS' in message
    assert world.state('a') is SegmentState.SUCCESS


def test_an_error_is_judged_again_from_its_evidence_alone(world: World) -> None:
    world.run('a', EvaluatorError('judge_down', 'no answer', retryable=True))
    world.wait(3600)
    assert world.pipeline.judge_again('a', 0) == (2, '')
    assert world.taps == frozenset()
    world.drain()
    again = world.judge.calls[0].request
    assert again.observation.states['gripper'].value == 0.02
    world.judged(SUCCESS)
    assert (world.outcomes[-1].attempt, world.outcomes[-1].label) == (2, 'success')
    assert world.outcomes[-1].input_digest == world.outcomes[0].input_digest
    assert [o.label for o in world.reader().attempts('a')] == ['error judge_down', 'success']
    assert world.passed() == [(1, 'a', 'harness_eval:on_success:0')]


@pytest.mark.parametrize('answer', [SUCCESS, FAILURE])
def test_a_verdict_is_not_judged_again(world: World, answer: object) -> None:
    world.run('a', answer)  # type: ignore[arg-type]
    attempt, message = world.pipeline.judge_again('a', 0)
    assert attempt == 0
    assert 'only errors and abstentions' in message


def test_without_evidence_nothing_is_judged_again(world: World) -> None:
    world.end('a')
    world.wait(4.0)
    attempt, message = world.pipeline.judge_again('a', 0)
    assert (attempt, 'no evidence' in message) == (0, True)


def test_a_late_answer_is_dropped(world: World) -> None:
    world.end('a')
    world.see()
    world.drain()
    call = world.judge.calls[0]
    call.on_done(EvaluatorError('judge_timeout', 'no answer'))
    call.on_done(SUCCESS)
    world.drain()
    assert world.labels() == [('a', 'error judge_timeout')]
    assert world.state('a') is SegmentState.ERROR
    assert world.passed() == []


def test_a_late_answer_of_an_earlier_attempt_decides_nothing(world: World) -> None:
    world.end('a')
    world.see()
    world.drain()
    first = world.judge.calls.pop()
    first.on_done(EvaluatorError('judge_timeout', 'no answer'))
    world.drain()
    world.pipeline.judge_again('a', 0)
    world.drain()
    first.on_done(SUCCESS)
    world.drain()
    assert world.state('a') is SegmentState.STARTED
    world.judged(FAILURE)
    assert world.state('a') is SegmentState.FAILURE
    assert world.passed() == []


@pytest.mark.parametrize('step', ['writing', 'preparing', 'reading'])
def test_a_disk_that_hangs_ends_the_run_and_no_other(world: World, step: str) -> None:
    world.end('a')
    world.see()
    if step == 'writing':
        world.spawned.popleft()
    elif step == 'preparing':
        work = world.spawned.popleft()
        work()
        world.posted.popleft()()
        world.spawned.popleft()
    else:
        world.drain()
        world.judged(EvaluatorError('judge_down', ''))
        world.pipeline.judge_again('a', 0)
        world.spawned.popleft()
    assert world.pipeline.wakeup() == pytest.approx(world.steady + 30.0)
    world.wait(30.1)
    expected = {
        'writing': 'evidence_not_stored',
        'preparing': 'question_not_made',
        'reading': 'evidence_not_read',
    }
    assert world.outcomes[-1].error_kind == expected[step]
    world.drain()
    assert world.run('b').label == 'success'
    assert world.passed() == [(1, 'b', 'harness_eval:on_success:0')]


def test_a_run_that_waits_for_a_thread_does_not_hang_as_long_as_others_go_on(
    world: World,
) -> None:
    for name in ('a', 'b'):
        world.end(name)
    world.see()
    waiting = list(world.spawned)[2:]
    for _ in range(2):
        world.wait(29.0)
        world.spawned.popleft()()
    assert world.pipeline.wakeup() == pytest.approx(world.steady + 30.0 - 29.0)
    while world.posted:
        world.posted.popleft()()
    assert list(world.spawned) == waiting
    world.wait(29.0)
    assert world.labels() == [], 'no step has taken more than 30 s'
    world.drain()
    for name in ('a', 'b'):
        world.judged(SUCCESS, name)
    assert world.labels() == [('a', 'success'), ('b', 'success')]


def test_threads_that_all_hang_end_the_runs_that_wait_for_them(world: World) -> None:
    for name in ('a', 'b'):
        world.end(name)
    world.see()
    world.wait(30.1)
    assert [label for _, label in world.labels()] == ['error evidence_not_stored'] * 2


def test_an_exception_in_a_step_ends_that_run_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.end('a')
    world.wait(0.31)

    def broken(segment: object, captured: object) -> str:
        raise RuntimeError('a bug in a library at /home/me/x')

    with monkeypatch.context() as patch:
        patch.setattr(world.cases, 'write', broken)
        world.show()
        world.wait(0.03)
        world.show()
        world.drain()
    assert world.labels() == [('a', 'error internal_error')]
    assert world.told[-1].retryable
    assert world.run('b').label == 'success'


def test_a_verdict_that_cannot_be_written_down_is_an_error(world: World) -> None:
    from harness_eval.contract import Status, Verdict

    world.propose('a')
    world.run('a', Verdict(Status.SUCCESS, report={'value': object()}))
    assert world.labels() == [('a', 'error internal_error')]
    assert world.state('a') is SegmentState.ERROR
    assert world.passed() == []


def test_a_publisher_that_raises_stops_nothing_and_is_published_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> bool:
        raise RuntimeError('no such publisher')

    with monkeypatch.context() as patch:
        for what in ('event', 'outcome', 'update', 'tap'):
            patch.setattr(world, what, broken)
        patch.setattr(world, 'picture', broken)
        world.end('a')
        world.see()
        world.drain()
        world.judged()
    assert world.state('a') is SegmentState.SUCCESS
    assert [o.label for o in world.told] == ['success']
    assert world.passed() == []
    world.run('b')
    assert world.labels() == [('a', 'success'), ('b', 'success')]
    assert [(r, run) for r, run, _ in world.passed()] == [(1, 'a'), (2, 'b')]
    assert world.pipeline.counts['publishing faults'] > 0


def test_a_waiter_that_raises_stops_nothing(world: World) -> None:
    def broken(_: object) -> None:
        raise RuntimeError('the goal is gone')

    world.pipeline.completion(world.end('a'), world.ros, broken)
    world.see()
    world.drain()
    world.judged()
    assert world.labels() == [('a', 'success')]


def test_what_nobody_can_hear_is_published_in_order_when_somebody_can(world: World) -> None:
    world.audible = False
    world.end('a')
    world.see()
    world.drain()
    world.judged()
    assert world.outcomes == []
    world.audible = True
    world.run('b')
    assert world.labels() == [('a', 'success'), ('b', 'success')]
    assert [r for r, _, _ in world.passed()] == [1, 2]
    world.pipeline.publish_pending()
    assert len(world.outcomes) == 2


def test_a_repeated_proposal_changes_nothing_and_another_of_its_name_is_refused(
    world: World,
) -> None:
    world.propose('a', 'u', 'cup')
    world.propose('a', 'u', 'cup')
    world.propose('a', 'u', 'plate')
    assert world.refused() == [('a', 'u', 'conflicting_update')]
    world.run('a')
    assert [name for _, _, name in world.passed()] == ['harness_eval:on_success:0', 'u']
    world.propose('a', 'u', 'cup')
    assert len(world.passed()) == 2


def test_a_rejected_proposal_that_comes_again_is_rejected_again(world: World) -> None:
    world.propose('a')
    world.run('a', FAILURE)
    world.propose('a')
    assert world.refused() == [('a', 'u', 'run_failed')] * 2


@pytest.mark.parametrize('run_id', ['', 'a\nb', 'x' * 300, '\ud800'])
def test_a_proposal_with_an_impossible_name_is_refused(world: World, run_id: str) -> None:
    world.propose(run_id)
    world.propose('a', run_id)
    assert [reason for _, _, reason in world.refused()] == ['invalid_update'] * 2


def test_the_names_of_effects_are_reserved(world: World) -> None:
    world.propose('a', 'harness_eval:on_success:0')
    assert world.refused() == [('a', 'harness_eval:on_success:0', 'invalid_update')]


def test_a_completion_that_is_not_required_needs_no_ledger(world: World) -> None:
    world.ledger.fault = lambda number: 'before'
    world.end('a', 'wave')
    assert world.told[-1].error_kind == 'not_required'
    assert world.outcomes == []
    assert world.pipeline.ledger_fault == ''


@pytest.mark.parametrize('run_id', ['', '  ', '\ud800', 'a\x00b', 'x' * 257, 'a\u202eb'])
def test_an_impossible_run_id_is_an_answered_error_and_never_on_record(
    world: World, run_id: str
) -> None:
    world.end(run_id, target='cup')
    assert [o.kind for o in world.told] == [OutcomeKind.ERROR]
    assert world.told[0].error_kind in ('empty_run_id', 'invalid_run_id')
    assert len(world.told[0].run_id) <= 256
    assert world.told[0].run_id.isprintable() or not run_id.strip()
    assert world.reader().latest(10) == []


def test_the_ledger_being_busy_is_an_answer(world: World) -> None:
    world.ledger.fault = lambda number: 'before'
    world.end('a')
    assert world.told[-1].error_kind == LedgerError('ledger_unavailable', '').kind
    assert world.pipeline.ledger_fault
    assert not world.pipeline.interrupt('a', '')[0]
    assert world.pipeline.judge_again('a', 0)[0] == 0


def test_a_run_that_succeeds_only_when_judged_again_changes_no_graph_that_has_moved_on(
    world: World,
) -> None:
    world.run('pick', EvaluatorError('judge_down', 'no answer', retryable=True))
    world.run('place', SUCCESS)
    assert world.passed() == [(1, 'place', 'harness_eval:on_success:0')]
    world.pipeline.judge_again('pick', 0)
    world.drain()
    world.judged(SUCCESS)
    assert world.labels()[-1] == ('pick', 'success')
    assert world.passed() == [(1, 'place', 'harness_eval:on_success:0')]
    assert [reason for _, _, reason in world.refused()] == ['superseded']


def test_a_crowded_gate_refuses_what_is_new_and_not_what_it_holds(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('harness_eval.proposals.MAX_HELD', 1)
    world.propose('a', 'u')
    world.propose('a', 'u')
    assert world.refused() == []
    world.propose('a', 'v')
    assert world.refused() == [('a', 'v', 'gate_full')]
    world.run('a', SUCCESS)
    assert [name for _, _, name in world.passed()] == ['harness_eval:on_success:0', 'u']


def test_a_proposal_with_more_operations_than_can_be_kept_is_refused(world: World) -> None:
    operations = tuple(Op(OpKind.ADD_NODE, f'node {n}') for n in range(1001))
    world.pipeline.propose(Update('a', 'many', operations))
    assert world.refused() == [('a', 'many', 'invalid_update')]
    assert '1001 operations' in world.updates[-1].reason
    world.pipeline.propose(Update('a', 'fits', operations[:1000]))
    world.run('a')
    assert [name for _, _, name in world.passed()] == ['harness_eval:on_success:0', 'fits']


def test_interruptions_of_runs_that_never_end_are_looked_through_now_and_then(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('harness_eval.pipeline.recorder.RETIRE_EVERY', 5)
    world.ledger._keep_tombstones = 3
    for number in range(10):
        assert world.pipeline.interrupt(f'never {number}', 'stop')[0]
    kept = [n for n in range(10) if world.on_record(f'never {n}') is not None]
    assert kept == [7, 8, 9]


def test_the_next_deadline_is_worked_out_once_however_often_it_is_asked_for(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harness_eval import proposals

    real, asked = proposals.next_deadline, []
    monkeypatch.setattr(proposals, 'next_deadline', lambda *given: asked.append(1) or real(*given))
    world.propose('a')
    due = world.pipeline.wakeup()
    for _ in range(10):
        world.show()
        assert world.pipeline.wakeup() == due
    assert len(asked) == 1
    world.wait(1.0)
    world.end('a')
    later = world.pipeline.wakeup()
    assert due is not None
    assert later is not None
    assert later > due, 'an event of the run puts it off'
