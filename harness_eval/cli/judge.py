"""``harness-eval judge``: a new attempt at a run that ended in an error or an abstention."""

from __future__ import annotations

import time
from typing import Annotated, TYPE_CHECKING

import typer

from harness_eval.cli.records import DEFAULT_NODE, JsonOption, NodeOption
from harness_eval.cli.screen import plain, refuse
from harness_eval.cli.wait import SegmentOption, TimeoutOption, wait_and_exit
from harness_eval.cli.waiting import OnRecord, Wanted
from harness_eval.cli.with_ros import checked_run_id, linked, nobody, NODE_TIMEOUT
from harness_eval.runs import PENDING

if TYPE_CHECKING:
    from harness_eval.cli.link import EvaluatorLink


def judge(
    run_id: Annotated[str, typer.Argument(metavar='RUN_ID', help='The run.')],
    segment: SegmentOption = None,
    timeout: TimeoutOption = 120.0,
    node: NodeOption = DEFAULT_NODE,
    as_json: JsonOption = False,
) -> None:
    """Judge a run again from its stored evidence, wait, and exit with the new outcome's code.

    Only an error or an abstention of the last segment can be judged again, by the running node.
    """
    run_id = checked_run_id(run_id)
    deadline = time.monotonic() + timeout
    with linked(node, run_id) as link:
        if not link.wait_for_node(min(deadline, time.monotonic() + NODE_TIMEOUT)):
            refuse(nobody(node, 'judging again'))
        run = _look(link, run_id, node, deadline)
        number = run.segment if segment is None else segment
        before = next((o.attempt for o in run.outcomes if o.segment == number), 0)
        attempt = _ask(link, run_id, number, before, node, deadline)
        wait_and_exit(link, run_id, Wanted(number, attempt=attempt), deadline, node, as_json)


def _look(link: EvaluatorLink, run_id: str, node: str, deadline: float) -> OnRecord:
    """What is on record; a question without an answer is asked again, which changes nothing."""
    while True:
        try:
            run = link.look(deadline)
        except TimeoutError:
            if time.monotonic() >= deadline:
                refuse(nobody(node, 'judging again'))
            continue
        if isinstance(run, str):
            refuse(run)
        if run is None:
            refuse(f'there is no run {plain(run_id, 80)!r} on record')
        return run


def _ask(
    link: EvaluatorLink, run_id: str, number: int, before: int, node: str, deadline: float
) -> int:
    """Ask for a new attempt and return its number; a refusal ends the command.

    An answer can be lost after the node has begun. It is then found on record that it has, and
    the node is not asked a second time.
    """
    while True:
        try:
            attempt, refusal = link.judge_again(number, deadline)
        except TimeoutError:
            run = _look(link, run_id, node, deadline)
            begun = run.segment == number and run.state in PENDING
            if begun or any(o.segment == number and o.attempt > before for o in run.outcomes):
                return before + 1
            continue
        if refusal:
            refuse(f'not judged again: {refusal}')
        return attempt
