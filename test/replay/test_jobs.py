"""Work handed to others: the same results in the same order, whoever does it and whoever dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
import dataclasses
from pathlib import Path
import pickle
import shutil
from typing import Any

from hypothesis import given
import hypothesis.strategies as st
import pytest
from replayed_cell import RecordedCell, write_bag, write_config

from harness_eval.config import Config, load_config
from harness_eval.contract import EvaluatorError
from harness_eval.replay import plan
from harness_eval.replay.jobs import process_pool, replay
from harness_eval.replay.results import Metric, Replayed
from harness_eval.replay.sources import BagSource, CaseSource, find_sources, Source
from harness_eval.replay.task import bundles, How, judge, Run, Task
from harness_eval.runs import Completion

FINGERS = {'a': 0.95, 'b': 0.02, 'c': 0.13, 'd': 0.97, 'e': 0.7}


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bag of five runs with two segments more, and their cases."""
    cell = RecordedCell(tmp_path_factory.mktemp('cell'))
    for run_id, finger in FINGERS.items():
        cell.whole_run(run_id, finger)
        cell.pass_time(3)
    for number in range(2):
        cell.whole_run('long', 0.7, tool='insert', segment=number)
    cell.close()
    write_bag(cell.folder / 'bag', cell.recorded)
    return cell.folder


@pytest.fixture
def everything(folder: Path) -> list[Source]:
    """The bag and the cases."""
    return [BagSource(folder / 'bag'), *find_sources([str(folder / 'evidence')])[0]]


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few runs are work for several workers."""
    monkeypatch.setattr(plan, 'TASK_SIZE', 2)


def timeless(found: Replayed) -> Replayed:
    """Results without the seconds of this machine."""
    return dataclasses.replace(
        found, results=tuple(dataclasses.replace(one, seconds=0.0) for one in found.results)
    )


class Backwards(Executor):
    """Does the work when all of it has come, the last first."""

    def __init__(self) -> None:
        self._waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        # Through bytes, as to another machine.
        self._waiting.append((future, fn, pickle.loads(pickle.dumps(args))))
        if len(self._waiting) == self.expected:
            for one, work, given_ in reversed(self._waiting):
                one.set_result(pickle.loads(pickle.dumps(work(*given_))))
        return future

    expected = 0


@pytest.mark.usefixtures('small_tasks')
def test_results_come_in_the_order_of_the_sources_whoever_is_first(
    folder: Path, everything: list[Source]
) -> None:
    alone = replay(everything, folder / 'cell.yaml')
    assert len(alone.results) == 14
    backwards = Backwards()
    backwards.expected = len(
        plan.planned(everything, How(load_config(folder / 'cell.yaml')), None).tasks
    )
    assert backwards.expected == 8
    assert timeless(replay(everything, folder / 'cell.yaml', executor=backwards)) == timeless(
        alone
    )
    with ThreadPoolExecutor(2) as threads:
        found = replay(everything, folder / 'cell.yaml', executor=threads)
    assert timeless(found) == timeless(alone)


def test_a_worker_that_dies_takes_only_the_run_that_kills_it(
    folder: Path, everything: list[Source]
) -> None:
    config = write_config(folder / 'fatal.yaml', evaluator='fatal')
    with process_pool(1) as pool:
        found = replay(everything[:3], config, executor=pool)
    judged = [(one.source == 'bag', one.completion.run_id) for one in found.results]
    assert judged == [
        *((True, name) for name in ('a', 'b', 'd', 'e', 'long', 'long')),
        *((False, name) for name in ('a', 'b')),
    ]
    assert [one.kind for one in found.skipped] == ['worker_died']
    assert found.skipped[0].source == 'bag'
    assert "run 'c' of bag" in found.skipped[0].message


def test_nothing_temporary_is_left_whatever_dies(
    folder: Path, everything: list[Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('TMPDIR', str(tmp_path))
    monkeypatch.setattr('tempfile.tempdir', None)
    config = write_config(folder / 'fatal.yaml', evaluator='fatal')
    with process_pool(1) as pool:
        found = replay(everything[3:4], config, executor=pool)
    assert [one.kind for one in found.skipped] == ['worker_died']
    replay(everything[:2], folder / 'cell.yaml')
    assert [path.name for path in tmp_path.iterdir() if 'harness' in path.name] == []


def test_progress_is_told_from_nothing_to_all(folder: Path, everything: list[Source]) -> None:
    told: list[tuple[int, int]] = []
    replay(everything, folder / 'cell.yaml', progress=lambda *now: told.append(now))
    assert told == [(done, 14) for done in range(15)]


def test_progress_comes_to_its_end_though_a_completion_came_twice(
    folder: Path, tmp_path: Path
) -> None:
    cell = RecordedCell(tmp_path)
    first = cell.end('a')
    cell.report(first)
    cell.pass_time(4)
    cell.close()
    told: list[tuple[int, int]] = []
    bag = BagSource(write_bag(tmp_path / 'bag', cell.recorded))
    found = replay([bag], folder / 'cell.yaml', progress=lambda *now: told.append(now))
    assert len(found.results) == 1
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_a_source_that_is_broken_is_told_and_the_rest_is_judged(
    folder: Path, everything: list[Source], tmp_path: Path
) -> None:
    (tmp_path / 'broken.mcap').write_bytes(b'\x89MCAP0\r\n and nothing more')
    (tmp_path / 'no_bag.mcap').write_bytes(b'')
    copy = shutil.copytree(everything[1].path, tmp_path / 'copy')
    (copy / 'case.json').write_text('[]')
    sources = [
        BagSource(tmp_path / 'broken.mcap'),
        everything[0],
        BagSource(tmp_path / 'no_bag.mcap'),
        CaseSource(copy),
        everything[2],
    ]
    found = replay(sources, folder / 'cell.yaml')
    assert [one.source for one in found.results] == ['bag'] * 7 + [everything[2].name]
    assert {one.source for one in found.skipped} == {'broken.mcap', 'no_bag.mcap', 'copy'}
    assert not any(str(tmp_path) in one.message for one in found.skipped)


def test_an_executor_that_takes_nothing_more_is_done_without(
    folder: Path, everything: list[Source]
) -> None:
    class Broken(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            raise BrokenExecutor('it has ended')

    found = replay(everything[:1], folder / 'cell.yaml', executor=Broken())
    assert len(found.results) == 7
    assert not found.skipped


def test_an_interruption_takes_back_what_was_not_begun(
    folder: Path, everything: list[Source]
) -> None:
    futures: list[Future[Any]] = []

    class Interrupted(Executor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            futures.append(Future())
            if len(futures) == 2:
                futures[0].set_exception(KeyboardInterrupt())
            return futures[-1]

    with pytest.raises(KeyboardInterrupt):
        replay(everything[:2], folder / 'cell.yaml', executor=Interrupted())
    assert futures[1].cancelled()


def test_an_evaluator_that_cannot_be_made_is_told_once(
    folder: Path, everything: list[Source], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unmade(*_: object) -> None:
        raise EvaluatorError('no_client', 'install it')

    monkeypatch.setattr('harness_eval.evaluators.build_evaluator', unmade)
    with pytest.raises(EvaluatorError, match='install it'):
        replay(everything, folder / 'cell.yaml')


def test_what_a_result_rests_on_is_told(folder: Path, everything: list[Source]) -> None:
    config = write_config(
        folder / 'metric.yaml',
        pick=', metric: {name: depth, scale: 0.5, goal: minimize}, '
        'report: {outputs: [{key: depth, title: Depth, type: number}]}',
    )
    found = replay(everything[:1], config)
    assert found.config == 'metric.yaml'
    assert found.metrics == {'pick': Metric('depth', 'minimize', 0.5)}
    assert {'harness_eval', 'numpy', 'opencv', 'rosbags'} <= set(found.versions)
    assert Replayed.from_json(found.to_json(folder), folder) == dataclasses.replace(found)


# --- what belongs together -----------------------------------------------------------------------


@pytest.fixture(scope='module')
def config(folder: Path) -> Config:
    return load_config(folder / 'cell.yaml')


def run(place: int, run_id: str, receipt: float) -> Run:
    return Run(place, Completion(run_id, 'pick'), round(receipt * 10**9) + 1)


def names(parts: list[list[Run]]) -> list[str]:
    return [' '.join(one.completion.run_id for one in part) for part in parts]


def test_runs_that_may_share_evidence_and_segments_of_one_run_stay_together(
    config: Config,
) -> None:
    runs = [
        run(0, 'a', 0),
        run(1, 'b', 3.2),  # 3.3 s after `a` its evidence would be over
        run(2, 'c', 20),
        run(3, 'd', 30),
        run(4, 'c', 40),
        run(5, 'e', 42),
        run(6, 'f', 60),
    ]
    assert names(bundles(runs, config)) == ['a b', 'c c e', 'd', 'f']


@given(
    st.lists(st.tuples(st.sampled_from('abcdef'), st.floats(0, 60)), max_size=15).map(
        lambda ends: sorted(ends, key=lambda end: end[1])
    )
)
def test_no_two_parts_share_a_run_or_a_moment(
    config: Config, ends: list[tuple[str, float]]
) -> None:
    runs = [run(place, *end) for place, end in enumerate(ends)]
    parts = bundles(runs, config)
    assert sorted(one.place for part in parts for one in part) == list(range(len(runs)))
    for number, part in enumerate(parts):
        assert [one.place for one in part] == sorted(one.place for one in part)
        for other in parts[number + 1 :]:
            for one in part:
                for two in other:
                    assert one.completion.run_id != two.completion.run_id
                    assert abs(one.receipt - two.receipt) > 3.3e9 - 1


def test_a_task_can_be_sent_and_divided(folder: Path, everything: list[Source]) -> None:
    found = plan.planned(everything, How(load_config(folder / 'cell.yaml')), None).tasks
    assert [task.size for task in found] == [7, 7]
    again = pickle.loads(pickle.dumps(found[0]))
    assert isinstance(again, Task)
    assert judge(again)[0][1].source == 'bag'
    assert [part.size for part in found[0].parts()] == [1, 1, 1, 1, 1, 2]
    assert [part.size for part in found[1].parts()] == [1] * 7


@pytest.fixture
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip('distributed')
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as made,
        distributed.Client(made, set_as_default=False) as client,
    ):
        yield client


@pytest.mark.usefixtures('small_tasks')
def test_a_dask_cluster_does_the_same_work(
    folder: Path, everything: list[Source], cluster: Any
) -> None:
    found = replay(everything, folder / 'cell.yaml', executor=cluster.get_executor(pure=False))
    assert timeless(found) == timeless(replay(everything, folder / 'cell.yaml'))
