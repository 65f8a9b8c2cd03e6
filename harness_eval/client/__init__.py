"""The agent's side: run a tool, wait for what became of it, go on with the next segment.

::

    with EvaluationClient() as client:
        client.run('pick_object', {'target': 'bottle'}, lambda segment: robot.pick('bottle'))

What the callable returns is not looked at: whether the tool worked is for the evaluator to say.

Threading: :meth:`EvaluationClient.run` blocks the calling thread, which must not be one that
spins the client's node. Without a node of yours the client makes one and spins it in a thread,
which ends when the client is closed, at the latest when the interpreter ends.
"""

from harness_eval.client.ends import (
    NoOutcome,
    RunAbstained,
    RunError,
    RunFailed,
    RunInterrupted,
    RunNotSuccessfulError,
    successful,
)
from harness_eval.client.evaluation_client import EvaluationClient

__all__ = [
    'EvaluationClient',
    'NoOutcome',
    'RunAbstained',
    'RunError',
    'RunFailed',
    'RunInterrupted',
    'RunNotSuccessfulError',
    'successful',
]
