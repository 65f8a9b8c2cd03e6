"""Who does the work of a replay, and how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from enum import Enum
from importlib import import_module
import logging
import os
import signal
import sys
import threading
import traceback
from typing import Annotated, NoReturn, Optional, TYPE_CHECKING

import typer

from harness_eval.cli.screen import complain, plain, refuse
from harness_eval.lines import describe

if TYPE_CHECKING:
    from harness_eval.replay.jobs import Progress

DASK_TIMEOUT = '30s'
"""How long a scheduler may take to answer."""


class Answers(str, Enum):
    """Where the answers of models and services come from; older typer takes no Literal."""

    live = 'live'
    recorded = 'recorded'


# typer reads these at run time, on Python 3.10 too.
JobsOption = Annotated[int, typer.Option('--jobs', metavar='N', min=1, help='How many processes.')]
DaskOption = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        '--dask',
        metavar='ADDRESS',
        help='Scheduler of a Dask cluster that does the work, as tcp://host:port.',
        show_default=False,
    ),
]
AnswersOption = Annotated[
    Answers,
    typer.Option(
        '--answers',
        help='Ask models and services (live), or take the answers that the sources have.',
    ),
]


@contextmanager
def working(jobs: int, dask: str | None) -> Iterator[Executor | None]:
    """What does the work: None for this process, or an executor until the end of the block.

    Args:
        jobs: How many processes.
        dask: Address of the scheduler of a Dask cluster; it excludes several processes.
    """
    if dask is not None and jobs > 1:
        refuse('--jobs and --dask exclude each other: the cluster says how many work')
    with _tidy_when_terminated():
        if dask is not None:
            with _cluster(dask) as executor:
                yield executor
        elif jobs == 1:
            yield None
        else:
            with _processes(jobs) as executor:
                yield executor


@contextmanager
def _processes(jobs: int) -> Iterator[Executor]:
    from harness_eval.replay.jobs import end_pool, process_pool

    pool = process_pool(jobs)
    try:
        yield pool
    except BaseException:
        end_pool(pool)
        raise
    pool.shutdown()


@contextmanager
def _tidy_when_terminated() -> Iterator[None]:
    """Have SIGTERM (a CI job that is cancelled) end the command as Ctrl-C does.

    Otherwise workers and temporary folders would be left behind.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    try:
        distributed = import_module('distributed')
    except ImportError:
        refuse('--dask needs Dask; install it, for example with pip install distributed')
    try:
        client = distributed.Client(address, timeout=DASK_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        refuse(f'no Dask scheduler answers at {plain(address, 200)}: {describe(error)}')
    with client:
        yield client.get_executor(pure=False)


class _Complaints(logging.Handler):
    """What a replay warns of, one line on the standard error each."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(record.getMessage())
        if record.exc_info and os.environ.get('HARNESS_EVAL_TRACEBACK'):
            traceback.print_exception(*record.exc_info)


@contextmanager
def warnings_told() -> Iterator[None]:
    """Tell what a replay warns of, until the end of the block."""
    log = logging.getLogger('harness_eval.replay')
    handler = _Complaints(logging.WARNING)
    before, log.propagate = log.propagate, False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.propagate = before


@contextmanager
def progress_bar(quiet: bool) -> Iterator[Progress | None]:
    """A progress bar on the standard error, if that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ('judging', BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task('', total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield tell
