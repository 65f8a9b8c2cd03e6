"""The verbs that talk to a node, on real rclpy: every exit code, and what is said with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
import signal
import subprocess
import time
from typing import Any

from evaluation_world import EvaluationWorld
from fake_cell import GREEN, GREY
import pytest
from rosgraph_msgs.msg import Clock
from shell import command, in_a_process, InTheBackground, ROOT, Shell

from harness_eval.cli.link import EvaluatorLink


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture
def world(ros: Any, tmp_path: Path) -> EvaluationWorld:
    return EvaluationWorld(ros, tmp_path)


@pytest.fixture
def judge_says(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Make the plugin of the tool ``plug`` give an answer."""

    def say(answer: Any) -> None:
        monkeypatch.setattr('fake_judge.behave', lambda request: answer)

    return say


def test_wait_ends_with_the_code_of_each_kind_of_outcome(
    world: EvaluationWorld, shell: Shell, judge_says: Callable[[Any], None]
) -> None:
    codes = {}
    for run_id, tool, color, said in (
        ('good', 'pick', GREEN, True),
        ('bad', 'pick', GREY, True),
        ('going-on', 'insert', GREY, True),
        ('nonsense', 'plug', GREEN, 3.7),
        ('unsure', 'plug', GREEN, None),
    ):
        world.cell.cameras['front'].color = color
        judge_says(said)
        world.end(run_id, tool)
        codes[run_id] = shell('wait', run_id, '--timeout', 20).code
    assert codes == {'good': 0, 'bad': 1, 'going-on': 3, 'nonsense': 4, 'unsure': 5}


def test_wait_says_why_a_run_failed_and_what_was_seen(
    world: EvaluationWorld, shell: Shell
) -> None:
    world.cell.cameras['front'].color = GREY
    world.end('run-1')
    ended = shell('wait', 'run-1')
    lines = ended.out.splitlines()
    assert lines[0].split() == ['state', 'FAILURE']
    assert lines[1].split() == ['run', 'run-1']
    assert any(line.startswith('reason') for line in lines)
    assert any(line.split() == ['kind', 'post_condition'] for line in lines)
    told = ' '.join(ended.out.split())  # whatever lines the width of the terminal makes of it
    assert 'in front: covers' in told
    assert 'wanted within [0.9, 1]: fails' in told
    assert (ended.code, ended.err) == (1, '')


def test_wait_gives_json_that_a_program_can_read(world: EvaluationWorld, shell: Shell) -> None:
    world.end('run-1')
    outcome = shell('wait', 'run-1', '--json').json
    assert (outcome['run_id'], outcome['tool'], outcome['state']) == ('run-1', 'pick', 'SUCCESS')
    assert (outcome['exit_code'], outcome['attempt'], outcome['error_kind']) == (0, 1, '')
    assert len(outcome['input_digest']) == 64
    assert outcome['completed_at'] < outcome['observed_from'] <= outcome['decided_at']


def test_wait_comes_before_the_run_ends(ros: Any, world: EvaluationWorld) -> None:
    waiting = InTheBackground('wait', 'run-1')
    ros.wait(
        lambda: world.node.count_subscribers('harness_eval/outcomes') >= 2,
        what='the waiting command',
    )
    world.end('run-1')
    assert (waiting.ended().code, waiting.ended().err) == (0, '')


def test_wait_without_a_node_is_no_outcome_in_time(ros_domain_id: int, shell: Shell) -> None:
    ended = shell('wait', 'run-1', '--timeout', 0.3, '--json')
    assert (ended.code, ended.json['exit_code'], ended.json['state']) == (124, 124, None)
    assert "no evaluator node 'harness_eval' answers" in ended.err
    assert ended.err.count('\n') == 1


def test_wait_for_a_run_that_never_ends_is_no_outcome_in_time(
    world: EvaluationWorld, shell: Shell
) -> None:
    for seconds in (4.5, 20, 60):  # discovery takes three, and longer on a busy machine
        ended = shell('wait', 'run-1', '--timeout', seconds)
        assert ended.code == 124
        if 'no evaluator node' not in ended.err:
            break
    assert 'heard of no completion' in ended.err


def test_an_interrupted_run_has_its_own_code_before_and_after_its_end(
    world: EvaluationWorld, shell: Shell
) -> None:
    ended = shell('interrupt', 'run-1', '--reason', 'operator')
    assert (ended.code, 'before it ended' in ended.out) == (0, True)
    assert shell('wait', 'run-1').code == 6
    assert shell('show', 'run-1', '--ledger', world.ledger_url).code == 6
    assert shell('wait', 'run-1', '--segment', 4, '--json').json['state'] == 'INTERRUPTED'


def test_a_run_that_has_ended_cannot_be_interrupted(world: EvaluationWorld, shell: Shell) -> None:
    world.end('run-1')
    assert shell('wait', 'run-1').code == 0
    ended = shell('interrupt', 'run-1')
    assert (ended.code, 'ended as SUCCESS' in ended.err) == (2, True)
    assert shell('wait', 'run-1').code == 0


def test_a_segment_after_an_interruption_is_interrupted_and_not_to_be_continued(
    world: EvaluationWorld, shell: Shell
) -> None:
    world.cell.cameras['front'].color = GREY
    world.end('run-1', 'insert')
    assert shell('wait', 'run-1').code == 3
    assert shell('interrupt', 'run-1').code == 0
    assert shell('wait', 'run-1', '--segment', 0).code == 6


def test_wait_counts_the_last_segment_the_named_one_or_the_end_of_the_run(
    ros: Any, world: EvaluationWorld, shell: Shell
) -> None:
    world.cell.cameras['front'].color = GREY
    world.end('run-1', 'insert')
    assert shell('wait', 'run-1').code == 3
    waiting = [InTheBackground('wait', 'run-1', *more) for more in (['--final'], ['--segment', 1])]
    ros.wait(
        lambda: world.node.count_subscribers('harness_eval/outcomes') >= 3,
        what='the two waiting commands',
    )
    world.cell.cameras['front'].color = GREEN
    world.end('run-1', 'insert', 1)
    assert [command.ended().code for command in waiting] == [0, 0]
    assert shell('wait', 'run-1', '--segment', 0).code == 3
    never = shell('wait', 'run-1', '--segment', 2)
    assert (never.code, 'segment 2 will never come' in never.err) == (2, True)


def test_an_old_success_is_never_the_answer_for_a_run_of_the_same_name(
    world: EvaluationWorld, shell: Shell
) -> None:
    world.end('run-1')
    assert shell('wait', 'run-1').code == 0
    world.cell.cameras['front'].color = GREY
    world.end('run-1')  # another run, which the node rejects
    ended = shell('wait', 'run-1', '--max-age', 0.01)
    assert (ended.code, ended.out) == (2, '')
    assert 'must never be reused' in ended.err
    assert shell('wait', 'run-1', '--max-age', 'inf').code == 0


def test_an_outcome_that_cannot_be_put_on_record_is_still_heard(
    world: EvaluationWorld, shell: Shell
) -> None:
    world.end('run-1', **{f'argument_{number}': 'x' for number in range(300)})
    ended = shell('wait', 'run-1', '--json')
    assert (ended.code, ended.json['error_kind']) == (4, 'invalid_completion')


def test_judge_tries_again_and_ends_with_the_new_code(
    world: EvaluationWorld, shell: Shell, judge_says: Callable[[Any], None]
) -> None:
    judge_says(None)
    world.end('run-1', 'plug')
    assert shell('wait', 'run-1').code == 5
    judge_says(True)
    ended = shell('judge', 'run-1', '--json')
    assert (ended.code, ended.json['attempt'], ended.json['state']) == (0, 2, 'SUCCESS')
    shown = shell('show', 'run-1', '--ledger', world.ledger_url, '--json').json
    assert [a['state'] for a in shown['segments'][0]['attempts']] == ['ABSTAINED', 'SUCCESS']


def test_judge_again_in_a_process_of_its_own_can_fail(
    world: EvaluationWorld, shell: Shell, judge_says: Callable[[Any], None]
) -> None:
    judge_says('prose')
    world.end('run-1', 'plug')
    assert shell('wait', 'run-1').code == 4
    judge_says(False)
    ended = in_a_process('judge', 'run-1', '--segment', 0)
    assert (ended.code, ended.out.split()[:2]) == (1, ['state', 'FAILURE'])


def test_judge_says_why_it_was_refused(world: EvaluationWorld, shell: Shell) -> None:
    world.end('run-1')
    assert shell('wait', 'run-1').code == 0
    ended = shell('judge', 'run-1')
    assert (ended.code, ended.out) == (2, '')
    assert 'only errors and abstentions can be judged again' in ended.err
    unknown = shell('judge', 'run-2')
    assert (unknown.code, "no run 'run-2' on record" in unknown.err) == (2, True)


def test_judge_and_interrupt_without_a_node_say_that_one_must_run(
    ros_domain_id: int, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('harness_eval.cli.judge.NODE_TIMEOUT', 0.2)
    monkeypatch.setattr('harness_eval.cli.interrupt.NODE_TIMEOUT', 0.2)
    for verb in ('judge', 'interrupt'):
        ended = shell(verb, 'run-1')
        assert (ended.code, ended.out, ended.err.count('\n')) == (2, '', 1)
        assert 'start it' in ended.err


def test_a_node_in_a_namespace_is_named_with_it(ros_domain_id: int, shell: Shell) -> None:
    ended = shell('wait', 'run-1', '--node', '/arm/harness_eval', '--timeout', 0.2)
    assert (ended.code, "'/arm/harness_eval'" in ended.err) == (124, True)
    bad = shell('wait', 'run-1', '--node', 'not a name', '--timeout', 0.2)
    assert (bad.code, bad.err.count('\n')) == (2, 1)


def test_the_age_of_an_outcome_is_taken_on_the_clock_of_a_simulation(ros: Any) -> None:
    clock = ros.node('simulator', spin=True)
    publisher = clock.create_publisher(Clock, '/clock', 10)
    now = Clock()
    now.clock.sec = 500
    clock.create_timer(0.02, lambda: publisher.publish(now))
    with EvaluatorLink('harness_eval', 'run-1') as link:
        assert link.spin_until(lambda: link.age(490 * 10**9) == 10.0, time.monotonic() + 10.0)


def test_ctrl_c_is_no_failure_of_the_run(ros_domain_id: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        command('wait', 'run-1'),
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_for_rclpy(process.pid)
        process.send_signal(signal.SIGINT)
        # Of an interrupt that comes while modules are loaded Python dies itself: 130 in a shell.
        assert process.wait(20.0) in (130, -signal.SIGINT)
    finally:
        if process.poll() is None:
            process.kill()


def _wait_for_rclpy(pid: int) -> None:
    """Wait until the process has loaded a middleware, so that it is inside the verb."""
    deadline = time.monotonic() + 20.0
    maps = Path(f'/proc/{pid}/maps')
    while 'librmw_' not in maps.read_text():
        assert time.monotonic() < deadline, 'the command never joined the ROS graph'
        time.sleep(0.02)


def test_the_node_may_come_and_decide_while_wait_waits(
    ros: Any, tmp_path: Path, judge_says: Callable[[Any], None]
) -> None:
    waiting = InTheBackground('wait', 'run-1')
    world = EvaluationWorld(ros, tmp_path)
    judge_says(False)
    world.end('run-1', 'plug')
    assert (waiting.ended().code, waiting.ended().err) == (1, '')
