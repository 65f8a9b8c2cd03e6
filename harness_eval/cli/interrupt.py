"""``harness-eval interrupt``: stop the evaluation of a run."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from harness_eval.cli.records import DEFAULT_NODE, NodeOption
from harness_eval.cli.screen import plain, print_screen, refuse
from harness_eval.cli.with_ros import checked_run_id, linked, nobody, NODE_TIMEOUT
from harness_eval.runs import MAX_REASON


def interrupt(
    run_id: Annotated[str, typer.Argument(metavar='RUN_ID', help='The run.')],
    reason: Annotated[
        str, typer.Option(metavar='TEXT', help='Why; it is put on record.')
    ] = 'interrupted from the shell',
    node: NodeOption = DEFAULT_NODE,
) -> None:
    """Stop the evaluation of a run; one that has not ended yet is then never evaluated.

    Exits with 0 if the run is interrupted and 2 if not: it had ended, or no node answers.
    """
    run_id = checked_run_id(run_id)
    deadline = time.monotonic() + NODE_TIMEOUT
    with linked(node, run_id) as link:
        while True:
            try:
                known = link.look(deadline) is not None
                done, message = link.interrupt(plain(reason, MAX_REASON), deadline)
            except TimeoutError:
                if time.monotonic() < deadline:
                    continue
                refuse(nobody(node, 'interrupting'))
            break
    name = plain(run_id)
    if not done:
        refuse(f'run {name!r} is not interrupted: {message}')
    if known:
        print_screen(f'run {name} is interrupted: {message}')
    else:
        print_screen(f'run {name} is interrupted before it ended: no completion of it is taken')
