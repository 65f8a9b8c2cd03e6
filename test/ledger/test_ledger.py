"""The durable record: whole transactions, one writer, and faults with a name."""

from __future__ import annotations

from collections.abc import Iterator
import dataclasses
from pathlib import Path
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from harness_eval.contract import EvaluatorError, LedgerError, Status, Verdict
from harness_eval.ledger import (
    connection,
    HELD,
    Ledger,
    ledger_path,
    LedgerReader,
    REJECTED,
    RELEASED,
    UpdateRecord,
)
from harness_eval.ledger.connection import CHECKPOINT_AFTER
from harness_eval.runs import Completion, Outcome, outcome_of, Segment, SegmentState
from harness_eval.scene_graph import Op, OpKind, Update

NOW = 1_700_000_000 * 10**9
SUCCESS = Verdict(Status.SUCCESS, ('seen',))
OPS = (Op(OpKind.ADD_EDGE, 'cup', 'on', 'table', (('height', '3'),)),)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / 'deep' / 'ledger.sqlite3'


@pytest.fixture
def url(path: Path) -> str:
    return f'sqlite:///{path}'


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    made = Ledger(url)
    yield made
    made.close()


@pytest.fixture
def reader(ledger: Ledger, url: str) -> Iterator[LedgerReader]:
    made = LedgerReader(url)
    yield made
    made.close()


def accept(ledger: Ledger, run_id: str = 'run', number: int = 0) -> Segment:
    with ledger.transaction():
        return ledger.add_segment(Completion(run_id, 'pick', number, NOW, (('a', 'ü'),)), NOW)


def decide(
    ledger: Ledger, segment: Segment, answer: Verdict | EvaluatorError = SUCCESS
) -> Outcome:
    outcome = outcome_of(answer, segment, decided_at=NOW, max_segments=8)
    with ledger.transaction():
        ledger.decide(segment, outcome)
    return outcome


def hold(ledger: Ledger, run_id: str = 'run', update_id: str = 'u') -> UpdateRecord:
    with ledger.transaction():
        return ledger.hold(Update(run_id, update_id, OPS))


def test_what_was_put_on_record_is_there_after_a_restart(ledger: Ledger, url: str) -> None:
    segment = accept(ledger)
    captured = dataclasses.replace(segment, state=SegmentState.CAPTURED, evidence='case')
    with ledger.transaction():
        ledger.set_state(captured)
    outcome = decide(ledger, captured)
    held = hold(ledger)
    with ledger.transaction():
        ledger.release(held, NOW)
    graph = ledger.graph_id
    ledger.close()
    again = Ledger(url)
    run = again.run('run')
    assert run is not None
    assert run.segments == (
        dataclasses.replace(captured, state=SegmentState.SUCCESS, outcome=outcome),
    )
    assert again.graph_id == graph
    record = again.find_update('run', 'u')
    assert record is not None
    assert (record.state, record.update.revision, record.update.ops) == (RELEASED, 1, OPS)
    assert record.update.graph_id == graph
    assert again.unpublished_outcomes() == [outcome]
    assert again.unpublished_updates() == [record]
    again.close()
    ledger.__init__(url)  # type: ignore[misc] # for the fixture's close


def test_a_transaction_that_is_left_by_an_exception_leaves_nothing(
    ledger: Ledger, reader: LedgerReader
) -> None:
    with pytest.raises(RuntimeError), ledger.transaction():
        ledger.add_segment(Completion('run', 'pick'), NOW)
        ledger.release(ledger.hold(Update('run', 'u', OPS)), NOW)
        raise RuntimeError
    assert reader.run('run') is None
    assert reader.released(0, 10)[1:] == (0, [])


def test_numbers_go_on_without_a_gap_after_a_failed_transaction(
    ledger: Ledger, reader: LedgerReader
) -> None:
    assert accept(ledger, 'a').order == 1
    for _ in range(3):
        with pytest.raises(RuntimeError), ledger.transaction():
            ledger.add_segment(Completion('b', 'pick'), NOW)
            ledger.release(ledger.hold(Update('b', 'u', OPS)), NOW)
            raise RuntimeError
    assert accept(ledger, 'c').order == 2
    held = hold(ledger, 'c')
    assert held.number == 1
    with ledger.transaction():
        assert ledger.release(held, NOW).update.revision == 1
    assert [u.revision for u in reader.released(0, 10)[2]] == [1]


def test_a_decision_is_made_once(ledger: Ledger, reader: LedgerReader) -> None:
    segment = accept(ledger)
    decide(ledger, segment)
    failure = Verdict(Status.FAILURE, failure_reason='no')
    for attempt in (1, 2):
        again = dataclasses.replace(segment, attempt=attempt)
        with pytest.raises(LedgerError, match='decided already'):
            decide(ledger, again, failure)
        with pytest.raises(LedgerError), ledger.transaction():
            ledger.set_state(dataclasses.replace(again, state=SegmentState.STARTED))
    run = reader.run('run')
    assert run is not None
    assert run.state is SegmentState.SUCCESS
    assert len(reader.attempts('run')) == 1


def test_an_error_is_open_for_the_next_attempt_and_no_other(
    ledger: Ledger, reader: LedgerReader
) -> None:
    segment = accept(ledger)
    decide(ledger, segment, EvaluatorError('down', ''))
    for attempt, allowed in ((1, False), (3, False), (2, True)):
        again = dataclasses.replace(segment, state=SegmentState.CAPTURED, attempt=attempt)
        if allowed:
            with ledger.transaction():
                ledger.set_state(again)
        else:
            with pytest.raises(LedgerError), ledger.transaction():
                ledger.set_state(again)
    decide(ledger, dataclasses.replace(segment, attempt=2))
    assert [o.label for o in reader.attempts('run')] == ['error down', 'success']


def test_an_update_is_ruled_on_once(ledger: Ledger) -> None:
    held = hold(ledger)
    with ledger.transaction():
        ledger.release(held, NOW)
    with pytest.raises(LedgerError, match='not held'), ledger.transaction():
        ledger.release(held, NOW)
    with pytest.raises(LedgerError, match='not held'), ledger.transaction():
        ledger.reject(held, 'why')
    with pytest.raises(LedgerError), ledger.transaction():
        ledger.hold(Update('run', 'u', ()))


def test_updates_that_wait_to_be_published_come_in_order_of_their_rulings(
    ledger: Ledger,
) -> None:
    held = [hold(ledger, 'run', f'u{n}') for n in range(4)]
    with ledger.transaction():
        ledger.reject(held[0], 'why')
        ledger.release(held[3], NOW)
        ledger.release(held[1], NOW)
    found = ledger.unpublished_updates()
    assert [(r.state, r.update.revision, r.number) for r in found] == [
        (RELEASED, 1, 4),
        (RELEASED, 2, 2),
        (REJECTED, 0, 1),
    ]
    with ledger.transaction():
        ledger.mark_published([], found)
    assert ledger.unpublished_updates() == []
    assert [r.number for r in ledger.held()] == [3]
    assert ledger.held()[0].state == HELD


@pytest.mark.parametrize('link', [False, True])
def test_a_second_writer_in_this_process_is_refused(
    ledger: Ledger, path: Path, tmp_path: Path, link: bool
) -> None:
    if link:
        (tmp_path / 'link.sqlite3').symlink_to(path)
        path = tmp_path / 'link.sqlite3'
    with pytest.raises(LedgerError, match='another node writes') as raised:
        Ledger(f'sqlite:///{path}')
    assert raised.value.kind == 'ledger_in_use'
    accept(ledger)


HOLDER = """
import sys, time
from harness_eval.ledger import Ledger
ledger = Ledger(sys.argv[1])
print('writing', flush=True)
time.sleep(60)
"""


def test_a_writer_in_another_process_is_alone_until_it_is_killed(url: str) -> None:
    child = subprocess.Popen(
        [sys.executable, '-c', HOLDER, url], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == 'writing\n'
        with pytest.raises(LedgerError) as raised:
            Ledger(url)
        assert raised.value.kind == 'ledger_in_use'
        LedgerReader(url).close()
        child.send_signal(signal.SIGKILL)
        child.wait()
        Ledger(url).close()
    finally:
        child.kill()
        child.wait()


def test_a_reader_sees_what_is_committed_while_the_writer_writes(
    ledger: Ledger, reader: LedgerReader
) -> None:
    with ledger.transaction():
        ledger.add_segment(Completion('run', 'pick'), NOW)
        assert ledger.run('run') is not None
        assert reader.run('run') is None
    assert reader.run('run') is not None


def test_a_reader_works_after_the_node_has_ended(ledger: Ledger, url: str) -> None:
    accept(ledger)
    ledger._connected().close()
    ledger._engine.dispose()
    reader = LedgerReader(url)
    assert [row.segment.completion.run_id for row in reader.latest(5)] == ['run']
    reader.close()


def test_a_foreign_lock_is_a_fault_of_writing_within_a_second_and_passes(
    ledger: Ledger, path: Path
) -> None:
    foreign = sqlite3.connect(path, isolation_level=None)
    foreign.execute('BEGIN EXCLUSIVE')
    begun = time.monotonic()
    for attempt in (lambda: accept(ledger), lambda: hold(ledger)):
        with pytest.raises(LedgerError, match='locked') as raised:
            attempt()
        assert raised.value.kind == 'ledger_unavailable'
        assert raised.value.retryable
    assert time.monotonic() - begun < 3.0
    assert ledger.run('run') is None, 'reading waits for no writer'
    foreign.execute('ROLLBACK')
    foreign.close()
    assert accept(ledger).order == 1


@pytest.mark.parametrize('suffixes', [('',), ('-wal',), ('', '-wal', '-shm')])
@pytest.mark.parametrize('replaced', [False, True])
def test_a_file_that_is_deleted_or_replaced_takes_nothing_more(
    ledger: Ledger, path: Path, tmp_path: Path, suffixes: tuple[str, ...], replaced: bool
) -> None:
    accept(ledger, 'before')
    kept = tmp_path / 'kept'
    kept.mkdir()
    for suffix in suffixes:
        file = path.with_name(path.name + suffix)
        file.rename(kept / file.name)
        if replaced:
            file.write_bytes((kept / file.name).read_bytes())
    for attempt in (lambda: accept(ledger), lambda: ledger.run('before'), lambda: hold(ledger)):
        with pytest.raises(LedgerError, match='deleted or replaced') as raised:
            attempt()
        assert raised.value.kind == 'ledger_unavailable'
    for file in kept.iterdir():
        file.replace(path.with_name(file.name))
    assert accept(ledger, 'after').order == 2, 'the file is back'


def test_what_was_decided_while_the_file_was_being_deleted_is_reported_as_failed(
    ledger: Ledger, path: Path
) -> None:
    segment = accept(ledger)
    with pytest.raises(LedgerError, match='deleted or replaced'), ledger.transaction():
        ledger.set_state(dataclasses.replace(segment, state=SegmentState.STARTED))
        path.unlink()


def test_a_lock_that_is_deleted_is_made_again_and_keeps_a_second_node_out(
    ledger: Ledger, path: Path, url: str
) -> None:
    path.with_name(path.name + '.lock').unlink()
    accept(ledger)
    with pytest.raises(LedgerError) as raised:
        Ledger(url)
    assert raised.value.kind == 'ledger_in_use'


def test_of_two_nodes_after_a_deleted_lock_one_writes(
    ledger: Ledger, path: Path, url: str
) -> None:
    path.with_name(path.name + '.lock').unlink()
    second = Ledger(url)
    with pytest.raises(LedgerError, match='another node writes') as raised:
        accept(ledger)
    assert raised.value.kind == 'ledger_in_use'
    accept(second)
    second.close()
    assert accept(ledger, 'next').order == 2


def test_interruptions_of_runs_that_never_end_are_bounded_and_those_of_others_stay(
    url: str,
) -> None:
    ledger = Ledger(url, keep_tombstones=3)
    accept(ledger, 'ended')
    with ledger.transaction():
        for name in ('ended', 'a', 'b', 'c', 'd'):
            ledger.interrupt(name, 'stop')
        ledger.retire()
    kept = [name for name in ('ended', 'a', 'b', 'c', 'd') if ledger.run(name) is not None]
    ledger.close()
    assert kept == ['ended', 'b', 'c', 'd']


def test_what_is_durable_is_to_be_flushed_once_and_other_steps_are_not(ledger: Ledger) -> None:
    with ledger.transaction():
        pass
    assert not ledger.flush_due
    with ledger.transaction(durable=True):
        pass
    assert ledger.flush_due
    assert not ledger.flush_due
    ledger.flush()


def test_no_transaction_waits_for_the_disk(ledger: Ledger) -> None:
    for durable in (True, False):
        with ledger.transaction(durable=durable) as inside:
            assert inside.exec_driver_sql('PRAGMA synchronous').scalar() == 1


def test_a_log_that_is_gone_cannot_be_flushed_and_says_so(ledger: Ledger, path: Path) -> None:
    Path(f'{path}-wal').unlink()
    with pytest.raises(LedgerError) as raised:
        ledger.flush()
    assert raised.value.kind == 'ledger_unavailable'
    assert str(path.parent) not in raised.value.message


def left_by(url: str, tmp_path: Path, boot: str, *, ends: bool) -> str:
    """Use a ledger on a boot of the system, to a proper end or not; give its graph."""
    source = Path(url.removeprefix('sqlite:///'))
    with pytest.MonkeyPatch.context() as patch:
        name = tmp_path / 'boot_id'
        name.write_text(f'{boot}\n')
        patch.setattr(connection, '_BOOT_ID', name)
        used = Ledger(url)
        graph = used.graph_id
        if not ends:  # keep the files as they are while they are in use
            for file in source.parent.glob(f'{source.name}*'):
                shutil.copy(file, tmp_path / file.name)
        used.close()
        if not ends:
            for file in tmp_path.glob(f'{source.name}*'):
                shutil.copy(file, source.parent / file.name)
    return graph


def test_a_process_that_was_killed_leaves_its_graph_to_the_next(url: str, tmp_path: Path) -> None:
    first = left_by(url, tmp_path, 'monday', ends=False)
    assert left_by(url, tmp_path, 'monday', ends=True) == first


def test_a_reboot_after_a_proper_end_changes_no_graph(url: str, tmp_path: Path) -> None:
    first = left_by(url, tmp_path, 'monday', ends=True)
    assert left_by(url, tmp_path, 'tuesday', ends=True) == first


def test_a_power_cut_begins_a_new_graph_so_that_no_revision_means_two_things(
    url: str, tmp_path: Path
) -> None:
    first = left_by(url, tmp_path, 'monday', ends=False)
    second = left_by(url, tmp_path, 'tuesday', ends=False)
    assert second != first
    assert left_by(url, tmp_path, 'tuesday', ends=True) == second


def fill(ledger: Ledger) -> int:
    """Accept completions until the ledger takes no more; say how many it took."""
    for number in range(10_000):
        try:
            with ledger.transaction():
                arguments = (('a', 'x' * 20_000),)
                ledger.add_segment(Completion(f'run {number}', 'pick', 0, 1, arguments), NOW)
        except LedgerError as error:
            assert error.kind == 'ledger_unavailable'
            return number
    raise AssertionError('the ledger never became full')


def test_a_file_that_may_grow_no_more_is_a_fault_and_heals(
    ledger: Ledger, reader: LedgerReader
) -> None:
    with ledger._engine.connect() as inside:
        inside.exec_driver_sql('PRAGMA max_page_count=200')
    taken = fill(ledger)
    assert taken > 0
    assert reader.run(f'run {taken - 1}') is not None
    assert reader.run(f'run {taken}') is None
    with ledger._engine.connect() as inside:
        inside.exec_driver_sql('PRAGMA max_page_count=100000')
    assert accept(ledger, 'after').order == taken + 1


FULL = """
import resource, signal, sys
sys.path.insert(0, sys.argv[2])
from test_ledger import fill
from harness_eval.ledger import Ledger
ledger = Ledger(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
taken = fill(ledger)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
from test_ledger import accept
print(taken, accept(ledger, 'after').order, flush=True)
"""


@pytest.mark.skipif(not hasattr(resource, 'RLIMIT_FSIZE'), reason='no limit on files here')
def test_a_disk_that_takes_no_more_is_a_fault_and_heals(url: str) -> None:
    done = subprocess.run(
        [sys.executable, '-c', FULL, url, str(Path(__file__).parent)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    taken, order = map(int, done.stdout.split())
    assert order == taken + 1 > 1
    again = Ledger(url)
    assert again.run(f'run {taken - 1}') is not None
    assert again.run(f'run {taken}') is None
    again.close()


@pytest.mark.parametrize('content', [b'x' * 5000, b'SQLite format 3\x00' + bytes(4080)])
def test_a_file_that_is_no_ledger_is_refused_with_a_name(
    path: Path, url: str, content: bytes
) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(LedgerError) as raised:
        Ledger(url)
    assert raised.value.kind in ('ledger_unavailable', 'ledger_damaged')
    assert str(path.parent) not in raised.value.message
    with pytest.raises(LedgerError):
        LedgerReader(url)
    assert path.read_bytes() == content
    path.unlink()
    Ledger(url).close()


def test_a_truncated_ledger_is_refused(url: str, path: Path) -> None:
    ledger = Ledger(url)
    for number in range(50):
        accept(ledger, f'run {number}')
    ledger.close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 // 4096 * 4096])
    with pytest.raises(LedgerError) as raised:
        Ledger(url)
    assert raised.value.kind in ('ledger_unavailable', 'ledger_damaged')


def test_a_row_that_cannot_be_read_is_a_fault_with_a_name(
    ledger: Ledger, reader: LedgerReader, path: Path
) -> None:
    decide(ledger, accept(ledger))
    hold(ledger)
    foreign = sqlite3.connect(path)
    foreign.execute("UPDATE segments SET outcome = '{}'")
    foreign.execute("UPDATE attempts SET outcome = 'x'")
    foreign.execute("UPDATE updates SET ops = '{'")
    foreign.commit()
    foreign.close()
    for read in (
        lambda: ledger.run('run'),
        lambda: reader.run('run'),
        lambda: reader.attempts('run'),
        lambda: reader.latest(5),
        lambda: ledger.unpublished_outcomes(),
        lambda: ledger.held(),
        lambda: reader.updates_of('run'),
    ):
        with pytest.raises(LedgerError) as raised:
            read()
        assert raised.value.kind == 'ledger_damaged'


@pytest.mark.parametrize('version', ['2', '99'])
def test_a_ledger_of_a_newer_version_is_refused(url: str, path: Path, version: str) -> None:
    Ledger(url).close()
    foreign = sqlite3.connect(path)
    foreign.execute('UPDATE meta SET value = ? WHERE key = ?', (version, 'schema_version'))
    foreign.commit()
    foreign.close()
    for opens in (Ledger, LedgerReader):
        with pytest.raises(LedgerError, match='newer version') as raised:
            opens(url)
        assert raised.value.kind == 'ledger_unsupported'


@pytest.mark.parametrize(
    ('url', 'kind'),
    [
        ('', 'ledger_unsupported'),
        ('nonsense', 'ledger_unsupported'),
        ('postgresql://localhost/x', 'ledger_unsupported'),
        ('sqlite://', 'ledger_unsupported'),
        ('sqlite:///:memory:', 'ledger_unsupported'),
        ('sqlite:////dev/null/x/ledger.sqlite3', 'ledger_unavailable'),
        ('sqlite:////proc/ledger.sqlite3', 'ledger_unavailable'),
    ],
)
def test_a_url_that_leads_to_no_file_is_refused(url: str, kind: str) -> None:
    with pytest.raises(LedgerError) as raised:
        Ledger(url)
    assert raised.value.kind == kind


def test_a_reader_of_nothing_says_that_there_is_nothing(url: str) -> None:
    with pytest.raises(LedgerError) as raised:
        LedgerReader(url)
    assert raised.value.kind == 'ledger_missing'


def test_a_path_may_hold_any_characters(tmp_path: Path) -> None:
    url = f'sqlite:///{tmp_path}/a folder #1 100% ?/ledger & co.sqlite3'
    path = ledger_path(url)
    assert path is not None
    ledger = Ledger(f'sqlite:///{path}')
    accept(ledger)
    reader = LedgerReader(f'sqlite:///{path}')
    assert reader.run('run') is not None
    reader.close()
    ledger.close()
    assert path.exists()


def small(url: str) -> Ledger:
    return Ledger(url, keep_segments=5, keep_rejected=5)


def many_runs(ledger: Ledger, count: int) -> None:
    for number in range(count):
        name = f'run {number}'
        segment = accept(ledger, name)
        held = [hold(ledger, name, which) for which in ('good', 'bad')]
        outcome = decide(ledger, segment)
        with ledger.transaction():
            passed = ledger.release(held[0], NOW)
            refused = ledger.reject(held[1], 'why')
        with ledger.transaction():
            ledger.mark_published([outcome], [passed, refused])


def test_old_runs_are_reduced_to_their_names_and_released_updates_stay(url: str) -> None:
    ledger = small(url)
    many_runs(ledger, 20)
    with ledger.transaction():
        assert ledger.retire() == 15
    with ledger.transaction():
        assert ledger.retire() == 0
    old, new = ledger.run('run 0'), ledger.run('run 19')
    assert old is not None
    assert (old.retired, old.segments) == (True, ())
    assert new is not None
    assert new.state is SegmentState.SUCCESS
    reader = LedgerReader(url)
    assert reader.run('run 0') is None
    assert reader.attempts('run 0') == []
    assert len(reader.latest(100)) == 5
    assert [u.revision for u in reader.released(0, 100)[2]] == list(range(1, 21))
    assert [r.state for r in reader.updates_of('run 0')] == [RELEASED]
    reader.close()
    assert accept(ledger, 'next').order == 21
    ledger.close()


@pytest.mark.parametrize('needed', ['pending', 'unpublished', 'held', 'newer segment'])
def test_a_run_that_is_still_needed_is_not_retired(url: str, needed: str) -> None:
    ledger = small(url)
    segment = accept(ledger, 'needed')
    if needed != 'pending':
        outcome = decide(ledger, segment, EvaluatorError('down', ''))
        if needed != 'unpublished':
            with ledger.transaction():
                ledger.mark_published([outcome], [])
    if needed == 'held':
        hold(ledger, 'needed')
    many_runs(ledger, 10)
    if needed == 'newer segment':
        accept(ledger, 'needed', 1)
    with ledger.transaction():
        ledger.retire()
    run = ledger.run('needed')
    assert run is not None
    assert not run.retired
    assert ledger.run('run 0').retired  # type: ignore[union-attr]
    ledger.close()


def test_the_ledger_of_many_runs_stays_small(url: str, path: Path) -> None:
    ledger = small(url)
    for number in range(300):
        outcome = decide(ledger, accept(ledger, f'{number}'), EvaluatorError('down', 'x' * 3000))
        with ledger.transaction():
            ledger.mark_published([outcome], [])
            ledger.retire()
    ledger.close()  # which moves all pages from the write-ahead log into the file
    assert path.stat().st_size < 300 * 1000  # and not the 2 MB that were written


def test_every_kind_of_call_stays_what_it_is_for_any_text(ledger: Ledger) -> None:
    odd = "'; DROP TABLE segments; -- \U0001f916 %s {x}"
    accept(ledger, odd)
    hold(ledger, odd, odd)
    with ledger.transaction():
        ledger.interrupt(odd, odd)
        ledger.interrupt(odd, 'again')
    run = ledger.run(odd)
    assert run is not None
    assert run.interrupted
    assert ledger.find_update(odd, odd) is not None


def test_retiring_is_asked_for_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline_world import World

    monkeypatch.setattr('harness_eval.pipeline.recorder.RETIRE_EVERY', 3)
    world = World(tmp_path)
    world.ledger._keep_segments = 2
    first = world.end('a', 'bare')
    world.wait(4)
    for name in 'bcdef':
        world.end(name, 'bare')
        world.wait(4)
    world.report(first)
    assert world.told[-1].error_kind == 'conflicting_completion'
    world.propose('a')
    assert world.refused() == [('a', 'u', 'run_closed')]
    world.close()


def test_a_checkpoint_moves_the_log_to_the_file_and_is_due_now_and_then(
    ledger: Ledger, path: Path, tmp_path: Path
) -> None:
    due = []
    for number in range(2 * CHECKPOINT_AFTER):
        with ledger.transaction():
            ledger.add_segment(Completion(f'r{number}', 'pick', 0, NOW), NOW)
        due.append(ledger.checkpoint_due)
    assert due.count(True) == 2
    ledger.checkpoint()
    alone = tmp_path / 'alone.sqlite3'
    alone.write_bytes(path.read_bytes())
    reader = LedgerReader(f'sqlite:///{alone}')
    assert reader.run(f'r{2 * CHECKPOINT_AFTER - 1}') is not None
    reader.close()


def test_who_reads_first_notices_too_that_another_node_has_written(
    ledger: Ledger, url: str, path: Path
) -> None:
    accept(ledger, 'a')
    Path(f'{path}.lock').unlink()
    other = Ledger(url)
    accept(other, 'b')
    other.close()
    assert ledger.run('b') is not None
    assert accept(ledger, 'c').order == 3
