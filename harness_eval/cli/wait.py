"""``harness-eval wait``: the exit code of a run, from outside."""

from __future__ import annotations

from contextlib import nullcontext
import sys
import time
from typing import Annotated, Any, NoReturn, Optional, TYPE_CHECKING

from rich.console import Console
import typer

from harness_eval.cli.exit_codes import code_of_state, EVALUATION_ERROR, NO_OUTCOME
from harness_eval.cli.outcome_text import outcome_heading, outcome_json, outcome_rows
from harness_eval.cli.records import DEFAULT_NODE, JsonOption, NodeOption
from harness_eval.cli.runs import age_text
from harness_eval.cli.screen import complain, fields, plain, print_json, print_screen, refuse
from harness_eval.cli.waiting import (
    answer,
    heard,
    is_old,
    merged,
    NeverComesError,
    OnRecord,
    Wanted,
)
from harness_eval.cli.with_ros import checked_run_id, linked
from harness_eval.runs import CLOSED, Outcome

if TYPE_CHECKING:
    from harness_eval.cli.link import EvaluatorLink

POLL_PERIOD = 0.5
"""Seconds between two looks at the record, for what is published nowhere: a tombstone."""

# typer reads these at run time, on Python 3.10 too.
SegmentOption = Annotated[
    Optional[int],  # noqa: UP045
    typer.Option(
        min=0, max=2**32 - 1, help='Number of the segment; default: the last.', show_default=False
    ),
]
TimeoutOption = Annotated[
    float, typer.Option(min=0.0, metavar='S', help='Seconds to wait for an outcome.')
]


def wait(
    run_id: Annotated[str, typer.Argument(metavar='RUN_ID', help='The run.')],
    segment: SegmentOption = None,
    final: Annotated[
        bool, typer.Option('--final', help='Wait through `process` until the run is decided.')
    ] = False,
    timeout: TimeoutOption = 120.0,
    max_age: Annotated[
        float,
        typer.Option(
            min=0.0,
            metavar='S',
            help='An outcome that was decided longer ago, before the wait began, is not taken: '
            'it is of an earlier run of that name. `inf` takes every one.',
        ),
    ] = 60.0,
    node: NodeOption = DEFAULT_NODE,
    as_json: JsonOption = False,
) -> None:
    """Wait for the outcome of a run, print it and exit with its code.

    The node may start later, or restart meanwhile. Of a segmented tool's run the outcome of the
    last segment counts, unless --segment names one or --final waits for the end of the run.
    """
    run_id = checked_run_id(run_id)
    if final and segment is not None:
        refuse('--final waits for the end of the run, --segment for one of its parts: give one')
    deadline = time.monotonic() + timeout
    wanted = Wanted(segment, final)
    with linked(node, run_id) as link:
        wait_and_exit(link, run_id, wanted, deadline, node, as_json, max_age=max_age)


def wait_and_exit(
    link: EvaluatorLink,
    run_id: str,
    wanted: Wanted,
    deadline: float,
    node: str,
    as_json: bool,
    *,
    max_age: float = float('inf'),
) -> NoReturn:
    """Wait for an outcome, print it, and end the command with its code.

    Args:
        link: The link to the node.
        run_id: The run.
        wanted: Which outcome counts.
        deadline: On the clock of :func:`time.monotonic`.
        node: Name of the node, for messages.
        as_json: Whether JSON is printed.
        max_age: Seconds since its decision beyond which an outcome that was there at the first
            look does not count.
    """
    search = _Search(link, run_id, wanted, node, max_age)
    shown = _status() if sys.stderr.isatty() else nullcontext()
    with shown as status:
        outcome = search.run(deadline, status)
    if outcome is not None:
        if as_json:
            print_json(outcome_json(outcome))
        else:
            print_screen(fields([*outcome_heading(outcome), *outcome_rows(outcome)]))
        raise typer.Exit(code_of_state(outcome.state.value))
    code = EVALUATION_ERROR if search.unreadable else NO_OUTCOME
    message = search.unreadable or f'no outcome of run {plain(run_id)!r} in time: {search.why}'
    if as_json:
        print_json({'run_id': run_id, 'state': None, 'exit_code': code, 'message': message})
    complain(message)
    raise typer.Exit(code)


class _Search:
    """Looks at the record, and at what is published, until the wanted outcome is there.

    The record is asked first and again whenever something was published, since only it knows
    which of several attempts is the newest. What was published counts where the record knows
    nothing: an outcome of a completion that could not be recorded.
    """

    def __init__(
        self, link: EvaluatorLink, run_id: str, wanted: Wanted, node: str, max_age: float
    ) -> None:
        self._link = link
        self._run_id = run_id
        self._wanted = wanted
        self._node = node
        self._max_age = max_age
        self._fresh = False  # whatever comes was decided while we wait
        self.why = ''
        self.unreadable = ''

    def run(self, deadline: float, status: Any) -> Outcome | None:
        """Give the outcome, or None; ``why`` and ``unreadable`` then say why."""
        while True:
            count = len(self._link.heard)
            outcome = self._look(deadline)
            if outcome is not None or self.unreadable:
                return outcome
            if status is not None:
                status.update(f'{plain(self._run_id, 60)}: {plain(self.why, 200)}')
            pause = min(deadline, time.monotonic() + POLL_PERIOD)
            news = self._link.spin_until_heard(count, pause)
            if pause >= deadline and not news:
                return None  # a question now would be one whose answer nobody waits for

    def _look(self, deadline: float) -> Outcome | None:
        run: OnRecord | str | None
        answered = True
        try:
            run = self._link.look(deadline)
        except TimeoutError:
            run, answered = None, False
            if not self.why or time.monotonic() < deadline:
                self.why = f'no evaluator node {plain(self._node)!r} answers'
        else:
            self.why = 'the node has heard of no completion of it by a required tool'
            self._fresh = self._fresh or run is None
        if isinstance(run, str):
            self.unreadable = run
            return None
        recorded = run is not None
        run = merged(run, heard(self._run_id, self._link.heard))
        if run is None:
            self.unreadable = self._link.unreadable
            return None
        try:
            outcome = answer(run, self._wanted)
        except NeverComesError as error:
            refuse(f'run {plain(self._run_id)!r}: {error}')
        if outcome is None:
            # What is not on record now is decided while we wait. Of what was published before,
            # one message comes after the other, so that this says nothing of the next.
            self._fresh = self._fresh or answered
            self.why = f'segment {run.segment} is {run.state.value}'
            return None
        # Latched outcomes of another time are published anew to whoever comes, so that one which
        # is not on record counts only by its own age.
        fresh = self._fresh and recorded
        return outcome if fresh or not self._too_old(outcome, run) else None

    def _too_old(self, outcome: Outcome, run: OnRecord) -> bool:
        """Whether it is of an earlier run of that name; a closed one ends the command."""
        if not outcome.decided_at:
            return False  # an interruption: it stops the robot, whenever it was asked for
        age = self._link.age(outcome.decided_at)
        if not is_old(age, self._max_age):
            return False
        when = f'{age_text(age)} ago' if age > 0 else f'{age_text(-age)} in the future'
        self.why = f'what is on record, {outcome.label} of segment {outcome.segment}, is of {when}'
        if run.state in CLOSED:
            refuse(
                f'run {plain(self._run_id)!r} is on record as {outcome.label}, decided {when} and '
                'so not about a run that has just ended: run ids must never be reused. `show` '
                'tells more; --max-age takes older outcomes'
            )
        return True


def _status() -> Any:
    return Console(stderr=True, markup=False, highlight=False).status('waiting')
