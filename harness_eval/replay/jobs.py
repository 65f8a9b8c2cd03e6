"""A replay as a whole: planned, handed to workers, and put together in order.

Work goes over a :class:`concurrent.futures.Executor`, whatever it is: processes of this machine, a
Dask cluster, or none at all. Results come in the order of the sources whatever finishes first. A
worker that dies takes only the segments with it that kill it: what else it had is judged again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    as_completed,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
)
from dataclasses import replace
import logging
import multiprocessing
import os
from pathlib import Path
import signal
from tempfile import TemporaryDirectory
import threading

from harness_eval.config import Config, load_config
from harness_eval.replay.answers import Answers
from harness_eval.replay.judges import need_evaluators
from harness_eval.replay.plan import planned
from harness_eval.replay.player import Played
from harness_eval.replay.results import Metric, Replayed, Result, Skipped
from harness_eval.replay.sources import Source, SourceError, told_apart
from harness_eval.replay.task import How, judge, judged, Task
from harness_eval.runs import INTERNAL_ERROR, internal_error

log = logging.getLogger('harness_eval.replay')

Progress = Callable[[int, int], None]
"""Told how many segments are judged, and how many there are."""


def replay(
    sources: Sequence[Source],
    config: Path | Config,
    *,
    answers: Answers = 'live',
    completions: Path | None = None,
    keep_cases: Path | None = None,
    album: Path | None = None,
    namespace: str | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Replayed:
    """Judge sources again, by the rules of a configuration.

    Args:
        sources: Cases and bags; see :func:`harness_eval.replay.sources.find_sources`.
        config: The configuration, or its file.
        answers: ``live``: every evaluator is asked; ``recorded``: models and services are not, and
            what they answered then is given again.
        completions: CSV file of completions that count in the place of those in the bags.
        keep_cases: Folder that new cases are kept in, within ``evidence`` of the configuration.
        album: Folder that keeps the frames of bags for a report where ``keep_cases`` is None; it
            is the caller's to delete.
        namespace: Namespace of the node that took the evidence; None: the root for bags,
            whichever it was for cases.
        executor: What runs the work; None: this thread does.
        progress: Told how far it is.

    Raises:
        ConfigError: The file is not a valid configuration.
        EvaluationError: An evaluator cannot be made, the CSV file cannot be read, or
            ``keep_cases`` holds some of the sources.
    """
    name = config.name if isinstance(config, Path) else ''
    loaded = load_config(config) if isinstance(config, Path) else config
    _refuse_to_overwrite(sources, keep_cases)
    need_evaluators(loaded)  # one that cannot be made is told once, and not by every worker
    with TemporaryDirectory(prefix='harness_eval_') as scratch:
        how = How(loaded, answers, keep_cases, namespace, album, Path(scratch))
        plan = planned(told_apart(sources), how, completions)
        report = _Progress(progress, sum(task.size for task in plan.tasks))
        if executor is None:
            played = [one for task in plan.tasks for one in report.each(judged(task))]
        else:
            played = _spread(plan.tasks, executor, report)
        report.end()
    ordered = [one for _, one in sorted(played, key=lambda pair: pair[0])]
    return Replayed(
        results=tuple(_still_kept(one) for one in ordered if isinstance(one, Result)),
        skipped=_once([*plan.skipped, *(one for one in ordered if isinstance(one, Skipped))]),
        config=name,
        versions=versions(),
        metrics=_metrics(loaded),
    )


def _spread(
    tasks: Sequence[Task], executor: Executor, report: _Progress
) -> list[tuple[int, Played]]:
    """Have an executor do the tasks; those that a dead worker had are tried again one by one."""
    played: list[tuple[int, Played]] = []
    again: list[Task] = []
    futures: dict[Future[list[tuple[int, Played]]], Task] = {}
    try:
        for task in tasks:
            futures[executor.submit(judge, task)] = task
    except BrokenExecutor:
        again += tasks[len(futures) :]
    try:
        for future in as_completed(futures):
            task = futures[future]
            try:
                played += report.all(future.result())
            except Exception:
                again.append(task)
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    if again:
        with _Alone() as alone:
            for task in again:
                played += report.all(alone.judge(task))
    return played


class _Alone:
    """A process that does one task at a time, and another one after each death; a context."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> _Alone:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            end_pool(self._pool)

    def judge(self, task: Task) -> list[tuple[int, Played]]:
        """Do a task; what ends the process is judged in parts, until it is found."""
        if self._pool is None:
            self._pool = process_pool(1)
        try:
            return self._pool.submit(judge, task).result()
        except BrokenExecutor:
            self._pool = None
        except Exception as error:
            log.exception('a fault in a worker; others go on')
            return task.skipped(INTERNAL_ERROR, internal_error(error).message)
        parts = task.parts()
        if len(parts) > 1:
            return [one for part in parts for one in self.judge(part)]
        return task.skipped(
            'worker_died',
            'the process that judged it ended; if an evaluator of native code takes it down, give '
            "it 'isolation: process', or give the machine more memory",
        )


def process_pool(jobs: int) -> ProcessPoolExecutor:
    """Processes that can do tasks; Ctrl-C is left to the one that started them.

    Args:
        jobs: How many.
    """
    # Spawned, since a fork would copy the threads' locks of whoever calls this.
    context = multiprocessing.get_context('spawn')
    return ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin_worker)


def end_pool(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool at once, whatever they do."""
    processes = list((getattr(pool, '_processes', None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()


def _begin_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Let no worker outlive whoever wants its results, however that one ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


class _Progress:
    """Counts what is judged, and tells it."""

    def __init__(self, tell: Progress | None, total: int) -> None:
        self._tell = tell
        self._total = total
        self._done = 0
        self._note(0)

    def each(self, played: Iterator[tuple[int, Played]]) -> Iterator[tuple[int, Played]]:
        """Count one after the other as they come."""
        for one in played:
            self._note(1)
            yield one

    def all(self, played: list[tuple[int, Played]]) -> list[tuple[int, Played]]:
        """Count them all."""
        self._note(len(played))
        return played

    def end(self) -> None:
        """Count what needed no judgement too: completions that came twice."""
        if self._done < self._total:
            self._note(self._total)

    def _note(self, more: int) -> None:
        self._done = min(self._done + more, self._total)
        if self._tell is not None:
            self._tell(self._done, self._total)


def versions() -> dict[str, str]:
    """Versions of what a result depends on beside the configuration."""
    from importlib.metadata import version

    import cv2
    import numpy as np

    from harness_eval import __version__

    return {
        'harness_eval': __version__,
        'numpy': np.__version__,
        'opencv': cv2.__version__,
        'rosbags': version('rosbags'),
    }


def _metrics(config: Config) -> dict[str, Metric]:
    from harness_eval.config.rules_metric import metric_scale

    found = {}
    for tool, settings in config.evaluation.tools.items():
        metric, report = settings.metric, settings.report
        if metric is None or report is None:
            continue
        output = next(one for one in report.outputs if one.key == metric.name)
        scale = metric_scale(metric, output)
        found[tool] = Metric(metric.name, metric.goal, 1.0 if scale is None else scale)
    return found


def _refuse_to_overwrite(sources: Sequence[Source], keep: Path | None) -> None:
    """Make sure that no source is replaced by what comes of it: sources stay as they are."""
    if keep is None:
        return
    folder = keep.resolve()
    for source in sources:
        path = source.path.resolve()
        if path in (folder, *folder.parents):
            raise SourceError(
                'cases_are_sources',
                f'new cases cannot be kept in {source.name}, which is judged: sources stay as '
                'they are; name a folder outside of it',
            )
        if folder in path.parents:
            raise SourceError(
                'cases_are_sources',
                f'new cases cannot be kept in {keep.name}, where {source.name} lies, which is '
                'judged: they would take the place of the old ones; name another folder',
            )


def _once(skipped: Sequence[Skipped]) -> tuple[Skipped, ...]:
    return tuple(dict.fromkeys(skipped))


def _still_kept(result: Result) -> Result:
    """The result without its case, if that was deleted to stay within bounds."""
    if result.case is None or result.case.is_dir():
        return result
    return replace(result, case=None)
