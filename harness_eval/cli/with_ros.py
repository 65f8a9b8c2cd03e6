"""What the verbs that need a running node have in common; imports rclpy when it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import importlib
from typing import TYPE_CHECKING

from harness_eval.cli.screen import plain, refuse
from harness_eval.runs import id_problem

if TYPE_CHECKING:
    from harness_eval.cli.link import EvaluatorLink

NODE_TIMEOUT = 10.0
"""Seconds in which a node that runs is found and answers; discovery takes up to about two."""

_NEEDED = {
    'rclpy': 'source a ROS 2 installation',
    'harness_eval_msgs.srv': 'build harness_eval_msgs and source its workspace',
}


def checked_run_id(run_id: str) -> str:
    """The run id, if a run can have it; anything else ends the command."""
    problem = id_problem(run_id) if run_id else 'that is empty'
    if problem:
        refuse(f'no run can have a run id {problem}')
    return run_id


@contextmanager
def linked(node: str, run_id: str) -> Iterator[EvaluatorLink]:
    """Link to an evaluator node, which need not be there yet; without ROS the command ends."""
    need_ros()
    from rclpy.exceptions import NameValidationException

    from harness_eval.cli.link import EvaluatorLink

    try:
        link = EvaluatorLink(node, run_id)
    except NameValidationException as error:
        refuse(f'--node {plain(node)!r} is no name of a node: {_first_line(error)}')
    except Exception as error:  # whatever the middleware raises when it cannot start
        refuse(f'cannot join the ROS graph: {type(error).__name__}: {_first_line(error)}')
    with link:
        yield link


def need_ros() -> None:
    """End the command, with what to do, unless ROS and our messages can be imported."""
    for module, remedy in _NEEDED.items():
        _need(module, remedy)


def _need(module: str, remedy: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError as error:
        refuse(f'this needs ROS 2, but {module} cannot be imported ({error}): {remedy}')


def nobody(node: str, what: str) -> str:
    """Say that a node must run."""
    return f'no evaluator node {plain(node)!r} answers, and {what} needs one: start it, or --node'


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition('\n')[0]
